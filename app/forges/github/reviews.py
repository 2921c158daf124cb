"""Publishing a review: once, whole, and whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable

from app.domain.effects import EditReview, InlineComment, PublishReview, ReviewEvent, ReviewReceipt
from app.domain.forge import PublishedReview, ReviewState
from app.domain.markers import MarkerKind, markers_of, with_marker
from app.domain.pull_request import RepoRef
from app.errors import ForgeNotFound, ForgeRejected, ForgeUnavailable
from app.forges.github import parse
from app.forges.github.client import Json, Request, object_of, of_repo
from app.forges.github.limits import MAX_BODY
from app.forges.github.reads import GitHubReads

_OWN_WORK = "your own pull request"
_PENDING = "one pending review per pull request"
_EVENTS = {
    ReviewState.APPROVED: ReviewEvent.APPROVE,
    ReviewState.CHANGES_REQUESTED: ReviewEvent.REQUEST_CHANGES,
    ReviewState.COMMENTED: ReviewEvent.COMMENT,
}


class ReviewPublisher:
    """Publishes reviews as the App that `github` acts as."""

    def __init__(self, github: GitHubReads, outgoing: Callable[[str], str]) -> None:
        self._github = github
        self._outgoing = outgoing

    async def ensure(
        self, repo: RepoRef, number: int, review: PublishReview, maybe_published: bool
    ) -> ReviewReceipt:
        """See `ForgeWrites.ensure_review`."""
        if maybe_published:
            found = await self._look(repo, number, review)
            if found is not None:
                return found
        try:
            return await self._create(repo, number, review, review.event)
        except ForgeUnavailable:
            # The answer was lost, perhaps not the review.
            found = await self._look(repo, number, review)
            if found is None:
                raise
            return found
        except ForgeRejected as error:
            return await self._create_otherwise(repo, number, review, error)

    async def _create_otherwise(
        self, repo: RepoRef, number: int, review: PublishReview, error: ForgeRejected
    ) -> ReviewReceipt:
        """One more try where GitHub's refusal says what stands in the way."""
        words = str(error)
        if _OWN_WORK in words and review.event is not ReviewEvent.COMMENT:
            return await self._create(repo, number, review, ReviewEvent.COMMENT)
        if _PENDING in words:
            found = await self._look(repo, number, review)
            return found or await self._create(repo, number, review, review.event)
        raise error

    async def _look(
        self, repo: RepoRef, number: int, review: PublishReview
    ) -> ReviewReceipt | None:
        """The review, if it is there; a half-made one of ours is thrown away."""
        found = None
        for known in await self._github.our_reviews(repo, number):
            if known.state is ReviewState.PENDING:
                await self._throw_away(repo, number, known)
            elif review.marker in known.markers:
                found = known
        if found is None:
            return None
        event = _EVENTS.get(found.state, review.event)
        return await self._receipt(repo, number, review, found.id, event, created=False)

    async def _throw_away(self, repo: RepoRef, number: int, pending: PublishedReview) -> None:
        target = of_repo(repo, "/pulls/{}/reviews/{}", number, pending.id)
        try:
            await self._github.call(repo, Request("DELETE", target))
        except ForgeNotFound:
            return

    async def _create(
        self, repo: RepoRef, number: int, review: PublishReview, event: ReviewEvent
    ) -> ReviewReceipt:
        body = {
            "commit_id": review.head_sha,
            "event": event.value,
            "body": with_marker(self._outgoing(review.body), review.marker, limit=MAX_BODY),
            "comments": [self._comment(comment) for comment in review.comments],
        }
        request = Request("POST", of_repo(repo, "/pulls/{}/reviews", number), body)
        answer = object_of(await self._github.call(repo, request))
        review_id = int(parse.need(answer, "id"))
        return await self._receipt(repo, number, review, review_id, event, created=True)

    async def edit(self, repo: RepoRef, number: int, edit: EditReview) -> None:
        """See `ForgeWrites.edit_review`."""
        text = with_marker(self._outgoing(edit.body), edit.marker, limit=MAX_BODY)
        target = of_repo(repo, "/pulls/{}/reviews/{}", number, edit.review_id)
        await self._github.call(repo, Request("PUT", target, {"body": text}))

    def _comment(self, comment: InlineComment) -> Json:
        sent: Json = {
            "path": comment.path,
            "line": comment.line,
            "side": comment.side.value,
            "body": with_marker(self._outgoing(comment.body), comment.marker, limit=MAX_BODY),
        }
        if comment.start_line is not None and comment.start_line != comment.line:
            sent |= {"start_line": comment.start_line, "start_side": comment.side.value}
        return sent

    async def _receipt(
        self,
        repo: RepoRef,
        number: int,
        review: PublishReview,
        review_id: int,
        event: ReviewEvent,
        *,
        created: bool,
    ) -> ReviewReceipt:
        """Which comment is which, and which of them nobody will see: the answer to a review does
        not hold its comments."""
        if not review.comments:
            return ReviewReceipt(review_id, event, created=created)
        target = of_repo(repo, "/pulls/{}/reviews/{}/comments", number, review_id)
        rows = await self._github.pages(repo, Request("GET", target))
        known = {
            marker.id: row
            for row in rows
            for marker in markers_of(parse.text(row, "body"))
            if marker.kind is MarkerKind.FINDING
        }
        ids = tuple((name, int(parse.need(row, "id"))) for name, row in known.items())
        seen = {name for name, row in known.items() if parse.stands_on_a_line(row)}
        sent = (comment.marker.id for comment in review.comments)
        unplaced = tuple(name for name in sent if name not in seen)
        return ReviewReceipt(review_id, event, ids, created, unplaced)
