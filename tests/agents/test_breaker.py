"""A model's breaker under a fake clock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.breaker import (
    Admission,
    BreakerMode,
    BreakerSettings,
    BreakerState,
    CallOutcome,
    LocalBreakers,
    admit,
    outcome_of,
    record,
)
from app.agents.port import AgentErrorKind, ModelRef

SETTINGS = BreakerSettings(failures_to_open=3, open_s=30.0, lost_after_s=30.0)
GOOD, BAD, NEITHER = CallOutcome.GOOD, CallOutcome.BAD, CallOutcome.NEITHER


@dataclass
class Line:
    """One breaker, driven by hand."""

    now: float = 0.0
    state: BreakerState = field(default_factory=BreakerState)

    def ask(self) -> Admission:
        self.state, admission = admit(self.state, self.now, SETTINGS)
        return admission

    def tell(self, admission: Admission, outcome: CallOutcome) -> None:
        self.state = record(self.state, admission, outcome, self.now, SETTINGS)

    @property
    def mode(self) -> str:
        return self.state.mode.value

    def call(self, outcome: CallOutcome) -> bool:
        admission = self.ask()
        if admission.granted:
            self.tell(admission, outcome)
        return admission.granted


def opened() -> Line:
    line = Line()
    for _ in range(3):
        line.call(BAD)
    return line


def test_exactly_one_probe_when_the_pause_ends() -> None:
    """Twenty wait; one goes; its success closes."""
    line = opened()
    line.now = 31
    admissions = [line.ask() for _ in range(20)]
    granted = [admission for admission in admissions if admission.granted]
    assert len(granted) == 1
    line.tell(granted[0], GOOD)
    assert line.mode == BreakerMode.CLOSED
    assert all(line.call(GOOD) for _ in range(20))


def test_a_failed_probe_opens_again() -> None:
    """For the whole pause, from the probe's end."""
    line = opened()
    line.now = 31
    assert line.call(BAD)
    line.now = 60
    assert not line.call(GOOD)
    line.now = 61
    assert line.call(GOOD)


def test_a_lost_probe_does_not_wedge() -> None:
    """A probe that never reports is given up after one pause; its late result is ignored."""
    line = opened()
    line.now = 31
    lost = line.ask()
    line.now = 60
    assert not line.ask().granted
    line.now = 61
    second = line.ask()
    assert second.granted
    line.tell(lost, GOOD)
    assert line.mode == BreakerMode.PROBING
    line.tell(second, BAD)
    assert line.mode == BreakerMode.OPEN


def test_a_slow_probe_is_not_lost_to_the_next() -> None:
    """A model that thinks longer than the pause can still close its breaker."""
    slow = BreakerSettings(failures_to_open=1, open_s=30.0, lost_after_s=300.0)
    state, first = admit(BreakerState(), 0, slow)
    state, probe = admit(record(state, first, BAD, 0, slow), 31, slow)
    state, other = admit(state, 200, slow)
    assert (probe.granted, other.granted, other.wait_s) == (True, False, slow.ask_again_s)
    assert record(state, probe, GOOD, 210, slow).mode is BreakerMode.CLOSED


def test_a_clock_that_was_set_back_does_not_wedge() -> None:
    """The pause begins anew, and ends."""
    line = opened()
    line.state = replace(line.state, since=9999.0)
    line.now = 100
    assert not line.ask().granted
    line.now = 131
    assert line.ask().granted


def test_own_mistakes_are_neither_failure_nor_success() -> None:
    """A wrong request does not open, and does not clear the count during an outage."""
    line = Line()
    for _ in range(4):
        line.call(NEITHER)
    assert line.mode == BreakerMode.CLOSED
    for outcome in (BAD, BAD, NEITHER, BAD):
        line.call(outcome)
    assert line.mode == BreakerMode.OPEN


def test_success_clears_the_count() -> None:
    """Only failures in a row count."""
    line = Line()
    for outcome in (BAD, BAD, GOOD, BAD, BAD):
        line.call(outcome)
    assert line.mode == BreakerMode.CLOSED


def test_a_late_result_of_an_older_period_is_ignored() -> None:
    """A slow call from before the opening succeeds after the probe failed: still open."""
    line = Line()
    slow = line.ask()
    for _ in range(3):
        line.call(BAD)
    line.now = 32
    assert line.call(BAD)
    line.now = 40
    line.tell(slow, GOOD)
    line.now = 41
    assert not any(line.call(GOOD) for _ in range(5))


def test_a_probe_that_says_nothing_lets_the_next_one_try() -> None:
    """A cancelled or wrong probe neither closes nor starts a new pause."""
    line = opened()
    line.now = 31
    assert line.call(NEITHER)
    assert line.call(GOOD)
    assert line.mode == BreakerMode.CLOSED


@given(st.lists(st.tuples(st.floats(0, 50), st.sampled_from([*CallOutcome, None])), max_size=60))
def test_never_two_probes_in_one_pause(steps: list[tuple[float, CallOutcome | None]]) -> None:
    """Whatever happens, an open breaker lets at most one call go per pause without a result."""
    line = opened()
    waiting_since: float | None = None
    for pause, outcome in steps:
        line.now += pause
        was_closed = line.mode == BreakerMode.CLOSED
        admission = line.ask()
        if was_closed or not admission.granted:
            if admission.granted and outcome is not None:
                line.tell(admission, outcome)
            continue
        assert waiting_since is None or line.now - waiting_since >= SETTINGS.open_s
        waiting_since = line.now
        if outcome is not None:
            line.tell(admission, outcome)
            waiting_since = None


@pytest.mark.parametrize("kind", AgentErrorKind)
def test_what_counts(kind: AgentErrorKind) -> None:
    """What may be repeated counts against the model, nothing else does."""
    assert outcome_of(kind) is (BAD if kind.is_retryable else NEITHER)
    assert outcome_of(None) is GOOD


async def test_models_have_breakers_of_their_own() -> None:
    """One model's trouble is not another's."""
    breakers = LocalBreakers(lambda: 0.0, SETTINGS)
    first, second = ModelRef("p", "a"), ModelRef("p", "b")
    for _ in range(3):
        await breakers.record(first, await breakers.admit(first), BAD)
    assert not (await breakers.admit(first)).granted
    assert (await breakers.admit(second)).granted
