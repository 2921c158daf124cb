"""Where a finding can stand: on lines of the diff, or in the body of the review. Pure.

GitHub refuses a whole review for one comment outside the diff, so an anchor is computed from the
hunks of the very commit that is reviewed, and what has none goes into the body. A finding counts
the same wherever it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.domain.diff import Diff, Hunk
from app.domain.effects import Side
from app.domain.findings import Location

_FENCE = re.compile(r"^\s{0,3}(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place GitHub accepts. `start_line` is set only for several lines of one hunk."""

    path: str
    line: int
    side: Side = Side.RIGHT
    start_line: int | None = None


def anchor(location: Location, diff: Diff) -> Anchor | None:
    """The anchor of a finding, None if it must stand in the body.

    A range that only partly lies in a hunk is cut to it; one that touches no hunk has no anchor.
    Lines of a deleted file are anchored on the left.
    """
    change = diff.file(location.path) if location.path is not None else None
    if change is None or location.start_line is None:
        return None
    start = location.start_line
    end = max(start, location.end_line or start)
    for hunk in change.hunks:
        found = _in_hunk(change.path, hunk, start, end)
        if found is not None:
            return found
    return None


def _in_hunk(path: str, hunk: Hunk, start: int, end: int) -> Anchor | None:
    right = hunk.right
    if right:
        first, last = max(start, right.start), min(end, right.stop - 1)
        if first > last:
            return None
        return Anchor(path, last, Side.RIGHT, first if first < last else None)
    lines = sorted(number for number in hunk.left if start <= number <= end)
    if not lines:
        return None
    return Anchor(path, lines[-1], Side.LEFT, lines[0] if lines[0] < lines[-1] else None)


def is_exact(place: Anchor, location: Location) -> bool:
    """Whether the anchor covers exactly the finding's lines: only then a suggestion fits there."""
    start = location.start_line
    end = location.end_line or start
    return place.side is Side.RIGHT and (place.start_line or place.line, place.line) == (start, end)


def suggestion_block(suggestion: str | None) -> str:
    """The replacement as GitHub's suggestion block, "" for none.

    The fence is longer than any fence inside, so the code can't end the block.
    """
    if suggestion is None:
        return ""
    code = suggestion.replace("\r\n", "\n").removesuffix("\n")
    longest = max((len(match[1]) for match in _FENCE.finditer(code)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}suggestion\n{code}\n{fence}" if code else f"{fence}suggestion\n{fence}"
