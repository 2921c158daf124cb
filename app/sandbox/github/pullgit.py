"""Questions about a pull request that git answers."""

from __future__ import annotations

from app.sandbox.github.diffs import Diff
from app.sandbox.github.gitstore import GitStore, NewCommit, person_of
from app.sandbox.github.render_pulls import PullFacts
from app.sandbox.github.state import PullRequest


async def pull_diff(git: GitStore, pull: PullRequest, commit: str | None = None) -> Diff:
    """The three-dot diff at a commit (default: the head)."""
    return await git.diff(pull.repository.path, pull.base_sha, commit or pull.head_sha)


async def merged_tree(git: GitStore, pull: PullRequest) -> tuple[str, str] | None:
    """The base branch's tip and the tree of a merge into it; None when it conflicts."""
    path = pull.repository.path
    base = await git.branch(path, pull.base_ref)
    if base is None:
        return None
    tree = await git.merge_tree(path, base, pull.head_sha)
    return None if tree is None else (base, tree)


async def pull_facts(git: GitStore, pull: PullRequest) -> PullFacts:
    """Counts, and whether the pull request merges (unknown once it is closed)."""
    diff = await pull_diff(git, pull)
    mergeable = None
    if pull.is_open:
        mergeable = await merged_tree(git, pull) is not None
    commits = await git.commits(pull.repository.path, pull.base_sha, pull.head_sha)
    return PullFacts(
        commits=len(commits),
        additions=sum(file.additions for file in diff.files),
        deletions=sum(file.deletions for file in diff.files),
        changed_files=len(diff.files),
        mergeable=mergeable,
    )


async def update_pull_refs(git: GitStore, pull: PullRequest) -> None:
    """Move `refs/pull/N/head` and, when it merges cleanly, `refs/pull/N/merge`."""
    path = pull.repository.path
    if pull.head_repository is not None and pull.head_repository is not pull.repository:
        source, ref = str(pull.head_repository.path), f"refs/heads/{pull.head_ref}"
        await git.run(path, "fetch", "--quiet", "--no-tags", source, ref)
    prefix = f"refs/pull/{pull.number}"
    refs: dict[str, str | None] = {f"{prefix}/head": pull.head_sha}
    merged = await merged_tree(git, pull)
    pull.test_merge_sha = await _test_merge(git, pull, *merged) if merged else None
    refs[f"{prefix}/merge"] = pull.test_merge_sha
    await git.move_refs(path, refs)


async def _test_merge(git: GitStore, pull: PullRequest, base: str, tree: str) -> str:
    message = f"Merge {pull.head_sha} into {base}"
    new = NewCommit(message, person_of(pull.author), pull.updated_at)
    return await git.commit_tree(pull.repository.path, tree, (base, pull.head_sha), new)
