"""REST: reviews and inline comments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.sandbox.github import render_pulls, reviewing, rules
from app.sandbox.github.endpoint import Call, Endpoints, Reply, invalid_request
from app.sandbox.github.errors import missing_field, not_found
from app.sandbox.github.reviewing import Draft, Submission
from app.sandbox.github.state import Anchor, PullRequest, Review, ReviewComment, ReviewState

endpoints = Endpoints()

_PULL = "/repos/{owner}/{repo}/pulls/{number:int}"
_REVIEW = f"{_PULL}/reviews/{{review_id:int}}"
_COMMENT = "/repos/{owner}/{repo}/pulls/comments/{comment_id:int}"
_WRITE = "pull_requests=write"
_READ = "pull_requests=read"


def _shown(call: Call, review: Review) -> Reply:
    return Reply(body=render_pulls.review(call.hub.render, call.pull, review))


def _visible(call: Call, review: Review) -> bool:
    return review.state is not ReviewState.PENDING or review.user is call.account


def _review(call: Call) -> Review:
    wanted = call.number("review_id")
    for review in call.pull.reviews:
        if review.id == wanted and _visible(call, review):
            return review
    raise not_found()


@endpoints.add("GET", f"{_PULL}/reviews", _READ)
async def list_reviews(call: Call) -> Reply:
    """Oldest first; a pending review is shown to its author only."""
    render, pull = call.hub.render, call.pull
    shown = [r for r in pull.reviews if _visible(call, r)]
    return call.page([render_pulls.review(render, pull, r) for r in shown])


@endpoints.add("POST", f"{_PULL}/reviews", _WRITE, creates=True)
async def create_review(call: Call) -> Reply:
    comments = call.body.get("comments") or []
    if not isinstance(comments, list):
        raise invalid_request("For 'properties/comments', expected an array.")
    wanted = Submission(
        event=call.text("event"),
        body=call.text("body") or "",
        commit_id=call.text("commit_id"),
        comments=[draft_of(item) for item in comments],
    )
    review = await reviewing.create_review(call.hub, call.pull, call.account, wanted)
    return _shown(call, review)


def draft_of(item: object) -> Draft:
    """An inline comment of a request; 422 on the wrong shape."""
    if not isinstance(item, Mapping):
        raise invalid_request("For 'items', expected an object.")
    path, body = item.get("path"), item.get("body")
    if not isinstance(path, str) or not isinstance(body, str):
        raise invalid_request('"path" and "body" weren\'t supplied as strings.')
    if not body.strip():
        raise missing_field("PullRequestReviewComment", "body")
    if item.get("subject_type") == "file":
        return Draft(body, Anchor(path))
    return Draft(body, _anchor(path, item))


def _anchor(path: str, item: Mapping[str, Any]) -> Anchor:
    line, start = item.get("line"), item.get("start_line")
    if not isinstance(line, int) or not isinstance(start, int | None):
        raise invalid_request('"line" wasn\'t supplied.')
    side = rules.side_of(item.get("side", "RIGHT"))
    start_side = rules.side_of(item.get("start_side", side))
    if side is None or start_side is None:
        raise invalid_request("For 'properties/side', expected LEFT or RIGHT.")
    return Anchor(path, line, side, start, start_side if start is not None else None)


@endpoints.add("GET", _REVIEW, _READ)
async def get_review(call: Call) -> Reply:
    return _shown(call, _review(call))


@endpoints.add("PUT", _REVIEW, _WRITE)
async def update_review(call: Call) -> Reply:
    """Change the summary of one's own review."""
    review = _review(call)
    if review.user is not call.account:
        raise not_found()
    body = call.text("body") or ""
    if rules.too_long(body):
        raise reviewing.body_too_long("PullRequestReview")
    review.body = body
    return _shown(call, review)


@endpoints.add("POST", f"{_REVIEW}/events", _WRITE, creates=True)
async def submit_review(call: Call) -> Reply:
    review = _review(call)
    if review.user is not call.account:
        raise not_found()
    event = call.text("event") or ""
    reviewing.submit_pending(call.hub, call.pull, review, event, call.text("body"))
    return _shown(call, review)


@endpoints.add("DELETE", _REVIEW, _WRITE)
async def delete_review(call: Call) -> Reply:
    review = _review(call)
    reply = _shown(call, review)
    reviewing.delete_pending(call.pull, review)
    return reply


@endpoints.add("PUT", f"{_REVIEW}/dismissals", _WRITE, human="write")
async def dismiss_review(call: Call) -> Reply:
    review = _review(call)
    message = call.text("message") or ""
    reviewing.dismiss(call.hub, call.pull, review, call.account, message)
    return _shown(call, review)


def _comments(call: Call, pull: PullRequest, shown: list[ReviewComment]) -> Reply:
    render = call.hub.render
    return call.page([render_pulls.review_comment(render, pull, item) for item in shown])


@endpoints.add("GET", f"{_REVIEW}/comments", _READ)
async def list_comments_of_review(call: Call) -> Reply:
    review = _review(call)
    return _comments(call, call.pull, [c for c in call.pull.review_comments if c.review is review])


@endpoints.add("GET", f"{_PULL}/comments", _READ)
async def list_comments(call: Call) -> Reply:
    """Oldest first, without those of pending reviews."""
    shown = call.pull.submitted_comments
    if call.query("direction", "asc") == "desc":
        shown.reverse()
    return _comments(call, call.pull, shown)


@endpoints.add("POST", f"{_PULL}/comments", _WRITE, creates=True)
async def create_comment(call: Call) -> Reply:
    if isinstance(call.body.get("in_reply_to"), int):
        body = call.text("body") or ""
        target = call.body["in_reply_to"]
        answer = reviewing.reply(call.hub, call.pull, call.account, target, body)
        return _created(call, call.pull, answer)
    if call.text("commit_id") is None:
        raise invalid_request('"commit_id" wasn\'t supplied.')
    comment = await reviewing.comment_alone(
        call.hub, call.pull, call.account, draft_of(call.body), call.text("commit_id")
    )
    return _created(call, call.pull, comment)


def _created(call: Call, pull: PullRequest, comment: ReviewComment) -> Reply:
    return Reply(201, render_pulls.review_comment(call.hub.render, pull, comment))


@endpoints.add("POST", f"{_PULL}/comments/{{comment_id:int}}/replies", _WRITE, creates=True)
async def reply(call: Call) -> Reply:
    body = call.text("body") or ""
    if not body.strip():
        raise missing_field("PullRequestReviewComment", "body")
    target = call.number("comment_id")
    answer = reviewing.reply(call.hub, call.pull, call.account, target, body)
    return _created(call, call.pull, answer)


def find_comment(call: Call) -> tuple[PullRequest, ReviewComment]:
    """The inline comment that the path names."""
    wanted = call.number("comment_id")
    for pull in call.repo.pulls.values():
        for comment in pull.submitted_comments:
            if comment.id == wanted:
                return pull, comment
    raise not_found()


@endpoints.add("GET", _COMMENT, _READ)
async def get_comment(call: Call) -> Reply:
    pull, comment = find_comment(call)
    return Reply(body=render_pulls.review_comment(call.hub.render, pull, comment))


@endpoints.add("PATCH", _COMMENT, _WRITE)
async def update_comment(call: Call) -> Reply:
    pull, comment = find_comment(call)
    body = call.text("body") or ""
    if rules.too_long(body):
        raise reviewing.body_too_long("PullRequestReviewComment")
    comment.body, comment.updated_at = body, call.hub.world.now()
    call.hub.events.review_comment("edited", pull, comment, call.account)
    return Reply(body=render_pulls.review_comment(call.hub.render, pull, comment))


@endpoints.add("DELETE", _COMMENT, _WRITE)
async def delete_comment(call: Call) -> Reply:
    """Delete an inline comment; the first one's thread goes when it was the only one."""
    pull, comment = find_comment(call)
    for thread in list(pull.threads):
        if comment in thread.comments:
            thread.comments.remove(comment)
        if not thread.comments:
            pull.threads.remove(thread)
    call.hub.events.review_comment("deleted", pull, comment, call.account)
    return Reply(204)
