"""The rounds of a fix task as they are remembered, and what is counted of them. DESIGN §3.4.

One record per run that was let start. All counting is done here, so that nothing but a record can
change a count: no push, no new head, no published or unpublished review.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One run of a fix task, in the order of starting.

    `head` is the commit it looked at. `called`: it made its first model call. `published`: its
    review stands on the page. `resumes` is how often the task had been resumed when it started.
    `blocking` is what blocked after it, None when it said nothing (killed, superseded, no model).
    `coverage_full`: everything was looked at.
    """

    head: str
    called: bool
    published: bool = False
    resumes: int = 0
    blocking: frozenset[int] | None = None
    coverage_full: bool = True


def rounds_started(records: Iterable[RoundRecord]) -> int:
    """Rounds of the task: charged at the first model call, whatever became of the run.

    Published or not makes no difference, nor does the head: a round is never given back.
    """
    return sum(record.called for record in records)


def blocking_since_resume(
    records: Iterable[RoundRecord], resumes: int
) -> tuple[frozenset[int], ...]:
    """The blocking sets since the latest resume, oldest first: a resume clears the memory."""
    return tuple(
        record.blocking
        for record in records
        if record.resumes >= resumes and record.blocking is not None
    )


def ever_blocked(records: Iterable[RoundRecord]) -> frozenset[int]:
    """Findings that blocked after any round of the task: a resume forgives no finding."""
    return frozenset(number for record in records for number in record.blocking or frozenset())


def short_looks(records: Iterable[RoundRecord], resumes: int) -> int:
    """How many of the latest rounds in a row, since the latest resume, could not cover everything.

    A round that said nothing is no look: it neither counts nor ends the row.
    """
    count = 0
    for record in records:
        if record.resumes < resumes or record.blocking is None:
            continue
        count = 0 if record.coverage_full else count + 1
    return count
