"""Files and patches with line numbers, as models read them. Pure.

A file's line is `f"{n:>6}\\t{text}"`. A hunk's line is `f"{old:>6} {new:>6} {sign}{text}"` with
blanks for the side that has no number. Lines end at `\\n` only. Invisible characters are written
out, since hiding code from the reviewer is the attack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.agents.invisible import show_hidden

LINE_CHARS = 45_000
"""The longest line that is shown whole: with its numbers it fits into one answer of a tool (50,000
characters), so a file whose lines are no longer can be read to its end."""

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_BLANK = " " * 6


@dataclass(frozen=True, slots=True)
class Shown:
    """Text for a model. `next_line` is the first line of the file that did not fit, else None."""

    text: str
    next_line: int | None = None


def source_lines(content: bytes) -> list[bytes]:
    """The lines of a file without their ends; a last line without `\\n` counts."""
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def is_binary(content: bytes) -> bool:
    """As git decides it: a NUL in the first 8,000 bytes."""
    return b"\0" in content[:8_000]


def numbered_file(content: bytes, first: int, last: int | None, most_chars: int) -> Shown:
    """Lines `first` to `last` (1-based, inclusive, None: to the end), as many as fit.

    An empty file is one empty line: a tool's answer may not be empty.
    """
    lines = source_lines(content) or [b""]
    shown: list[str] = []
    size = 0
    for number in range(first, min(last or len(lines), len(lines)) + 1):
        line = f"{number:>6}\t{show_line(lines[number - 1])}"
        size += len(line) + 1
        if size > most_chars and shown:
            return Shown("\n".join(shown), number)
        shown.append(line)
    return Shown("\n".join(shown))


def numbered_patch(patch: bytes, most_chars: int) -> Shown:
    """A patch of git with every hunk line numbered, as many lines as fit.

    What is a header and what is code is told by the hunk's counts, never by what a line looks like.
    """
    shown: list[str] = []
    size = 0
    counter = _Counter()
    for raw in patch.removesuffix(b"\n").split(b"\n"):
        line = counter.render(raw)
        size += len(line) + 1
        if size > most_chars and shown:
            return Shown("\n".join(shown), counter.new)
        shown.append(line)
    return Shown("\n".join(shown))


class _Counter:
    """Where a patch's reader stands: the next line and what the hunk still holds, per side."""

    def __init__(self) -> None:
        self.old = self.new = 0
        self._old_left = self._new_left = 0

    def render(self, raw: bytes) -> str:
        if self._old_left <= 0 and self._new_left <= 0:
            self._enter_hunk(raw)
            return show_line(raw)
        sign, text = (raw[:1] or b" ").decode("latin-1"), show_line(raw[1:])
        match sign:
            case "+":
                line = f"{_BLANK} {self.new:>6} +{text}"
                self._advance(old=0, new=1)
            case "-":
                line = f"{self.old:>6} {_BLANK} -{text}"
                self._advance(old=1, new=0)
            case "\\":
                line = show_line(raw)
            case _:
                line = f"{self.old:>6} {self.new:>6}  {text}"
                self._advance(old=1, new=1)
        return line

    def _enter_hunk(self, raw: bytes) -> None:
        match = _HUNK.match(raw)
        if match is None:
            return
        old, old_count, new, new_count = match.groups()
        self.old, self.new = int(old), int(new)
        self._old_left = int(old_count) if old_count is not None else 1
        self._new_left = int(new_count) if new_count is not None else 1

    def _advance(self, *, old: int, new: int) -> None:
        self.old, self._old_left = self.old + old, self._old_left - old
        self.new, self._new_left = self.new + new, self._new_left - new


def is_shown_whole(raw: bytes) -> bool:
    """Whether a model can read all of this line."""
    return len(raw) * _MOST_GROWTH <= LINE_CHARS or len(_as_text(raw)) <= LINE_CHARS


_MOST_GROWTH = len("<U+0001>")
"""How many characters one byte can become."""


def show_line(raw: bytes) -> str:
    """One line as text: UTF-8 as far as it is, invisible characters written out, cut if endless."""
    text = _as_text(raw)
    if len(text) <= LINE_CHARS:
        return text
    return f"{text[:LINE_CHARS]} [line cut here: {len(text)} characters]"


def _as_text(raw: bytes) -> str:
    return show_hidden(raw.removesuffix(b"\r").decode("utf-8", "replace"))
