"""Small writes that share a transaction (app/store/together.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.together import Together


class Books:
    """Keeps what it was given once it is let through; `broken` are writes that fail, from 1."""

    def __init__(self, *broken: int) -> None:
        self.writes: list[list[int]] = []
        self.kept: list[int] = []
        self.open = asyncio.Event()
        self._broken = broken

    async def store(self, items: Sequence[int]) -> None:
        self.writes.append(list(items))
        number = len(self.writes)
        await self.open.wait()
        if number in self._broken:
            raise OSError(f"write {number} failed")
        self.kept += items


async def test_what_comes_during_a_write_goes_together() -> None:
    """The first goes at once; the others share the next transaction, in their order."""
    books = Books()
    together = Together(books.store)
    adding = [asyncio.create_task(together.add(0))]
    await asyncio.sleep(0.01)
    adding += [asyncio.create_task(together.add(number)) for number in (1, 2, 3)]
    await asyncio.sleep(0.01)
    assert books.writes == [[0]]
    books.open.set()
    await asyncio.gather(*adding)
    assert books.writes == [[0], [1, 2, 3]]


async def test_nobody_goes_on_before_it_is_stored() -> None:
    """That is what makes it safe to spend money after the call."""
    books = Books()
    adding = asyncio.create_task(Together(books.store).add(1))
    await asyncio.sleep(0.01)
    assert not adding.done()
    books.open.set()
    await adding
    assert books.kept == [1]


async def test_an_error_reaches_all_whose_write_it_was() -> None:
    """And only them: what came later is stored."""
    books = Books(2)
    together = Together(books.store)
    first = asyncio.create_task(together.add(0))
    await asyncio.sleep(0.01)
    shared = [asyncio.create_task(together.add(number)) for number in (1, 2)]
    books.open.set()
    await first
    results = await asyncio.gather(*shared, return_exceptions=True)
    assert [str(result) for result in results] == ["write 2 failed"] * 2
    await together.add(3)
    assert books.kept == [0, 3]


@pytest.mark.parametrize("who", [0, 1])
async def test_a_cancelled_caller_takes_nothing_back(who: int) -> None:
    """Neither the others' part nor its own."""
    books = Books()
    together = Together(books.store)
    adding = [asyncio.create_task(together.add(number)) for number in (0, 1)]
    await asyncio.sleep(0.01)
    adding[who].cancel()
    books.open.set()
    await asyncio.gather(*adding, return_exceptions=True)
    await together.add(2)
    assert books.kept == [0, 1, 2]


@given(st.lists(st.integers(min_value=0, max_value=3), max_size=30))
async def test_everything_is_stored_once(pauses: list[int]) -> None:
    """However the calls come."""
    books = Books()
    books.open.set()
    together = Together(books.store)

    async def later(number: int, pause: int) -> None:
        for _ in range(pause):
            await asyncio.sleep(0)
        await together.add(number)

    await asyncio.gather(*(later(number, pause) for number, pause in enumerate(pauses)))
    assert sorted(books.kept) == list(range(len(pauses)))
