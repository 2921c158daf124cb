"""Reading `git diff` output: hunks, line anchors and GitHub's diff positions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from app.sandbox.github.state import Anchor, Side

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied"}
# GitHub leaves `patch` out of very large files without saying so.
MAX_PATCH_LINES = 20_000


@dataclass(frozen=True)
class Line:
    """One line of a hunk. `old` and `new` are 1-based; None on the side that lacks it.

    `position` counts lines below the file's first `@@`, later `@@` lines included.
    """

    text: str
    old: int | None
    new: int | None
    position: int

    def number(self, side: Side) -> int | None:
        """The line's number where a comment of that side may anchor.

        RIGHT takes added and context lines, LEFT deleted and context lines.
        """
        return self.new if side is Side.RIGHT else self.old


@dataclass(frozen=True)
class Hunk:
    header: str
    lines: tuple[Line, ...]

    def find(self, side: Side, number: int) -> Line | None:
        return next((line for line in self.lines if line.number(side) == number), None)


@dataclass(frozen=True)
class FileDiff:
    """One changed file; `patch` is GitHub's form: hunks without file header, None when binary."""

    path: str
    previous: str | None
    status: str
    blob: str
    patch: str | None
    hunks: tuple[Hunk, ...]

    @cached_property
    def additions(self) -> int:
        return sum(line.text.startswith("+") for hunk in self.hunks for line in hunk.lines)

    @cached_property
    def deletions(self) -> int:
        return sum(line.text.startswith("-") for hunk in self.hunks for line in hunk.lines)

    def locate(self, side: Side, number: int) -> tuple[Hunk, Line] | None:
        for hunk in self.hunks:
            line = hunk.find(side, number)
            if line is not None:
                return hunk, line
        return None

    def position(self, anchor: Anchor) -> int | None:
        """GitHub's `position` of an anchor; 1 for a whole file, None outside the hunks."""
        if anchor.line is None:
            return 1
        found = self.locate(anchor.side, anchor.line)
        return found[1].position if found else None

    def hunk_until(self, anchor: Anchor) -> str:
        """`diff_hunk` of a comment: the `@@` line down to the line commented on."""
        found = None if anchor.line is None else self.locate(anchor.side, anchor.line)
        if found is None:
            return self.hunks[0].header if self.hunks else ""
        hunk, last = found
        shown = [line.text for line in hunk.lines if line.position <= last.position]
        return "\n".join([hunk.header, *shown])


@dataclass(frozen=True)
class Diff:
    """All files of a comparison, and its text as `git diff` printed it."""

    files: tuple[FileDiff, ...]
    text: str

    def file(self, path: str) -> FileDiff | None:
        return next((file for file in self.files if file.path == path), None)


def parse_hunks(patch: str) -> tuple[Hunk, ...]:
    """The hunks of one file's patch (text from its first `@@` on)."""
    hunks: list[Hunk] = []
    header = ""
    lines: list[Line] = []
    old = new = 0
    for position, text in enumerate(patch.split("\n")):
        match = _HUNK.match(text)
        if match:
            if header:
                hunks.append(Hunk(header, tuple(lines)))
            header, lines = text, []
            old, new = int(match[1]), int(match[3])
        elif text.startswith("\\"):
            continue
        else:
            line = _line(text, old, new, position)
            lines.append(line)
            old += line.old is not None
            new += line.new is not None
    if header:
        hunks.append(Hunk(header, tuple(lines)))
    return tuple(hunks)


def _line(text: str, old: int, new: int, position: int) -> Line:
    sign = text[:1]
    return Line(
        text=text,
        old=None if sign == "+" else old,
        new=None if sign == "-" else new,
        position=position,
    )


def parse_diff(output: bytes) -> Diff:
    """Parse `git diff --patch-with-raw -z --no-abbrev`: raw records, an empty one, the patch."""
    head, separator, tail = output.partition(b"\0\0")
    if not separator:
        return Diff((), "")
    text = tail.decode("utf-8", "replace")
    sections = iter(_sections(text))
    fields = iter(head.decode("utf-8", "replace").split("\0"))
    files = tuple(_file(record, fields, sections) for record in fields)
    return Diff(files, text)


def _sections(text: str) -> Iterator[str]:
    """One piece per `diff --git` line; hunk lines never start that way."""
    for piece in re.split(r"(?m)^diff --git ", text):
        if piece:
            yield piece


def _file(record: str, fields: Iterator[str], sections: Iterator[str]) -> FileDiff:
    _, _, _, blob, status = record.split(" ")
    letter = status[:1]
    first = next(fields)
    path = next(fields) if letter in "RC" else first
    section = next(sections, "")
    if letter == "T":  # a changed type (file to link) is printed as a removal and an addition
        section = next(sections, "")
    at = re.search(r"(?m)^@@ ", section)
    patch = section[at.start() :].removesuffix("\n") if at else None
    return FileDiff(
        path=path,
        previous=first if letter in "RC" else None,
        status=_STATUS.get(letter, "changed"),
        blob=blob,
        patch=patch if patch is None or patch.count("\n") < MAX_PATCH_LINES else None,
        hunks=parse_hunks(patch) if patch else (),
    )


def shift_line(changes: tuple[Hunk, ...], number: int) -> int | None:
    """Where line `number` of the old text went, by a diff without context; None when changed."""
    shift = 0
    for hunk in changes:
        match = _HUNK.match(hunk.header)
        if match is None:
            continue
        start, count = int(match[1]), int(match[2] or "1")
        if count and start <= number < start + count:
            return None
        if number < start or (count == 0 and number <= start):
            break
        shift += int(match[4] or "1") - count
    return number + shift
