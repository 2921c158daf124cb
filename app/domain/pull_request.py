"""What we know of a repository and of a pull request, frozen at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class RepoRef:
    """One repository within one installation of the reviewer App."""

    installation_id: int
    repository_id: int
    owner: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


class AccountKind(StrEnum):
    """GitHub's account types, as far as they matter to us."""

    USER = "User"
    BOT = "Bot"
    ORGANIZATION = "Organization"


@dataclass(frozen=True, slots=True)
class Account:
    """A GitHub account: numeric id, login as GitHub spells it (`name[bot]` for Apps), kind."""

    id: int
    login: str
    kind: AccountKind


class PullRequestState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as the forge tells it. All texts are untrusted.

    `head_repo` is None when the fork was deleted. `merge_commit_sha` is set only once merged.
    """

    number: int
    title: str
    body: str
    author: Account
    state: PullRequestState
    draft: bool
    head_ref: str
    head_sha: str
    head_repo: str | None
    base_ref: str
    base_sha: str
    default_branch: str
    labels: tuple[str, ...] = ()
    merge_commit_sha: str | None = None
    merged_by: Account | None = None
    closed_at: datetime | None = None
    created_at: datetime | None = None
    url: str = ""
    locked: bool = False
    archived: bool = False
    """The repository is read-only: nothing can be written."""
    author_association: str = ""
    """GitHub's word for what the author is to the repository (`MEMBER`, `NONE`); "" unknown."""


class Permission(StrEnum):
    """A user's effective permission on a repository."""

    ADMIN = "admin"
    WRITE = "write"
    READ = "read"
    NONE = "none"

    @property
    def can_write(self) -> bool:
        return self in (Permission.ADMIN, Permission.WRITE)


@dataclass(frozen=True, slots=True)
class ThreadComment:
    """One comment of a review thread. `body` is untrusted.

    `author` is the login as REST spells it (`name[bot]` for Apps), `ghost` when the account
    is gone. `ours` is decided by account, never by the text.
    """

    id: int
    author: str
    by_bot: bool
    body: str
    ours: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """A review thread on the forge. `node_id` is what resolving it needs.

    `comments` is the whole conversation, oldest first. `line` is None when outdated or on a file.
    """

    node_id: str
    path: str
    line: int | None
    resolved: bool
    outdated: bool
    resolved_by: str | None
    comments: tuple[ThreadComment, ...] = field(default=())

    @property
    def ours(self) -> bool:
        """Whether we opened it. Nobody else's thread is ever resolved by us."""
        return bool(self.comments) and self.comments[0].ours
