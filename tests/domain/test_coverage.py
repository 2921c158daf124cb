"""The coverage ledger (app/domain/coverage.py)."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.coverage import Coverage, CoverageEntry, CoverageState

paths = st.binary(min_size=1, max_size=12).map(os.fsdecode)
ledgers = st.lists(
    st.builds(CoverageEntry, paths, st.sampled_from(CoverageState), st.text(max_size=8)), max_size=5
).map(lambda entries: Coverage(tuple(entries)))


@given(ledgers)
def test_a_ledger_survives_a_database(ledger: Coverage) -> None:
    """Any name comes back, and what is stored is UTF-8 that every database takes."""
    data = ledger.to_json()
    stored = json.dumps(data, ensure_ascii=False)
    if all(entry.reason.isascii() for entry in ledger.entries):
        stored.encode()
    assert Coverage.from_json(json.loads(json.dumps(data))) == ledger


def test_nothing_stored_is_an_empty_ledger() -> None:
    """A run that has not filtered yet covers nothing and misses nothing."""
    assert Coverage.from_json({}) == Coverage()


@pytest.mark.parametrize(
    ("state", "full"),
    [
        (CoverageState.REVIEWED, True),
        (CoverageState.SKIPPED, True),
        (CoverageState.TOO_LARGE, False),
        (CoverageState.FAILED, False),
    ],
)
def test_noise_counts_as_covered_and_the_rest_must_be_read(
    state: CoverageState, full: bool
) -> None:
    """One file that should have been read and was not is enough."""
    ledger = Coverage((CoverageEntry("a", CoverageState.REVIEWED), CoverageEntry("b", state, "r")))
    assert ledger.is_full is full


def test_a_failed_run_read_nothing() -> None:
    """Only what was to be read is missing; noise stays noise, and the order of the diff stays."""
    ledger = Coverage(
        (
            CoverageEntry("a", CoverageState.REVIEWED),
            CoverageEntry("b", CoverageState.SKIPPED, "binary"),
            CoverageEntry("c", CoverageState.TOO_LARGE, "budget"),
        )
    )
    assert ledger.failed("timeout").entries == (
        CoverageEntry("a", CoverageState.FAILED, "timeout"),
        CoverageEntry("b", CoverageState.SKIPPED, "binary"),
        CoverageEntry("c", CoverageState.TOO_LARGE, "budget"),
    )


def test_only_what_was_to_be_read_can_be_missed() -> None:
    """Noise stays noise, and files that nobody named stay as they are."""
    ledger = Coverage(
        (
            CoverageEntry("a", CoverageState.REVIEWED),
            CoverageEntry("b", CoverageState.REVIEWED),
            CoverageEntry("c.lock", CoverageState.SKIPPED, "lock_file"),
        )
    )
    states = [(e.state, e.reason) for e in ledger.failed("not_reviewed", {"b", "c.lock"}).entries]
    assert states == [
        (CoverageState.REVIEWED, ""),
        (CoverageState.FAILED, "not_reviewed"),
        (CoverageState.SKIPPED, "lock_file"),
    ]
    cut = ledger.too_large({"a": "no_room_left", "c.lock": "no_room_left"})
    assert [e.state for e in cut.entries] == [
        CoverageState.TOO_LARGE, CoverageState.REVIEWED, CoverageState.SKIPPED
    ]  # fmt: skip
