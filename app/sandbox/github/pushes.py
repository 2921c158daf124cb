"""What follows when a branch moves, whoever moved it."""

from __future__ import annotations

from dataclasses import replace

from app.sandbox.github.diffs import Diff, shift_line
from app.sandbox.github.gitstore import NOBODY, GitStore
from app.sandbox.github.hub import Hub
from app.sandbox.github.pullgit import pull_diff, update_pull_refs
from app.sandbox.github.state import (
    Account,
    Anchor,
    PullRequest,
    Repository,
    ReviewComment,
    Side,
)


async def branch_moved(
    hub: Hub, repository: Repository, ref: str, before: str, after: str, sender: Account
) -> None:
    """Update pull requests of a moved branch and send `push` and `synchronize`.

    `before` and `after` are 40 zeros when the branch is new or gone. The caller holds the
    repository's lock.
    """
    repository.pushed_at = hub.world.now()
    await hub.events.push(repository, ref, before, after, sender)
    branch = ref.removeprefix("refs/heads/")
    for pull in list(hub.world.pulls()):
        if not pull.is_open:
            continue
        if pull.head_repository is repository and pull.head_ref == branch:
            await _head_moved(hub, pull, after, sender)
        elif pull.repository is repository and pull.base_ref == branch and after != NOBODY:
            await _base_moved(hub, pull, after, sender)


async def _head_moved(hub: Hub, pull: PullRequest, after: str, sender: Account) -> None:
    pull.updated_at = hub.world.now()
    if after == NOBODY:  # GitHub closes a pull request whose branch is deleted
        pull.closed_at = pull.updated_at
        await hub.events.pull_request("closed", pull, sender)
        return
    before, pull.head_sha = pull.head_sha, after
    base = await hub.git.branch(pull.repository.path, pull.base_ref)
    pull.base_sha = base or pull.base_sha
    await update_pull_refs(hub.git, pull)
    await outdate_comments(hub.git, pull, before)
    extra = {"before": before, "after": after}
    await hub.events.pull_request("synchronize", pull, sender, extra)


async def _base_moved(hub: Hub, pull: PullRequest, after: str, sender: Account) -> None:
    """A push that brings the head's commits into the base merges the pull request."""
    if not await hub.git.is_ancestor(pull.repository.path, pull.head_sha, after):
        return
    pull.closed_at = pull.merged_at = pull.updated_at = hub.world.now()
    pull.merged_by, pull.merge_commit_sha = sender, after
    await hub.events.pull_request("closed", pull, sender)


async def outdate_comments(git: GitStore, pull: PullRequest, before: str) -> None:
    """Carry every inline comment from commit `before` to the head, or outdate it.

    A comment survives when its lines are unchanged and still inside a hunk of the new diff.
    """
    diff = await pull_diff(git, pull)
    for comment in pull.review_comments:
        if comment.current is None:
            continue
        moved = await _moved(git, pull, comment.current, before, diff)
        _place(comment, moved, diff, pull.head_sha)


def _place(comment: ReviewComment, anchor: Anchor | None, diff: Diff, head: str) -> None:
    file = diff.file(anchor.path) if anchor else None
    position = file.position(anchor) if anchor and file else None
    if position is None:
        comment.current = comment.position = None
        return
    comment.current, comment.position, comment.commit_id = anchor, position, head


async def _moved(
    git: GitStore, pull: PullRequest, anchor: Anchor, before: str, diff: Diff
) -> Anchor | None:
    if anchor.line is None or anchor.side is Side.LEFT:
        return anchor if diff.file(anchor.path) else None
    path = pull.repository.path
    changed = (await git.changes(path, before, pull.head_sha, anchor.path)).file(anchor.path)
    if changed is None:
        return anchor
    if changed.status == "removed":
        return None
    line = shift_line(changed.hunks, anchor.line)
    start = anchor.start_line
    if start is not None:
        start = shift_line(changed.hunks, start)
    if line is None or (anchor.start_line is not None and start is None):
        return None
    return replace(anchor, line=line, start_line=start)
