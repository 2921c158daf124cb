"""The dispatch port: telling workers that there is something to look for.

A dispatcher carries no jobs. Losing a notice delays a job until the next poll and loses nothing.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class Dispatcher(Protocol):
    """Says "look" to the workers. Called after the commit, never before; never raises."""

    def notify(self) -> None: ...


class Wakeups(Protocol):
    """Where a worker waits for that."""

    async def wait(self, seconds: float) -> None:
        """Return at the next notice, or after so many seconds."""


class InProcessDispatcher:
    """Web and worker in one process and one event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return
        finally:
            self._event.clear()
