"""The fields of GitHub's events that we read, and nothing else.

Tolerant on purpose: GitHub adds fields, actions and values without notice, and an unknown one far
from what we need must not cost us the event.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.domain.pull_request import Account, AccountKind

GitHubId = Annotated[int, Field(ge=0, le=2**63 - 1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class AccountPart(_Part):
    id: GitHubId
    login: str
    type: str = "User"

    def as_account(self) -> Account:
        """Account types that we do not know count as people: they have no rights of their own."""
        known = {kind.value for kind in AccountKind}
        kind = AccountKind(self.type) if self.type in known else AccountKind.USER
        return Account(id=self.id, login=self.login, kind=kind)


class AppPart(_Part):
    id: GitHubId


class RepositoryPart(_Part):
    id: GitHubId
    name: str
    full_name: str = ""
    owner: AccountPart | None = None
    default_branch: str | None = None
    private: bool | None = None

    @property
    def owner_login(self) -> str:
        return self.owner.login if self.owner else self.full_name.partition("/")[0]


class InstallationPart(_Part):
    id: GitHubId
    account: AccountPart | None = None


class Event(_Part):
    """What every event has, if it has it."""

    action: str | None = None
    installation: InstallationPart | None = None
    repository: RepositoryPart | None = None
    sender: AccountPart | None = None


class CommitPart(_Part):
    ref: str = ""
    sha: str = ""


class PullRequestPart(_Part):
    number: GitHubId
    head: CommitPart = CommitPart()
    base: CommitPart = CommitPart()
    updated_at: datetime | None = None


class ChangesPart(_Part):
    base: dict[str, Any] | None = None


class PullRequestEvent(Event):
    pull_request: PullRequestPart
    changes: ChangesPart = ChangesPart()


class IssuePart(_Part):
    number: GitHubId
    pull_request: dict[str, Any] | None = None


class CommentPart(_Part):
    id: GitHubId
    body: str | None = ""
    user: AccountPart | None = None
    performed_via_github_app: AppPart | None = None


class IssueCommentEvent(Event):
    issue: IssuePart
    comment: CommentPart


class ReviewCommentEvent(Event):
    pull_request: PullRequestPart
    comment: CommentPart


class ReviewEvent(Event):
    pull_request: PullRequestPart
    review: CommentPart


class CheckRunPart(_Part):
    id: GitHubId
    head_sha: str
    external_id: str | None = None
    app: AppPart | None = None
    pull_requests: tuple[PullRequestPart, ...] = ()


class RequestedActionPart(_Part):
    identifier: str = ""


class CheckRunEvent(Event):
    check_run: CheckRunPart
    requested_action: RequestedActionPart | None = None


class InstallationEvent(Event):
    installation: InstallationPart
    repositories: tuple[RepositoryPart, ...] = ()


class InstallationRepositoriesEvent(Event):
    installation: InstallationPart
    repositories_added: tuple[RepositoryPart, ...] = ()
    repositories_removed: tuple[RepositoryPart, ...] = ()


MODELS: dict[str, type[Event]] = {
    "pull_request": PullRequestEvent,
    "issue_comment": IssueCommentEvent,
    "check_run": CheckRunEvent,
    "installation": InstallationEvent,
    "installation_repositories": InstallationRepositoriesEvent,
    "pull_request_review": ReviewEvent,
    "pull_request_review_comment": ReviewCommentEvent,
    "pull_request_review_thread": Event,
    "check_suite": Event,
    "merge_group": Event,
    "push": Event,
    "ping": Event,
}
"""The events we know by name; of the last five we read nothing yet."""


class UnreadableEvent(Exception):
    """A known event lacks a field we need, or has it in another form. `str()` names the fields."""


def parse_event(name: str, payload: dict[str, Any]) -> Event:
    """The event as far as we read it; events we do not know keep only what all have.

    Raises UnreadableEvent.
    """
    try:
        return MODELS.get(name, Event).model_validate(payload)
    except ValidationError as error:
        fields = {".".join(map(str, problem["loc"])) for problem in error.errors()}
        raise UnreadableEvent(", ".join(sorted(fields)[:5])) from None
