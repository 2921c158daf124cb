"""The ledger of rounds: what is charged, what a resume forgets and what it keeps. DESIGN §3.4."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from loop_guards import (
    RoundRecord,
    blocking_since_resume,
    ever_blocked,
    rounds_started,
    short_looks,
)
from tests.loop_guards.factories import PATIENT, anything, record

SILENT = replace(record(), blocking=None)
"""A round that was charged and said nothing."""

CHARGED = [
    pytest.param([], 0, id="none"),
    pytest.param([record(1), record()], 2, id="two"),
    pytest.param([record(called=False)], 0, id="killed before its first call"),
    pytest.param([record(published=False)], 1, id="not published"),
    pytest.param([SILENT], 1, id="it said nothing"),
    pytest.param(
        [record(head="a"), record(head="a"), record(head="b")], 3, id="heads do not matter"
    ),
    pytest.param([record(), record(resumes=1)], 2, id="a resume gives none back"),
]


@pytest.mark.parametrize(("records", "charged"), CHARGED)
def test_a_round_is_charged_at_its_first_model_call(
    records: list[RoundRecord], charged: int
) -> None:
    """Published or not, whatever the head: it counts from its first call, and for good."""
    assert rounds_started(records) == charged


@PATIENT
@given(anything(tuple[RoundRecord, ...]), anything(RoundRecord))
def test_no_record_lowers_a_count(records: tuple[RoundRecord, ...], new: RoundRecord) -> None:
    """What is in the ledger stays charged: no push, no head and no resume refunds a round."""
    assert rounds_started((*records, new)) == rounds_started(records) + new.called
    assert ever_blocked(records) <= ever_blocked((*records, new))


HISTORIES = [
    pytest.param([record(1), record(1, 2)], 0, [{1}, {1, 2}], id="oldest first"),
    pytest.param([record(1), record(2, resumes=1)], 1, [{2}], id="a resume forgets"),
    pytest.param([record(1), record(2, resumes=1)], 0, [{1}, {2}], id="one that came later"),
    pytest.param([record(1, resumes=1), record(2, resumes=2)], 2, [{2}], id="the second resume"),
    pytest.param([record(1), SILENT, record()], 0, [{1}, set()], id="silence is no answer"),
    pytest.param([record(1)], 1, [], id="nothing since"),
]


@pytest.mark.parametrize(("records", "resumes", "history"), HISTORIES)
def test_a_resume_clears_the_memory_of_what_blocked(
    records: list[RoundRecord], resumes: int, history: list[set[int]]
) -> None:
    """Stall and bounce are judged by the rounds since the latest resume."""
    assert blocking_since_resume(records, resumes) == tuple(frozenset(each) for each in history)


def test_a_resume_forgives_no_finding() -> None:
    """Once blocking, a finding blocks until it is fixed or dismissed, in every later round."""
    assert ever_blocked([record(1, 2), SILENT, record(3, resumes=1), record()]) == {1, 2, 3}
    assert ever_blocked([]) == frozenset()


SHORT = record(coverage_full=False)
LOOKS = [
    pytest.param([], 0, 0, id="none"),
    pytest.param([SHORT], 0, 1, id="one"),
    pytest.param([SHORT, SHORT], 0, 2, id="two in a row"),
    pytest.param([SHORT, record(), SHORT], 0, 1, id="a whole look ends the row"),
    pytest.param([SHORT, SHORT, record()], 0, 0, id="ended"),
    pytest.param([SHORT, SILENT, SHORT], 0, 2, id="silence does not end it"),
    pytest.param([SHORT, replace(SHORT, blocking=None)], 0, 1, id="silence does not count"),
    pytest.param([SHORT, replace(SHORT, resumes=1)], 1, 1, id="a resume forgets"),
    pytest.param([replace(SHORT, resumes=2)], 1, 1, id="one that came later counts"),
]


@pytest.mark.parametrize(("records", "resumes", "short"), LOOKS)
def test_looks_that_were_not_whole_are_counted_in_a_row(
    records: list[RoundRecord], resumes: int, short: int
) -> None:
    """Two in a row ask a human; a round that said nothing is no look."""
    assert short_looks(records, resumes) == short
