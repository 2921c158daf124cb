"""Workers that die: at a chosen transaction, before or after its commit, or in the middle of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from sqlmodel.ext.asyncio.session import AsyncSession

from app.jobs.context import JobContext
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.leases import ClaimRules, Leases
from app.jobs.worker import Story
from app.store.session import Store
from tests.handoff.stage import Stage


class Died(BaseException):
    """The process is gone; nothing handles this."""


class MortalStore(Store):
    """A store whose `at`-th write (from 1) kills the process; `late`: after the commit."""

    def __init__(self, store: Store, at: int, *, late: bool) -> None:
        super().__init__(store.engine)
        self._inner = store
        self.writes = 0
        self._at, self._late = at, late

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        self.writes += 1
        fatal = self.writes == self._at
        async with self._inner.write() as session:
            yield session
            if fatal and not self._late:
                raise Died
        if fatal:
            raise Died


async def carry_out(stage: Stage, story: Story, store: Store) -> bool:
    """Claim the next job that is due and carry it out like a worker would. False: none was due."""
    leases = Leases(stage.store)
    rules = ClaimRules(worker="w", lease=timedelta(minutes=1))
    claim = await leases.claim(rules, now=stage.clock.now())
    if claim is None:
        return False
    context = JobContext(
        claim,
        store=store,
        clock=stage.clock,
        dispatcher=InProcessDispatcher(),
        steps=await leases.steps(claim.job_id),
    )
    try:
        await story(context)
    except BaseException:
        # What the sweeper does when the lease of a dead worker runs out.
        await leases.give_back(claim, now=stage.clock.now())
        raise
    await leases.complete(claim, now=stage.clock.now())
    return True
