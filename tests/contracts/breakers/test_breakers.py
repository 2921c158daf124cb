"""What every kind of breakers keeps, in one process and shared by many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from app.agents.breaker import Admission, BreakerMode, Breakers, CallOutcome
from app.agents.configured import open_breakers
from app.agents.port import ModelRef
from app.settings import load_settings
from tests.redis_server import forget, redis_url

GOOD, BAD, NEITHER = CallOutcome.GOOD, CallOutcome.BAD, CallOutcome.NEITHER


@dataclass
class Stage:
    """Breakers as production opens them, once for each worker, under one clock set by hand."""

    workers: list[Breakers]
    now: list[float]
    model: ModelRef = field(default_factory=lambda: ModelRef("p", f"m-{uuid4().hex}"))

    def at(self, now: float) -> None:
        self.now[0] = now

    async def ask(self, worker: int = 0) -> Admission:
        return await self.workers[worker % len(self.workers)].admit(self.model)

    async def tell(self, admission: Admission, outcome: CallOutcome, worker: int = 0) -> None:
        await self.workers[worker % len(self.workers)].record(self.model, admission, outcome)

    async def call(self, outcome: CallOutcome, worker: int = 0) -> bool:
        admission = await self.ask(worker)
        if admission.granted:
            await self.tell(admission, outcome, worker)
        return admission.granted

    async def opened(self) -> Stage:
        for number in range(3):
            assert await self.call(BAD, number)
        assert not (await self.ask()).granted
        return self

    async def mode(self) -> BreakerMode:
        modes = {(await worker.state(self.model)).mode for worker in self.workers}
        assert len(modes) == 1, "the workers disagree"
        return modes.pop()


@pytest.fixture(params=["local", "shared"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    shared = request.param == "shared"
    now = [0.0]
    settings = load_settings(
        breaker_failures=3, breaker_seconds=30, redis_url=redis_url() if shared else None
    )
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731 - one clock for both
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(
                open_breakers(settings, monotonic=clock, shared_clock=clock)
            )
            for _ in range(4 if shared else 1)
        ]
        stage = Stage(opened, now)
        yield stage
    if shared:
        forget(stage.model.name)


async def test_failures_of_all_workers_open_it_for_all(stage: Stage) -> None:
    """Three in a row, wherever they happened; then nobody calls until the pause is over."""
    await stage.opened()
    stage.at(29.9)
    assert not any([await stage.call(GOOD, number) for number in range(8)])
    assert await stage.mode() is BreakerMode.OPEN


async def test_exactly_one_probe_of_all_who_wait(stage: Stage) -> None:
    """Twenty at the same moment: one goes, its success closes the breaker for all."""
    await stage.opened()
    stage.at(31)
    admissions = await asyncio.gather(*(stage.ask(number) for number in range(20)))
    granted = [(at, found) for at, found in enumerate(admissions) if found.granted]
    assert len(granted) == 1
    worker, probe = granted[0]
    await stage.tell(probe, GOOD, worker)
    assert await stage.mode() is BreakerMode.CLOSED


async def test_a_lost_probe_does_not_wedge(stage: Stage) -> None:
    """A worker that died with the probe: another goes later, and the dead one's word is void."""
    await stage.opened()
    stage.at(31)
    lost = await stage.ask()
    stage.at(331)
    second = await stage.ask(1)
    assert second.granted
    await stage.tell(lost, GOOD)
    assert await stage.mode() is BreakerMode.PROBING
    await stage.tell(second, GOOD, 1)
    assert await stage.mode() is BreakerMode.CLOSED


async def test_a_late_result_is_ignored(stage: Stage) -> None:
    """A call from before the opening says nothing about now."""
    slow = await stage.ask(3)
    await stage.opened()
    stage.at(32)
    assert await stage.call(BAD, 1)
    stage.at(40)
    await stage.tell(slow, GOOD, 3)
    assert not await stage.call(GOOD, 2)
    assert await stage.mode() is BreakerMode.OPEN


async def test_own_mistakes_say_nothing(stage: Stage) -> None:
    """They do not open it, and do not clear the count."""
    for outcome in (NEITHER, NEITHER, NEITHER, BAD, BAD, NEITHER):
        assert await stage.call(outcome)
    assert await stage.mode() is BreakerMode.CLOSED
    await stage.call(BAD, 2)
    assert await stage.mode() is BreakerMode.OPEN


async def test_failures_at_the_same_moment_are_all_counted(stage: Stage) -> None:
    """No failure is lost to another that is written at once."""
    admissions = [await stage.ask(number) for number in range(3)]
    await asyncio.gather(*(stage.tell(one, BAD, at) for at, one in enumerate(admissions)))
    assert await stage.mode() is BreakerMode.OPEN


async def test_models_are_apart(stage: Stage) -> None:
    """One model's trouble is not another's."""
    await stage.opened()
    other = ModelRef("p", f"other-{stage.model.name}")
    assert (await stage.workers[0].admit(other)).granted
