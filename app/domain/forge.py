"""What a forge tells us besides the pull request itself. All texts are untrusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.domain.markers import Marker
from app.domain.pull_request import Account, RepoRef, ReviewThread


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """Who we are on the forge: the App, and the bot account it acts as."""

    app_id: int
    slug: str
    account: Account

    @property
    def commit_name(self) -> str:
        return self.account.login

    @property
    def commit_email(self) -> str:
        """The address that makes GitHub show a commit as the bot's: its user id, not the App's."""
        return f"{self.account.id}+{self.account.login}@users.noreply.github.com"


@dataclass(frozen=True, slots=True)
class CloneRemote:
    """Where to fetch from or push to, over HTTPS with user `x-access-token`.

    `url` never holds the token, and the token never shows in a repr. It lives under an hour.
    """

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as the forge shows it to an installation."""

    ref: RepoRef
    default_branch: str
    private: bool = True
    archived: bool = False
    fork: bool = False


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation of the App. A suspended one refuses every token."""

    id: int
    account: Account
    suspended: bool
    permissions: tuple[tuple[str, str], ...] = ()


class ReviewState(StrEnum):
    """GitHub's states of a review, in the spelling of its REST API."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    COMMENTED = "COMMENTED"
    DISMISSED = "DISMISSED"


@dataclass(frozen=True, slots=True)
class PublishedReview:
    """A review of our own account. `head_sha` moves after a force-push: our own record decides
    which head was read, never this field.
    """

    id: int
    state: ReviewState
    head_sha: str
    body: str
    markers: tuple[Marker, ...] = ()
    submitted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IssueComment:
    """A comment in the conversation of a pull request. `markers` is empty unless it is ours."""

    id: int
    author: Account
    body: str
    ours: bool
    markers: tuple[Marker, ...] = ()
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Discussion:
    """What was said on a pull request: in threads of the diff, and in the conversation below it,
    both oldest first."""

    threads: tuple[ReviewThread, ...] = ()
    comments: tuple[IssueComment, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedCheck:
    """A check run of our App. `annotations` is how many it shows."""

    id: int
    name: str
    head_sha: str
    external_id: str
    status: str
    conclusion: str | None
    annotations: int = 0
