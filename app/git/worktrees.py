"""Throwaway checkouts for the fixer, and pushing what came out of them.

Git is told where the repository is; it does not ask the checkout, in which anything may have been
written since.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.errors import GitError
from app.git.measure import CheckoutLimits, check_size
from app.git.mirror import Repository
from app.git.process import Remote, checked_branch, checked_sha, git

DEFAULT_LIMITS = CheckoutLimits()
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
    """A commit's files on disk. Links are small text files, nothing was run to make them.

    `git_dir` is where git keeps what it knows of this checkout.
    """

    path: Path
    repository: Repository
    commit: str
    git_dir: Path

    async def commit_all(self, message: str, identity: Identity) -> str | None:
        """Commit all files as they stand. None when nothing changed.

        New links and repositories inside the repository are left out: a fix is made of files.
        """
        await self._git("add", "--all", "--", ".")
        strange = _not_files(await self._staged())
        if strange:
            await self._git(
                "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul",
                stdin=b"\0".join(strange),
            )  # fmt: skip
        if not await self._staged():
            return None
        await self._git(
            "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-",
            stdin=message.replace("\0", "").encode("utf-8", "replace"),
            environment=identity.environment(),
        )  # fmt: skip
        return (await self._git("rev-parse", "HEAD")).decode().strip()

    async def _staged(self) -> bytes:
        return await self._git("diff-index", "--cached", "--raw", "-z", "--no-renames", "HEAD")

    async def _git(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        return await git(
            arguments,
            cwd=self.path,
            remote=self.repository.remote,
            stdin=stdin,
            environment={**self._place(), **(environment or {})},
        )

    def _place(self) -> dict[str, str]:
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.path),
            "GIT_LITERAL_PATHSPECS": "1",
        }


def _not_files(raw: bytes) -> list[bytes]:
    """Paths that `diff-index --raw -z` shows as becoming a link or a repository."""
    heads = raw.split(b"\0")
    return [
        path
        for head, path in zip(heads[::2], heads[1::2], strict=False)
        if head.split(b" ")[1] in (b"120000", b"160000")
    ]


@asynccontextmanager
async def checkout(
    repository: Repository, commit: str, root: Path, limits: CheckoutLimits = DEFAULT_LIMITS
) -> AsyncIterator[Checkout]:
    """A checkout of `commit` in a new folder below `root`; gone when the block ends.

    Raises CheckoutTooLarge, before anything is written, for a commit over the limits.
    """
    await check_size(repository, checked_sha(commit), limits)
    await asyncio.to_thread(root.mkdir, mode=0o700, parents=True, exist_ok=True)
    path = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=root, prefix="fix-"))
    try:
        await git(
            ("worktree", "add", "--quiet", "--detach", str(path), commit),
            cwd=repository.git_dir,
            remote=repository.remote,
        )
        found = await git(("rev-parse", "--absolute-git-dir"), cwd=path)
        git_dir = Path(os.fsdecode(found.removesuffix(b"\n")))
        yield Checkout(path, repository, commit, git_dir)
    finally:
        await asyncio.to_thread(_remove, path)
        # A leftover note of a folder that is gone harms nobody; the next prune takes it.
        with suppress(GitError):
            await git(("worktree", "prune"), cwd=repository.git_dir)


def _remove(path: Path) -> None:
    """Remove a folder, also what was made read-only in it."""
    for folder, _, _ in os.walk(path):
        with suppress(OSError):
            Path(folder).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


async def push(
    repository: Repository, remote: Remote, *, sha: str, branch: str, expected: str | None
) -> None:
    """Make `branch` of the remote point at `sha`, if it still points at `expected`.

    `expected` None: the branch must not exist yet. A push that would do what is done already is
    fine. Raises GitError when somebody else moved the branch, and for a name that reads like more
    than a name.
    """
    if branch.startswith("+"):
        raise GitError(f"{branch[:80]!r} is not a branch name that we push to.")
    name = f"refs/heads/{checked_branch(branch)}"
    lease = f"--force-with-lease={name}:{checked_sha(expected) if expected else ''}"
    try:
        await git(
            ("push", "--quiet", "--no-verify", "--porcelain", lease, "--", remote.url,
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
        ("ls-remote", "--quiet", "--", remote.url, name), cwd=repository.git_dir, remote=remote
    )
    # Git takes the name as a pattern for the end: other refs may be listed too.
    found = (line.split(b"\t", 1) for line in out.splitlines())
    return next((sha.decode() for sha, ref in found if ref == os.fsencode(name)), None)
