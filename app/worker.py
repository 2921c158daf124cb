"""The worker process, or the worker inside the web process: claims jobs and runs their stories.

This module stays light. The stories and their libraries take seconds of CPU to import, so they are
loaded off the event loop once the web server listens: the first webhook does not wait for them.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from app.jobs.worker import InProcess, Worker, WorkerOptions
from app.logs import get_logger
from app.main import Services

if TYPE_CHECKING:
    from app.wiring import Parts

log = get_logger(__name__)


def embedded_worker(
    wakeups: InProcess, parts: Parts | None = None
) -> Callable[[Services], AbstractAsyncContextManager[None]]:
    """The lifespan hook that runs a worker beside the web server, in its event loop."""

    @asynccontextmanager
    async def running(services: Services) -> AsyncIterator[None]:
        working = asyncio.create_task(work(services, wakeups, parts), name="mergeward-worker")
        working.add_done_callback(_tell_death)
        try:
            yield
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working

    return running


def _tell_death(working: asyncio.Task[None]) -> None:
    """A worker that ends by itself leaves jobs that nobody does: that is never silent."""
    if not working.cancelled() and (error := working.exception()) is not None:
        log.error("the worker has ended; jobs are kept and nobody works on them", exc_info=error)


async def work(services: Services, wakeups: InProcess, parts: Parts | None = None) -> None:
    """Run jobs until cancelled; running ones get their grace, what is left is handed back."""
    wiring = await asyncio.to_thread(importlib.import_module, "app.wiring")
    async with wiring.open_table(services, parts) as table:
        worker = Worker(
            services.store,
            table.stories,
            clock=services.clock,
            wakeups=wakeups,
            options=WorkerOptions(concurrency=services.settings.workers),
            after_failure=table.after_failure,
        )
        running = asyncio.create_task(worker.run(), name="mergeward-jobs")
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await running
            raise
