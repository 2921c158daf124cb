"""A change as values: files, hunks, lines, and which lines a comment may stand on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FileStatus(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"
    COPIED = "copied"
    TYPE_CHANGED = "type_changed"


class LineKind(StrEnum):
    CONTEXT = " "
    ADDED = "+"
    REMOVED = "-"


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line of a hunk with its 1-based numbers; None on the side that does not have it."""

    kind: LineKind
    old: int | None
    new: int | None
    content: bytes

    @property
    def text(self) -> str:
        """The line without its end; bytes that are not UTF-8 survive as surrogates."""
        return self.content.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk: where it starts on each side, and its lines."""

    old_start: int
    new_start: int
    lines: tuple[HunkLine, ...]

    @property
    def right(self) -> range:
        """The new side's line numbers that the hunk shows."""
        count = sum(1 for line in self.lines if line.new is not None)
        return range(self.new_start, self.new_start + count)

    @property
    def left(self) -> frozenset[int]:
        """The old side's numbers of deleted lines."""
        return frozenset(
            line.old for line in self.lines if line.kind is LineKind.REMOVED and line.old
        )


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file. `patch` is its own part of the diff, byte for byte."""

    path: str
    old_path: str | None
    status: FileStatus
    additions: int
    deletions: int
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False
    old_mode: str | None = None
    new_mode: str | None = None
    no_newline_at_end: tuple[bool, bool] = (False, False)
    patch: bytes = b""

    @property
    def changed_lines(self) -> int:
        return self.additions + self.deletions

    @property
    def submodule(self) -> bool:
        return "160000" in (self.old_mode, self.new_mode)

    @property
    def symlink(self) -> bool:
        return "120000" in (self.old_mode, self.new_mode)

    def shows(self, line: int) -> bool:
        """Whether a comment on the new side may stand on this line."""
        return any(line in hunk.right for hunk in self.hunks)

    def text_at(self, line: int) -> str | None:
        """The new side's text of a line that the diff shows."""
        for hunk in self.hunks:
            if line in hunk.right:
                return next(item.text for item in hunk.lines if item.new == line)
        return None


@dataclass(frozen=True, slots=True)
class Diff:
    """All files of a change, in git's order."""

    files: tuple[FileChange, ...]

    def file(self, path: str) -> FileChange | None:
        """The change of the file that has this name after (or, deleted, before) the change.

        A file that became a link is deleted and added under one name: the one that is there counts.
        """
        found = [item for item in self.files if item.path == path]
        there = (item for item in found if item.status is not FileStatus.DELETED)
        return next(there, found[0] if found else None)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(item.path for item in self.files)
