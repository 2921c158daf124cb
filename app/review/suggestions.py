"""Replacement code as GitHub's suggestion block, where one click leaves the file right. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.domain.diff import FileChange
from app.domain.findings import Location
from app.review.anchors import Anchor, is_exact, suggestion_block

_NEIGHBOURS = 50
_NUMBERED = re.compile(r" *\d+\t")


def suggestion_at(
    place: Anchor, location: Location, change: FileChange, suggestion: str | None
) -> str:
    """The block for a comment at `place`, "" when applying it would not do what was meant.

    There is none where the anchor is not the finding's exact range, where the replacement repeats
    the lines around that range (they would be there twice), changes nothing, is a patch or numbered
    as in what models read instead of plain code, or where its indentation is in doubt. Code that
    lost all its indentation gets that of the first line it replaces that is not blank.
    """
    if suggestion is None or not is_exact(place, location):
        return ""
    first = place.start_line or place.line
    code = _lines(suggestion)
    most = min(len(code), _NEIGHBOURS)
    texts = change.texts(first - most, place.line + most)
    replaced = [texts.get(number, "") for number in range(first, place.line + 1)]
    before = [texts.get(first - n) for n in range(1, most + 1)]
    after = [texts.get(place.line + n) for n in range(1, most + 1)]
    if code == replaced or _repeats(code, before, after) or _is_marked(code, replaced):
        return ""
    fitted = _indented(code, replaced)
    if fitted is None:
        return ""
    return suggestion_block("".join(f"{line}\n" for line in fitted))


def _lines(code: str) -> list[str]:
    """The lines of a replacement; none for "", a blank one for a line end alone."""
    code = code.replace("\r\n", "\n")
    return code.removesuffix("\n").split("\n") if code else []


def _repeats(
    code: Sequence[str], before: Sequence[str | None], after: Sequence[str | None]
) -> bool:
    """Whether the replacement ends with the lines after the range or begins with those before
    (the nearest first)."""
    return any(
        _same(code[-n:], after[:n]) or _same(code[:n], before[:n][::-1])
        for n in range(1, len(before) + 1)
    )


def _is_marked(code: Sequence[str], replaced: Sequence[str]) -> bool:
    """Whether the lines bear signs or numbers that the replaced ones do not."""
    signs = {line[:1] for line in code if line}
    patch = {"+", "-"} <= signs <= {"+", "-", " "}
    numbered = all(_NUMBERED.match(line) for line in code) and code != []
    alike = any(line[:1] in ("+", "-") or _NUMBERED.match(line) for line in replaced)
    return (patch or numbered) and not alike


def _same(code: Sequence[str], there: Sequence[str | None]) -> bool:
    """Equal and saying something: a closing bracket may well stand twice."""
    plain = [line.strip() for line in code]
    return plain == [None if line is None else line.strip() for line in there] and any(
        char.isalnum() for line in plain for char in line
    )


def _indented(code: list[str], replaced: Sequence[str]) -> list[str] | None:
    """The code with the indentation it is to have; None when that can't be known."""
    old = [_indent(line) for line in replaced if line.strip()]
    new = [_indent(line) for line in code if line.strip()]
    if not old or not new or new[0] or not all(old):
        return code
    if any(new):  # is the rest counted from its first line, or from the left edge?
        return None
    return [f"{old[0]}{line}" if line.strip() else line for line in code]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
