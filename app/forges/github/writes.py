"""The effects of the Forge port, on GitHub."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from app.domain.effects import (
    CheckReceipt,
    CommentReceipt,
    Dismissal,
    EditReview,
    OpenPullRequest,
    PublishReview,
    PullRequestReceipt,
    Reaction,
    ReplyToThread,
    Resolution,
    ReviewReceipt,
    SetCheckRun,
)
from app.domain.forge import IssueComment
from app.domain.markers import Marker, markers_of, with_marker
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.errors import ForgeError, ForgeForbidden, ForgeNotFound, ForgeRejected, ForgeUnavailable
from app.forges.github import parse
from app.forges.github.app import GitHubApp
from app.forges.github.checks import CheckPublisher
from app.forges.github.client import Request, object_of, of_repo
from app.forges.github.limits import MAX_BODY, short_line
from app.forges.github.reads import GitHubReads
from app.forges.github.reviews import ReviewPublisher
from app.forges.github.tokens import Scope, TokenKey

_RESOLVED_AT_ONCE = 50
"""Threads closed in one request."""
_MAX_PULL_TITLE = 256
_EXISTS = "pull request already exists"


def as_it_is(text: str) -> str:
    return text


class GitHubForge(GitHubReads):
    """See `app.forges.port.Forge`. Make one per job: `async with GitHubForge(app) as forge`.

    `outgoing` is applied to every text that leaves (bodies, titles, annotations) before its marker
    is added and its length is cut; it has to leave our own Markdown alone.
    """

    def __init__(
        self,
        app: GitHubApp,
        outgoing: Callable[[str], str] = as_it_is,
        *,
        urgent: bool = False,
    ) -> None:
        super().__init__(app, urgent=urgent)
        self._outgoing = outgoing
        self._checks = CheckPublisher(self, outgoing)
        self._reviews = ReviewPublisher(self, outgoing)

    async def ensure_check_run(
        self, repo: RepoRef, check: SetCheckRun, *, maybe_published: bool = True
    ) -> CheckReceipt:
        return await self._checks.ensure(repo, check, maybe_published)

    async def ensure_review(
        self, repo: RepoRef, number: int, review: PublishReview, *, maybe_published: bool = True
    ) -> ReviewReceipt:
        return await self._reviews.ensure(repo, number, review, maybe_published)

    async def edit_review(self, repo: RepoRef, number: int, edit: EditReview) -> None:
        await self._reviews.edit(repo, number, edit)

    async def ensure_comment(
        self,
        repo: RepoRef,
        number: int,
        marker: Marker,
        body: str,
        *,
        comment_id: int | None = None,
        maybe_published: bool = True,
    ) -> CommentReceipt:
        text = with_marker(self._outgoing(body), marker, limit=MAX_BODY)
        if comment_id is not None:
            try:
                return await self._edit(repo, comment_id, text)
            except ForgeNotFound:
                maybe_published = True  # deleted; look before saying it again
        if maybe_published:
            found = await self._find_comment(repo, number, marker)
            if found is not None:
                return await self._settle(repo, found, text)
        request = Request("POST", of_repo(repo, "/issues/{}/comments", number), {"body": text})
        try:
            answer = object_of(await self.call(repo, request))
        except ForgeUnavailable:
            found = await self._find_comment(repo, number, marker)
            if found is None:
                raise
            return await self._settle(repo, found, text)
        return CommentReceipt(int(parse.need(answer, "id")), created=True)

    async def _settle(self, repo: RepoRef, found: IssueComment, text: str) -> CommentReceipt:
        if found.body.rstrip() == text.rstrip():
            return CommentReceipt(found.id, created=False)
        return await self._edit(repo, found.id, text)

    async def _edit(self, repo: RepoRef, comment_id: int, text: str) -> CommentReceipt:
        target = of_repo(repo, "/issues/comments/{}", comment_id)
        await self.call(repo, Request("PATCH", target, {"body": text}))
        return CommentReceipt(comment_id, created=False)

    async def _find_comment(
        self, repo: RepoRef, number: int, marker: Marker
    ) -> IssueComment | None:
        comments = await self.issue_comments(repo, number)
        return next((comment for comment in comments if marker in comment.markers), None)

    async def ensure_reply(
        self, repo: RepoRef, number: int, reply: ReplyToThread, *, maybe_published: bool = True
    ) -> CommentReceipt:
        if maybe_published:
            found = await self._find_reply(repo, number, reply)
            if found is not None:
                return CommentReceipt(found, created=False)
        text = with_marker(self._outgoing(reply.body), reply.marker, limit=MAX_BODY)
        target = of_repo(repo, "/pulls/{}/comments/{}/replies", number, reply.comment_id)
        try:
            answer = object_of(await self.call(repo, Request("POST", target, {"body": text})))
        except ForgeUnavailable:
            found = await self._find_reply(repo, number, reply)
            if found is None:
                raise
            return CommentReceipt(found, created=False)
        return CommentReceipt(int(parse.need(answer, "id")), created=True)

    async def _find_reply(self, repo: RepoRef, number: int, reply: ReplyToThread) -> int | None:
        ours = (await self.identity()).account
        for row in await self.pages(
            repo, Request("GET", of_repo(repo, "/pulls/{}/comments", number))
        ):
            in_thread = parse.at(row, "in_reply_to_id") == reply.comment_id
            marked = reply.marker in markers_of(parse.text(row, "body"))
            if in_thread and marked and parse.is_by(row, ours):
                return int(parse.need(row, "id"))
        return None

    async def ensure_pull_request(
        self, repo: RepoRef, wanted: OpenPullRequest, *, maybe_published: bool = True
    ) -> PullRequestReceipt:
        if maybe_published:
            found = await self._find_pull(repo, wanted)
            if found is not None:
                return PullRequestReceipt(found, created=False)
        body = {
            "head": wanted.head,
            "base": wanted.base,
            "title": short_line(self._outgoing(wanted.title), _MAX_PULL_TITLE),
            "body": with_marker(self._outgoing(wanted.body), wanted.marker, limit=MAX_BODY),
        }
        try:
            answer = await self.call(repo, Request("POST", of_repo(repo, "/pulls"), body))
        except (ForgeUnavailable, ForgeRejected) as error:
            if isinstance(error, ForgeRejected) and _EXISTS not in str(error):
                raise
            found = await self._find_pull(repo, wanted)
            if found is None:
                raise
            return PullRequestReceipt(found, created=False)
        return PullRequestReceipt(parse.pull_request(object_of(answer)), created=True)

    async def _find_pull(self, repo: RepoRef, wanted: OpenPullRequest) -> PullRequest | None:
        """The open one of these branches, else ours of the past: a closed one is an answer too."""
        ours = (await self.identity()).account
        query: dict[str, str | int] = {
            "head": f"{repo.owner}:{wanted.head}",
            "base": wanted.base,
            "state": "all",
        }
        rows = await self.pages(repo, Request("GET", of_repo(repo, "/pulls"), query=query))
        pulls = [parse.pull_request(row) for row in rows]
        for pull in pulls:
            if pull.state is PullRequestState.OPEN:
                return pull
        own = (p for p in pulls if p.author.id == ours.id and wanted.marker in markers_of(p.body))
        return next(own, None)

    async def ensure_label(self, repo: RepoRef, number: int, name: str) -> None:
        target = of_repo(repo, "/issues/{}/labels", number)
        await self.call(repo, Request("POST", target, {"labels": [name]}))

    async def remove_label(self, repo: RepoRef, number: int, name: str) -> None:
        target = of_repo(repo, "/issues/{}/labels/{}", number, name)
        try:
            await self.call(repo, Request("DELETE", target))
        except ForgeNotFound:
            return

    async def dismiss_review(
        self, repo: RepoRef, number: int, review_id: int, message: str
    ) -> Dismissal:
        target = of_repo(repo, "/pulls/{}/reviews/{}/dismissals", number, review_id)
        body = {"message": short_line(self._outgoing(message), MAX_BODY)}
        try:
            await self.call(repo, Request("PUT", target, body))
        except ForgeRejected as error:
            words = str(error).lower()
            if "dismiss a dismissed" in words:
                return Dismissal.ALREADY
            if "can not dismiss" in words or "do not permit dismissing" in words:
                return Dismissal.REFUSED
            raise
        return Dismissal.DISMISSED

    async def resolve_threads(
        self, repo: RepoRef, node_ids: Sequence[str]
    ) -> Mapping[str, Resolution]:
        key = await self._key(repo, Scope.RESOLVE)
        found: dict[str, Resolution] = {}
        for start in range(0, len(node_ids), _RESOLVED_AT_ONCE):
            found |= await self._resolve(key, node_ids[start : start + _RESOLVED_AT_ONCE])
        return found

    async def _resolve(self, key: TokenKey, node_ids: Sequence[str]) -> dict[str, Resolution]:
        names = {f"t{number}": node_id for number, node_id in enumerate(node_ids)}
        declared = ", ".join(f"${name}: ID!" for name in names)
        parts = " ".join(
            f"{name}: resolveReviewThread(input: {{threadId: ${name}}}) {{ thread {{ id }} }}"
            for name in names
        )
        query = f"mutation({declared}) {{ {parts} }}"
        try:
            refused = await self.graphql_parts(key, query, names, "resolving threads")
        except (ForgeForbidden, ForgeNotFound) as error:
            return dict.fromkeys(node_ids, _resolution(error))
        return {node_id: _resolution(refused.get(name)) for name, node_id in names.items()}

    async def react(
        self, repo: RepoRef, comment_id: int, reaction: Reaction, *, inline: bool = False
    ) -> None:
        place = "/pulls/comments/{}/reactions" if inline else "/issues/comments/{}/reactions"
        body = {"content": reaction.value}
        await self.call(repo, Request("POST", of_repo(repo, place, comment_id), body))


def _resolution(error: ForgeError | None) -> Resolution:
    if error is None:
        return Resolution.RESOLVED
    return Resolution.GONE if isinstance(error, ForgeNotFound) else Resolution.NOT_GRANTED
