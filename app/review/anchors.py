"""Where a finding can stand: on lines of the diff, or in the body of the review. Pure.

GitHub refuses a whole review for one comment outside the diff, so an anchor is computed from the
hunks of the very commit that is reviewed, and what has none goes into the body. A finding counts
the same wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from app.agents.sanitise import outgoing
from app.domain.diff import Diff, FileChange, HunkLine
from app.domain.effects import Side
from app.domain.findings import Location

_SHORTEST_QUOTE = 4
_QUOTE_CHARS = 8_000
_MOST_QUOTES = 20
_QUOTED_LINES = 1_000
"""Lines of a finding's range that are looked through for its quote."""

_QUOTED_BYTES = 4_000_000
"""A longer change of one file is not looked through for a quote: models may give many."""

_RUN = re.compile(r"`+")
_SPAN = re.compile(r"`+([^`\n]+)`+")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place GitHub accepts. `start_line` is set only for several lines of one hunk."""

    path: str
    line: int
    side: Side = Side.RIGHT
    start_line: int | None = None


def anchor(location: Location, diff: Diff, quote: str = "") -> Anchor | None:
    """The anchor of a finding, None if it must stand in the body.

    A range that only partly lies in a hunk is cut to it; one that touches no hunk has no anchor.
    Lines of a deleted file are anchored on the left. `quote` is text that may hold the code in
    question (a finding's evidence): it tells an old number from a new one, and finds the line
    where the number leads nowhere.
    """
    change = diff.file(location.path) if location.path is not None else None
    lines = _lines_of(location)
    if change is None or lines is None:
        return None
    quotes = _quotes(quote) if _size(change) <= _QUOTED_BYTES else ()
    if quotes and not _right_fits(change, lines, quotes):
        old = _left_quoted(change, lines, quotes)
        if old is not None:
            return Anchor(change.path, old, Side.LEFT)
    return _in_diff(change, *lines) or _where_quoted(change, quotes)


def settle(
    location: Location, diff: Diff, *, line_count: int | None = None, quote: str = ""
) -> Location:
    """The location with lines that exist, to be stored and shown.

    Lines beyond `line_count` (of the file after the change; None: not known) are replaced by the
    one line of the diff that `quote` names, or dropped. A reversed range is put in order.
    """
    lines = _lines_of(location)
    if lines is None:
        return Location(location.path)
    if line_count is None or lines[0] <= line_count:
        return Location(location.path, lines[0], min(lines[1], line_count or lines[1]))
    place = anchor(location, diff, quote)
    if place is None or place.side is Side.LEFT:
        return Location(location.path)
    return Location(location.path, place.start_line or place.line, place.line)


def is_exact(place: Anchor, location: Location) -> bool:
    """Whether the anchor covers exactly the finding's lines: only then a suggestion fits there."""
    covered = (place.start_line or place.line, place.line)
    return place.side is Side.RIGHT and covered == _lines_of(location)


def suggestion_block(suggestion: str | None) -> str:
    """The replacement as GitHub's suggestion block, "" for none; an empty one deletes the lines.

    The fence is longer than any run of back-ticks inside, so the code can't end the block. Code
    that may not be posted letter by letter (it holds a credential, invisible characters, a marker
    of ours) gets no block, since what is applied must be what was meant.
    """
    if suggestion is None:
        return ""
    code = suggestion.replace("\r\n", "\n")
    code = code if not code or code.endswith("\n") else f"{code}\n"
    longest = max((len(run) for run in _RUN.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    block = f"{fence}suggestion\n{code}{fence}"
    return block if outgoing(block) == block else ""


def _lines_of(location: Location) -> tuple[int, int] | None:
    """First and last line, in this order; numbers below 1 are none."""
    given = [n for n in (location.start_line, location.end_line) if n is not None and n > 0]
    return (min(given), max(given)) if given else None


def _in_diff(change: FileChange, start: int, end: int) -> Anchor | None:
    hunk = change.hunk_at(start, end)
    if hunk is not None:
        return _cut(change.path, hunk.right, start, end, Side.RIGHT)
    # Where nothing is left after the change, all that the diff shows is on the left.
    empty = (hunk for hunk in change.hunks[:1] if not hunk.new_count and hunk.parents == 1)
    return next((_cut(change.path, hunk.left, start, end, Side.LEFT) for hunk in empty), None)


def _cut(path: str, shown: range, start: int, end: int, side: Side) -> Anchor | None:
    first, last = max(start, shown.start), min(end, shown.stop - 1)
    if first > last:
        return None
    return Anchor(path, last, side, first if first < last else None)


def _quotes(text: str) -> tuple[bytes, ...]:
    """Pieces of a text that may be code: its lines and what stands in back-ticks."""
    pieces = {line.strip().strip("`").strip() for line in text[:_QUOTE_CHARS].split("\n")}
    pieces |= {match[1].strip() for match in _SPAN.finditer(text[:_QUOTE_CHARS])}
    telling = sorted((piece for piece in pieces if len(piece) >= _SHORTEST_QUOTE), key=len)
    return tuple(piece.encode("utf-8", "surrogatepass") for piece in telling[-_MOST_QUOTES:])


def _size(change: FileChange) -> int:
    return sum(len(hunk.body) for hunk in change.hunks)


def _is_quoted(line: HunkLine, quotes: Sequence[bytes]) -> bool:
    return any(quote in line.content for quote in quotes)


def _right_fits(change: FileChange, lines: tuple[int, int], quotes: Sequence[bytes]) -> bool:
    last = min(lines[1], lines[0] + _QUOTED_LINES)
    return any(
        _is_quoted(line, quotes) for hunk in change.hunks for line in hunk.shown(lines[0], last)
    )


def _left_quoted(change: FileChange, lines: tuple[int, int], quotes: Sequence[bytes]) -> int | None:
    """The one removed line in the range by old numbers that is quoted."""
    last = min(lines[1], lines[0] + _QUOTED_LINES)
    found = [
        line.old
        for hunk in change.hunks
        for line in hunk.removed(lines[0], last)
        if _is_quoted(line, quotes)
    ]
    return found[0] if len(found) == 1 else None


def _where_quoted(change: FileChange, quotes: Sequence[bytes]) -> Anchor | None:
    """The only line of the file's diff that a quote names, on the new side if it is there."""
    if not quotes:
        return None
    right: list[int] = []
    left: list[int] = []
    for line in chain.from_iterable(hunk.holding(quotes) for hunk in change.hunks):
        if line.new is not None:
            right.append(line.new)
        elif line.old is not None:
            left.append(line.old)
        if len(right) > 1:
            return None
    if right:
        return Anchor(change.path, right[0])
    return Anchor(change.path, left[0], Side.LEFT) if len(left) == 1 else None
