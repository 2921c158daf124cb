"""A change as values: files, hunks, lines, and which lines a comment may stand on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain, takewhile
from operator import attrgetter
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


_BLOCK = 1 << 12
"""Bytes of a hunk that are read to find one line of it."""

_LONG_BLOCK = 1 << 16
"""A block gets longer than this by a very long line, or by reading all lines at once."""


class _Block(NamedTuple):
    """Whole lines of a hunk's body: where they begin and end, and their first numbers."""

    start: int
    end: int
    old: int
    new: int


_Signed = tuple[bytes, int, int, bytes | memoryview]
"""A line of a body: its sign, the next number of each side, and all of its bytes."""

_old_of: Callable[[_Block], int] = attrgetter("old")
_new_of: Callable[[_Block], int] = attrgetter("new")


class _HunkFields(NamedTuple):
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    body: bytes
    parents: int = 1


class Hunk(_HunkFields):
    """One hunk: where it starts on each side and how many lines it has there, and `body`, its
    lines byte for byte as git wrote them: a sign for each parent (several in a merge), the text,
    LF.

    The counts are those of the body, also when it was cut off. Lines are read when they are asked
    for, and only near what is asked for: most lines of a large change never are. The old side of a
    merge is that of its first parent. (A tuple, since a large change has very many of them.)
    """

    @property
    def lines(self) -> tuple[HunkLine, ...]:
        """All lines in order, read anew at each call. A merge's are those of its result."""
        if self.parents > 1:
            return tuple(self._merged())
        whole = _Block(0, len(self.body), self.old_start, self.new_start)
        return tuple(_line(*signed) for signed in self._walk(whole))

    @property
    def right(self) -> range:
        """The new side's line numbers that the hunk shows."""
        return range(self.new_start, self.new_start + self.new_count)

    @property
    def left(self) -> range:
        """The old side's line numbers that the hunk shows."""
        return range(self.old_start, self.old_start + self.old_count)

    def shown(self, first: int, last: int) -> tuple[HunkLine, ...]:
        """The lines that are there after the change, by the new side's numbers, inclusive."""
        if last < self.new_start or first >= self.new_start + self.new_count:
            return ()
        if self.parents > 1:
            return tuple(line for line in self.lines if first <= (line.new or 0) <= last)
        upto = takewhile(lambda signed: signed[2] <= last, self._near(first, last, _new_of))
        return tuple(_line(*it) for it in upto if it[2] >= first and it[0] != b"-")

    def removed(self, first: int, last: int) -> tuple[HunkLine, ...]:
        """The lines that are gone, by the old side's numbers, inclusive. None of a merge's are."""
        if last < self.old_start or first >= self.old_start + self.old_count or self.parents > 1:
            return ()
        upto = takewhile(lambda signed: signed[1] <= last, self._near(first, last, _old_of))
        return tuple(_line(*it) for it in upto if it[1] >= first and it[0] == b"-")

    def holding(self, pieces: Sequence[bytes]) -> Iterator[HunkLine]:
        """The lines whose text holds one of the pieces (none of which holds a line end)."""
        if self.parents > 1:
            yield from (line for line in self.lines if _holds(line, pieces))
            return
        at, old, new = 0, self.old_start, self.new_start
        hits = {piece: self._find(piece, 0) for piece in pieces}
        while hits and (hit := min(hits.values())) < len(self.body):
            start = self.body.rfind(b"\n", 0, hit) + 1
            end = self.body.find(b"\n", hit) + 1 or len(self.body)
            passed = count_lines(self.body, at, start)
            at, old, new = start, old + passed.old, new + passed.new
            found = (_line(*signed) for signed in self._walk(_Block(start, end, old, new)))
            yield from (line for line in found if _holds(line, pieces))
            hits = {
                piece: place if place >= end else self._find(piece, end)
                for piece, place in hits.items()
            }

    def _find(self, piece: bytes, start: int) -> int:
        """Where the body holds the piece next; its end, where it does not."""
        found = self.body.find(piece, start)
        return len(self.body) if found < 0 else found

    def _near(self, first: int, last: int, number: Callable[[_Block], int]) -> Iterator[_Signed]:
        """The lines of the blocks in which these numbers of one side may stand."""
        begin = max(0, bisect_left(self._blocks, first, key=number) - 1)
        end = bisect_right(self._blocks, last, key=number)
        return chain.from_iterable(self._walk(block) for block in self._blocks[begin:end])

    @cached_property
    def _blocks(self) -> tuple[_Block, ...]:
        return blocks_of(self, _BLOCK)

    def _walk(self, block: _Block) -> Iterator[_Signed]:
        """The lines of a part of the body; remarks are none."""
        old, new = block.old, block.new
        for line in self._raw_lines(block):
            sign = bytes(line[:1])
            if sign == b"\\":
                continue
            yield sign, old, new, line
            old += sign != b"+"
            new += sign != b"-"

    def _raw_lines(self, block: _Block) -> Iterable[bytes | memoryview]:
        if block.end - block.start <= _LONG_BLOCK:
            return split_lines(self.body[block.start : block.end])
        return self._views(block)

    def _views(self, block: _Block) -> Iterator[memoryview]:
        """The same where lines may be so long that no copy of one is to be had in vain."""
        whole, start = memoryview(self.body), block.start
        while start < block.end:
            stop = self.body.find(b"\n", start, block.end)
            stop = block.end if stop < 0 else stop
            yield whole[start:stop]
            start = stop + 1

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


def _line(sign: bytes, old: int, new: int, line: bytes | memoryview) -> HunkLine:
    if sign == b"+":
        return HunkLine(LineKind.ADDED, None, new, bytes(line[1:]))
    if sign == b"-":
        return HunkLine(LineKind.REMOVED, old, None, bytes(line[1:]))
    # A blank context line may have lost its leading blank on the way.
    return HunkLine(LineKind.CONTEXT, old, new, bytes(line[1:] if sign == b" " else line))


def _holds(line: HunkLine, pieces: Sequence[bytes]) -> bool:
    return any(piece in line.content for piece in pieces)


def blocks_of(hunk: Hunk, size: int) -> tuple[_Block, ...]:
    """The hunk's body in pieces of whole lines, each of `size` bytes or a little more."""
    body, start, old, new = hunk.body, 0, hunk.old_start, hunk.new_start
    if hunk.parents > 1 or len(body) <= size:
        return (_Block(0, len(body), old, new),)
    blocks: list[_Block] = []
    while start < len(body):
        end = body.find(b"\n", start + size) + 1 or len(body)
        blocks.append(_Block(start, end, old, new))
        passed = count_lines(body, start, end)
        start, old, new = end, old + passed.old, new + passed.new
    return tuple(blocks)


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


def count_lines(body: bytes, start: int = 0, end: int | None = None) -> LineCounts:
    """The lines of a hunk with one parent, or of the whole lines between two offsets of its body;
    remarks (`\\ No newline…`) are no lines."""
    end = len(body) if end is None else end
    lines = body.count(b"\n", start, end) + (start < end and body[end - 1 : end] != b"\n")
    added = body.count(b"\n+", start, end) + body.startswith(b"+", start, end)
    removed = body.count(b"\n-", start, end) + body.startswith(b"-", start, end)
    remarks = body.count(b"\n\\", start, end) + body.startswith(b"\\", start, end)
    return LineCounts(added, removed, lines - added - removed - remarks)


def split_lines(body: bytes) -> list[bytes]:
    """Lines end at LF alone; the last one may lack it."""
    lines = body.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file. `raw` is the diff it is part of, from `begins` to `ends`: all its
    files share the one text."""

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
    raw: bytes = b""
    begins: int = 0
    ends: int = 0

    @property
    def patch(self) -> bytes:
        """Its own part of the diff, byte for byte."""
        return self.raw[self.begins : self.ends]

    @property
    def changed_lines(self) -> int:
        return self.additions + self.deletions

    @property
    def submodule(self) -> bool:
        return "160000" in (self.old_mode, self.new_mode)

    @property
    def symlink(self) -> bool:
        return "120000" in (self.old_mode, self.new_mode)

    def shows(self, first: int, last: int | None = None) -> bool:
        """Whether the diff shows this line of the new side, or one of these, inclusive."""
        return self.hunk_at(first, first if last is None else last) is not None

    def hunk_at(self, first: int, last: int) -> Hunk | None:
        """The first hunk that shows one of these lines of the new side."""
        at = bisect_left(self.hunks, first, key=lambda hunk: hunk.new_start + hunk.new_count - 1)
        for hunk in self.hunks[at:]:
            if hunk.new_start > last:
                break
            if hunk.new_count:
                return hunk
        return None

    def text_at(self, line: int) -> str | None:
        """The new side's text of a line that the diff shows."""
        return self.texts(line, line).get(line)

    def texts(self, first: int, last: int) -> dict[int, str]:
        """The new side's texts, by number, of those of these lines that the diff shows."""
        return {
            line.new: line.text
            for hunk in self.hunks
            for line in hunk.shown(first, last)
            if line.new is not None
        }


@dataclass(frozen=True)
class Diff:
    """All files of a change, in git's order."""

    files: tuple[FileChange, ...]

    def file(self, path: str) -> FileChange | None:
        """The change of the file that has this name after (or, deleted, before) the change.

        A file that became a link is deleted and added under one name: the one that is there counts.
        """
        return self._by_path.get(path)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self._by_path)

    @cached_property
    def _by_path(self) -> dict[str, FileChange]:
        found: dict[str, FileChange] = {}
        for item in self.files:
            known = found.get(item.path)
            gone = item.status is FileStatus.DELETED
            if known is None or (known.status is FileStatus.DELETED and not gone):
                found[item.path] = item
        return found
