"""The durable ledger of jobs: the database is the truth, whatever a broker says.

`enqueue`, `supersede` and `request_cancel` work inside the caller's transaction, so that a job
exists exactly if the facts that ask for it do. What a worker does to a job it holds is in
`leases`; only a worker with a live lease can change a running job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Table, update
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import LIVE_JOB_STATES, JobKind, JobState
from app.errors import JobError
from app.jobs.requests import Enqueued, JobRequest
from app.store.session import dialect_of, insert_into
from app.store.tables import Job
from app.store.tables.jobs import LIVE

_RACES = 3


async def enqueue(session: AsyncSession, request: JobRequest, *, now: datetime) -> Enqueued:
    """Add the job, or return the live one that has its key. Nothing is sent: notify after commit.

    A job found that way keeps its payload; if it is still queued and the request may run earlier,
    it may run earlier.
    """
    for _ in range(_RACES):
        job_id = await _insert(session, request, now)
        if job_id is not None:
            return Enqueued(job_id=job_id, created=True)
        live = await _live_job(session, request.key)
        if live is not None:
            await _run_no_later_than(session, live, request.run_at or now)
            return Enqueued(job_id=live.id, created=False)
    raise JobError(f"The job {request.key} could not be queued: it ends again and again meanwhile.")


@dataclass(frozen=True, slots=True)
class Superseded:
    """A queued job that a newer one replaced."""

    job_id: int
    payload: dict[str, Any]


async def supersede(
    session: AsyncSession,
    *,
    kind: JobKind,
    subject: str,
    by: int,
    now: datetime,
    key_prefix: str = "",
) -> tuple[Superseded, ...]:
    """End every queued job of this kind and subject other than `by`; running ones are left alone.

    Only keys that start with `key_prefix` are touched, so that a person's command is not swallowed
    by a push. The newest comes last.
    """
    statement = (
        select(Job)
        .where(
            col(Job.kind) == kind,
            col(Job.subject) == subject,
            col(Job.state) == JobState.QUEUED,
            col(Job.id) != by,
            col(Job.key).startswith(key_prefix, autoescape=True),
        )
        .order_by(col(Job.id))
        .with_for_update()
    )
    jobs = (await session.exec(statement)).all()
    for job in jobs:
        job.state = JobState.SUPERSEDED
        job.superseded_by = by
        job.finished_at = now
    await session.flush()
    return tuple(Superseded(job_id=job.id, payload=dict(job.payload)) for job in jobs)


async def request_cancel(
    session: AsyncSession,
    *,
    subject: str,
    reason: str,
    now: datetime,
    kinds: Sequence[JobKind] = tuple(JobKind),
    running_only: bool = False,
) -> int:
    """Cancel the live jobs of a subject. Returns how many.

    Queued ones are cancelled at once (unless `running_only`); running ones are told to stop, which
    their worker does within two seconds.
    """
    about = (col(Job.subject) == subject, col(Job.kind).in_(kinds))
    running = await session.exec(
        update(Job)
        .where(*about, col(Job.state) == JobState.RUNNING, col(Job.cancel_requested_at).is_(None))
        .values(cancel_requested_at=now, cancel_reason=reason)
    )
    if running_only:
        return running.rowcount
    queued = await session.exec(
        update(Job)
        .where(*about, col(Job.state) == JobState.QUEUED)
        .values(state=JobState.CANCELLED, cancel_reason=reason, finished_at=now)
    )
    return running.rowcount + queued.rowcount


async def live_jobs(session: AsyncSession, *, subject: str) -> Sequence[Job]:
    """The live jobs of a subject, oldest first."""
    statement = (
        select(Job)
        .where(col(Job.subject) == subject, col(Job.state).in_(LIVE_JOB_STATES))
        .order_by(col(Job.id))
    )
    return (await session.exec(statement)).all()


async def _insert(session: AsyncSession, request: JobRequest, now: datetime) -> int | None:
    table: Table = Job.__table__  # type: ignore[attr-defined]  # SQLModel sets it at run time
    statement = (
        insert_into(dialect_of(session), table)
        .values(
            kind=request.kind,
            key=request.key,
            subject=request.subject,
            lane=request.lane,
            installation_id=request.installation_id,
            repository_id=request.repository_id,
            payload=dict(request.payload),
            priority=request.priority,
            state=JobState.QUEUED,
            attempts=0,
            lost_leases=0,
            run_at=request.run_at or now,
            delivery_id=request.delivery_id,
            created_at=now,
        )
        .on_conflict_do_nothing(index_elements=[table.c.key], index_where=LIVE)
        .returning(table.c.id)
    )
    return (await session.exec(statement)).scalar_one_or_none()


async def _live_job(session: AsyncSession, key: str) -> Job | None:
    statement = select(Job).where(col(Job.key) == key, col(Job.state).in_(LIVE_JOB_STATES))
    return (await session.exec(statement)).one_or_none()


async def _run_no_later_than(session: AsyncSession, job: Job, moment: datetime) -> None:
    if job.state is JobState.QUEUED and moment < job.run_at:
        job.run_at = moment
        await session.flush()
