"""The questions of the Forge port, asked of GitHub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.forge import (
    AppIdentity,
    CloneRemote,
    Discussion,
    Installation,
    IssueComment,
    PublishedCheck,
    PublishedReview,
    Repository,
)
from app.domain.pull_request import Account, Permission, PullRequest, RepoRef
from app.errors import ForgeNotFound, ForgeRejected, ForgeUnavailable
from app.forges.github import parse
from app.forges.github.client import GitHubSession, Json, Request, object_of, of_repo, path
from app.forges.github.tokens import Scope, TokenKey

_COMMENTS = """
  pageInfo { hasNextPage endCursor }
  nodes {
    fullDatabaseId body createdAt
    author { __typename login ... on Bot { databaseId } ... on User { databaseId } }
  }
"""
_THREADS = f"""
reviewThreads(first: 100, after: $after) {{
  pageInfo {{ hasNextPage endCursor }}
  nodes {{
    id isResolved isOutdated path line resolvedBy {{ login }}
    comments(first: 50) {{ {_COMMENTS} }}
  }}
}}
"""
_CONVERSATION = f"comments(first: 100, after: $after) {{ {_COMMENTS} }}"
_MORE_COMMENTS = f"""
query($id: ID!, $after: String) {{
  node(id: $id) {{
    ... on PullRequestReviewThread {{ comments(first: 100, after: $after) {{ {_COMMENTS} }} }}
  }}
}}
"""


class GitHubReads(GitHubSession):
    """See `app.forges.port.ForgeReads`."""

    async def identity(self) -> AppIdentity:
        """Asked once per process; a renamed App is noticed at the next start."""
        known = self._app.identity
        if known is None:
            about = object_of(await self.as_app(Request("GET", "/app")))
            slug = parse.text(about, "slug")
            account = await self._bot_account(f"{slug}[bot]")
            known = AppIdentity(app_id=int(parse.need(about, "id")), slug=slug, account=account)
            self._app.identity = known
        return known

    async def _bot_account(self, login: str) -> Account:
        """The bot's account, asked with any working token: a JWT may not read users."""
        installation = self._app.awake or await self._any_installation()
        key = TokenKey(installation, None, Scope.METADATA)
        answer = await self.call_with(key, Request("GET", path("/users/{}", login)))
        return parse.account(object_of(answer))

    async def _any_installation(self) -> int:
        for found in await self.installations():
            if not found.suspended:
                return found.id
        raise ForgeNotFound(
            f"The {self._app.credentials.role} App is not installed anywhere: install it first."
        )

    async def installations(self) -> tuple[Installation, ...]:
        rows = await self.all_pages(self.as_app, Request("GET", "/app/installations"))
        return tuple(parse.installation(row) for row in rows)

    async def installation_repositories(self, installation_id: int) -> tuple[Repository, ...]:
        key = TokenKey(installation_id, None, Scope.METADATA)
        rows = await self.all_pages(
            lambda page: self.call_with(key, page),
            Request("GET", "/installation/repositories"),
            wrap="repositories",
        )
        return tuple(parse.repository(row, installation_id) for row in rows)

    async def repository(self, repo: RepoRef) -> Repository:
        answer = object_of(await self.call(repo, Request("GET", of_repo(repo, ""))))
        return parse.repository(answer, repo.installation_id)

    async def find_repository(self, owner: str, name: str) -> Repository:
        installation = await self.find_installation(owner, name)
        key = TokenKey(installation, None, Scope.METADATA)
        answer = await self.call_with(key, Request("GET", path("/repos/{}/{}", owner, name)))
        return parse.repository(object_of(answer), installation)

    async def pull_request(self, repo: RepoRef, number: int) -> PullRequest:
        answer = await self.call(repo, Request("GET", of_repo(repo, "/pulls/{}", number)))
        return parse.pull_request(object_of(answer))

    async def open_pull_requests(self, repo: RepoRef) -> tuple[PullRequest, ...]:
        rows = await self.pages(repo, Request("GET", of_repo(repo, "/pulls"), query=_OPEN))
        return tuple(parse.pull_request(row) for row in rows)

    async def commit_pulls(self, repo: RepoRef, sha: str) -> tuple[PullRequest, ...]:
        try:
            rows = await self.pages(repo, Request("GET", of_repo(repo, "/commits/{}/pulls", sha)))
        except (ForgeNotFound, ForgeRejected):  # 422: no commit found for this SHA
            return ()
        return tuple(parse.pull_request(row) for row in rows)

    async def branch_sha(self, repo: RepoRef, branch: str) -> str | None:
        request = Request("GET", of_repo(repo, "/git/ref/heads/{}", branch))
        try:
            answer = object_of(await self.call(repo, request))
        except ForgeNotFound:
            return None
        return str(parse.need(answer, "object", "sha"))

    async def permission(self, repo: RepoRef, login: str) -> Permission:
        request = Request("GET", of_repo(repo, "/collaborators/{}/permission", login))
        try:
            answer = object_of(await self.call(repo, request))
        except ForgeNotFound:
            return Permission.NONE
        level = parse.text(answer, "permission")
        return Permission(level) if level in frozenset(Permission) else Permission.NONE

    async def discussion(self, repo: RepoRef, number: int) -> Discussion:
        ours = (await self.identity()).account
        key = await self._key(repo, self._app.scope)
        where: Json = {"owner": repo.owner, "name": repo.name, "number": number}
        pull = await self._of_pull(key, where, _THREADS + _CONVERSATION)
        threads = [
            parse.thread(node, await self._comments_of(key, node), ours)
            for node in await self._all_of(key, where, pull, "reviewThreads", _THREADS)
        ]
        comments = await self._all_of(key, where, pull, "comments", _CONVERSATION)
        return Discussion(
            tuple(threads), tuple(parse.conversation_comment(node, ours) for node in comments)
        )

    async def _of_pull(
        self, key: TokenKey, where: Json, fields: str, after: str | None = None
    ) -> Json:
        """Fields of a pull request; the lists among them from the cursor `after` on."""
        query = f"""
        query($owner: String!, $name: String!, $number: Int!, $after: String) {{
          repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{ {fields} }} }}
        }}
        """
        data = await self._query(key, query, {**where, "after": after}, "a pull request's talk")
        found: Json = parse.need(data, "repository", "pullRequest")
        return found

    async def _all_of(
        self, key: TokenKey, where: Json, pull: Json, name: str, field: str
    ) -> list[Json]:
        """All entries of a list, of which `pull` holds the first page."""
        found = parse.need(pull, name)
        nodes: list[Json] = list(parse.at(found, "nodes") or ())
        while parse.at(found, "pageInfo", "hasNextPage"):
            after = parse.need(found, "pageInfo", "endCursor")
            found = parse.need(await self._of_pull(key, where, field, after), name)
            nodes += parse.at(found, "nodes") or ()
        return nodes

    async def _comments_of(self, key: TokenKey, node: Json) -> list[Mapping[str, Any]]:
        """All comments of a thread: the deciding reply may be the hundred-and-first."""
        found = parse.at(node, "comments")
        comments = list(parse.at(found, "nodes") or ())
        while parse.at(found, "pageInfo", "hasNextPage"):
            variables = {
                "id": parse.need(node, "id"),
                "after": parse.need(found, "pageInfo", "endCursor"),
            }
            data = await self._query(key, _MORE_COMMENTS, variables, "a thread's comments")
            found = parse.at(data, "node", "comments")
            comments += parse.at(found, "nodes") or ()
        return comments

    async def _query(self, key: TokenKey, query: str, variables: Json, what: str) -> Json:
        """A GraphQL question, repeated like a GET when GitHub has a bad moment."""
        for pause in self._app.host.read_retries:
            try:
                return await self.graphql(key, query, variables, what)
            except ForgeUnavailable:
                await self._app.sleep(pause)
        return await self.graphql(key, query, variables, what)

    async def our_reviews(self, repo: RepoRef, number: int) -> tuple[PublishedReview, ...]:
        ours = (await self.identity()).account
        rows = await self.pages(repo, Request("GET", of_repo(repo, "/pulls/{}/reviews", number)))
        return tuple(parse.review(row) for row in rows if parse.is_by(row, ours))

    async def our_checks(self, repo: RepoRef, sha: str) -> tuple[PublishedCheck, ...]:
        app_id = self._app.credentials.app_id
        target = of_repo(repo, "/commits/{}/check-runs", sha)
        query: dict[str, str | int] = {"app_id": app_id, "filter": "all"}
        rows = await self.pages(repo, Request("GET", target, query=query), wrap="check_runs")
        own = (row for row in rows if parse.at(row, "app", "id") == app_id)
        return tuple(sorted((parse.check(row) for row in own), key=lambda c: c.id, reverse=True))

    async def issue_comments(self, repo: RepoRef, number: int) -> tuple[IssueComment, ...]:
        ours = (await self.identity()).account
        rows = await self.pages(repo, Request("GET", of_repo(repo, "/issues/{}/comments", number)))
        return tuple(parse.issue_comment(row, ours) for row in rows)

    async def clone_remote(self, repo: RepoRef, *, write: bool) -> CloneRemote:
        key = await self._key(repo, Scope.PUSH if write else Scope.CLONE)
        token = await self.token(key)
        return CloneRemote(self._app.host.clone_url(repo.full_name), token.value)


_OPEN: Mapping[str, str | int] = {"state": "open"}
