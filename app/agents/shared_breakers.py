"""Breakers that all worker processes share; while their store is away, each process has its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TypeVar

from app.agents.breaker import (
    Admission,
    BreakerMode,
    BreakerSettings,
    BreakerState,
    CallOutcome,
    LocalBreakers,
    admit,
    record,
)
from app.agents.port import ModelRef
from app.logs import get_logger
from app.state.port import Cells, StateUnavailable

log = get_logger(__name__)

LIFE_S = 86_400.0
"""Seconds a breaker is remembered after its last change: longer than any call takes."""
PATIENCE_S = 10.0
"""Seconds for which a store that did not answer is not asked again, so that an outage of it does
not cost every model call a timeout."""
_MOST_TRIES = 100
"""A swap that is lost means that another one succeeded, and a breaker changes at most
`failures_to_open` + 2 times before everybody is refused: more tries than that are never needed."""

Told = TypeVar("Told")
Change = Callable[[BreakerState, float], tuple[BreakerState, Told]]


class SharedBreakers:
    """Implements `app.agents.breaker.Breakers` over shared cells."""

    def __init__(
        self,
        cells: Cells,
        monotonic: Callable[[], float],
        settings: BreakerSettings | None = None,
    ) -> None:
        """`monotonic` times the breakers of this process and the patience with the store."""
        self._cells = cells
        self._monotonic = monotonic
        self._settings = settings or BreakerSettings()
        self._own = LocalBreakers(monotonic, self._settings)
        self._away_until: float | None = None

    async def admit(self, model: ModelRef) -> Admission:
        try:
            admission = await self._change(model, self._admitted)
        except StateUnavailable as error:
            self._went_away(error)
            return await self._own.admit(model)
        self._is_back()
        return admission

    async def record(self, model: ModelRef, admission: Admission, outcome: CallOutcome) -> None:
        """The result goes to the breaker that let the call go. If that is the shared one and it is
        away, the result is lost: a lost probe is given up after `lost_after_s`."""
        if not admission.shared:
            await self._own.record(model, admission, outcome)
            return
        try:
            await self._change(model, lambda state, now: (
                record(state, admission, outcome, now, self._settings), None
            ))  # fmt: skip
        except StateUnavailable as error:
            self._went_away(error)

    async def state(self, model: ModelRef) -> BreakerState:
        try:
            return await self._change(model, lambda state, _: (state, state))
        except StateUnavailable as error:
            self._went_away(error)
            return await self._own.state(model)

    def _admitted(self, state: BreakerState, now: float) -> tuple[BreakerState, Admission]:
        changed, admission = admit(state, now, self._settings)
        return changed, replace(admission, shared=True)

    async def _change(self, model: ModelRef, change: Change[Told]) -> Told:
        """Apply a pure change atomically: read, decide, and write if nobody wrote meanwhile."""
        if self._away_until is not None and self._monotonic() < self._away_until:
            raise StateUnavailable("the shared state did not answer a moment ago")
        key = f"breaker:{model}"
        for _ in range(_MOST_TRIES):
            cell = await self._cells.read(key)
            state = _read(cell.value, cell.now)
            changed, told = change(state, cell.now)
            text = _written(changed)
            if text == cell.value:
                return told
            if await self._cells.swap(key, cell.value, text, life_s=LIFE_S):
                return told
        raise StateUnavailable(f"the breaker of {model} is changed by others without end")

    def _went_away(self, error: StateUnavailable) -> None:
        now = self._monotonic()
        if self._away_until is None:
            log.warning("breakers_not_shared", error=str(error), remedy="check MERGEWARD_REDIS_URL")
        if self._away_until is None or now >= self._away_until:
            self._away_until = now + PATIENCE_S

    def _is_back(self) -> None:
        if self._away_until is not None:
            log.info("breakers_shared_again")
            self._away_until = None


def _read(value: str | None, now: float) -> BreakerState:
    """The state written there. What is missing or cannot be read is a new breaker, whose periods
    begin at the time, so that results of a breaker forgotten meanwhile never fit."""
    try:
        data = json.loads(value or "")
        return BreakerState(
            BreakerMode(data["mode"]),
            int(data["failures"]),
            float(data["since"]),
            int(data["period"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError):
        return BreakerState(period=int(now * 1000))


def _written(state: BreakerState) -> str:
    return json.dumps(asdict(state), sort_keys=True)
