"""Throwaway checkouts for the fixer, and pushing what came out of them.

Git is told where the repository is; it does not ask the checkout, in which anything may have been
written since.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.errors import GitError
from app.git.locks import take, to_the_end
from app.git.measure import CheckoutLimits, check_size
from app.git.mirror import Repository
from app.git.mirror_folder import noting_damage
from app.git.process import Remote, checked_branch, checked_sha, git
from app.logs import get_logger

log = get_logger(__name__)

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

    async def fill(self) -> None:
        """Write the commit's files, as `git worktree add` does."""
        await self._git("reset", "--hard", "--quiet", "--no-recurse-submodules")

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
    with noting_damage(repository.git_dir, repository.hold):
        await check_size(repository, checked_sha(commit), limits)
        # In no thread, which would go on if we are cancelled.
        path, lock = _new_folder(root)
        git_dir = repository.git_dir.absolute()
        try:
            copy = Checkout(path, repository, commit, _register(git_dir, path, commit))
            await copy.fill()
            yield copy
        finally:
            await to_the_end(asyncio.to_thread(_dispose, git_dir, path, lock))


async def sweep_checkouts(root: Path) -> int:
    """Remove what processes that died left below `root`; those of living ones stay.

    Returns how many there were. What mirrors remember of them goes with their next checkout.
    """
    return await asyncio.to_thread(_sweep, root)


def _sweep(root: Path) -> int:
    swept = 0
    for name in {path.stem for path in root.glob("fix-*")}:
        lock = take(root / f"{name}.lock")
        if lock is not None:
            _remove(root / name, lock)
            swept += 1
    if swept:
        log.info("leftover checkouts removed", checkouts=swept)
    return swept


def _new_folder(root: Path) -> tuple[Path, int]:
    """An empty folder, and the lock by which others see that its process lives."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        path = root.absolute() / f"fix-{secrets.token_hex(8)}"  # git runs in other folders
        lock = take(path.with_suffix(".lock"))
        if lock is not None:  # else somebody sweeps, and took it for a leftover
            path.mkdir(mode=0o700)
            return path, lock


def _register(git_dir: Path, path: Path, commit: str) -> Path:
    """Tell a repository of a checkout, in files of the layout that git documents.

    `git worktree add` does it in steps, and whatever else git does in the repository meanwhile (a
    fetch, a second checkout) fails when it meets a half of them. Here all appear at once. Returns
    where git keeps what it knows of the checkout. Raises GitError.
    """
    notes = git_dir / "worktrees" / path.name
    half = git_dir / f"mergeward-{path.name}"
    try:
        half.mkdir(mode=0o700)
        (half / "HEAD").write_text(f"{commit}\n")
        (half / "commondir").write_text("../..\n")
        (half / "gitdir").write_bytes(os.fsencode(path / ".git") + b"\n")
        (path / ".git").write_bytes(b"gitdir: " + os.fsencode(notes) + b"\n")
        notes.parent.mkdir(exist_ok=True)
        half.rename(notes)
    except OSError as error:
        raise GitError(f"A checkout of {commit[:10]} can't be made: {error.strerror}.") from None
    return notes


def _dispose(git_dir: Path, path: Path, lock: int) -> None:
    _remove(path, lock)
    for notes in (git_dir / "worktrees").glob("*"):
        try:
            is_gone = not Path(os.fsdecode((notes / "gitdir").read_bytes().rstrip(b"\n"))).exists()
        except OSError:  # somebody else is removing it, or has
            continue
        if is_gone:
            _forget(git_dir, notes)


def _forget(git_dir: Path, notes: Path) -> None:
    """Remove what a repository knows of a checkout that is gone, ours or of a dead process."""
    half = git_dir / f"mergeward-{secrets.token_hex(8)}"
    with suppress(OSError):
        notes.rename(half)
        shutil.rmtree(half)


def _remove(path: Path, lock: int) -> None:
    """Remove a folder, also what was made read-only in it, and then its lock."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                Path(folder).chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        log.warning("a checkout could not be removed; remove it by hand", path=str(path))
    path.with_suffix(".lock").unlink(missing_ok=True)
    os.close(lock)


async def push(
    repository: Repository, remote: Remote, *, sha: str, branch: str, expected: str | None
) -> None:
    """Make `branch` of the remote point at `sha`, if it still points at `expected`.

    `expected` None: the branch must not exist yet. A push that would do what is done already is
    fine. Raises GitError when somebody else moved the branch, and for a name that reads like more
    than a name.
    """
    if branch.startswith(("+", "refs/")) or branch in ("HEAD", "@"):
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
