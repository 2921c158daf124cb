"""Jobs whose worker died: back into the queue, or failed when they kill every worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import col, select

from app.domain.jobs import JobState
from app.store.session import Store
from app.store.tables import Job

MAX_LOST_LEASES = 5
"""Workers that may die over one job before the job is held to be the reason."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Swept:
    """The ids of the jobs a sweep touched, by what became of them."""

    requeued: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()


async def sweep(store: Store, *, now: datetime) -> Swept:
    """End every lease that ran out. At most 500 jobs a call.

    A job that was told to stop is cancelled; all others are queued again with their recorded steps.
    One that lost its worker for the fifth time is queued for the last time: the worker that claims
    it only tells that it failed. If even that kills a worker, the job is failed here.
    """
    outcome: dict[JobState, list[int]] = {}
    statement = (
        select(Job)
        .where(col(Job.state) == JobState.RUNNING, col(Job.lease_expires_at) < now)
        .order_by(col(Job.id))
        .limit(_BATCH)
        .with_for_update(skip_locked=True)
    )
    async with store.write() as session:
        for job in (await session.exec(statement)).all():
            _end_lease(job, now)
            outcome.setdefault(job.state, []).append(job.id)
    return Swept(
        requeued=tuple(outcome.get(JobState.QUEUED, ())),
        failed=tuple(outcome.get(JobState.FAILED, ())),
        cancelled=tuple(outcome.get(JobState.CANCELLED, ())),
    )


def _end_lease(job: Job, now: datetime) -> None:
    job.lost_leases += 1
    job.lease_owner = None
    job.lease_expires_at = None
    if job.cancel_requested_at is not None:
        job.state, job.finished_at = JobState.CANCELLED, now
    elif job.lost_leases > MAX_LOST_LEASES:
        job.state, job.finished_at = JobState.FAILED, now
        job.error = f"The worker died {job.lost_leases} times while it ran this job."
    else:
        job.state, job.run_at = JobState.QUEUED, now
