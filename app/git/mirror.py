"""Local copies of repositories: bare, partial, shared by all workers of a machine.

A copy holds commits and trees; file contents come when they are read. Pull requests of forks are
there too, under `refs/pull/N/head` of the base repository.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.domain.diff import Diff
from app.errors import GitError
from app.git.diff import DIFF_ARGUMENTS, parse_diff
from app.git.locks import Hold, alone, to_the_end
from app.git.mirror_folder import (
    IN_USE,
    create,
    fetch,
    fetch_refs,
    index_packs,
    is_sound,
    is_whole,
    noting_damage,
    remove,
    replace,
)
from app.git.objects import Tree
from app.git.process import (
    HERE_ONLY,
    READ_MEMORY,
    GitDamaged,
    GitTimeout,
    GitTooLarge,
    Remote,
    checked_branch,
    checked_sha,
    git,
)
from app.git.quota import keep_quota, lock_path

MAX_DIFF_BYTES = 64 * 1024 * 1024
"""A longer diff is not read: no review could say anything about it, and memory is for all runs."""

_LONG = 1 << 20
"""Reading a longer diff takes so many milliseconds that other runs would notice."""

_LOOK_EVERY_S = 60.0


class DiffTooLarge(GitError):
    """The change is longer than MAX_DIFF_BYTES; trying again changes nothing."""

    retry_after = None  # type: ignore[assignment]  # the root of the tree allows it


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on this disk, to be asked. Nothing here changes a ref of it.

    With a `hold` it is a mirror, which is not evicted while this object lives.
    """

    git_dir: Path
    remote: Remote | None = None
    hold: Hold | None = field(default=None, repr=False, compare=False)

    def tree(self, commit: str) -> Tree:
        """The files of a commit. Raises GitError for what is no commit id."""
        return Tree(self.git_dir, checked_sha(commit), self.remote, self.hold)

    async def has(self, commit: str) -> bool:
        """Whether the commit is here already; asks nobody else."""
        out = await git(
            ("cat-file", "-t", checked_sha(commit)),
            cwd=self.git_dir,
            environment=HERE_ONLY,
            accept=(0, 1, 128),
        )
        return out.strip() == b"commit"

    async def resolve(self, name: str) -> str:
        """The commit that a name of the person at the keyboard means. Raises GitError."""
        missing = GitError(f"There is no commit or branch {name!r} in this repository.")
        try:
            out = await self._git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            )
        except GitDamaged:
            raise
        except GitError:
            raise missing from None
        return out.decode().strip().splitlines()[-1]

    async def merge_base(self, base: str, head: str) -> str:
        """The commit a change started from. Raises GitError when the two share nothing."""
        out = await self._git("merge-base", checked_sha(base), checked_sha(head), accept=(0, 1))
        if not out.strip():
            raise GitError(f"{base[:10]} and {head[:10]} have no common history.")
        return out.decode().split()[0]

    async def raw_diff(self, base: str, head: str) -> bytes:
        """The change between two commits as git prints it, whatever the machine's settings.

        Raises DiffTooLarge for one over MAX_DIFF_BYTES.
        """
        too_large = DiffTooLarge(
            f"The change from {base[:10]} to {head[:10]} is too large to be read: its diff has "
            f"more than {MAX_DIFF_BYTES // 2**20} MiB. Split it into smaller pull requests."
        )
        try:
            raw = await self._git(
                "diff", *DIFF_ARGUMENTS, checked_sha(base), checked_sha(head), "--",
                enough=MAX_DIFF_BYTES + 1,
            )  # fmt: skip
        except GitTooLarge:
            raise too_large from None
        if len(raw) > MAX_DIFF_BYTES:
            raise too_large
        return raw

    async def diff(self, base: str, head: str) -> Diff:
        """The change between two commits. Raises DiffTooLarge."""
        raw = await self.raw_diff(base, head)
        return await asyncio.to_thread(parse_diff, raw) if len(raw) > _LONG else parse_diff(raw)

    async def changed_paths(self, base: str, head: str) -> frozenset[str]:
        """Every path, by old and new name, that differs between two commits."""
        out = await self._git(
            "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff",
            checked_sha(base), checked_sha(head), "--",
        )  # fmt: skip
        return frozenset(
            name.decode("utf-8", "surrogateescape") for name in out.split(b"\0") if name
        )

    async def patch_id(self, base: str, head: str) -> str:
        """An id of what a change does, the same after a rebase; "" for an empty change."""
        raw = await self.raw_diff(base, head)
        out = await git(("patch-id", "--stable"), cwd=self.git_dir, stdin=raw, memory=READ_MEMORY)
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

    async def _git(
        self, *arguments: str, accept: Sequence[int] = (0,), enough: int | None = None
    ) -> bytes:
        with noting_damage(self.git_dir, self.hold):
            return await git(
                arguments, cwd=self.git_dir, remote=self.remote, accept=accept, enough=enough,
                memory=READ_MEMORY,
            )  # fmt: skip


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
    """All mirrors of this machine, one folder a repository below `root`.

    Together they take at most `quota_bytes` (None: as much as there is), but for what is in use;
    those that were not used for longest go first. For any number of tasks, threads and processes.
    """

    def __init__(self, root: Path, quota_bytes: int | None = None) -> None:
        self._root = root.absolute()  # git is run in other folders
        self._quota = quota_bytes
        self._looked_at = float("-inf")

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

        It stays on disk for as long as anybody has what is returned, or a tree of it. One that
        vanished or is broken is made anew. Raises GitError.
        """
        path = self._path(repository_id)
        specs = [_branch_spec(name) for name in branches]
        specs += [f"+refs/pull/{int(n)}/head:refs/pull/{int(n)}/head" for n in pulls]
        shas = [checked_sha(sha) for sha in commits]
        async with self._alone(repository_id):
            is_new = not await asyncio.to_thread(is_whole, path)
            if is_new:
                await create(path)
            try:
                repository = await _filled(path, remote, specs, shas)
            except GitTimeout:
                raise
            except GitError as error:
                if is_new or (not isinstance(error, GitDamaged) and await is_sound(path)):
                    raise
                await replace(path, remote, [*specs, *shas])
                repository = Repository(path, remote, Hold(path / IN_USE))
        await self._look_after(is_new)
        return repository

    async def here(self, repository_id: int) -> Repository | None:
        """The mirror as it stands on this disk, however old: nobody is asked. None: there is none,
        or it is on its way out."""
        path = self._path(repository_id)
        if not await asyncio.to_thread(is_whole, path):
            return None
        try:
            return Repository(path, None, Hold(path / IN_USE))
        except OSError:
            return None

    def branch_ref(self, branch: str) -> str:
        """The name under which a mirror holds a branch."""
        return f"refs/heads/{checked_branch(branch)}"

    async def forget(self, repository_id: int) -> None:
        """Remove a mirror from the disk, whoever uses it."""
        async with self._alone(repository_id):
            await to_the_end(asyncio.to_thread(remove, self._path(repository_id)))
            lock_path(self._root, repository_id).unlink(missing_ok=True)

    async def keep_quota(self) -> tuple[int, ...]:
        """Make room if the mirrors take more than they may. Returns whose were removed."""
        quota = self._quota
        if quota is None:
            return ()
        self._looked_at = time.monotonic()
        return await asyncio.to_thread(keep_quota, self._root, quota)

    async def _look_after(self, is_new: bool) -> None:
        """Weighing all mirrors takes a look at each file: not more often than it may matter."""
        if is_new or time.monotonic() - self._looked_at > _LOOK_EVERY_S:
            await self.keep_quota()

    @asynccontextmanager
    async def _alone(self, repository_id: int) -> AsyncIterator[None]:
        await asyncio.to_thread(self._root.mkdir, mode=0o700, parents=True, exist_ok=True)
        async with alone(lock_path(self._root, repository_id)):
            yield

    def _path(self, repository_id: int) -> Path:
        return self._root / f"{int(repository_id)}.git"


async def _filled(
    path: Path, remote: Remote, specs: Sequence[str], shas: Sequence[str]
) -> Repository:
    repository = Repository(path, remote, Hold(path / IN_USE))
    if specs:
        await fetch_refs(path, remote, specs)
    asked = [sha for sha in shas if sha not in _tips(path, specs)]  # mostly none: they are tips
    here = await asyncio.gather(*(repository.has(sha) for sha in asked))
    missing = [sha for sha, is_here in zip(asked, here, strict=True) if not is_here]
    if missing:
        await fetch(path, remote, missing)
    await index_packs(path)
    return repository


def _tips(path: Path, specs: Sequence[str]) -> set[str]:
    """The commits that were just fetched, as far as git keeps each ref in a file of its own."""
    tips = set()
    for spec in specs:
        with suppress(OSError):
            tips.add((path / spec.rpartition(":")[2]).read_text().strip())
    return tips


def _branch_spec(name: str) -> str:
    branch = checked_branch(name)
    return f"+refs/heads/{branch}:refs/heads/{branch}"
