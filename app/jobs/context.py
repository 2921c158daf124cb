"""What a story sees of the job it carries out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlmodel.ext.asyncio.session import AsyncSession

from app.clock import Clock
from app.errors import JobCancelled
from app.jobs.dispatch import Dispatcher
from app.jobs.leases import hold, record_steps
from app.jobs.requests import Claim
from app.store.session import Store
from app.store.together import Together


class JobContext:
    """One try at one job.

    Steps are how a restart continues: the result of a recorded step is JSON, belongs to the job and
    not to the try, and is never recorded twice.
    """

    def __init__(
        self,
        claim: Claim,
        *,
        store: Store,
        clock: Clock,
        dispatcher: Dispatcher,
        steps: Mapping[str, Any],
    ) -> None:
        self.claim = claim
        self.store = store
        self.clock = clock
        self.stopping = asyncio.Event()
        """Set when the worker is about to stop: end the step at hand and begin no long one."""
        self._dispatcher = dispatcher
        self._steps = dict(steps)
        self._recording = Together(self._record)
        self._protected = 0
        self._cancel_reason: str | None = None
        self._on_unprotected: Callable[[], None] | None = None

    @property
    def job_id(self) -> int:
        return self.claim.job_id

    @property
    def payload(self) -> Mapping[str, Any]:
        return self.claim.payload

    @property
    def attempt(self) -> int:
        """The number of this try, from 1."""
        return self.claim.attempt

    def has(self, name: str) -> bool:
        """Whether an earlier try (or this one) recorded the step."""
        return name in self._steps

    def recorded(self, name: str) -> Any:
        """The result of a recorded step. Raises KeyError if there is none."""
        return self._steps[name]

    async def step(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """The result of the step; `work` is done only if no try recorded it yet.

        Raises LeaseLost or JobCancelled instead of recording when the job is no longer ours.
        """
        if name not in self._steps:
            await self.record(name, await work())
        return self._steps[name]

    async def record(self, name: str, result: Any = None) -> None:
        """Record a step, at once and besides any transaction. `result` is a JSON value.

        Raises LeaseLost or JobCancelled instead when the job is no longer ours.
        """
        await self._recording.add((name, result))

    async def _record(self, steps: Sequence[tuple[str, Any]]) -> None:
        async with self.store.write() as session:
            await record_steps(session, self.claim, steps, now=self.clock.now())
        self._steps.update(steps)

    async def record_in(self, session: AsyncSession, name: str, result: Any = None) -> None:
        """Record a step in the caller's transaction, together with what it stored there.

        If that transaction is rolled back, this context still believes in the step: let the job
        fail then.
        """
        await record_steps(session, self.claim, [(name, result)], now=self.clock.now())
        self._steps[name] = result

    async def hold(self, session: AsyncSession) -> None:
        """Fence the caller's transaction: raises LeaseLost or JobCancelled if we lost the job."""
        await hold(session, self.claim)

    async def check_live(self) -> None:
        """Raises LeaseLost or JobCancelled if the job is no longer ours to do."""
        if self._cancel_reason is not None:
            raise JobCancelled(self._cancel_reason)
        async with self.store.write() as session:
            await hold(session, self.claim)

    @contextmanager
    def protected(self) -> Iterator[None]:
        """Keep a cancellation out of a short sequence of effects that should not be cut in two.

        It is delivered when the block ends. A lost lease does not wait.
        """
        self._protected += 1
        try:
            yield
        finally:
            self._protected -= 1
            if self._protected == 0 and self._on_unprotected is not None:
                deliver, self._on_unprotected = self._on_unprotected, None
                deliver()

    def notify(self) -> None:
        """Tell the workers to look, after the commit of a transaction that queued jobs."""
        self._dispatcher.notify()

    def cancel(self, reason: str, deliver: Callable[[], None]) -> None:
        """The worker's side: stop the story now, or as soon as it leaves its protected block."""
        if self._cancel_reason is not None:
            return
        self._cancel_reason = reason
        if self._protected:
            self._on_unprotected = deliver
        else:
            deliver()
