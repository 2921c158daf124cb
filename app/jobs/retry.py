"""Whether a failed job is tried again, and when: a pure function of the error and the attempt."""

from __future__ import annotations

from dataclasses import dataclass

from app.errors import ForgePaced, ForgeRateLimited, ForgeUnavailable, JobCancelled, MergewardError

MAX_ATTEMPTS = 5
"""Tries of a job whose error says that another one may help."""
MAX_UNEXPECTED_ATTEMPTS = 3
"""Tries of a job that failed by an error we did not foresee."""
MAX_OUTAGE_ATTEMPTS = 12
"""Tries of a job that cannot reach GitHub: with the pauses between them, about eight hours."""
MAX_LIMITED_ATTEMPTS = 30
"""Tries of a job that GitHub's rate limits send away; each waits as long as GitHub says."""
MAX_PACED_ATTEMPTS = 500
"""Tries of a job that our own pace sends away: GitHub lets an installation write 500 times an
hour, so by then everybody had a turn."""
MAX_WAIT = 3_600.0
_BASE = 5.0
_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Try again in so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Do not try again. `reason` is a code."""

    reason: str


def after_failure(error: BaseException, attempt: int) -> Wait | Stop:
    """What follows the failure of try number `attempt` (the first is 1).

    An error that says how long to wait is believed, but never waited for longer than an hour;
    the pause between tries grows from 5 s by a factor of 4, but for our own pace, which knows.
    """
    if isinstance(error, JobCancelled):
        return Stop("cancelled")
    if isinstance(error, MergewardError) and error.retry_after is None:
        return Stop("not_retryable")
    if attempt >= _allowed(error):
        return Stop("attempts_spent")
    asked = getattr(error, "retry_after", None) or 0.0
    if isinstance(error, ForgePaced):
        return Wait(min(asked, MAX_WAIT))
    return Wait(min(max(asked, backoff(attempt)), MAX_WAIT))


def backoff(attempt: int) -> float:
    """Seconds to wait after try number `attempt` when nobody says how long."""
    return float(min(_BASE * _FACTOR ** min(max(attempt, 1) - 1, 10), MAX_WAIT))


def _allowed(error: BaseException) -> int:
    if isinstance(error, ForgePaced):
        return MAX_PACED_ATTEMPTS
    if isinstance(error, ForgeRateLimited):
        return MAX_LIMITED_ATTEMPTS
    if isinstance(error, ForgeUnavailable):
        return MAX_OUTAGE_ATTEMPTS
    return MAX_ATTEMPTS if isinstance(error, MergewardError) else MAX_UNEXPECTED_ATTEMPTS
