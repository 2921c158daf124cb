"""The Forge port: all that stories need of a forge, in words of the domain.

One object acts as one App (reviewer or fixer). Every method raises only `ForgeError`s of
`app.errors` (404, 401, 403, refusals, limits, outages); after `ForgeUnavailable` from a write, and
after a crash, the effect may or may not exist: call again with `maybe_published=True`.

Writes are `ensure_*`: each looks for what it is asked to make before making it, unless the caller
knows that it was never tried (`maybe_published=False`, which saves a request). Bodies are given
without markers; the forge adds them and enforces GitHub's size limits, cutting visibly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

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
from app.domain.markers import Marker
from app.domain.pull_request import Permission, PullRequest, RepoRef


class ForgeReads(Protocol):
    """Questions. None of them changes anything; each may be repeated."""

    async def identity(self) -> AppIdentity:
        """Who we are: to recognise our own events and texts, and to sign commits."""
        ...

    async def installations(self) -> tuple[Installation, ...]:
        """Every installation of this App, suspended ones included."""
        ...

    async def installation_repositories(self, installation_id: int) -> tuple[Repository, ...]:
        """Every repository that the installation may see."""
        ...

    async def repository(self, repo: RepoRef) -> Repository:
        """The repository as it is now; after a rename `ref` has the new name."""
        ...

    async def find_repository(self, owner: str, name: str) -> Repository:
        """A repository by name, where this App is installed; ForgeNotFound otherwise."""
        ...

    async def pull_request(self, repo: RepoRef, number: int) -> PullRequest: ...

    async def open_pull_requests(self, repo: RepoRef) -> tuple[PullRequest, ...]: ...

    async def commit_pulls(self, repo: RepoRef, sha: str) -> tuple[PullRequest, ...]:
        """Pull requests that hold or brought the commit; none for a commit nobody knows."""
        ...

    async def branch_sha(self, repo: RepoRef, branch: str) -> str | None:
        """The commit at the tip of `branch`, None when there is no such branch."""
        ...

    async def permission(self, repo: RepoRef, login: str) -> Permission:
        """The effective permission of an account; NONE for strangers and unknown logins."""
        ...

    async def discussion(self, repo: RepoRef, number: int) -> Discussion:
        """All threads with all their comments, and the conversation below."""
        ...

    async def our_reviews(self, repo: RepoRef, number: int) -> tuple[PublishedReview, ...]:
        """Reviews of our own account, oldest first, pending debris included."""
        ...

    async def our_checks(self, repo: RepoRef, sha: str) -> tuple[PublishedCheck, ...]:
        """All check runs of our own App on a commit, newest first."""
        ...

    async def issue_comments(self, repo: RepoRef, number: int) -> tuple[IssueComment, ...]:
        """The conversation (not the threads), oldest first."""
        ...

    async def clone_remote(self, repo: RepoRef, *, write: bool) -> CloneRemote:
        """A remote with a token for this repository's contents alone; `write` only for fixes."""
        ...


class ForgeWrites(Protocol):
    """Effects. `app.forges.apply` calls them in the order of a story's tuple."""

    async def ensure_check_run(
        self, repo: RepoRef, check: SetCheckRun, *, maybe_published: bool = True
    ) -> CheckReceipt:
        """Create or update the check run found by name, external id and head."""
        ...

    async def ensure_review(
        self, repo: RepoRef, number: int, review: PublishReview, *, maybe_published: bool = True
    ) -> ReviewReceipt:
        """Publish the review once. On our own pull request APPROVE and REQUEST_CHANGES become
        COMMENT. ForgeRejected with GitHub's words when an anchor is outside the diff.

        Among the receipt's `unplaced` is also a comment that a push made outdated before it was
        read back: in doubt a text is told twice and not lost.
        """
        ...

    async def edit_review(self, repo: RepoRef, number: int, edit: EditReview) -> None:
        """Make our review say something else. Doing it again is fine."""
        ...

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
        """Create the comment, or make the one with this marker say `body`."""
        ...

    async def ensure_reply(
        self, repo: RepoRef, number: int, reply: ReplyToThread, *, maybe_published: bool = True
    ) -> CommentReceipt:
        """Answer in a thread once; an answer with this marker is left as it is."""
        ...

    async def ensure_pull_request(
        self, repo: RepoRef, wanted: OpenPullRequest, *, maybe_published: bool = True
    ) -> PullRequestReceipt:
        """Open the pull request, or return the open one of the same head and base.

        Without an open one, ours of the past with this marker is returned, closed as it is: what
        somebody closed is never opened again by a repeated job.
        ForgeRejected when there is nothing between the branches.
        """
        ...

    async def ensure_label(self, repo: RepoRef, number: int, name: str) -> None: ...

    async def remove_label(self, repo: RepoRef, number: int, name: str) -> None:
        """A label that is not there is fine."""
        ...

    async def dismiss_review(
        self, repo: RepoRef, number: int, review_id: int, message: str
    ) -> Dismissal: ...

    async def resolve_threads(
        self, repo: RepoRef, node_ids: Sequence[str]
    ) -> Mapping[str, Resolution]:
        """Resolve with a token of this one repository that is used for nothing else. What became of
        each thread, by its id: one that can't be resolved keeps no other open."""
        ...

    async def react(
        self, repo: RepoRef, comment_id: int, reaction: Reaction, *, inline: bool = False
    ) -> None: ...


class Forge(ForgeReads, ForgeWrites, Protocol):
    """One App on one forge. Enter it once per job: `async with open_forge(...) as forge`.

    Entering costs nothing but keeps connections alive between the calls of the job.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
