"""What follows a failed call, and which models are of one family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.failback import (
    Again,
    GiveUp,
    NextModel,
    NextStep,
    RetryPolicy,
    family,
    next_step,
    within_family,
)
from app.agents.port import AgentErrorKind, AgentFailure, ModelRef


def failure(
    kind: AgentErrorKind = AgentErrorKind.OVERLOADED, retry_after: float | None = None
) -> AgentFailure:
    return AgentFailure(kind, "x", retry_after)


@pytest.mark.parametrize(
    ("given", "attempt", "models_left", "remaining_s", "expected"),
    [
        pytest.param(failure(), 1, 1, 300.0, Again(1.0), id="first-failure-waits"),
        pytest.param(failure(), 2, 1, 300.0, NextModel(), id="second-goes-on"),
        pytest.param(failure(), 2, 0, 300.0, GiveUp(), id="end-of-the-chain"),
        pytest.param(failure(), 1, 1, 119.0, GiveUp(), id="under-two-minutes"),
        pytest.param(failure(), 1, 0, 120.5, GiveUp(), id="the-wait-would-eat-the-rest"),
        pytest.param(failure(retry_after=17.0), 1, 1, 300.0, Again(17.0), id="retry-after"),
        pytest.param(failure(retry_after=0.2), 1, 1, 300.0, Again(1.0), id="short-retry-after"),
        pytest.param(failure(retry_after=90.0), 1, 1, 300.0, NextModel(), id="too-long-to-wait"),
        pytest.param(failure(retry_after=90.0), 1, 0, 900.0, GiveUp(), id="too-long-and-alone"),
        pytest.param(
            failure(AgentErrorKind.NO_START), 1, 1, 300.0, Again(0.0), id="silence-needs-no-wait"
        ),
        pytest.param(
            failure(AgentErrorKind.BREAKER_OPEN, 9.0), 1, 1, 300.0, NextModel(), id="open-goes-on"
        ),
        pytest.param(
            failure(AgentErrorKind.BREAKER_OPEN, 90.0), 7, 0, 300.0, Again(90.0), id="open-waits"
        ),
        pytest.param(
            failure(AgentErrorKind.BREAKER_OPEN, 190.0), 1, 0, 300.0, GiveUp(), id="open-too-long"
        ),
        pytest.param(
            failure(AgentErrorKind.BREAKER_OPEN, 0.0), 1, 0, 300.0, Again(1.0), id="never-at-once"
        ),
    ],
)
def test_next_step(
    given: AgentFailure, attempt: int, models_left: int, remaining_s: float, expected: NextStep
) -> None:
    """Wait and repeat, then the next of the chain, then give up; never with under two minutes."""
    step = next_step(given, attempt=attempt, models_left=models_left, remaining_s=remaining_s)
    assert step == expected


FINAL = frozenset(
    {
        *("auth", "quota", "unknown_model", "context_overflow", "rejected", "refused"),
        *("malformed", "aborted", "limit", "timeout", "no_model"),
    }
)


@pytest.mark.parametrize("kind", AgentErrorKind)
def test_only_what_a_pause_may_cure_is_repeated(kind: AgentErrorKind) -> None:
    """Authentication, overflow, abort and malformed output never fail back."""
    step = next_step(failure(kind), attempt=1, models_left=3, remaining_s=1e6)
    assert (step == GiveUp()) == (kind.value in FINAL)


@given(
    st.sampled_from(AgentErrorKind),
    st.one_of(st.none(), st.floats(0, 1e4)),
    st.integers(1, 5),
    st.integers(0, 3),
    st.floats(0, 1e4),
)
def test_a_wait_always_leaves_enough(
    kind: AgentErrorKind, retry_after: float | None, attempt: int, left: int, remaining: float
) -> None:
    """After a wait there are always two minutes for the attempt, and waits are bounded."""
    policy = RetryPolicy()
    step = next_step(
        failure(kind, retry_after), attempt=attempt, models_left=left, remaining_s=remaining
    )
    if isinstance(step, Again) and kind is AgentErrorKind.BREAKER_OPEN:
        assert step.wait_s >= policy.first_wait_s
        assert remaining - step.wait_s >= policy.minimum_left_s
    elif isinstance(step, Again):
        assert attempt < policy.attempts_per_model
        assert step.wait_s <= policy.longest_wait_s
        assert remaining - step.wait_s >= policy.minimum_left_s


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-opus-4-7", "claude-opus"),
        ("claude-opus-4-6-20260101", "claude-opus"),
        ("claude-3-5-sonnet-latest", "claude-sonnet"),
        ("claude-sonnet-4.6", "claude-sonnet"),
        ("gpt-5.4", "gpt"),
        ("gpt-5.3-codex", "gpt-codex"),
        ("kimi-k2.5", "kimi-k"),
        ("moonshotai/kimi-k2.5", "moonshotai-kimi-k"),
        ("o4-mini", "o-mini"),
        ("llama3", "llama"),
    ],
)
def test_family(name: str, expected: str) -> None:
    """A family is the name without versions and dates."""
    assert family(ModelRef("p", name)) == expected


def test_a_chain_stays_in_its_family() -> None:
    """Other families and repeats are left out; the order stays."""
    opus, older = ModelRef("a", "claude-opus-4-7"), ModelRef("a", "claude-opus-4-6")
    elsewhere = ModelRef("b", "claude-opus-4-6")
    gpt = ModelRef("o", "gpt-5.4")
    assert within_family((opus, gpt, older, opus, elsewhere)) == (opus, older, elsewhere)
    assert within_family(()) == ()


@pytest.mark.parametrize("text", ["", "x", "/x", "x/"])
def test_a_model_needs_both_halves(text: str) -> None:
    """`provider/name`, or an error that says so."""
    with pytest.raises(ValueError, match="provider/name"):
        ModelRef.parse(text)


def test_a_model_reads_as_it_writes() -> None:
    """The name may hold slashes of its own."""
    assert str(ModelRef.parse("router/moonshotai/kimi-k2.5")) == "router/moonshotai/kimi-k2.5"
