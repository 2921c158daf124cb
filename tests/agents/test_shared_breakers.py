"""Breakers over a store that many processes share, and what happens without it."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

import pytest
import structlog
from redis import Redis

from app.agents.breaker import BreakerMode, BreakerSettings, CallOutcome
from app.agents.configured import open_breakers
from app.agents.port import ModelRef
from app.agents.shared_breakers import LIFE_S, PATIENCE_S, SharedBreakers
from app.errors import ConfigurationError
from app.settings import load_settings
from app.state.port import Cell, StateUnavailable
from tests.redis_server import forget, redis_url

MODEL = ModelRef("p", "m")
T = TypeVar("T")
BAD, GOOD = CallOutcome.BAD, CallOutcome.GOOD


def _ready() -> None:
    """By then everything is imported, and the other processes have had to be started."""
    time.sleep(0.5)


def _one_process(url: str, name: str, starts_at: float) -> list[bool]:
    """Five calls at once of a worker process: which of them may go."""

    async def ask() -> list[bool]:
        async with open_breakers(load_settings(redis_url=url, breaker_seconds=0.2)) as breakers:
            await asyncio.sleep(max(0.0, starts_at - time.time()))
            model = ModelRef("p", name)
            admissions = await asyncio.gather(*(breakers.admit(model) for _ in range(5)))
        assert all(admission.shared for admission in admissions)
        return [admission.granted for admission in admissions]

    return asyncio.run(ask())


async def test_four_processes_send_one_probe() -> None:
    """Twenty calls of four processes at the moment the pause is over: the service sees one."""
    name, url = f"m-{uuid4().hex}", redis_url()
    settings = load_settings(redis_url=url, breaker_seconds=0.2)
    async with open_breakers(settings) as breakers:
        model = ModelRef("p", name)
        for _ in range(5):
            await breakers.record(model, await breakers.admit(model), BAD)
        assert (await breakers.state(model)).mode is BreakerMode.OPEN
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(4, mp_context=context) as pool:
            # All have imported what they need before the moment comes.
            await asyncio.gather(*(_in(pool, _ready) for _ in range(4)))
            moment = time.time() + 1
            runs = (_in(pool, _one_process, url, name, moment) for _ in range(4))
            granted = [one for found in await asyncio.gather(*runs) for one in found]
    forget(name)
    assert (len(granted), sum(granted)) == (20, 1)


async def _in(pool: ProcessPoolExecutor, call: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, call, *arguments)


async def test_what_is_kept_expires() -> None:
    """Nothing stays in Redis for ever."""
    name = f"m-{uuid4().hex}"
    async with open_breakers(load_settings(redis_url=redis_url())) as breakers:
        await breakers.admit(ModelRef("p", name))
    with Redis.from_url(redis_url()) as client:
        assert 0 < client.ttl(f"mergeward:breaker:p/{name}") <= LIFE_S
    forget(name)


@dataclass
class Shelf:
    """Cells in memory that can be away."""

    now: float = 0.0
    away: bool = False
    asked: int = 0
    values: dict[str, str] = field(default_factory=dict)

    async def read(self, key: str) -> Cell:
        self.asked += 1
        if self.away:
            raise StateUnavailable("Redis: ConnectionError")
        return Cell(self.values.get(key), self.now)

    async def swap(self, key: str, old: str | None, new: str, *, life_s: float) -> bool:
        if self.values.get(key) != old:
            return False
        self.values[key] = new
        return True

    def breakers(self) -> SharedBreakers:
        return SharedBreakers(self, lambda: self.now, BreakerSettings(3, 30.0))


async def fail(breakers: SharedBreakers, times: int) -> None:
    for _ in range(times):
        await breakers.record(MODEL, await breakers.admit(MODEL), BAD)


async def test_without_the_store_a_process_has_breakers_of_its_own() -> None:
    """An outage of Redis stops no review and switches no breaker off; it is said once, and the
    store is not asked again at once; when it is back, all share again."""
    shelf = Shelf(away=True)
    breakers = shelf.breakers()
    with structlog.testing.capture_logs() as logged:
        await fail(breakers, 3)
        assert not (await breakers.admit(MODEL)).granted
        assert shelf.asked == 1
        shelf.now = PATIENCE_S
        assert not (await breakers.admit(MODEL)).granted
        assert shelf.asked == 2
        assert [line["event"] for line in logged] == ["breakers_not_shared"]
        shelf.now, shelf.away = 2 * PATIENCE_S, False
        assert (await breakers.admit(MODEL)).shared
    assert [line["event"] for line in logged] == ["breakers_not_shared", "breakers_shared_again"]


async def test_a_probe_lost_with_the_store_does_not_wedge() -> None:
    """Its result cannot be told; later another probe goes."""
    shelf = Shelf()
    breakers = shelf.breakers()
    await fail(breakers, 3)
    shelf.now = 31
    probe = await breakers.admit(MODEL)
    shelf.away = True
    await breakers.record(MODEL, probe, GOOD)
    shelf.now, shelf.away = 331, False
    assert (await breakers.admit(MODEL)).granted


async def test_periods_of_a_forgotten_breaker_do_not_come_back() -> None:
    """A call from before the store lost everything is no result of the breaker made since."""
    shelf = Shelf(now=5.0)
    breakers = shelf.breakers()
    old = await breakers.admit(MODEL)
    shelf.values.clear()
    shelf.now = 6.0
    await fail(breakers, 2)
    await breakers.record(MODEL, old, GOOD)
    await fail(breakers, 1)
    assert (await breakers.state(MODEL)).mode is BreakerMode.OPEN


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "[]",
        "{}",
        '{"mode": "?", "failures": 0, "since": 0, "period": 0}',
        "1e999",
    ],
)
async def test_a_value_of_somebody_else_is_a_new_breaker(value: str) -> None:
    """What cannot be read neither wedges nor raises."""
    shelf = Shelf(values={f"breaker:{MODEL}": value})
    breakers = shelf.breakers()
    assert (await breakers.admit(MODEL)).granted
    await fail(breakers, 3)
    assert not (await breakers.admit(MODEL)).granted


async def test_a_redis_that_is_not_there() -> None:
    """Reviews go on, and no password is logged."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"redis://user:hunter2@127.0.0.1:{taken.getsockname()[1]}/0"
        with structlog.testing.capture_logs() as logged:
            async with open_breakers(load_settings(redis_url=url)) as breakers:
                assert (await breakers.admit(MODEL)).granted
    assert [line["event"] for line in logged] == ["breakers_not_shared"]
    assert "hunter2" not in str(logged)


async def test_a_wrong_address_is_named() -> None:
    """The setting and its form, without what is in it."""
    with pytest.raises(ConfigurationError, match="MERGEWARD_REDIS_URL") as caught:
        async with open_breakers(load_settings(redis_url="http://:hunter2@cache")):
            pass
    assert "hunter2" not in str(caught.value)
