"""Small writes of many tasks in few transactions, each as durable as if it were alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """Whoever adds something waits until it is stored; what is added while one transaction is
    under way goes with the next, all of it in one.

    `store` gets what there is, in the order it was added, and stores all of it or raises: then
    everyone whose part it was gets the error. A caller that is cancelled takes nothing back: what
    it added is stored with the rest.
    """

    def __init__(self, store: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._store = store
        self._waiting: list[T] = []
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def add(self, item: T) -> None:
        """Store `item`. Raises what `store` raises."""
        self._waiting.append(item)
        if self._next is None:
            self._next = asyncio.create_task(self._write())
        await asyncio.shield(self._next)

    async def _write(self) -> None:
        async with self._turn:
            items, self._waiting, self._next = self._waiting, [], None
            await self._store(items)
