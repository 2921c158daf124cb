"""The two ways in which several questions are asked: a table whose first row answers, and a list of
which all that hold are kept."""

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


def all_that_hold(
    questions: Sequence[tuple[Reason, bool]],
) -> tuple[tuple[Reason, ...], tuple[Asked, ...]]:
    """The reasons that hold, in the order asked, and the trace of all of them."""
    held = tuple(reason for reason, holds in questions if holds)
    return held, tuple(Asked(reason, reason if holds else None) for reason, holds in questions)
