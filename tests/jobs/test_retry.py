"""When a failed job is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import (
    AgentError,
    ConfigurationError,
    ForgeForbidden,
    ForgeNotFound,
    ForgePaced,
    ForgeRateLimited,
    ForgeRejected,
    ForgeUnauthorized,
    ForgeUnavailable,
    GitError,
    JobCancelled,
    UserError,
)
from app.jobs.retry import (
    MAX_ATTEMPTS,
    MAX_LIMITED_ATTEMPTS,
    MAX_OUTAGE_ATTEMPTS,
    MAX_PACED_ATTEMPTS,
    MAX_WAIT,
    Stop,
    Wait,
    after_failure,
    backoff,
)


def limited(seconds: float) -> ForgeRateLimited:
    return ForgeRateLimited("limit", retry_after=seconds)


@pytest.mark.parametrize(
    ("error", "attempt", "then"),
    [
        pytest.param(ForgeUnavailable("502"), 1, Wait(5), id="unavailable-first"),
        pytest.param(ForgeUnavailable("502"), 3, Wait(80), id="unavailable-third"),
        pytest.param(ForgeUnavailable("502"), 6, Wait(MAX_WAIT), id="an-outage-of-hours"),
        pytest.param(
            ForgeUnavailable("502"), MAX_OUTAGE_ATTEMPTS, Stop("attempts_spent"), id="outage-last"
        ),
        pytest.param(GitError("no route"), MAX_ATTEMPTS, Stop("attempts_spent"), id="git-last"),
        pytest.param(GitError("no route"), 2, Wait(20), id="git"),
        pytest.param(limited(61), 1, Wait(61), id="limit-says-how-long"),
        pytest.param(limited(0.5), 2, Wait(20), id="limit-too-hasty"),
        pytest.param(limited(90), 6, Wait(MAX_WAIT), id="limit-outlives-other-errors"),
        pytest.param(limited(10**9), 1, Wait(MAX_WAIT), id="limit-absurd"),
        pytest.param(limited(60), MAX_LIMITED_ATTEMPTS, Stop("attempts_spent"), id="limit-last"),
        pytest.param(ForgePaced("ours", retry_after=2.5), 40, Wait(2.5), id="own-pace-knows"),
        pytest.param(
            ForgePaced("ours", retry_after=2.5),
            MAX_PACED_ATTEMPTS,
            Stop("attempts_spent"),
            id="own-pace-last",
        ),
        pytest.param(ForgeNotFound("gone"), 1, Stop("not_retryable"), id="not-found"),
        pytest.param(ForgeForbidden("no"), 1, Stop("not_retryable"), id="forbidden"),
        pytest.param(ForgeUnauthorized("no"), 1, Stop("not_retryable"), id="unauthorized"),
        pytest.param(ForgeRejected("422"), 1, Stop("not_retryable"), id="rejected"),
        pytest.param(AgentError("nonsense"), 1, Stop("not_retryable"), id="agent"),
        pytest.param(UserError("what?"), 1, Stop("not_retryable"), id="user"),
        pytest.param(ConfigurationError("key"), 1, Stop("not_retryable"), id="configuration"),
        pytest.param(JobCancelled("closed"), 1, Stop("cancelled"), id="cancelled"),
        pytest.param(KeyError("a bug"), 1, Wait(5), id="unexpected-first"),
        pytest.param(KeyError("a bug"), 3, Stop("attempts_spent"), id="unexpected-third"),
        pytest.param(OSError("disk"), 2, Wait(20), id="system"),
    ],
)
def test_what_follows_a_failure(error: Exception, attempt: int, then: Wait | Stop) -> None:
    """The error says whether another try can help; the attempt says whether it is still allowed."""
    assert after_failure(error, attempt) == then


@given(attempt=st.integers(1, 10_000))
def test_pauses_grow_and_end(attempt: int) -> None:
    """A pause is never shorter than the one before, never over an hour, and tries run out."""
    assert backoff(attempt) <= backoff(attempt + 1) <= MAX_WAIT
    outcome = after_failure(ForgeUnavailable("502"), attempt)
    assert isinstance(outcome, Wait) == (attempt < MAX_OUTAGE_ATTEMPTS)
