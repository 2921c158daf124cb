"""What a worker does to jobs: claim, renew, record steps, finish, give back.

Every write of a worker names its claim; a write whose claim is no longer the job's raises
LeaseLost and changes nothing. So a worker that slept through its lease cannot undo the work of
the one that took over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, bindparam, exists, func, insert, or_, update
from sqlalchemy import select as core_select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import JobKind, JobState
from app.errors import JobCancelled, LeaseLost
from app.jobs.requests import PRIORITY_GLASS, Claim
from app.store.session import Store
from app.store.tables import Job, JobStep

_ERROR_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What one worker may claim. `after_repository` makes claims go round the repositories.

    `per_installation` bounds the jobs of one installation that run at a time, over all workers.
    """

    worker: str
    lease: timedelta
    kinds: tuple[JobKind, ...] = tuple(JobKind)
    after_repository: int = -1
    per_installation: int = 64


class Leases:
    """The worker's side of the ledger."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def claim(self, rules: ClaimRules, *, now: datetime) -> Claim | None:
        """Take the next job that is due, or None. Two workers never get the same one.

        Higher priority first, then the next repository in turn, then the oldest.
        """
        while True:
            async with self.store.read() as session:
                asked = {
                    "now": now,
                    "kinds": rules.kinds,
                    "per_installation": rules.per_installation,
                    "after_repository": rules.after_repository,
                }
                candidate = (await session.exec(_next_job(), params=asked)).first()
            if candidate is None:
                return None
            claim = await self._take(candidate.id, rules, now)
            if claim is not None:
                return claim

    async def next_due(self, *, now: datetime) -> datetime | None:
        """When the next job that waits for its time becomes due; None: none waits."""
        statement = select(func.min(Job.run_at)).where(
            col(Job.state) == JobState.QUEUED, col(Job.run_at) > now
        )
        async with self.store.read() as session:
            return (await session.exec(statement)).one()

    async def renew(self, claims: Sequence[Claim], *, until: datetime) -> frozenset[int]:
        """Extend the leases that are still held. Returns the ids of the jobs that were lost."""
        lost = set()
        async with self.store.write() as session:
            for claim in claims:
                renewed = await session.exec(
                    update(Job).where(*_held(claim)).values(lease_expires_at=until)
                )
                if renewed.rowcount == 0:
                    lost.add(claim.job_id)
        return frozenset(lost)

    async def cancelled(self, job_ids: Sequence[int]) -> dict[int, str]:
        """Which of these running jobs were told to stop, with the reason."""
        statement = select(Job.id, Job.cancel_reason).where(
            col(Job.id).in_(job_ids), col(Job.cancel_requested_at).is_not(None)
        )
        async with self.store.read() as session:
            return {job_id: reason or "" for job_id, reason in await session.exec(statement)}

    async def steps(self, job_id: int) -> dict[str, Any]:
        """The recorded steps of a job: name to JSON result."""
        statement = select(JobStep.name, JobStep.result).where(col(JobStep.job_id) == job_id)
        async with self.store.read() as session:
            return dict((await session.exec(statement)).all())

    async def complete(self, claim: Claim, *, now: datetime) -> None:
        """The job is done. Raises LeaseLost."""
        await self._end(claim, state=JobState.DONE, finished_at=now)

    async def retry(self, claim: Claim, error: str, *, at: datetime) -> None:
        """The job failed and is queued again for a later moment. Raises LeaseLost."""
        await self._end(claim, state=JobState.QUEUED, run_at=at, error=error[:_ERROR_CHARS])

    async def fail(self, claim: Claim, error: str, *, now: datetime) -> None:
        """The job failed for good. Raises LeaseLost."""
        await self._end(claim, state=JobState.FAILED, finished_at=now, error=error[:_ERROR_CHARS])

    async def cancel(self, claim: Claim, reason: str, *, now: datetime) -> None:
        """The job stopped because it was told to. Raises LeaseLost."""
        await self._end(claim, state=JobState.CANCELLED, finished_at=now, cancel_reason=reason)

    async def give_back(self, claim: Claim, *, now: datetime) -> None:
        """The worker stops: queued again, and this try does not count. Raises LeaseLost."""
        await self._end(claim, state=JobState.QUEUED, run_at=now, attempts=claim.attempt - 1)

    async def _take(self, job_id: int, rules: ClaimRules, now: datetime) -> Claim | None:
        owner = f"{rules.worker}:{uuid4().hex}"
        try:
            async with self.store.write() as session:
                taken = await session.exec(
                    update(Job)
                    .where(col(Job.id) == job_id, col(Job.state) == JobState.QUEUED)
                    .values(
                        state=JobState.RUNNING,
                        attempts=col(Job.attempts) + 1,
                        started_at=now,
                        lease_owner=owner,
                        lease_expires_at=now + rules.lease,
                    )
                )
                if taken.rowcount == 0:
                    return None
                return _claim(
                    (await session.exec(select(Job).where(Job.id == job_id))).one(), owner
                )
        except IntegrityError:
            # Another worker started a job of the same lane between our look and our claim.
            return None

    async def _end(self, claim: Claim, **values: Any) -> None:
        async with self.store.write() as session:
            ended = await session.exec(
                update(Job)
                .where(*_held(claim))
                .values(lease_owner=None, lease_expires_at=None, **values)
            )
            if ended.rowcount == 0:
                raise LeaseLost(f"Job {claim.job_id} belongs to another worker now.")


async def record_steps(
    session: AsyncSession, claim: Claim, steps: Iterable[tuple[str, Any]], *, now: datetime
) -> None:
    """Record steps in the caller's transaction, together with what they stored.

    Raises LeaseLost, and then the whole transaction must not be committed.
    """
    await hold(session, claim)
    rows = [
        {"job_id": claim.job_id, "name": name, "result": result, "recorded_at": now}
        for name, result in steps
    ]
    await session.flush()
    await session.exec(insert(JobStep), params=rows)


async def hold(session: AsyncSession, claim: Claim) -> None:
    """Make sure, until the end of the transaction, that the job is still this claim's.

    Raises LeaseLost, or JobCancelled if it was told to stop.
    """
    values = {"job": claim.job_id, "owner": claim.owner}
    row = (await session.exec(_hold(), params=values)).one_or_none()
    if row is None:
        raise LeaseLost(f"Job {claim.job_id} belongs to another worker now.")
    if row[0] is not None:
        raise JobCancelled(row[1] or "cancelled")


def _held(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (
        col(Job.id) == claim.job_id,
        col(Job.state) == JobState.RUNNING,
        col(Job.lease_owner) == claim.owner,
    )


@cache
def _hold() -> Any:
    """Made once, as `_next_job`: each step and each booking of a run asks it."""
    return (
        select(Job.cancel_requested_at, Job.cancel_reason)
        .where(
            col(Job.id) == bindparam("job"),
            col(Job.state) == JobState.RUNNING,
            col(Job.lease_owner) == bindparam("owner"),
        )
        .with_for_update()
    )


@cache
def _next_job() -> Any:
    """The id of the job to claim: the first of each repository, and of those the next in turn.

    Made once: every worker asks it all the time, and making it takes longer than its answer.
    """
    other, running = aliased(Job), aliased(Job)
    busy_lane = exists().where(
        col(other.lane) == col(Job.lane), col(other.state) == JobState.RUNNING
    )
    running_there = (
        core_select(func.count())
        .select_from(running)
        .where(
            col(running.state) == JobState.RUNNING,
            col(running.installation_id) == col(Job.installation_id),
        )
        .correlate(Job)
        .scalar_subquery()
    )
    repository = func.coalesce(Job.repository_id, 0)
    place = func.row_number().over(
        partition_by=(col(Job.priority), repository), order_by=(col(Job.run_at), col(Job.id))
    )
    ready = (
        core_select(
            col(Job.id).label("id"),
            col(Job.priority).label("priority"),
            col(Job.run_at).label("run_at"),
            repository.label("repository"),
            place.label("place"),
        )
        .where(
            col(Job.state) == JobState.QUEUED,
            col(Job.run_at) <= bindparam("now"),
            col(Job.kind).in_(bindparam("kinds", expanding=True)),
            or_(col(Job.lane).is_(None), ~busy_lane),
            or_(
                col(Job.installation_id).is_(None),
                # A full queue can't keep anybody from breaking the glass.
                col(Job.priority) >= PRIORITY_GLASS,
                running_there < bindparam("per_installation"),
            ),
        )
        .subquery()
    )
    had_its_turn = ready.c.repository <= bindparam("after_repository")
    return (
        core_select(ready.c.id)
        .where(ready.c.place == 1)
        .order_by(
            ready.c.priority.desc(), had_its_turn, ready.c.repository, ready.c.run_at, ready.c.id
        )
        .limit(1)
    )


def _claim(job: Job, owner: str) -> Claim:
    return Claim(
        job_id=job.id,
        kind=job.kind,
        payload=dict(job.payload),
        attempt=job.attempts,
        owner=owner,
        subject=job.subject,
        installation_id=job.installation_id,
        repository_id=job.repository_id,
        delivery_id=job.delivery_id,
        created_at=job.created_at,
        lost_leases=job.lost_leases,
    )
