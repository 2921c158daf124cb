"""What follows a failed model call: wait and repeat, go to the next model, or give up. Pure.

A chain never leaves the family of its first model: a review that begins with one family's judgement
ends with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from app.agents.port import AgentErrorKind, AgentFailure, ModelRef
from app.errors import AgentError, ModelsUnavailable

MINIMUM_LEFT_S = 120.0
"""With less time than this left, nothing is tried again (DESIGN §4)."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts per call and model, and the waits between them in seconds.

    `longest_wait_s` bounds what we accept as the provider's own wish; beyond it the next model is
    asked at once, or the session ends.
    """

    attempts_per_model: int = 2
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    minimum_left_s: float = MINIMUM_LEFT_S


DEFAULT_RETRY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Again:
    """Repeat on the same model after `wait_s` seconds."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class NextModel:
    """Go on with the next model of the chain, at once."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nothing more is tried."""


NextStep: TypeAlias = Again | NextModel | GiveUp


def next_step(
    failure: AgentFailure,
    *,
    attempt: int,
    models_left: int,
    remaining_s: float,
    policy: RetryPolicy = DEFAULT_RETRY,
) -> NextStep:
    """Decide after `attempt` failed attempts (≥ 1) of one call on the present model.

    `models_left` counts the chain's models after the present one; `remaining_s` is what the session
    has left before its timeout.
    """
    if not failure.kind.is_retryable or remaining_s < policy.minimum_left_s:
        return GiveUp()
    wait = _wait(failure, attempt, policy)
    if failure.kind is AgentErrorKind.BREAKER_OPEN:
        return _refused(wait, models_left, remaining_s, policy)
    patient = attempt < policy.attempts_per_model and wait <= policy.longest_wait_s
    if patient and remaining_s - wait >= policy.minimum_left_s:
        return Again(wait)
    return NextModel() if models_left > 0 else GiveUp()


def _refused(wait: float, models_left: int, remaining_s: float, policy: RetryPolicy) -> NextStep:
    """A breaker's refusal is no attempt: a sibling is asked at once, and where there is none, the
    session waits as often as its time allows."""
    if models_left > 0:
        return NextModel()
    return Again(wait) if remaining_s - wait >= policy.minimum_left_s else GiveUp()


def _wait(failure: AgentFailure, attempt: int, policy: RetryPolicy) -> float:
    if failure.kind is AgentErrorKind.BREAKER_OPEN:
        return max(policy.first_wait_s, failure.retry_after or 0.0)
    backoff = policy.first_wait_s * float(2 ** (attempt - 1))
    if failure.kind in (AgentErrorKind.NO_START, AgentErrorKind.STALLED):
        return 0.0
    return max(backoff, failure.retry_after or 0.0)


_VERSION = re.compile(
    r"(?:^|(?<=[-@.:/ ]))v?\d[\d.]*(?=$|[-@.:/ ])|(?<=[a-z])\d[\d.]*(?=$|[-@.: ])"
)


def family(model: ModelRef) -> str:
    """The model's name without versions and dates: `claude-opus-4-7` and `-4-6` are one family."""
    bare = _VERSION.sub("", model.name.lower())
    words = [word for word in re.split(r"[-@.:/ ]+", bare) if word and word != "latest"]
    return "-".join(words)


def within_family(models: tuple[ModelRef, ...]) -> tuple[ModelRef, ...]:
    """The chain as far as it stays in the family of its first model; repeats are dropped."""
    if not models:
        return ()
    home = family(models[0])
    return tuple(dict.fromkeys(model for model in models if family(model) == home))


_UNREACHABLE = frozenset(kind.value for kind in AgentErrorKind if kind.is_retryable)


def unanswered(message: str, reasons: Iterable[str]) -> AgentError:
    """The error for sessions that came to nothing for these reasons (kinds of errors): whether a
    pause may cure all of them."""
    cured = [reason in _UNREACHABLE for reason in reasons]
    return ModelsUnavailable(message) if cured and all(cured) else AgentError(message)
