"""Reviews, inline comments and threads: the acts behind REST, GraphQL and people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.sandbox.github import rules
from app.sandbox.github.diffs import Diff
from app.sandbox.github.errors import ApiError, not_found, unprocessable, validation_failed
from app.sandbox.github.hub import Hub
from app.sandbox.github.pullgit import pull_diff
from app.sandbox.github.state import (
    Account,
    Anchor,
    PullRequest,
    Review,
    ReviewComment,
    ReviewState,
    Thread,
)
from app.sandbox.github.world import node_id


@dataclass(frozen=True)
class Draft:
    """One inline comment about to be posted."""

    body: str
    anchor: Anchor


@dataclass(frozen=True)
class Submission:
    """A review about to be created; `event` None leaves it pending."""

    event: str | None
    body: str
    commit_id: str | None
    comments: Sequence[Draft] = ()


async def commit_of(hub: Hub, pull: PullRequest, commit_id: str | None) -> str:
    """The commit a review speaks of; 422 when it is not one of the pull request's."""
    if commit_id is None or commit_id == pull.head_sha:
        return pull.head_sha
    path = pull.repository.path
    sha = await hub.git.resolve(path, commit_id)
    if sha is None:
        raise unprocessable("Variable $commitOID of type GitObjectID was provided invalid value")
    return sha


async def create_review(hub: Hub, pull: PullRequest, user: Account, wanted: Submission) -> Review:
    """Create a review with all its comments, or refuse the whole of it."""
    commit = await commit_of(hub, pull, wanted.commit_id)
    diff = await pull_diff(hub.git, pull, commit)
    _check_verdict(pull, user, wanted.event, wanted.body)
    if pending_of(pull, user) is not None:
        raise unprocessable(rules.PENDING_EXISTS)
    if any(rules.too_long(draft.body) for draft in wanted.comments):
        raise body_too_long("PullRequestReviewComment")
    bad = [e for draft in wanted.comments for e in rules.anchor_errors(diff, draft.anchor)]
    if bad:
        raise unprocessable(rules.joined(bad))
    review = _add_review(hub, pull, user, wanted.body, commit)
    for draft in wanted.comments:
        hidden = hub.faults.hidden_comment(draft.anchor.path, draft.anchor.line)
        if hidden is None or hidden.kept:
            comment = _add_comment(hub, pull, review, draft, diff)
            if hidden is not None:
                comment.current = comment.position = None
    if wanted.event is not None:
        _submit(hub, pull, review, wanted.event)
    return review


def _check_verdict(pull: PullRequest, user: Account, event: str | None, body: str) -> None:
    if event is None:
        return
    if event not in rules.EVENT_STATES:
        raise ApiError(
            422,
            f"Invalid request.\n\nFor 'properties/event', {event} is not a member of "
            "['APPROVE', 'REQUEST_CHANGES', 'COMMENT'].",
        )
    own = rules.own_pull_error(event) if user is pull.author else None
    if own is not None:
        raise unprocessable(own)
    if rules.body_required(event) and not body.strip():
        raise unprocessable("Body can't be blank")
    if rules.too_long(body):
        raise body_too_long("PullRequestReview")


def body_too_long(resource: str) -> ApiError:
    message = f"Body is too long (maximum is {rules.MAX_BODY} characters)"
    return validation_failed(resource, "unprocessable", "data", message)


def pending_of(pull: PullRequest, user: Account) -> Review | None:
    """The user's unsubmitted review of this pull request."""
    mine = (r for r in pull.reviews if r.user is user and r.state is ReviewState.PENDING)
    return next(mine, None)


def _add_review(hub: Hub, pull: PullRequest, user: Account, body: str, commit: str) -> Review:
    review = Review(
        id=hub.world.next_id(),
        user=user,
        state=ReviewState.PENDING,
        body=body,
        commit_id=commit,
        created_at=hub.world.now(),
    )
    pull.reviews.append(review)
    return review


def _add_comment(
    hub: Hub, pull: PullRequest, review: Review, draft: Draft, diff: Diff
) -> ReviewComment:
    file = diff.file(draft.anchor.path)
    position = file.position(draft.anchor) if file else None
    now = hub.world.now()
    comment = ReviewComment(
        id=hub.world.next_id(),
        review=review,
        user=review.user,
        body=draft.body,
        original=draft.anchor,
        current=draft.anchor,
        original_commit_id=review.commit_id,
        commit_id=review.commit_id,
        original_position=position or 1,
        position=position,
        diff_hunk=file.hunk_until(draft.anchor) if file else "",
        created_at=now,
        updated_at=now,
    )
    pull.threads.append(Thread(comment.id, node_id("PRRT", comment.id), [comment]))
    return comment


def _submit(hub: Hub, pull: PullRequest, review: Review, event: str) -> None:
    review.state = rules.EVENT_STATES[event]
    review.submitted_at = pull.updated_at = hub.world.now()
    hub.events.review("submitted", pull, review, review.user)
    for comment in pull.review_comments:
        if comment.review is review:
            hub.events.review_comment("created", pull, comment, review.user)


def submit_pending(
    hub: Hub, pull: PullRequest, review: Review, event: str, body: str | None
) -> None:
    """Publish a pending review; 422 when it is not pending."""
    _check_verdict(pull, review.user, event, body if body is not None else review.body)
    if review.state is not ReviewState.PENDING:
        raise unprocessable("Can not submit a review that is not pending")
    if body is not None:
        review.body = body
    _submit(hub, pull, review, event)


def delete_pending(pull: PullRequest, review: Review) -> None:
    """Throw a pending review and its comments away; 422 when it was submitted."""
    if review.state is not ReviewState.PENDING:
        raise unprocessable("Can not delete a non-pending pull request review")
    pull.reviews.remove(review)
    for thread in list(pull.threads):
        thread.comments = [c for c in thread.comments if c.review is not review]
        if not thread.comments:
            pull.threads.remove(thread)


def dismiss(hub: Hub, pull: PullRequest, review: Review, user: Account, message: str) -> None:
    """Take a verdict back; its body stays."""
    refusal = rules.dismissal_error(review.state)
    if refusal is not None:
        raise unprocessable(refusal)
    if not message.strip():
        raise validation_failed("PullRequestReview", "missing_field", "message")
    review.state = ReviewState.DISMISSED
    hub.events.review("dismissed", pull, review, user)


async def comment_alone(
    hub: Hub, pull: PullRequest, user: Account, draft: Draft, commit_id: str | None
) -> ReviewComment:
    """One inline comment outside a review; GitHub wraps it in a COMMENTED review."""
    commit = await commit_of(hub, pull, commit_id)
    diff = await pull_diff(hub.git, pull, commit)
    _refuse_while_pending(pull, user)
    if rules.too_long(draft.body):
        raise body_too_long("PullRequestReviewComment")
    if rules.anchor_errors(diff, draft.anchor):
        field = "path" if diff.file(draft.anchor.path) is None else "line"
        problem = "is invalid" if field == "path" else "must be part of the diff"
        name = f"pull_request_review_thread.{field}"
        raise validation_failed("PullRequestReviewComment", "custom", name, f"{name} {problem}")
    review = _add_review(hub, pull, user, "", commit)
    comment = _add_comment(hub, pull, review, draft, diff)
    _submit(hub, pull, review, "COMMENT")
    return comment


def _refuse_while_pending(pull: PullRequest, user: Account) -> None:
    if pending_of(pull, user) is not None:
        message = "user_id can only have one pending review per pull request"
        raise validation_failed("PullRequestReview", "custom", "user_id", message)


def reply(hub: Hub, pull: PullRequest, user: Account, comment_id: int, body: str) -> ReviewComment:
    """Answer a thread's first comment; 404 for anything else."""
    thread = next((t for t in pull.threads if t.id == comment_id), None)
    if thread is None:
        raise not_found()
    _refuse_while_pending(pull, user)
    if rules.too_long(body):
        raise body_too_long("PullRequestReviewComment")
    first, now = thread.comments[0], hub.world.now()
    review = _add_review(hub, pull, user, "", pull.head_sha)
    answer = ReviewComment(
        id=hub.world.next_id(),
        review=review,
        user=user,
        body=body,
        original=first.original,
        current=first.current,
        original_commit_id=first.original_commit_id,
        commit_id=first.commit_id,
        original_position=first.original_position,
        position=first.position,
        diff_hunk=first.diff_hunk,
        created_at=now,
        updated_at=now,
        reply_to=first.id,
    )
    thread.comments.append(answer)
    _submit(hub, pull, review, "COMMENT")
    return answer


def resolve(hub: Hub, pull: PullRequest, thread: Thread, user: Account, *, resolved: bool) -> None:
    """Resolve or reopen a thread; nothing happens when it is so already."""
    if (thread.resolved_by is not None) is resolved:
        return
    thread.resolved_by = user if resolved else None
    hub.events.thread("resolved" if resolved else "unresolved", pull, thread, user)
