"""The fixer's throwaway checkout as the agent may see and change it.

Everything is jailed to regular files below the root: no `..`, no absolute path, no `.git`, no link
is followed, and nothing that runs on GitHub's own machines (`.github/workflows`) can be written,
because a fix must never be able to change what judges it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.agents.port import ToolError
from app.git.objects import GrepHit, glob_matcher

MAX_FILE_BYTES = 2_000_000
"""A larger file is neither read nor written: no reviewable source file is that long."""

MAX_HITS = 200
"""Search hits given to the model at once; the rest would only fill its window."""

_READ_ONLY = (".github/workflows/", ".github/actions/", ".github/mergeward.yml")


class EditRefused(ToolError):
    """An edit can't be made; the message is told to the model as it is."""


@dataclass(frozen=True, slots=True)
class EditableTree:
    """Reads like a commit's tree and can be written to. Paths are relative with `/`."""

    root: Path

    async def read(self, path: str) -> bytes | None:
        """The bytes of a regular file, or None when there is none (links are not files)."""
        return await asyncio.to_thread(self._read, path)

    async def list(self, prefix: str = "") -> tuple[str, ...]:
        """The entries of a directory; names of directories end with `/`."""
        return await asyncio.to_thread(self._list, prefix)

    async def glob(self, pattern: str) -> tuple[str, ...]:
        """All files whose path matches the pattern (`**` crosses directories)."""
        return await asyncio.to_thread(self._glob, pattern)

    async def grep(self, pattern: str, prefix: str = "") -> tuple[GrepHit, ...]:
        """Lines that hold `pattern` as it is written, below `prefix`, at most MAX_HITS."""
        return await asyncio.to_thread(self._grep, pattern, prefix)

    async def edit(self, path: str, old_text: str, new_text: str) -> None:
        """Replace `old_text`, which must occur exactly once. Raises EditRefused."""
        await asyncio.to_thread(self._edit, path, old_text, new_text)

    async def write(self, path: str, content: str) -> None:
        """Create or replace a file. Raises EditRefused."""
        await asyncio.to_thread(self._write, path, content.encode())

    def _read(self, path: str) -> bytes | None:
        target = self._inside(path)
        if target is None or not target.is_file() or target.stat().st_size > MAX_FILE_BYTES:
            return None
        return target.read_bytes()

    def _list(self, prefix: str) -> tuple[str, ...]:
        folder = self._inside(prefix.rstrip("/")) if prefix.strip("/.") else self.root
        if folder is None or not folder.is_dir():
            return ()
        with os.scandir(folder) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if entry.name.casefold() != ".git" and not entry.is_symlink()
            ]
        return tuple(sorted(names))

    def _glob(self, pattern: str) -> tuple[str, ...]:
        matches = glob_matcher(pattern)
        return tuple(path for path in self._files() if matches(path))

    def _grep(self, pattern: str, prefix: str) -> tuple[GrepHit, ...]:
        hits: list[GrepHit] = []
        wanted = pattern.encode()
        for path in self._files():
            if not path.startswith(prefix.lstrip("./")):
                continue
            for number, line in enumerate((self._read(path) or b"").split(b"\n"), start=1):
                if wanted in line:
                    hits.append(GrepHit(path, number, line.decode("utf-8", "replace")[:500]))
                    if len(hits) == MAX_HITS:
                        return tuple(hits)
        return tuple(hits)

    def _files(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root, followlinks=False):
            folders[:] = sorted(name for name in folders if name.casefold() != ".git")
            for name in sorted(names):
                full = Path(folder) / name
                if name.casefold() != ".git" and not full.is_symlink():
                    yield full.relative_to(self.root).as_posix()

    def _edit(self, path: str, old_text: str, new_text: str) -> None:
        data = self._read(path)
        if data is None:
            raise EditRefused(f"There is no file {path!r} to edit. Use write_file for a new one.")
        old = old_text.encode()
        found = data.count(old) if old else 0
        if found != 1:
            raise EditRefused(
                f"old_text occurs {found} times in {path!r}; it must occur exactly once. "
                "Read the file again and copy more of the surrounding lines."
            )
        self._write(path, data.replace(old, new_text.encode()))

    def _write(self, path: str, content: bytes) -> None:
        target = self._inside(path)
        if target is None:
            raise EditRefused(f"{path!r} is not a file of this repository that may be changed.")
        if any(path.casefold() == p or path.casefold().startswith(p) for p in _READ_ONLY):
            raise EditRefused(f"{path!r} decides how changes are checked; it can't be changed.")
        if len(content) > MAX_FILE_BYTES:
            raise EditRefused(f"The content is over {MAX_FILE_BYTES:,} bytes.")
        if target.is_dir():
            raise EditRefused(f"{path!r} is a directory.")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def _inside(self, path: str) -> Path | None:
        """The path below the root, or None when any part of it leads anywhere else."""
        parts = path.split("/")
        if not path or path.startswith("/") or "\0" in path or "\\" in path:
            return None
        if any(part in ("", ".", "..") or _is_git_dir(part) for part in parts):
            return None
        target = self.root
        for part in parts:
            target = target / part
            if target.is_symlink():
                return None
        return target


def _is_git_dir(part: str) -> bool:
    """`.git` as any file system may read it (case, trailing dots and blanks, NTFS short name)."""
    return re.sub(r"[. ]+$", "", part.casefold()) in (".git", "git~1")
