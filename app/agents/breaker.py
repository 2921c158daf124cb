"""A circuit breaker per model: closed, open, and exactly one probe. Pure core, and a holder.

Only failures that a pause may cure count; a request that is wrong itself is neither a failure nor a
success of the model. Each opening begins a new period, and results of an older one are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from app.agents.port import AgentErrorKind, ModelRef


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """Consecutive failures that open it, and seconds until a probe may pass.

    `lost_after_s` is when a probe that has not reported counts as lost. Not less than a reviewer's
    timeout (DESIGN §4): models think for minutes, and were every slow probe given up for the next
    one, the breaker of a slow model would never close. `ask_again_s` is how long those who are
    refused while a probe is out should wait.
    """

    failures_to_open: int = 5
    open_s: float = 120.0
    lost_after_s: float = 300.0
    ask_again_s: float = 5.0


class BreakerMode(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


@dataclass(frozen=True, slots=True)
class BreakerState:
    """One model's breaker. Times are seconds of the caller's clock.

    `since` is when it opened, or when the probe left. `period` counts openings and probes.
    """

    mode: BreakerMode = BreakerMode.CLOSED
    failures: int = 0
    since: float = 0.0
    period: int = 0


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a call may go. `wait_s` is how long until it is worth asking again, when not.

    `shared` says that breakers beyond this process decided.
    """

    granted: bool
    period: int
    wait_s: float = 0.0
    shared: bool = False


class CallOutcome(StrEnum):
    """What a finished call says about its model."""

    GOOD = "good"
    BAD = "bad"
    NEITHER = "neither"


def outcome_of(kind: AgentErrorKind | None) -> CallOutcome:
    """What an error (None: success) says about the model."""
    if kind is None:
        return CallOutcome.GOOD
    return CallOutcome.BAD if kind.is_retryable else CallOutcome.NEITHER


def admit(
    state: BreakerState, now: float, settings: BreakerSettings
) -> tuple[BreakerState, Admission]:
    """Ask for one call. A clock that was set back only begins the pause anew."""
    if state.mode is BreakerMode.CLOSED:
        return state, Admission(granted=True, period=state.period)
    state = replace(state, since=min(state.since, now))
    is_out = state.mode is BreakerMode.PROBING
    wait = state.since + (settings.lost_after_s if is_out else settings.open_s) - now
    if wait > 0:
        told = min(wait, settings.ask_again_s) if is_out else wait
        return state, Admission(granted=False, period=state.period, wait_s=told)
    probing = replace(state, mode=BreakerMode.PROBING, since=now, period=state.period + 1)
    return probing, Admission(granted=True, period=probing.period)


def record(
    state: BreakerState,
    admission: Admission,
    outcome: CallOutcome,
    now: float,
    settings: BreakerSettings,
) -> BreakerState:
    """Take in the result of a call that `admission` let go."""
    if admission.period != state.period or state.mode is BreakerMode.OPEN:
        return state
    if state.mode is BreakerMode.PROBING:
        return _after_probe(state, outcome, now, settings)
    match outcome:
        case CallOutcome.GOOD:
            return replace(state, failures=0)
        case CallOutcome.NEITHER:
            return state
        case CallOutcome.BAD:
            failed = replace(state, failures=state.failures + 1)
            return _opened(failed, now) if failed.failures >= settings.failures_to_open else failed


def _after_probe(
    state: BreakerState, outcome: CallOutcome, now: float, settings: BreakerSettings
) -> BreakerState:
    match outcome:
        case CallOutcome.GOOD:
            return BreakerState(period=state.period + 1)
        case CallOutcome.NEITHER:
            # The probe told nothing: the next call may try at once.
            return replace(_opened(state, now), since=now - settings.open_s)
        case CallOutcome.BAD:
            return _opened(state, now)


def _opened(state: BreakerState, now: float) -> BreakerState:
    return replace(state, mode=BreakerMode.OPEN, since=now, period=state.period + 1)


class Breakers(Protocol):
    """The breakers of all models, wherever their state is kept."""

    async def admit(self, model: ModelRef) -> Admission: ...

    async def record(self, model: ModelRef, admission: Admission, outcome: CallOutcome) -> None: ...

    async def state(self, model: ModelRef) -> BreakerState: ...


class LocalBreakers:
    """Breakers of this process alone."""

    def __init__(
        self, monotonic: Callable[[], float], settings: BreakerSettings | None = None
    ) -> None:
        self._monotonic = monotonic
        self._settings = settings or BreakerSettings()
        self._states: dict[ModelRef, BreakerState] = {}

    async def state(self, model: ModelRef) -> BreakerState:
        return self._state(model)

    async def admit(self, model: ModelRef) -> Admission:
        state, admission = admit(self._state(model), self._monotonic(), self._settings)
        self._states[model] = state
        return admission

    async def record(self, model: ModelRef, admission: Admission, outcome: CallOutcome) -> None:
        self._states[model] = record(
            self._state(model), admission, outcome, self._monotonic(), self._settings
        )

    def _state(self, model: ModelRef) -> BreakerState:
        return self._states.get(model, BreakerState())
