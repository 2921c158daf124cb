"""The worker: claims jobs, runs their stories side by side, keeps leases, settles outcomes."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol, assert_never

from sqlalchemy.exc import SQLAlchemyError
from structlog.contextvars import bound_contextvars

from app.clock import Clock
from app.domain.jobs import JobKind
from app.errors import JobCancelled, JobError, LeaseLost
from app.jobs.context import JobContext
from app.jobs.dispatch import Dispatcher, Wakeups
from app.jobs.leases import ClaimRules, Leases
from app.jobs.requests import Claim
from app.jobs.retry import Stop, Wait, after_failure
from app.jobs.sweeper import MAX_LOST_LEASES, sweep
from app.logs import get_logger
from app.store.session import Store

Story = Callable[[JobContext], Awaitable[None]]
"""Carries out one kind of job. Returns when it is done; raises when it could not."""
AfterFailure = Callable[[JobContext, BaseException], Awaitable[None]]
"""Told once, with the error, when a job of its kind has failed for good."""

QUICK_KINDS = frozenset({JobKind.HANDLE_COMMENT, JobKind.HANDLE_CHECK_ACTION})
"""Jobs that ask no model and that somebody waits for."""

log = get_logger(__name__)


class InProcess(Dispatcher, Wakeups, Protocol):
    """A dispatcher that the same process also waits on."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker behaves; all times in seconds.

    `quick` are places besides `concurrency` for short jobs that people wait for: reviews can't take
    them. `heartbeat` is how often running jobs are asked about (a cancelled job stops within it),
    `grace` how long running jobs may go on when the worker stops.
    """

    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    concurrency: int = 4
    quick: int = 2
    lease: float = 60.0
    heartbeat: float = 1.0
    poll: float = 1.0
    sweep_every: float = 30.0
    grace: float = 10.0
    per_installation: int = 64


class _Ending(Enum):
    CANCELLED = auto()
    LEASE_LOST = auto()
    SHUTDOWN = auto()


@dataclass(slots=True)
class _Running:
    claim: Claim
    context: JobContext
    renewed_at: datetime
    task: asyncio.Task[None] | None = None
    ending: _Ending | None = None
    reason: str = ""

    def interrupt(self, ending: _Ending) -> None:
        if self.ending is None and self.task is not None:
            self.ending = ending
            self.task.cancel()


class Worker:
    """Runs jobs until it is told to stop. One worker per event loop."""

    def __init__(
        self,
        store: Store,
        stories: Mapping[JobKind, Story],
        *,
        clock: Clock,
        wakeups: InProcess,
        options: WorkerOptions | None = None,
        after_failure: Mapping[JobKind, AfterFailure] | None = None,
    ) -> None:
        self._store = store
        self._stories = dict(stories)
        self._after_failure = dict(after_failure or {})
        self._clock = clock
        self._wakeups = wakeups
        self._options = options or WorkerOptions()
        self._leases = Leases(store)
        self._running: dict[int, _Running] = {}
        self._last_repository = -1
        self._swept_at: datetime | None = None
        self._stopping = False

    async def run(self) -> None:
        """Work until `stop()`; then give running jobs their grace and hand back what is left."""
        heartbeat = asyncio.create_task(self._beat(), name="mergeward-heartbeat")
        try:
            while not self._stopping:
                await self._guarded(self._fill)
                await self._wakeups.wait(await self._pause())
        finally:
            try:
                await self._wind_down()
            finally:
                heartbeat.cancel()
                with suppress(asyncio.CancelledError):
                    await heartbeat

    def stop(self) -> None:
        """Claim nothing more and make `run()` return. May be called from a signal handler."""
        self._stopping = True
        self._wakeups.notify()

    async def run_until_idle(self) -> None:
        """Work until nothing is due and nothing runs (tests, and tools that do one thing)."""
        while True:
            await self._fill()
            tasks = [job.task for job in self._running.values() if job.task is not None]
            if not tasks:
                return
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    async def _fill(self) -> None:
        places = self._options.concurrency
        await self._fill_with(tuple(self._stories), places)
        if len(self._running) >= places:
            quick = tuple(kind for kind in self._stories if kind in QUICK_KINDS)
            await self._fill_with(quick, places + self._options.quick)

    async def _fill_with(self, kinds: tuple[JobKind, ...], places: int) -> None:
        """Claim jobs of these kinds until so many places are taken."""
        while kinds and len(self._running) < places and not self._stopping:
            claim = await self._leases.claim(self._rules(kinds), now=self._clock.now())
            if claim is None:
                return
            self._last_repository = claim.repository_id or 0
            await self._start(claim)

    def _rules(self, kinds: tuple[JobKind, ...]) -> ClaimRules:
        return ClaimRules(
            worker=self._options.name,
            lease=timedelta(seconds=self._options.lease),
            kinds=kinds,
            after_repository=self._last_repository,
            per_installation=self._options.per_installation,
        )

    async def _start(self, claim: Claim) -> None:
        context = JobContext(
            claim,
            store=self._store,
            clock=self._clock,
            dispatcher=self._wakeups,
            steps=await self._leases.steps(claim.job_id),
        )
        running = _Running(claim=claim, context=context, renewed_at=self._clock.now())
        self._running[claim.job_id] = running
        running.task = asyncio.create_task(self._carry_out(running), name=f"job-{claim.job_id}")
        running.task.add_done_callback(lambda _: self._ended(claim.job_id))

    def _ended(self, job_id: int) -> None:
        self._running.pop(job_id, None)
        self._wakeups.notify()

    async def _carry_out(self, running: _Running) -> None:
        claim = running.claim
        with bound_contextvars(job_id=claim.job_id, job_kind=claim.kind.value):
            try:
                if claim.lost_leases >= MAX_LOST_LEASES:
                    times = claim.lost_leases
                    raise JobError(f"The worker died {times} times while it ran this job.")  # noqa: TRY301 - settled below like any failure
                await self._stories[claim.kind](running.context)
            except asyncio.CancelledError:
                if running.ending is None or running.task is None:
                    raise
                running.task.uncancel()
                await self._guarded(lambda: self._settle_interrupted(running))
            except Exception as error:
                failure = error
                await self._guarded(lambda: self._settle_failure(running, failure))
            else:
                await self._guarded(lambda: self._leases.complete(claim, now=self._clock.now()))

    async def _settle_interrupted(self, running: _Running) -> None:
        now = self._clock.now()
        if running.ending is _Ending.CANCELLED:
            log.info("job cancelled", reason=running.reason)
            await self._leases.cancel(running.claim, running.reason, now=now)
        elif running.ending is _Ending.SHUTDOWN:
            log.info("job handed back, the worker stops")
            await self._leases.give_back(running.claim, now=now)
        else:
            log.warning("job lost to another worker")

    async def _settle_failure(self, running: _Running, error: Exception) -> None:
        claim, now = running.claim, self._clock.now()
        if isinstance(error, LeaseLost):
            log.warning("job lost to another worker")
            return
        if isinstance(error, JobCancelled):
            log.info("job cancelled", reason=str(error))
            await self._leases.cancel(claim, str(error), now=now)
            return
        text = f"{type(error).__name__}: {error}"
        match after_failure(error, claim.attempt):
            case Wait(seconds=seconds):
                log.warning("job failed, will be tried again", wait=seconds, exc_info=error)
                await self._leases.retry(claim, text, at=now + timedelta(seconds=seconds))
            case Stop(reason=reason):
                log.error("job failed for good", reason=reason, exc_info=error)
                await self._tell_failure(running, error)
                await self._leases.fail(claim, text, now=now)
            case never:
                assert_never(never)

    async def _tell_failure(self, running: _Running, error: Exception) -> None:
        tell = self._after_failure.get(running.claim.kind)
        if tell is None:
            return
        try:
            await tell(running.context, error)
        except Exception:
            log.exception("the failure could not be told")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._options.heartbeat)
            await self._guarded(self._stop_cancelled)
            await self._guarded(self._renew)
            await self._guarded(self._sweep)

    async def _stop_cancelled(self) -> None:
        if not self._running:
            return
        for job_id, reason in (await self._leases.cancelled(tuple(self._running))).items():
            running = self._running.get(job_id)
            if running is not None:
                running.reason = reason
                running.context.cancel(reason, lambda job=running: job.interrupt(_Ending.CANCELLED))  # type: ignore[misc]  # mypy cannot infer a lambda with a default

    async def _renew(self) -> None:
        now = self._clock.now()
        due = now - timedelta(seconds=self._options.lease / 3)
        jobs = [job for job in self._running.values() if job.renewed_at <= due]
        if not jobs:
            return
        until = now + timedelta(seconds=self._options.lease)
        lost = await self._leases.renew([job.claim for job in jobs], until=until)
        for job in jobs:
            job.renewed_at = now
            if job.claim.job_id in lost:
                job.interrupt(_Ending.LEASE_LOST)

    async def _sweep(self) -> None:
        now = self._clock.now()
        if self._swept_at and now - self._swept_at < timedelta(seconds=self._options.sweep_every):
            return
        self._swept_at = now
        swept = await sweep(self._store, now=now)
        if swept.requeued or swept.failed or swept.cancelled:
            log.warning(
                "jobs of dead workers swept",
                requeued=swept.requeued,
                failed=swept.failed,
                cancelled=swept.cancelled,
            )
            self._wakeups.notify()

    async def _pause(self) -> float:
        if len(self._running) >= self._options.concurrency:
            return self._options.poll
        now = self._clock.now()
        try:
            due = await self._leases.next_due(now=now)
        except (SQLAlchemyError, OSError):
            return self._options.poll
        wait = self._options.poll if due is None else (due - now).total_seconds()
        return min(max(wait, 0.01), self._options.poll)

    async def _wind_down(self) -> None:
        jobs = list(self._running.values())
        tasks = [job.task for job in jobs if job.task is not None]
        if not tasks:
            return
        for job in jobs:
            job.context.stopping.set()
        await asyncio.wait(tasks, timeout=self._options.grace)
        for job in jobs:
            job.interrupt(_Ending.SHUTDOWN)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _guarded(self, action: Callable[[], Awaitable[None]]) -> None:
        """A worker survives a database that is away: leases and the sweeper make up for it."""
        try:
            await action()
        except LeaseLost:
            log.warning("job lost to another worker")
        except (SQLAlchemyError, OSError):
            log.exception("the database could not be used")
