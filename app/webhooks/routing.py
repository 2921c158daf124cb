"""What an event asks for: a table from event and action to jobs, or to a reason to ignore it.

Pure. Whether a pull request is a draft, whether its author is a bot, who may command: none of that
is decided here; the stories do, from the forge's answers of that moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from app.domain.jobs import AppRole, Cause, JobKind
from app.domain.pull_request import Account, AccountKind
from app.jobs.requests import PRIORITY_GLASS, PRIORITY_PERSON, JobRequest, pull_request_subject
from app.webhooks.events import (
    CheckRunEvent,
    CommentPart,
    Event,
    InstallationEvent,
    InstallationRepositoriesEvent,
    IssueCommentEvent,
    PullRequestEvent,
    RepositoryPart,
    ReviewCommentEvent,
    ReviewEvent,
)

REVIEW_KEY = "review:"
"""How keys of reviews that events ask for begin; a newer push supersedes only those."""

_REVIEW_ACTIONS = ("opened", "synchronize", "reopened", "ready_for_review")
_MAX_COMMENT = 70_000
# A first sieve only: a comment that passes is read by the grammar in `commands`.
_COMMAND_LINE = re.compile(r"(?:\A|[\r\n])[^\S\r\n]*/mergeward\b", re.IGNORECASE)
_BREAK_GLASS = re.compile(r"\s*break[^\S\r\n]+glass\b", re.IGNORECASE)
_NOBODY = Account(id=0, login="", kind=AccountKind.USER)


class IgnoreReason(StrEnum):
    """Why an event asks for no work."""

    UNKNOWN_EVENT = "unknown_event"
    UNUSED_EVENT = "unused_event"
    UNUSED_ACTION = "unused_action"
    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    PING = "ping"
    OWN_ACT = "own_act"
    OTHER_APP = "other_app"
    BOT_ACT = "bot_act"
    FIXER_DELIVERY = "fixer_delivery"
    NOT_A_PULL_REQUEST = "not_a_pull_request"
    NO_COMMAND = "no_command"


@dataclass(frozen=True, slots=True)
class Ignore:
    """No work. `detail` names what was missing or unknown."""

    reason: IgnoreReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """One job. `supersedes`: it replaces older queued reviews of its subject. `cancels`: it stops
    a running one, unless the pull request is a fix PR (its push answers that very review).
    """

    request: JobRequest
    supersedes: bool = False
    cancels: bool = False


@dataclass(frozen=True, slots=True)
class InstallationChange:
    """The set of installations or of their repositories changed; recorded, no job."""

    installation_id: int
    account: Account | None
    added: tuple[RepositoryPart, ...] = ()
    removed: tuple[int, ...] = ()
    suspended: bool | None = None
    deleted: bool = False


Route = Ignore | Work | InstallationChange


@dataclass(frozen=True, slots=True)
class RoutingFacts:
    """What routing knows besides the event. `own_logins` are in lower case."""

    app: AppRole
    delivery: str
    now: datetime
    debounce: timedelta = timedelta(0)
    reviewer_app_id: int | None = None
    own_app_ids: frozenset[int] = field(default=frozenset())
    own_logins: frozenset[str] = field(default=frozenset())


def route(name: str, event: Event, facts: RoutingFacts) -> Route:
    """Where the event goes. Total: every event ends in work, a recorded change or a reason."""
    if name not in _TABLE:
        return Ignore(IgnoreReason.UNKNOWN_EVENT, name[:100])
    if facts.app is AppRole.FIXER and name not in _BOTH_APPS:
        # Both Apps are told of the same pull request; the reviewer's word is enough.
        return Ignore(IgnoreReason.FIXER_DELIVERY)
    return _TABLE[name](event, facts)


def route_unreadable(name: str, action: str | None, detail: str, facts: RoutingFacts) -> Route:
    """Where an event goes that lacks what we need of it.

    A pull request of which we only know that something happened is not lost: GitHub is asked.
    """
    wanted = action in (*_REVIEW_ACTIONS, "closed")
    if name != "pull_request" or not wanted or facts.app is AppRole.FIXER:
        return Ignore(IgnoreReason.UNREADABLE, detail)
    return _ask_github(None, facts)


def _ask_github(installation_id: int | None, facts: RoutingFacts) -> Work:
    return Work(
        JobRequest(
            kind=JobKind.SYNC_INSTALLATION,
            key=f"sync:{installation_id or 'all'}",
            payload={"installation_id": installation_id},
            installation_id=installation_id,
            run_at=facts.now,
        )
    )


def _pull_request(event: PullRequestEvent, facts: RoutingFacts) -> Route:
    base_changed = event.action == "edited" and event.changes.base is not None
    if event.action == "closed":
        return _about_pull_request(event, facts, JobKind.CLOSE_PULL_REQUEST)
    if event.action in _REVIEW_ACTIONS or base_changed:
        return _about_pull_request(event, facts, JobKind.REVIEW_PULL_REQUEST)
    return _unused_action(event, facts)


def _about_pull_request(event: PullRequestEvent, facts: RoutingFacts, kind: JobKind) -> Route:
    repository, pull_request = event.repository, event.pull_request
    if repository is None or event.installation is None:
        return _ask_github(event.installation.id if event.installation else None, facts)
    subject = pull_request_subject(repository.id, pull_request.number)
    place = f"{repository.id}:{pull_request.number}"
    review = kind is JobKind.REVIEW_PULL_REQUEST
    moved = event.action in ("synchronize", "edited")
    if review:
        key = f"{REVIEW_KEY}{place}:{pull_request.head.sha}:{event.action}"
    else:
        key = f"close:{place}:{facts.delivery}"
    request = JobRequest(
        kind=kind,
        key=key,
        payload={
            "repository_id": repository.id,
            "number": pull_request.number,
            "causes": [_cause(event, facts).to_json()],
        },
        subject=subject,
        # A close starts at once, beside a running review, so that it can stop it.
        lane=subject if review else f"close:{place}",
        installation_id=event.installation.id,
        repository_id=repository.id,
        run_at=facts.now + facts.debounce if moved else facts.now,
    )
    return Work(request, supersedes=review, cancels=moved)


def _issue_comment(event: IssueCommentEvent, facts: RoutingFacts) -> Route:
    if event.action != "created":
        return _unused_action(event, facts)
    if event.issue.pull_request is None:
        return Ignore(IgnoreReason.NOT_A_PULL_REQUEST)
    return _said(event, facts, event.comment, event.issue.number, "comment")


def _review_comment(event: ReviewCommentEvent, facts: RoutingFacts) -> Route:
    if event.action != "created":
        return _unused_action(event, facts)
    return _said(event, facts, event.comment, event.pull_request.number, "thread")


def _review(event: ReviewEvent, facts: RoutingFacts) -> Route:
    if event.action != "submitted":
        return _unused_action(event, facts)
    return _said(event, facts, event.review, event.pull_request.number, "review")


def _said(
    event: Event, facts: RoutingFacts, comment: CommentPart, number: int, where: str
) -> Route:
    """A person's words on a pull request: in its conversation, in a thread, or with a review."""
    if event.repository is None or event.installation is None:
        return _incomplete(event)
    machine = _machine(event, comment, facts)
    if machine is not None:
        return Ignore(machine)
    body = comment.body or ""
    if not asks_for_something(body):
        return Ignore(IgnoreReason.NO_COMMAND)
    place = f"{event.repository.id}:{number}"
    glass = _BREAK_GLASS.match(body) is not None
    return Work(
        JobRequest(
            kind=JobKind.HANDLE_COMMENT,
            key=f"{where}:{event.repository.id}:{comment.id}",
            payload={
                "repository_id": event.repository.id,
                "number": number,
                "comment_id": comment.id,
                "where": where,
                "body": body[:_MAX_COMMENT],
                "causes": [_cause(event, facts, comment).to_json()],
            },
            subject=pull_request_subject(event.repository.id, number),
            # What somebody breaks the glass for does not wait for an answer to anything else.
            lane=f"glass:{place}" if glass else f"comments:{place}",
            installation_id=event.installation.id,
            repository_id=event.repository.id,
            priority=PRIORITY_GLASS if glass else PRIORITY_PERSON,
        )
    )


def asks_for_something(body: str) -> bool:
    """Whether a comment may hold a command or break the glass. The grammar decides for certain."""
    return bool(_COMMAND_LINE.search(body) or _BREAK_GLASS.match(body))


def _check_run(event: CheckRunEvent, facts: RoutingFacts) -> Route:
    if event.action not in ("requested_action", "rerequested"):
        return _unused_action(event, facts)
    check_run = event.check_run
    if event.repository is None or event.installation is None:
        return _incomplete(event)
    if facts.reviewer_app_id and (not check_run.app or check_run.app.id != facts.reviewer_app_id):
        return Ignore(IgnoreReason.OTHER_APP)
    if event.sender is not None and event.sender.as_account().kind is AccountKind.BOT:
        return Ignore(IgnoreReason.BOT_ACT)
    pressed = event.requested_action.identifier if event.requested_action else "rerequested"
    return Work(
        JobRequest(
            kind=JobKind.HANDLE_CHECK_ACTION,
            key=f"check:{event.repository.id}:{check_run.id}:{pressed}:{facts.delivery}",
            payload={
                "repository_id": event.repository.id,
                "check_run_id": check_run.id,
                "head_sha": check_run.head_sha,
                "external_id": check_run.external_id,
                "numbers": [pull_request.number for pull_request in check_run.pull_requests],
                "action": pressed,
                "causes": [_cause(event, facts).to_json()],
            },
            installation_id=event.installation.id,
            repository_id=event.repository.id,
            priority=PRIORITY_PERSON,
        )
    )


def _installation(event: InstallationEvent, facts: RoutingFacts) -> Route:
    suspended = {"suspend": True, "unsuspend": False, "created": False}.get(event.action or "")
    if suspended is None and event.action not in ("deleted", "new_permissions_accepted"):
        return _unused_action(event, facts)
    account = event.installation.account
    return InstallationChange(
        installation_id=event.installation.id,
        account=account.as_account() if account else None,
        added=event.repositories if event.action == "created" else (),
        suspended=suspended,
        deleted=event.action == "deleted",
    )


def _installation_repositories(event: InstallationRepositoriesEvent, facts: RoutingFacts) -> Route:
    if event.action not in ("added", "removed"):
        return _unused_action(event, facts)
    account = event.installation.account
    return InstallationChange(
        installation_id=event.installation.id,
        account=account.as_account() if account else None,
        added=event.repositories_added,
        removed=tuple(repository.id for repository in event.repositories_removed),
    )


def _unused_event(_event: Event, _facts: RoutingFacts) -> Route:
    return Ignore(IgnoreReason.UNUSED_EVENT)


def _unused_action(event: Event, _facts: RoutingFacts) -> Route:
    return Ignore(IgnoreReason.UNUSED_ACTION, (event.action or "")[:100])


def _ping(_event: Event, _facts: RoutingFacts) -> Route:
    return Ignore(IgnoreReason.PING)


def _incomplete(event: Event) -> Ignore:
    return Ignore(IgnoreReason.INCOMPLETE, "installation" if event.repository else "repository")


def _machine(event: Event, comment: CommentPart, facts: RoutingFacts) -> IgnoreReason | None:
    """Why the comment is not a person's own word, or None if it may be."""
    through = comment.performed_via_github_app
    authors = [part.as_account() for part in (comment.user, event.sender) if part]
    if through is not None and through.id in facts.own_app_ids:
        return IgnoreReason.OWN_ACT
    if any(author.login.lower() in facts.own_logins for author in authors):
        return IgnoreReason.OWN_ACT
    if through is not None or any(author.kind is AccountKind.BOT for author in authors):
        return IgnoreReason.BOT_ACT
    return None


def _cause(event: Event, facts: RoutingFacts, comment: CommentPart | None = None) -> Cause:
    through = None
    if comment is not None and comment.performed_via_github_app:
        through = comment.performed_via_github_app.id
    return Cause(
        action=event.action or "",
        actor=event.sender.as_account() if event.sender else _NOBODY,
        at=facts.now,
        delivery=facts.delivery,
        through_app=through,
    )


_TABLE: dict[str, Callable[[Any, RoutingFacts], Route]] = {
    "pull_request": _pull_request,
    "issue_comment": _issue_comment,
    "check_run": _check_run,
    "installation": _installation,
    "installation_repositories": _installation_repositories,
    "pull_request_review": _review,
    "pull_request_review_comment": _review_comment,
    "pull_request_review_thread": _unused_event,
    "check_suite": _unused_event,
    "merge_group": _unused_event,
    "push": _unused_event,
    "ping": _ping,
}
_BOTH_APPS = frozenset({"installation", "installation_repositories", "ping"})
