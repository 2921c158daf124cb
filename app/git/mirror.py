"""Local copies of repositories: bare, partial, shared by all workers of a machine.

A copy holds commits and trees; file contents come when they are read. Pull requests of forks are
there too, under `refs/pull/N/head` of the base repository.
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.domain.diff import Diff
from app.errors import GitError
from app.git.diff import DIFF_ARGUMENTS, parse_diff
from app.git.objects import Tree, tree_of
from app.git.process import Remote, checked_branch, checked_sha, git

_READY = "mergeward-ready"
_LOCK_POLL_S = 0.02
_ATTRIBUTES = (
    "* !text !eol !crlf !filter !ident !working-tree-encoding !diff !merge !export-subst "
    "!export-ignore !whitespace\n"
)
_PARTIAL = (
    ("remote.origin.promisor", "true"),
    ("remote.origin.partialclonefilter", "blob:none"),
)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on this disk, to be asked. Nothing here changes a ref of it."""

    git_dir: Path
    remote: Remote | None = None

    def tree(self, commit: str) -> Tree:
        """The files of a commit. Raises GitError for what is no commit id."""
        return tree_of(self.git_dir, commit, self.remote)

    async def has(self, commit: str) -> bool:
        """Whether the commit is here already; asks nobody else."""
        # A partial clone goes and fetches what it lacks; with no way to speak it can't.
        out = await git(
            ("cat-file", "-t", checked_sha(commit)),
            cwd=self.git_dir,
            environment={"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"},
            accept=(0, 1, 128),
        )
        return out.strip() == b"commit"

    async def resolve(self, name: str) -> str:
        """The commit that a name of the person at the keyboard means. Raises GitError."""
        out = await git(
            ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"),
            cwd=self.git_dir,
            accept=(0, 1, 128),
        )
        if not out.strip():
            raise GitError(f"There is no commit or branch {name!r} in this repository.")
        return out.decode().strip().splitlines()[-1]

    async def merge_base(self, base: str, head: str) -> str:
        """The commit a change started from. Raises GitError when the two share nothing."""
        out = await self._git("merge-base", checked_sha(base), checked_sha(head), accept=(0, 1))
        if not out.strip():
            raise GitError(f"{base[:10]} and {head[:10]} have no common history.")
        return out.decode().split()[0]

    async def raw_diff(self, base: str, head: str) -> bytes:
        """The change between two commits as git prints it, whatever the machine's settings."""
        return await self._git("diff", *DIFF_ARGUMENTS, checked_sha(base), checked_sha(head), "--")

    async def diff(self, base: str, head: str) -> Diff:
        """The change between two commits."""
        return parse_diff(await self.raw_diff(base, head))

    async def changed_paths(self, base: str, head: str) -> frozenset[str]:
        """Every path, by old and new name, that differs between two commits."""
        out = await self._git(
            "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff",
            checked_sha(base), checked_sha(head), "--",
        )  # fmt: skip
        return frozenset(
            name.decode("utf-8", "surrogateescape") for name in out.split(b"\0") if name
        )

    async def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` descends from `old` (or is it)."""
        command = ("merge-base", "--is-ancestor", checked_sha(old), checked_sha(new))
        try:
            await self._git(*command)
        except GitError:
            return False
        return True

    async def patch_id(self, base: str, head: str) -> str:
        """An id of what a change does, the same after a rebase; "" for an empty change."""
        raw = await self.raw_diff(base, head)
        out = await git(("patch-id", "--stable"), cwd=self.git_dir, stdin=raw)
        return out.decode().split()[0] if out.strip() else ""

    async def history(self, commit: str, path: str, *, limit: int) -> tuple[str, ...]:
        """The commits that changed `path`, newest first, at most `limit`."""
        out = await self._git(
            "log", f"--max-count={int(limit)}", "--format=%H", checked_sha(commit), "--",
            f":(literal){path}",
        )  # fmt: skip
        return tuple(out.decode().split())

    async def co_authors(self, base: str, head: str) -> tuple[str, ...]:
        """Names in `Co-authored-by` trailers of the commits of a change, newest first."""
        out = await self._git(
            "log", "--max-count=250", "--format=%(trailers:key=Co-authored-by,valueonly)",
            f"{checked_sha(base)}..{checked_sha(head)}", "--",
        )  # fmt: skip
        lines = out.decode("utf-8", "replace").splitlines()
        return tuple(line.partition("<")[0].strip() for line in lines if line.strip())

    async def _git(self, *arguments: str, accept: Sequence[int] = (0,)) -> bytes:
        return await git(arguments, cwd=self.git_dir, remote=self.remote, accept=accept)


async def open_local(path: Path) -> Repository:
    """A person's own repository, for reading. Raises GitError when `path` is not in one."""
    if not await asyncio.to_thread(path.is_dir):
        raise GitError(f"{path} is not a directory.")
    try:
        out = await git(("rev-parse", "--absolute-git-dir"), cwd=path)
    except GitError:
        raise GitError(f"{path} is not inside a git repository.") from None
    return Repository(Path(out.decode("utf-8", "surrogateescape").rstrip("\n")))


class Mirrors:
    """All mirrors of this machine, one folder a repository below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._locks: dict[int, asyncio.Lock] = {}

    async def ready(
        self,
        repository_id: int,
        remote: Remote,
        *,
        branches: Sequence[str] = (),
        pulls: Sequence[int] = (),
        commits: Sequence[str] = (),
    ) -> Repository:
        """The mirror with the tips of these branches and pull requests and these commits.

        Safe beside other workers of this process and of others on the machine. Raises GitError.
        """
        path = self._root / f"{int(repository_id)}.git"
        repository = Repository(path, remote)
        async with self._alone(repository_id):
            await _ensure_created(path)
            specs = [_branch_spec(name) for name in branches]
            specs += [f"+refs/pull/{int(n)}/head:refs/pull/{int(n)}/head" for n in pulls]
            if specs:
                await _fetch_refs(path, remote, specs)
            missing = [sha for sha in commits if not await repository.has(sha)]
            if missing:
                await _fetch(path, remote, [checked_sha(sha) for sha in missing])
        return repository

    def branch_ref(self, branch: str) -> str:
        """The name under which a mirror holds a branch."""
        return f"refs/heads/{checked_branch(branch)}"

    async def forget(self, repository_id: int) -> None:
        """Remove a mirror from the disk."""
        async with self._alone(repository_id):
            await asyncio.to_thread(
                shutil.rmtree, self._root / f"{int(repository_id)}.git", ignore_errors=True
            )

    @asynccontextmanager
    async def _alone(self, repository_id: int) -> AsyncIterator[None]:
        """Within this process by a lock, among processes by a lock file."""
        lock = self._locks.setdefault(repository_id, asyncio.Lock())
        async with lock:
            file = await asyncio.to_thread(self._lock_file, repository_id)
            try:
                while not _try_lock(file):  # noqa: ASYNC110 - another process holds it
                    await asyncio.sleep(_LOCK_POLL_S)
                yield
            finally:
                file.close()

    def _lock_file(self, repository_id: int) -> IO[str]:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (self._root / f"{int(repository_id)}.lock").open("w")


def _try_lock(file: IO[str]) -> bool:
    """Asking again and again instead of waiting keeps threads free and can be cancelled."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _ensure_created(path: Path) -> None:
    if not await asyncio.to_thread(_is_ready, path):
        await git(("init", "--bare", "--quiet", "--template=", "."), cwd=path)
        for key, value in _PARTIAL:
            await git(("config", key, value), cwd=path)
        await asyncio.to_thread(_write_attributes, path)
        await asyncio.to_thread((path / _READY).touch)


def _is_ready(path: Path) -> bool:
    """Whether the mirror is whole. If not (a process died half-way), begins it anew."""
    if (path / _READY).exists():
        return True
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, parents=True)
    return False


def _write_attributes(path: Path) -> None:
    """What stands here outranks every attribute in the repository: files are their bytes."""
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text(_ATTRIBUTES)


async def _fetch_refs(path: Path, remote: Remote, specs: Sequence[str]) -> None:
    """Fetch tips. What a killed process or a renamed branch left in the way is cleared once."""
    try:
        await _fetch(path, remote, specs)
    except GitError:
        names = [spec.rpartition(":")[2] for spec in specs]
        if not await _clear_way(path, names):
            raise
        await _fetch(path, remote, specs)


async def _clear_way(path: Path, names: Sequence[str]) -> bool:
    """Whether anything was in the way: lock files nobody holds (we are alone here), or a branch
    `a` where now `a/b` comes, or the other way round."""
    cleared = await asyncio.to_thread(_remove_lock_files, path)
    out = await git(("for-each-ref", "--format=%(refname)"), cwd=path)
    for known in out.decode("utf-8", "surrogateescape").splitlines():
        if any(_collide(known, name) for name in names):
            await git(("update-ref", "-d", known), cwd=path)
            cleared = True
    return cleared


def _collide(known: str, name: str) -> bool:
    return known.startswith(f"{name}/") or name.startswith(f"{known}/")


def _remove_lock_files(path: Path) -> bool:
    locks = [path / "config.lock", path / "packed-refs.lock", *(path / "refs").rglob("*.lock")]
    left = [lock for lock in locks if lock.is_file()]
    for lock in left:
        lock.unlink(missing_ok=True)
    return bool(left)


async def _fetch(path: Path, remote: Remote, specs: Sequence[str]) -> None:
    await git(("config", "remote.origin.url", remote.url), cwd=path)
    await git(
        (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--filter=blob:none",
            "--no-auto-maintenance",
            "origin",
            *specs,
        ),
        cwd=path,
        remote=remote,
    )


def _branch_spec(name: str) -> str:
    branch = checked_branch(name)
    return f"+refs/heads/{branch}:refs/heads/{branch}"
