"""A change as values: files, hunks, lines, and which lines a comment may stand on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple


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


class HunkLine(NamedTuple):
    """One line of a hunk with its 1-based numbers; None on the side that does not have it."""

    kind: LineKind
    old: int | None
    new: int | None
    content: bytes

    @property
    def text(self) -> str:
        """The line without its end; bytes that are not UTF-8 survive as surrogates."""
        return self.content.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Hunk:
    """One hunk: where it starts on each side, and `body`, its lines byte for byte as git wrote
    them: a sign for each parent (several in a merge), the text, LF.

    The lines are read when they are asked for: most hunks of a large change never are.
    """

    old_start: int
    new_start: int
    body: bytes
    parents: int = 1

    @cached_property
    def lines(self) -> tuple[HunkLine, ...]:
        """Its lines in order. A merge's are those of its result, numbered by the first parent."""
        return tuple(self._plain() if self.parents == 1 else self._merged())

    @cached_property
    def shown(self) -> tuple[HunkLine, ...]:
        """The lines that are there after the change."""
        return tuple(line for line in self.lines if line.new is not None)

    @cached_property
    def right(self) -> range:
        """The new side's line numbers that the hunk shows."""
        count = count_lines(self.body).new if self.parents == 1 else len(self.shown)
        return range(self.new_start, self.new_start + count)

    @cached_property
    def left(self) -> frozenset[int]:
        """The old side's numbers of deleted lines."""
        return frozenset(
            line.old for line in self.lines if line.kind is LineKind.REMOVED and line.old
        )

    def _plain(self) -> Iterator[HunkLine]:
        old, new = self.old_start, self.new_start
        for line in split_lines(self.body):
            sign = line[:1]
            if sign == b"+":
                yield HunkLine(LineKind.ADDED, None, new, line[1:])
                new += 1
            elif sign == b"-":
                yield HunkLine(LineKind.REMOVED, old, None, line[1:])
                old += 1
            elif sign != b"\\":
                # A blank context line may have lost its leading blank on the way.
                content = line[1:] if sign == b" " else line
                yield HunkLine(LineKind.CONTEXT, old, new, content)
                old, new = old + 1, new + 1

    def _merged(self) -> Iterator[HunkLine]:
        old, new = self.old_start, self.new_start
        for line in split_lines(self.body):
            signs, content = line[: self.parents], line[self.parents :]
            if signs[:1] == b"\\":
                continue
            mark = b"-" if b"-" in signs else b" "
            in_first = signs[:1] == mark
            if mark == b" ":
                kind = LineKind.ADDED if b"+" in signs else LineKind.CONTEXT
                number = old if in_first and kind is LineKind.CONTEXT else None
                yield HunkLine(kind, number, new, content)
                new += 1
            old += in_first


class LineCounts(NamedTuple):
    """How many lines of a hunk's body are on which side."""

    added: int
    removed: int
    context: int

    @property
    def old(self) -> int:
        return self.removed + self.context

    @property
    def new(self) -> int:
        return self.added + self.context


def count_lines(body: bytes) -> LineCounts:
    """The lines of a hunk with one parent; remarks (`\\ No newline…`) are no lines."""
    lines = body.count(b"\n") + (not body.endswith(b"\n") and body != b"")
    added = body.count(b"\n+") + body.startswith(b"+")
    removed = body.count(b"\n-") + body.startswith(b"-")
    remarks = body.count(b"\n\\") + body.startswith(b"\\") if b"\\" in body else 0
    return LineCounts(added, removed, lines - added - removed - remarks)


def split_lines(body: bytes) -> list[bytes]:
    """Lines end at LF alone; the last one may lack it."""
    lines = body.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines


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
                return hunk.shown[line - hunk.new_start].text
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
