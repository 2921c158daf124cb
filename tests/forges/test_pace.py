"""How fast an installation is written to (app/forges/pace.py)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forges.pace import DEFAULT_PACE, Pace, PaceLimits

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def taken(pace: Pace, now: datetime, *, urgent: bool = False) -> int:
    """How many writes go at this moment."""
    count = 0
    while pace.take(now, urgent=urgent) == 0:
        count += 1
    return count


def test_a_burst_and_what_is_kept_of_it() -> None:
    """Six for anybody, two more for whom a person waits; then one a second."""
    pace = Pace()
    assert taken(pace, START) == DEFAULT_PACE.burst - DEFAULT_PACE.kept
    assert taken(pace, START, urgent=True) == DEFAULT_PACE.kept
    assert taken(pace, at(1), urgent=True) == 1
    assert taken(pace, at(1.5), urgent=True) == 0


def test_the_wait_is_exact() -> None:
    """Whoever comes back when he was told to goes."""
    pace = Pace()
    taken(pace, START)
    wait = pace.take(START, urgent=False)
    assert wait == pytest.approx(1.0)
    assert pace.take(at(wait - 0.01), urgent=False) > 0
    assert pace.take(at(wait), urgent=False) == 0


def test_waiting_does_not_count_as_writing() -> None:
    """A refusal takes no token."""
    pace = Pace()
    taken(pace, START)
    for _ in range(100):
        pace.take(START, urgent=False)
    assert taken(pace, at(60)) == DEFAULT_PACE.burst - DEFAULT_PACE.kept


@pytest.mark.parametrize(
    ("limits", "span"),
    [
        pytest.param(PaceLimits(burst=99, per_second=99, per_minute=20), 60, id="minute"),
        pytest.param(
            PaceLimits(burst=99, per_second=99, per_minute=999, per_hour=20), 3600, id="hour"
        ),
    ],
)
def test_a_span_is_bounded(limits: PaceLimits, span: int) -> None:
    """One in ten is kept for the urgent, and it ends when the first write is old enough."""
    pace = Pace(limits)
    assert taken(pace, START) == 18
    assert taken(pace, at(1), urgent=True) == 2
    assert pace.take(at(2), urgent=True) == pytest.approx(span - 2)
    assert taken(pace, at(span), urgent=True) == 18


def test_github_says_wait() -> None:
    """Then nobody writes, urgent or not, and nobody reads; a shorter word changes nothing."""
    pace = Pace()
    pace.hold(at(90))
    pace.hold(at(30))
    assert pace.take(START, urgent=True) == 90
    assert pace.wait_to_read(at(89)) == 1
    assert pace.wait_to_read(at(90)) == 0
    assert pace.take(at(90), urgent=False) == 0


@given(st.lists(st.tuples(st.floats(0, 40), st.booleans()), max_size=200))
def test_no_span_holds_more_than_github_allows(steps: list[tuple[float, bool]]) -> None:
    """However writers come: never more than the limits in any minute, hour or second and burst."""
    limits = PaceLimits(burst=4, per_second=0.5, per_minute=15, per_hour=60)
    pace, now, written = Pace(limits), START, []
    for pause, urgent in steps:
        now += timedelta(seconds=pause)
        written += [now] * taken(pace, now, urgent=urgent)
    for moment in written:
        within = [other for other in written if timedelta(0) <= other - moment]
        assert sum(other - moment < timedelta(minutes=1) for other in within) <= limits.per_minute
        assert sum(other - moment < timedelta(hours=1) for other in within) <= limits.per_hour
        for span in (1, 10, 60):
            count = sum(other - moment <= timedelta(seconds=span) for other in within)
            assert count <= limits.burst + limits.per_second * span + 1e-6
