"""GitHub's JSON as values of the domain. Tolerant: only what we read has to be there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.domain.forge import (
    Installation,
    IssueComment,
    PublishedCheck,
    PublishedReview,
    Repository,
    ReviewState,
)
from app.domain.markers import markers_of
from app.domain.pull_request import (
    Account,
    AccountKind,
    PullRequest,
    PullRequestState,
    RepoRef,
    ReviewThread,
    ThreadComment,
)
from app.errors import ForgeError

Json = Mapping[str, Any]
GHOST = Account(id=0, login="ghost", kind=AccountKind.USER)
"""GitHub's stand-in for a deleted account."""


def at(data: object, *keys: str) -> Any:
    """The value at a path of keys, None where the path ends early."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def need(data: object, *keys: str) -> Any:
    """As `at`; ForgeError when there is nothing."""
    found = at(data, *keys)
    if found is None:
        raise ForgeError(f"GitHub's answer has no {'.'.join(keys)}")
    return found


def text(data: object, *keys: str) -> str:
    found = at(data, *keys)
    return found if isinstance(found, str) else ""


def moment(data: object, *keys: str) -> datetime | None:
    """An aware time, None when missing or unreadable."""
    try:
        return datetime.fromisoformat(text(data, *keys))
    except ValueError:
        return None


def account(data: object) -> Account:
    """A REST account; a deleted one is `ghost`."""
    if not isinstance(data, Mapping):
        return GHOST
    kind = text(data, "type")
    known = AccountKind(kind) if kind in frozenset(AccountKind) else AccountKind.USER
    return Account(id=int(need(data, "id")), login=text(data, "login"), kind=known)


def repository(data: Json, installation_id: int) -> Repository:
    ref = RepoRef(
        installation_id=installation_id,
        repository_id=int(need(data, "id")),
        owner=str(need(data, "owner", "login")),
        name=str(need(data, "name")),
    )
    return Repository(
        ref=ref,
        default_branch=text(data, "default_branch"),
        private=bool(at(data, "private")),
        archived=bool(at(data, "archived")),
        fork=bool(at(data, "fork")),
    )


def installation(data: Json) -> Installation:
    permissions = at(data, "permissions") or {}
    return Installation(
        id=int(need(data, "id")),
        account=account(at(data, "account")),
        suspended=at(data, "suspended_at") is not None,
        permissions=tuple(sorted((str(k), str(v)) for k, v in permissions.items())),
    )


def pull_request(data: Json) -> PullRequest:
    """A pull request of a single answer or of a list (which has no `merged`)."""
    merged = bool(at(data, "merged")) or at(data, "merged_at") is not None
    if merged:
        state = PullRequestState.MERGED
    else:
        is_open = text(data, "state") == "open"
        state = PullRequestState.OPEN if is_open else PullRequestState.CLOSED
    merger = at(data, "merged_by")
    return PullRequest(
        number=int(need(data, "number")),
        title=text(data, "title"),
        body=text(data, "body"),
        author=account(at(data, "user")),
        state=state,
        draft=bool(at(data, "draft")),
        head_ref=text(data, "head", "ref"),
        head_sha=str(need(data, "head", "sha")),
        head_repo=text(data, "head", "repo", "full_name") or None,
        base_ref=str(need(data, "base", "ref")),
        base_sha=str(need(data, "base", "sha")),
        default_branch=text(data, "base", "repo", "default_branch"),
        labels=tuple(text(label, "name") for label in at(data, "labels") or ()),
        merge_commit_sha=(text(data, "merge_commit_sha") or None) if merged else None,
        merged_by=account(merger) if isinstance(merger, Mapping) else None,
        closed_at=moment(data, "closed_at"),
        created_at=moment(data, "created_at"),
        url=text(data, "html_url"),
        locked=bool(at(data, "locked")),
        archived=bool(at(data, "base", "repo", "archived")),
        author_association=text(data, "author_association"),
    )


def is_by(data: object, ours: Account) -> bool:
    """Whether REST says that `ours` wrote it. The id decides, never a name or a text."""
    return bool(at(data, "user", "id") == ours.id)


def stands_on_a_line(data: Json) -> bool:
    """Whether the diff shows an inline comment. A list of one review's comments is of an older form
    of the API, in which `position` is always there and `line` may be missing. The `original_…` ones
    tell nothing: GitHub's schema has a number in them whatever became of the comment."""
    return at(data, "line") is not None or at(data, "position") is not None


def review(data: Json) -> PublishedReview:
    """A review that is known to be ours."""
    body, state = text(data, "body"), text(data, "state").upper()
    return PublishedReview(
        id=int(need(data, "id")),
        # A state that GitHub invents later is no verdict of ours.
        state=ReviewState(state) if state in frozenset(ReviewState) else ReviewState.COMMENTED,
        head_sha=text(data, "commit_id"),
        body=body,
        markers=markers_of(body),
        submitted_at=moment(data, "submitted_at"),
    )


def issue_comment(data: Json, ours: Account) -> IssueComment:
    body, own = text(data, "body"), is_by(data, ours)
    return IssueComment(
        id=int(need(data, "id")),
        author=account(at(data, "user")),
        body=body,
        ours=own,
        markers=markers_of(body) if own else (),
        created_at=moment(data, "created_at"),
    )


def check(data: Json) -> PublishedCheck:
    return PublishedCheck(
        id=int(need(data, "id")),
        name=text(data, "name"),
        head_sha=text(data, "head_sha"),
        external_id=text(data, "external_id"),
        status=text(data, "status"),
        conclusion=text(data, "conclusion") or None,
        annotations=int(at(data, "output", "annotations_count") or 0),
    )


def thread(data: Json, comments: list[Json], ours: Account) -> ReviewThread:
    """A thread of a GraphQL answer with all its comments."""
    resolver = text(data, "resolvedBy", "login") or None
    if resolver is not None and f"{resolver}[bot]" == ours.login:
        resolver = ours.login
    return ReviewThread(
        node_id=str(need(data, "id")),
        path=text(data, "path"),
        line=at(data, "line"),
        resolved=bool(at(data, "isResolved")),
        outdated=bool(at(data, "isOutdated")),
        resolved_by=resolver,
        comments=tuple(_thread_comment(comment, ours) for comment in comments),
    )


def conversation_comment(data: Json, ours: Account) -> IssueComment:
    """A comment of the conversation in a GraphQL answer."""
    author, body = _author(data), text(data, "body")
    own = _is(author, ours)
    return IssueComment(
        id=int(need(data, "fullDatabaseId")),
        author=author,
        body=body,
        ours=own,
        markers=markers_of(body) if own else (),
        created_at=moment(data, "createdAt"),
    )


def _author(data: Json) -> Account:
    """Who wrote something, as GraphQL tells it: a bot's login comes without its `[bot]`."""
    author = at(data, "author")
    if author is None:
        return GHOST
    login, number = text(author, "login"), int(at(author, "databaseId") or 0)
    if text(author, "__typename") == "Bot":
        return Account(number, f"{login}[bot]", AccountKind.BOT)
    return Account(number, login, AccountKind.USER)


def _is(author: Account, ours: Account) -> bool:
    return author.kind is AccountKind.BOT and author.id == ours.id


def _thread_comment(data: Json, ours: Account) -> ThreadComment:
    author = _author(data)
    return ThreadComment(
        # `databaseId` is a 32 bit Int, which ids of review comments have outgrown.
        id=int(need(data, "fullDatabaseId")),
        author=author.login,
        by_bot=author.kind is AccountKind.BOT,
        body=text(data, "body"),
        ours=_is(author, ours),
        created_at=moment(data, "createdAt"),
    )
