"""What is on the forge in memory, and what people do there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from app.domain.effects import PublishReview, Reaction, SetCheckRun, Side
from app.domain.forge import IssueComment, PublishedCheck, PublishedReview, Repository
from app.domain.pull_request import (
    Account,
    AccountKind,
    Permission,
    PullRequest,
    PullRequestState,
    RepoRef,
    ReviewThread,
    ThreadComment,
)
from app.errors import ForgeNotFound, ForgeRejected

Anchors = frozenset[tuple[str, Side, int]]
"""Lines that can be commented: (path, side, line)."""

_BAD_LINE = (
    "GitHub answered 422: Unprocessable Entity: Pull request review thread line must be part of "
    "the diff and Pull request review thread diff hunk can't be blank"
)


@dataclass(slots=True)
class ReviewRecord:
    """A review, its author's id, the ids of its comments by marker id, and the marker ids of those
    that were taken and stand on no line."""

    author: int
    told: PublishedReview
    comment_ids: tuple[tuple[str, int], ...] = ()
    unplaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HiddenComment:
    """An inline comment that is going to be taken and shown to nobody; `kept` False: without even
    a thread."""

    path: str
    line: int
    kept: bool = True


@dataclass(slots=True)
class ThreadRecord:
    """A thread; each comment with its author's id. Without a `line` nobody sees it."""

    node_id: str
    path: str
    line: int | None
    comments: list[tuple[int, ThreadComment]]
    resolved_by: str | None = None

    def seen_by(self, account: Account) -> ReviewThread:
        comments = (
            replace(comment, ours=author == account.id) for author, comment in self.comments
        )
        return ReviewThread(
            node_id=self.node_id,
            path=self.path,
            line=self.line,
            resolved=self.resolved_by is not None,
            outdated=False,
            resolved_by=self.resolved_by,
            comments=tuple(comments),
        )


@dataclass(slots=True)
class PullRecord:
    """A pull request with all that hangs on it. `anchors` None: every line can be commented."""

    value: PullRequest
    anchors: Anchors | None = None
    reviews: list[ReviewRecord] = field(default_factory=list)
    threads: list[ThreadRecord] = field(default_factory=list)
    comments: list[IssueComment] = field(default_factory=list)

    def check_anchors(self, review: PublishReview) -> None:
        """ForgeRejected for the whole review when one comment has no place in the diff."""
        for comment in review.comments:
            lines = {comment.line, comment.start_line or comment.line}
            places = {(comment.path, comment.side, line) for line in lines}
            if self.anchors is not None and not places <= self.anchors:
                raise ForgeRejected(_BAD_LINE, status=422)


@dataclass(slots=True)
class CheckRecord:
    """A check run and the effect that it shows."""

    app_id: int
    told: PublishedCheck
    shown: SetCheckRun


@dataclass(slots=True)
class World:
    """Repositories and what is in them. Unknown things raise ForgeNotFound.

    Each of `hidden_comments` is used up by happening.
    """

    repositories: dict[int, Repository] = field(default_factory=dict)
    pulls: dict[tuple[int, int], PullRecord] = field(default_factory=dict)
    branches: dict[tuple[int, str], str] = field(default_factory=dict)
    permissions: dict[str, Permission] = field(default_factory=dict)
    checks: list[CheckRecord] = field(default_factory=list)
    reactions: list[tuple[int, Reaction]] = field(default_factory=list)
    hidden_comments: list[HiddenComment] = field(default_factory=list)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1001))

    def next_id(self) -> int:
        return next(self._ids)

    def take_hidden(self, path: str, line: int) -> HiddenComment | None:
        """What becomes of a comment here that nobody will see; None if everybody does."""
        at = (item for item in self.hidden_comments if (item.path, item.line) == (path, line))
        found = next(at, None)
        if found is not None:
            self.hidden_comments.remove(found)
        return found

    def add_repository(self, repo: RepoRef, default_branch: str = "main") -> None:
        self.repositories[repo.repository_id] = Repository(repo, default_branch)

    def put_pull(
        self, repo: RepoRef, pull: PullRequest, anchors: Anchors | None = None
    ) -> PullRequest:
        """Add a pull request, or change one: pushed, merged, closed, retitled."""
        key = repo.repository_id, pull.number
        record = self.pulls.setdefault(key, PullRecord(pull))
        record.value, record.anchors = pull, anchors or record.anchors
        if pull.state is PullRequestState.OPEN:
            self.branches[repo.repository_id, pull.head_ref] = pull.head_sha
        return pull

    def pull(self, repo: RepoRef, number: int) -> PullRecord:
        found = self.pulls.get((repo.repository_id, number))
        if found is None:
            raise ForgeNotFound(f"there is no pull request {repo.full_name}#{number}", status=404)
        return found

    def pulls_of(self, repo: RepoRef) -> list[PullRequest]:
        """Newest first."""
        found = [p.value for (owner, _), p in self.pulls.items() if owner == repo.repository_id]
        return sorted(found, key=lambda pull: pull.number, reverse=True)

    def comment(self, repo: RepoRef, number: int, author: Account, body: str) -> int:
        """Somebody comments; the comment's id."""
        comment = IssueComment(self.next_id(), author, body, ours=False)
        self.pull(repo, number).comments.append(comment)
        return comment.id

    def open_thread(
        self, pull: PullRecord, author: Account, place: tuple[str, int | None], body: str
    ) -> int:
        """Somebody comments a line; the comment's id, which names the thread's node too."""
        comment = self._thread_comment(author, body)
        path, line = place
        pull.threads.append(ThreadRecord(f"PRRT_{comment.id}", path, line, [(author.id, comment)]))
        return comment.id

    def reply(self, thread: ThreadRecord, author: Account, body: str) -> int:
        """Somebody answers in a thread; the answer's id."""
        comment = self._thread_comment(author, body)
        thread.comments.append((author.id, comment))
        return comment.id

    def _thread_comment(self, author: Account, body: str) -> ThreadComment:
        return ThreadComment(self.next_id(), author.login, author.kind is AccountKind.BOT, body)

    def thread(self, repo: RepoRef, node_id: str) -> ThreadRecord:
        """A thread by its node."""
        return self._thread(repo, lambda thread: thread.node_id == node_id)

    def thread_of(self, repo: RepoRef, comment_id: int) -> ThreadRecord:
        """The thread that begins with a comment."""
        return self._thread(repo, lambda thread: thread.comments[0][1].id == comment_id)

    def _thread(self, repo: RepoRef, wanted: Callable[[ThreadRecord], bool]) -> ThreadRecord:
        for (owner, _), pull in self.pulls.items():
            for thread in pull.threads if owner == repo.repository_id else ():
                if wanted(thread):
                    return thread
        raise ForgeNotFound(f"there is no such thread in {repo.full_name}", status=404)
