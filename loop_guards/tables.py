"""How a table of rows is asked: the first row that holds answers. Used by several questions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from loop_guards.decisions import Asked

Outcome = TypeVar("Outcome", bound=StrEnum)
Reason = TypeVar("Reason", bound=StrEnum)


def first_row(
    rows: Sequence[tuple[bool, Outcome, Reason]],
) -> tuple[Outcome, Reason, tuple[Asked, ...]]:
    """Outcome and reason of the first row that holds, with the trace of all that were asked.

    The last row must hold always; StopIteration otherwise.
    """
    place = next(place for place, row in enumerate(rows) if row[0])
    _, outcome, reason = rows[place]
    passed = tuple(Asked(code, None) for _, _, code in rows[:place])
    return outcome, reason, (*passed, Asked(reason, reason))
