"""Hidden marks by which we find again what we wrote on a forge.

A marker is an HTML comment alone on its line at the very end of a body. Only the end counts, and
only in a text of our own account: whoever quotes us, or makes a model repeat a marker in the
middle of a text, marks nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/]|-(?!-))*")
_LINE = re.compile(r"<!-- mergeward:([a-z_]+):([A-Za-z0-9](?:[A-Za-z0-9._:/]|-(?!-))*) -->")
_MAX_ID = 120


class MarkerKind(StrEnum):
    """What the marked text is."""

    REVIEW = "review"
    FINDING = "finding"
    STATUS = "status"
    COMMENT = "comment"
    REPLY = "reply"
    FIX = "fix"


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """Names one text of ours for ever: `Marker(MarkerKind.REVIEW, "run-17")`.

    `id` holds letters, digits and `._:/-` (no `--`), at most 120; ValueError otherwise. Two texts
    that must not replace each other have different markers.
    """

    kind: MarkerKind
    id: str

    def __post_init__(self) -> None:
        if len(self.id) > _MAX_ID or not _ID.fullmatch(self.id):
            raise ValueError(f"{self.id!r} can't be the id of a marker")

    def __str__(self) -> str:
        return f"<!-- mergeward:{self.kind}:{self.id} -->"


def markers_of(body: str) -> tuple[Marker, ...]:
    """The markers at the end of `body`, in the order of the text. Ask only about our own texts."""
    found: list[Marker] = []
    for line in reversed(body.rstrip().split("\n")):
        match = _LINE.fullmatch(line.strip())
        if match is None or match[1] not in frozenset(MarkerKind) or len(match[2]) > _MAX_ID:
            break
        found.append(Marker(MarkerKind(match[1]), match[2]))
    return tuple(reversed(found))


def without_markers(body: str) -> str:
    """`body` without the markers at its end: what a person wrote or sees."""
    lines = body.rstrip().split("\n")
    count = len(markers_of(body))
    return "\n".join(lines[: len(lines) - count]).rstrip()


def with_marker(body: str, marker: Marker, *, limit: int | None = None) -> str:
    """`body` ending with `marker`, once. Longer than `limit` characters: the body is cut, visibly.

    Markers that `body` ends with already are dropped: a text has the one it is published under.
    """
    text, tail = without_markers(body), f"\n\n{marker}"
    if limit is not None:
        text = shortened(text, limit - len(tail))
    return f"{text}{tail}" if text else str(marker)


_CUT = "\n\n*… shortened: the whole text is longer than GitHub accepts.*"


def shortened(text: str, limit: int) -> str:
    """`text` within `limit` characters; a cut one says so, and its code fence is closed."""
    if len(text) <= limit:
        return text
    closing = "\n```"
    kept = text[: max(0, limit - len(_CUT) - len(closing))].rstrip()
    fences = sum(1 for line in kept.splitlines() if line.lstrip().startswith("```"))
    return (kept + (closing if fences % 2 else "") + _CUT)[:limit]
