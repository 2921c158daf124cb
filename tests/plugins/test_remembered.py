"""A value that outlives its source (app/plugins/remembered.py)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from app.plugins.remembered import FRESH_S, Remembered


@dataclass
class Source:
    answers: list[object]
    asked: int = 0
    now: float = 100.0
    wait: asyncio.Event | None = None
    _: list[object] = field(default_factory=list)

    async def load(self) -> object:
        self.asked += 1
        if self.wait is not None:
            await self.wait.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def remembered(self) -> Remembered[object]:
        return Remembered("it", self.load, monotonic=lambda: self.now)


async def test_the_last_good_value_is_kept() -> None:
    """A failure changes nothing, is not repeated at once, and the next good value counts."""
    source = Source(["one", OSError("down"), "two"])
    value = source.remembered()
    seen = []
    for _ in range(4):
        seen += [await value.get(), await value.get()]
        source.now += FRESH_S
        if len(seen) == 6:
            break
    assert seen == ["one", "one", "one", "one", "two", "two"]
    assert source.asked == 3


async def test_there_may_never_have_been_one() -> None:
    """Then it is nothing, and not asked for again at once."""
    source = Source([OSError("down")])
    value = source.remembered()
    assert [await value.get(), await value.get()] == [None, None]
    assert source.asked == 1


async def test_many_at_once_ask_once_and_do_not_wait() -> None:
    """While the value is asked for anew, who has the old one goes on with it."""
    source = Source(["one", "two"])
    value = source.remembered()
    assert await asyncio.gather(*(value.get() for _ in range(5))) == ["one"] * 5
    source.now += FRESH_S
    source.wait = asyncio.Event()
    slow = asyncio.ensure_future(value.get())
    await asyncio.sleep(0)
    assert await asyncio.wait_for(value.get(), 1) == "one"
    source.wait.set()
    assert await slow == "two"
    assert source.asked == 2


async def test_a_cancelled_run_is_no_failure_of_the_source() -> None:
    """Who comes next asks again."""
    source = Source(["one"])
    source.wait = asyncio.Event()
    value = source.remembered()
    first = asyncio.ensure_future(value.get())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.wait.set()
    assert await value.get() == "one"
