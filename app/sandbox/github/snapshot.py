"""What a pull request looks like from outside: frozen views for tests, the demo and the CLI."""

from __future__ import annotations

from dataclasses import dataclass

from app.sandbox.github.state import CheckRun, PullRequest, Review, Thread


@dataclass(frozen=True)
class CommentView:
    id: int
    author: str
    body: str
    reactions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReviewView:
    id: int
    author: str
    state: str
    body: str
    commit_id: str


@dataclass(frozen=True)
class ThreadView:
    """`line` is None when outdated or for a file comment; `resolved_by` None when open."""

    node_id: str
    path: str
    line: int | None
    side: str
    outdated: bool
    resolved_by: str | None
    comments: tuple[CommentView, ...]


@dataclass(frozen=True)
class CheckView:
    id: int
    app: str
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    external_id: str
    title: str | None
    summary: str | None
    text: str | None
    annotations: int
    actions: tuple[str, ...]


@dataclass(frozen=True)
class PullView:
    """`state` is open, closed or merged; `checks` are those of the present head, oldest first."""

    repository: str
    number: int
    url: str
    title: str
    body: str | None
    author: str
    state: str
    draft: bool
    head_ref: str
    head_sha: str
    base_ref: str
    merge_commit_sha: str | None
    labels: tuple[str, ...]
    reviews: tuple[ReviewView, ...]
    comments: tuple[CommentView, ...]
    threads: tuple[ThreadView, ...]
    checks: tuple[CheckView, ...]


def view(pull: PullRequest, url: str) -> PullView:
    """Freeze a pull request; `url` is its page."""
    checks = pull.repository.checks
    return PullView(
        repository=pull.repository.full_name,
        number=pull.number,
        url=url,
        title=pull.title,
        body=pull.body,
        author=pull.author.login,
        state="merged" if pull.merged_at else "open" if pull.is_open else "closed",
        draft=pull.draft,
        head_ref=pull.head_ref,
        head_sha=pull.head_sha,
        base_ref=pull.base_ref,
        merge_commit_sha=pull.merge_commit_sha,
        labels=tuple(label.name for label in pull.labels),
        reviews=tuple(_review(review) for review in pull.reviews),
        comments=tuple(
            CommentView(c.id, c.user.login, c.body, tuple(r.content for r in c.reactions))
            for c in pull.comments
        ),
        threads=tuple(_thread(thread) for thread in pull.threads),
        checks=tuple(check_view(run) for run in checks if run.head_sha == pull.head_sha),
    )


def _review(review: Review) -> ReviewView:
    author = review.user.login
    return ReviewView(review.id, author, review.state.value, review.body, review.commit_id)


def _thread(thread: Thread) -> ThreadView:
    first = thread.comments[0]
    return ThreadView(
        node_id=thread.node_id,
        path=first.original.path,
        line=first.current.line if first.current else None,
        side=first.original.side.value,
        outdated=first.current is None,
        resolved_by=thread.resolved_by.login if thread.resolved_by else None,
        comments=tuple(
            CommentView(c.id, c.user.login, c.body, tuple(r.content for r in c.reactions))
            for c in thread.comments
        ),
    )


def check_view(run: CheckRun) -> CheckView:
    """Freeze a check run."""
    return CheckView(
        id=run.id,
        app=run.app.slug,
        name=run.name,
        head_sha=run.head_sha,
        status=run.status,
        conclusion=run.conclusion,
        external_id=run.external_id,
        title=run.title,
        summary=run.summary,
        text=run.text,
        annotations=len(run.annotations),
        actions=tuple(str(action.get("identifier")) for action in run.actions),
    )
