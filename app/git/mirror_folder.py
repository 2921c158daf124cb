"""One mirror on this disk: made, filled, replaced. Whoever calls holds the mirror's lock."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from app.errors import GitError
from app.git.locks import Hold, to_the_end
from app.git.process import HERE_ONLY, GitDamaged, GitTimeout, Remote, git

IN_USE = "mergeward-in-use"
"""Held (app/git/locks.py) by everybody who may read; its time is when the mirror was last used."""

FETCH_TIMEOUT_S = 900.0
"""The first fetch of a history of gigabytes; a review has 25 minutes for all."""

_WHOLE = "mergeward-whole-2"
_SUSPECT = "mergeward-suspect"
_REMADE = "mergeward-remade"
_REMAKE_EVERY_S = 3600.0
"""A commit can be made so that git calls it corrupt; it costs one fetch an hour and not more."""

_PACKS_APART = 50
"""More packs than this are looked up by one index: each fetch and each read of new contents adds
one, and git asks them one after the other. Its own bound for packing anew is 50, too."""

_ATTRIBUTES = (
    "* !text !eol !crlf !filter !ident !working-tree-encoding !diff !merge !export-subst "
    "!export-ignore !whitespace\n"
)
_PARTIAL = '[remote "origin"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n'


def is_whole(path: Path) -> bool:
    """Whether there is a mirror, made to its end and not known to be broken."""
    if not (path / _WHOLE).exists():
        return False
    return not (path / _SUSPECT).exists() or _age_s(path / _REMADE) < _REMAKE_EVERY_S


@contextmanager
def noting_damage(path: Path, hold: Hold | None) -> Iterator[None]:
    """A mirror that git calls broken is made anew when it is wanted next.

    Without a hold the repository is a person's own, in which nothing is written.
    """
    try:
        yield
    except GitDamaged:
        if hold is not None:
            with suppress(OSError):
                (path / _SUSPECT).touch()
        raise


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


async def create(path: Path) -> None:
    """Make an empty mirror where nothing is, or something broken. Raises GitError."""
    was_there = await to_the_end(asyncio.to_thread(_clear, path))
    await git(("init", "--bare", "--quiet", "--template=", "."), cwd=path)
    await to_the_end(asyncio.to_thread(_furnish, path, was_there))


def _clear(path: Path) -> bool:
    was_there = path.exists()
    remove(path)
    path.mkdir(mode=0o700, parents=True)
    return was_there


def _furnish(path: Path, remade: bool) -> None:
    """What stands in the attributes outranks every one in the repository: files are their bytes."""
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text(_ATTRIBUTES)
    with (path / "config").open("a") as config:
        config.write(_PARTIAL)
    if remade:
        (path / _REMADE).touch()
    (path / _WHOLE).touch()


def remove(path: Path) -> None:
    """Remove a mirror. It is gone at once; what a process that dies leaves is `leftovers`."""
    gone = path.with_name(f"{path.stem}.{secrets.token_hex(8)}.gone")
    try:
        path.rename(gone)
    except FileNotFoundError:
        return
    shutil.rmtree(gone, ignore_errors=True)


def leftovers(root: Path) -> list[tuple[int, Path]]:
    """Repository id and folder of mirrors that were being removed or replaced."""
    found = [*root.glob("*.*.gone"), *root.glob("*.*.new")]
    return [(int(path.name.split(".")[0]), path) for path in found]


async def replace(path: Path, remote: Remote, wanted: Sequence[str]) -> None:
    """Put a new mirror that has what is wanted in the place of one that may be broken.

    Raises GitError, and changes nothing, when a new one can't be filled either.
    """
    fresh = path.with_name(f"{path.stem}.{secrets.token_hex(8)}.new")
    try:
        await create(fresh)
        await fetch(fresh, remote, wanted)
        await to_the_end(asyncio.to_thread(_swap, fresh, path))
    finally:
        await to_the_end(asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True))


def _swap(fresh: Path, path: Path) -> None:
    (fresh / _REMADE).touch()
    remove(path)
    fresh.rename(path)


async def fetch(path: Path, remote: Remote, wanted: Sequence[str]) -> None:
    """Fetch refspecs and commits in one request, which fails before anything is transferred."""
    await git(
        (
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none",
            "--no-auto-maintenance", "origin", *wanted,
        ),
        cwd=path,
        remote=remote,
        timeout_s=FETCH_TIMEOUT_S,
    )  # fmt: skip


async def fetch_refs(path: Path, remote: Remote, specs: Sequence[str]) -> None:
    """Fetch tips. What a killed process or a renamed branch left in the way is cleared once."""
    try:
        await fetch(path, remote, specs)
    except GitTimeout:
        raise
    except GitError:
        names = [spec.rpartition(":")[2] for spec in specs]
        if not await _clear_way(path, names):
            raise
        await fetch(path, remote, specs)


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


async def is_sound(path: Path) -> bool:
    """Whether every ref leads to a commit that is here, so that a failure has another reason."""
    try:
        await git(
            ("for-each-ref", "--format=%(objectname) %(tree)"),
            cwd=path,
            environment=HERE_ONLY,
        )
    except GitError:
        return False
    return True


async def index_packs(path: Path) -> None:
    """Keep look-ups quick in a mirror of many packs."""
    if await asyncio.to_thread(_packs_apart, path) <= _PACKS_APART:
        return
    with suppress(GitDamaged):  # whoever reads next finds out
        await git(("multi-pack-index", "write", "--no-progress"), cwd=path)


def _packs_apart(path: Path) -> int:
    """Packs that are newer than the index over all of them."""
    folder = path / "objects" / "pack"
    since = time.time() - _age_s(folder / "multi-pack-index")
    return sum(pack.stat().st_mtime > since for pack in folder.glob("*.pack"))
