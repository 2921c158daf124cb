"""Throwaway checkouts for the fixer, and pushing what came out of them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.errors import GitError
from app.git.mirror import Repository
from app.git.process import Remote, checked_branch, checked_sha, git

NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a commit is by."""

    name: str
    email: str

    def environment(self) -> dict[str, str]:
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.email,
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": self.email,
        }


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit's files on disk. Links are small text files, nothing was run to make them."""

    path: Path
    repository: Repository
    commit: str

    async def commit_all(self, message: str, identity: Identity) -> str | None:
        """Commit everything as it stands. None when nothing changed."""
        await self._git("add", "--all", "--", ".")
        status = await self._git("status", "--porcelain", "-z", "--untracked-files=all")
        if not status.strip(b"\0"):
            return None
        await git(
            ("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--file=-"),
            cwd=self.path,
            remote=self.repository.remote,
            stdin=message.encode("utf-8", "replace"),
            environment=identity.environment(),
        )
        return (await self._git("rev-parse", "HEAD")).decode().strip()

    async def _git(self, *arguments: str) -> bytes:
        return await git(arguments, cwd=self.path, remote=self.repository.remote)


@asynccontextmanager
async def checkout(repository: Repository, commit: str, root: Path) -> AsyncIterator[Checkout]:
    """A checkout of `commit` in a new folder below `root`; gone when the block ends."""
    checked_sha(commit)
    await asyncio.to_thread(root.mkdir, mode=0o700, parents=True, exist_ok=True)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=root, prefix="fix-"))
    path = folder / "checkout"
    try:
        await git(
            ("worktree", "add", "--quiet", "--detach", str(path), commit),
            cwd=repository.git_dir,
            remote=repository.remote,
        )
        yield Checkout(path, repository, commit)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await git(("worktree", "prune"), cwd=repository.git_dir)


async def push(
    repository: Repository, remote: Remote, *, sha: str, branch: str, expected: str | None
) -> None:
    """Make `branch` of the remote point at `sha`, if it still points at `expected`.

    `expected` None: the branch must not exist yet. A push that would do what is done already is
    fine. Raises GitError when somebody else moved the branch.
    """
    name = f"refs/heads/{checked_branch(branch)}"
    lease = f"--force-with-lease={name}:{checked_sha(expected) if expected else ''}"
    try:
        await git(
            ("push", "--quiet", "--no-verify", "--porcelain", lease, remote.url,
             f"{checked_sha(sha)}:{name}"),
            cwd=repository.git_dir,
            remote=remote,
        )  # fmt: skip
    except GitError:
        if await remote_sha(repository, remote, branch) != sha:
            raise


async def remote_sha(repository: Repository, remote: Remote, branch: str) -> str | None:
    """Where the remote's branch is now; None when it does not exist."""
    name = f"refs/heads/{checked_branch(branch)}"
    out = await git(
        ("ls-remote", "--quiet", remote.url, name), cwd=repository.git_dir, remote=remote
    )
    return out.split()[0].decode() if out.strip() else None
