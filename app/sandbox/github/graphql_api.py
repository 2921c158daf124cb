"""GraphQL: threads, and what only GraphQL can do, on a subset of GitHub's schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from app.sandbox.github import acts, reviewing, rules
from app.sandbox.github.endpoint import Call, Endpoints, Reply, check_access
from app.sandbox.github.errors import ApiError
from app.sandbox.github.render import Json, stamp
from app.sandbox.github.state import (
    Account,
    IssueComment,
    Kind,
    PullRequest,
    Repository,
    ReviewComment,
    ReviewState,
    Thread,
)
from app.sandbox.github.world import node_id

if TYPE_CHECKING:
    from graphql import GraphQLError, GraphQLSchema

endpoints = Endpoints()
MAX_PAGE = 100
_FORBIDDEN = "Resource not accessible by integration"


class Refusal(Exception):
    """An entry of `errors` with GitHub's `type`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@cache
def _schema() -> GraphQLSchema:
    from graphql import build_schema

    text = resources.files(__package__).joinpath("schema.graphql").read_text(encoding="utf-8")
    return build_schema(text)


@endpoints.add("POST", "/api/graphql")
@endpoints.add("POST", "/graphql")
async def graphql(call: Call) -> Reply:
    """Answers 200 with `errors` inside, as GitHub does, whatever the query asked."""
    from graphql import graphql as execute

    query = call.text("query")
    if query is None:
        raise ApiError(400, "A query attribute must be specified and must be a string.")
    result = await execute(
        _schema(),
        query,
        root_value=_Root(call).members(),
        variable_values=call.body.get("variables"),
        operation_name=call.text("operationName"),
    )
    body: Json = {"data": result.data} if result.data is not None or not result.errors else {}
    if result.errors:
        body["errors"] = [_error(error) for error in result.errors]
    return Reply(body=body)


def _error(error: GraphQLError) -> Json:
    shown: Json = dict(error.formatted)
    if isinstance(error.original_error, Refusal):
        shown["type"] = error.original_error.kind
    return shown


Resolver = Callable[..., Any]


class _Root:
    """The top-level fields, bound to one call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.hub = call.hub

    def members(self) -> dict[str, Resolver]:
        """Field name to resolver; graphql-core calls them with `info` and the arguments."""
        return {
            "repository": self.repository,
            "node": self.node,
            "viewer": lambda _info: self._actor(self.call.account, "User"),
            "rateLimit": self._rate_limit,
            "resolveReviewThread": lambda _info, **a: self._resolve(a["input"], resolved=True),
            "unresolveReviewThread": lambda _info, **a: self._resolve(a["input"], resolved=False),
            "markPullRequestReadyForReview": self._ready,
            "convertPullRequestToDraft": self._to_draft,
        }

    def _rate_limit(self, _info: object) -> Json:
        core = self.hub.limits.core(self.call.actor)
        numbers = {name: core[name] for name in ("limit", "remaining", "used")}
        return {**numbers, "cost": 1, "resetAt": stamp(self.hub.world.now())}

    def repository(self, _info: object, owner: str, name: str, **_: Any) -> Json:
        repository = self.hub.world.repository(f"{owner}/{name}")
        lost = Refusal(
            "NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'."
        )
        if repository is None:
            raise lost
        self._need(repository, "metadata=read", lost)
        return {
            "__typename": "Repository",
            "id": node_id("R", repository.id),
            "databaseId": repository.id,
            "name": repository.name,
            "nameWithOwner": repository.full_name,
            "pullRequest": lambda _info, number: self._pull(repository, number),
        }

    def _need(self, repository: Repository, needs: str, lost: Refusal) -> None:
        try:
            human = "write" if "=write" in needs else "read"
            check_access(self.hub, repository, self.call.actor, needs, human)
        except ApiError as error:
            if error.status == 404:
                raise lost from None
            raise Refusal("FORBIDDEN", _FORBIDDEN) from None

    def _pull(self, repository: Repository, number: int) -> Json:
        lost = Refusal(
            "NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}."
        )
        self._need(repository, "pull_requests=read", lost)
        pull = repository.pulls.get(number)
        if pull is None:
            raise lost
        return self._shown_pull(pull)

    def _shown_pull(self, pull: PullRequest) -> Json:
        state = "MERGED" if pull.merged_at else "OPEN" if pull.is_open else "CLOSED"
        threads = [t for t in pull.threads if _public(t)]
        return {
            "__typename": "PullRequest",
            "id": node_id("PR", pull.id),
            "databaseId": pull.id,
            "number": pull.number,
            "title": pull.title,
            "state": state,
            "isDraft": pull.draft,
            "merged": pull.merged_at is not None,
            "headRefName": pull.head_ref,
            "headRefOid": pull.head_sha,
            "baseRefName": pull.base_ref,
            "author": self._actor(pull.author),
            "reviewThreads": connection(
                "reviewThreads", threads, lambda t: self._shown_thread(pull, t)
            ),
            "comments": connection(
                "comments", pull.comments, lambda c: self._shown_remark(pull, c)
            ),
        }

    def _shown_remark(self, pull: PullRequest, comment: IssueComment) -> Json:
        return {
            "__typename": "IssueComment",
            "id": node_id("IC", comment.id),
            "databaseId": comment.id,
            "fullDatabaseId": str(comment.id),
            "body": comment.body,
            "url": f"{self.hub.render.html_url(pull)}#issuecomment-{comment.id}",
            "author": self._actor(comment.user),
            "createdAt": stamp(comment.created_at),
            "isMinimized": False,
            "minimizedReason": None,
        }

    def _shown_thread(self, pull: PullRequest, thread: Thread) -> Json:
        first = thread.comments[0]
        now, then = first.current, first.original
        may = self._may_resolve(pull)
        resolved = thread.resolved_by
        return {
            "__typename": "PullRequestReviewThread",
            "id": thread.node_id,
            "isResolved": resolved is not None,
            "isOutdated": now is None,
            "isCollapsed": resolved is not None or now is None,
            "viewerCanResolve": may and resolved is None,
            "viewerCanUnresolve": may and resolved is not None,
            "viewerCanReply": True,
            "resolvedBy": self._actor(resolved, "User") if resolved else None,
            "path": then.path,
            "line": now.line if now else None,
            "startLine": now.start_line if now else None,
            "originalLine": then.line,
            "originalStartLine": then.start_line,
            "diffSide": then.side.value,
            "startDiffSide": then.start_side.value if then.start_side else None,
            "pullRequest": lambda _info: self._shown_pull(pull),
            "comments": connection(
                "comments", thread.comments, lambda c: self._shown_comment(pull, c)
            ),
        }

    def _may_resolve(self, pull: PullRequest) -> bool:
        actor = self.call.actor
        if actor.token is not None:
            return rules.allows(actor.token.permissions.get("contents", "none"), "write")
        level = pull.repository.level_of(self.call.account)
        return pull.author is self.call.account or rules.allows(level, "write")

    def _shown_comment(self, pull: PullRequest, comment: ReviewComment) -> Json:
        return {
            "__typename": "PullRequestReviewComment",
            "id": node_id("PRRC", comment.id),
            "databaseId": comment.id,
            "fullDatabaseId": str(comment.id),
            "body": comment.body,
            "path": comment.original.path,
            "url": f"{self.hub.render.html_url(pull)}#discussion_r{comment.id}",
            "author": self._actor(comment.user),
            "createdAt": stamp(comment.created_at),
            "outdated": comment.current is None,
            "isMinimized": False,
            "minimizedReason": None,
        }

    def _actor(self, account: Account, kind: str | None = None) -> Json:
        return {
            "__typename": kind or account.kind.value,
            "id": node_id("BOT" if account.kind is Kind.BOT else "U", account.id),
            "databaseId": account.id,
            "login": account.graphql_login,
            "url": f"{self.hub.url}/{account.graphql_login}",
        }

    def node(self, _info: object, **arguments: str) -> Json:
        pull, thread = self._thread(arguments["id"])
        return self._shown_thread(pull, thread)

    def _thread(self, wanted: str) -> tuple[PullRequest, Thread]:
        lost = _lost(wanted)
        found = self.hub.world.thread(wanted)
        if found is None:
            raise lost
        self._need(found[0].repository, "pull_requests=read", lost)
        return found

    def _resolve(self, given: Json, *, resolved: bool) -> Json:
        pull, thread = self._thread(given["threadId"])
        if not self._may_resolve(pull):
            raise Refusal("FORBIDDEN", _FORBIDDEN)
        reviewing.resolve(self.hub, pull, thread, self.call.account, resolved=resolved)
        return {
            "thread": self._shown_thread(pull, thread),
            "clientMutationId": given.get("clientMutationId"),
        }

    async def _ready(self, _info: object, **arguments: Json) -> Json:
        return await self._set_draft(arguments["input"], draft=False)

    async def _to_draft(self, _info: object, **arguments: Json) -> Json:
        return await self._set_draft(arguments["input"], draft=True)

    async def _set_draft(self, given: Json, *, draft: bool) -> Json:
        wanted = given["pullRequestId"]
        lost = _lost(wanted)
        pulls = self.hub.world.pulls()
        pull = next((p for p in pulls if node_id("PR", p.id) == wanted), None)
        if pull is None:
            raise lost
        self._need(pull.repository, "pull_requests=write", lost)
        await acts.set_draft(self.hub, pull, self.call.account, draft=draft)
        return {
            "pullRequest": self._shown_pull(pull),
            "clientMutationId": given.get("clientMutationId"),
        }


def _lost(wanted: str) -> Refusal:
    return Refusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{wanted}'")


def _public(thread: Thread) -> bool:
    return thread.comments[0].review.state is not ReviewState.PENDING


def connection(name: str, items: Sequence[Any], show: Callable[[Any], Json]) -> Resolver:
    """A Relay connection's resolver with GitHub's paging rules; cursors are opaque."""

    def resolve(
        _info: object,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
    ) -> Json:
        _check_page(name, first, last)
        start = int(after.removeprefix("Y3Vyc29y")) if after else 0
        end = int(before.removeprefix("Y3Vyc29y")) - 1 if before else len(items)
        if first is not None:
            end = min(end, start + first)
        elif last is not None:
            start = max(start, end - last)
        edges = [
            {"cursor": f"Y3Vyc29y{index + 1}", "node": show(items[index])}
            for index in range(start, end)
        ]
        return {
            "nodes": [edge["node"] for edge in edges],
            "edges": edges,
            "totalCount": len(items),
            "pageInfo": {
                "startCursor": edges[0]["cursor"] if edges else None,
                "endCursor": edges[-1]["cursor"] if edges else None,
                "hasNextPage": end < len(items),
                "hasPreviousPage": start > 0,
            },
        }

    return resolve


def _check_page(name: str, first: int | None, last: int | None) -> None:
    size = first if first is not None else last
    if size is None:
        raise Refusal(
            "MISSING_PAGINATION_BOUNDARIES",
            f"You must provide a `first` or `last` value to properly paginate the `{name}` "
            "connection.",
        )
    if size > MAX_PAGE:
        which = "first" if first is not None else "last"
        raise Refusal(
            "EXCESSIVE_PAGINATION",
            f"Requesting {size} records on the `{name}` connection exceeds the `{which}` limit "
            f"of {MAX_PAGE} records.",
        )
