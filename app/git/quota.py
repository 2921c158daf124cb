"""Mirrors are kept as long as there is room; then those go that were not used for longest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.git.locks import is_held, take
from app.git.mirror_folder import IN_USE, leftovers, remove
from app.logs import get_logger

log = get_logger(__name__)
_BLOCK = 512
"""POSIX counts `st_blocks` in these."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A mirror on disk: the bytes it takes, and when it was last used (seconds of the epoch)."""

    repository_id: int
    path: Path
    size: int
    used_at: float


def keep_quota(root: Path, quota: int) -> tuple[int, ...]:
    """Remove mirrors, least recently used first, until all take at most `quota` bytes.

    One that is in use or being filled is left alone, whatever it takes. Returns whose were removed.
    Also ends what a process that died had begun to remove.
    """
    for repository_id, path in leftovers(root):
        _remove_unused(root, repository_id, path)
    found = sorted(_found(root), key=lambda mirror: mirror.used_at)
    total = sum(mirror.size for mirror in found)
    removed = []
    for mirror in found:
        if total <= quota:
            break
        if _remove_unused(root, mirror.repository_id, mirror.path):
            removed.append(mirror.repository_id)
            total -= mirror.size
    if total > quota:
        log.warning("mirrors in use take more than their quota", bytes=total, quota=quota)
    return tuple(removed)


def lock_path(root: Path, repository_id: int) -> Path:
    """The file that whoever changes the mirror of this repository has locked."""
    return root / f"{int(repository_id)}.lock"


def _remove_unused(root: Path, repository_id: int, path: Path) -> bool:
    lock = lock_path(root, repository_id)
    handle = take(lock)
    if handle is None:
        return False
    try:
        if is_held(path / IN_USE):
            return False
        if path.suffix == ".git":
            remove(path)
            lock.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(handle)


def _found(root: Path) -> Iterable[Kept]:
    for path in root.glob("*.git"):
        if path.stem.isdigit():
            yield Kept(int(path.stem), path, _size(path), _used_at(path / IN_USE))


def _size(path: Path) -> int:
    """Bytes on disk; what vanishes meanwhile counts nothing."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * _BLOCK  # noqa: PTH118
            except OSError:
                continue
    return total


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
