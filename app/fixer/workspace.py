"""The fixer's throwaway checkout as the agent may see and change it.

Everything is jailed to regular files below the root: no `..`, no absolute path, no `.git`, no link
is followed, and nothing that runs on GitHub's own machines (`.github/workflows`) can be written,
because a fix must never be able to change what judges it. Links of the commit are small text files
on disk; they are links to us all the same.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.agents.port import ToolError
from app.git.globs import matching
from app.git.objects import GrepHit, is_inside, search
from app.git.process import git

MAX_FILE_BYTES = 2_000_000
"""A larger file is neither read nor written: no reviewable source file is that long."""

_READ_ONLY = (".github/workflows/", ".github/actions/", ".github/mergeward.yml")


class EditRefused(ToolError):
    """An edit can't be made; the message is told to the model as it is."""


@dataclass(frozen=True, slots=True)
class EditableTree:
    """Reads like a commit's tree and can be written to. Paths are relative with `/`.

    `root` is the top of a git checkout (GitError otherwise).
    """

    root: Path

    async def read(self, path: str) -> bytes | None:
        """The bytes of a regular file, or None when there is none (links are not files)."""
        if not is_inside(path) or path in await self._links(path):
            return None
        return await asyncio.to_thread(self._read, path)

    async def list(self, prefix: str = "") -> tuple[str, ...]:
        """The entries of a directory; names of directories end with `/`."""
        names = await asyncio.to_thread(self._list, prefix)
        folder = prefix.strip("/")
        links = await self._links()
        start = f"{folder}/" if folder not in ("", ".") else ""
        return tuple(name for name in names if f"{start}{name}" not in links)

    async def glob(self, pattern: str) -> tuple[str, ...]:
        """All files whose path matches the pattern (`**` crosses directories)."""
        links = await self._links()
        found = await matching(self._files(), pattern)
        return tuple(path for path in found if path not in links)

    async def grep(
        self, pattern: str, prefix: str = "", without: Sequence[str] = ()
    ) -> tuple[GrepHit, ...]:
        """Lines that match an extended regular expression, below `prefix`, at most MAX_HITS.

        Files and folders of `without` and ignored files are not searched. Raises GitError for an
        expression git can't read.
        """
        where = prefix.strip("/")
        if where not in ("", ".") and self._inside(where) is None:
            return ()
        hits = await search(pattern, where, cwd=self.root, commit=None, without=without)
        links = await self._links()
        return tuple(hit for hit in hits if hit.path not in links)

    async def edit(self, path: str, old_text: str, new_text: str) -> None:
        """Replace `old_text`, which must occur exactly once. Raises EditRefused."""
        await self._refuse_link(path)
        await asyncio.to_thread(self._edit, path, old_text, new_text)

    async def write(self, path: str, content: str) -> None:
        """Create or replace a file. Raises EditRefused."""
        await self._refuse_link(path)
        await asyncio.to_thread(self._write, path, _bytes_of(content))

    async def _refuse_link(self, path: str) -> None:
        parents = path.split("/")
        links = await self._links(parents[0]) if is_inside(path) else frozenset()
        if any("/".join(parents[:depth]) in links for depth in range(1, len(parents) + 1)):
            raise EditRefused(f"{path!r} is a link or lies behind one; it can't be changed.")

    async def _links(self, below: str = "") -> frozenset[str]:
        """Links of the commit, which are plain files on disk."""
        paths = (f":(literal){below}",) if below else ()
        out = await git(("ls-files", "--stage", "-z", "--", *paths), cwd=self.root)
        return frozenset(
            os.fsdecode(entry.partition(b"\t")[2])
            for entry in out.split(b"\0")
            if entry.startswith(b"120000 ")
        )

    def _read(self, path: str) -> bytes | None:
        target = self._inside(path)
        if target is None or not target.is_file() or target.stat().st_size > MAX_FILE_BYTES:
            return None
        return target.read_bytes()

    def _list(self, prefix: str) -> tuple[str, ...]:
        name = prefix.strip("/")
        folder = self.root if name in ("", ".") else self._inside(name)
        if folder is None or not folder.is_dir():
            return ()
        with os.scandir(folder) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if not _is_git_dir(entry.name) and not entry.is_symlink()
            ]
        return tuple(sorted(names))

    def _files(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root, followlinks=False):
            folders[:] = sorted(name for name in folders if not _is_git_dir(name))
            for name in sorted(names):
                full = Path(folder) / name
                if not _is_git_dir(name) and stat.S_ISREG(full.lstat().st_mode):
                    yield full.relative_to(self.root).as_posix()

    def _edit(self, path: str, old_text: str, new_text: str) -> None:
        data = self._read(path)
        if data is None:
            raise EditRefused(f"There is no file {path!r} to edit. Use write_file for a new one.")
        old = _bytes_of(old_text)
        found = data.count(old) if old else 0
        if found != 1:
            raise EditRefused(
                f"old_text occurs {found} times in {path!r}; it must occur exactly once. "
                "Read the file again and copy more of the surrounding lines."
            )
        self._write(path, data.replace(old, _bytes_of(new_text)))

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
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_new(target, content)
        except OSError as error:
            raise EditRefused(f"{path!r} can't be written: {error.strerror}.") from None

    def _inside(self, path: str) -> Path | None:
        """The path below the root, or None when any part of it leads anywhere else."""
        parts = path.split("/")
        if not is_inside(path) or any(_is_git_dir(part) for part in parts):
            return None
        target = self.root
        for part in parts:
            target = target / part
            try:
                if target.is_symlink():
                    return None
            except OSError:  # a name longer than file systems take
                return None
        return target


def _write_new(target: Path, content: bytes) -> None:
    """Write without following a link and without touching other names of the same file."""
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    target.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(target, flags, mode), "wb") as file:
        file.write(content)
    target.chmod(mode)


def _bytes_of(text: str) -> bytes:
    """Text of a model as bytes; what stands for bytes that are not UTF-8 becomes those again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise EditRefused("The text holds half a character; write it whole.") from None


def _is_git_dir(part: str) -> bool:
    """`.git` as any file system may read it (case, trailing dots and blanks, NTFS short name)."""
    return re.sub(r"[. ]+$", "", part.casefold()) in (".git", "git~1")
