"""Deliveries, jobs with their recorded steps, and the decisions that explain what happened."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, LargeBinary, UniqueConstraint
from sqlalchemy import text as sql
from sqlmodel import Field

from app.domain.jobs import AppRole, JobKind, JobState
from app.store.tables.columns import (
    Table,
    count,
    integer,
    json_list,
    json_object,
    member_of,
    moment,
    refers_to,
    row_id,
    text,
)
from app.store.types import SafeJson

LIVE = sql("state IN ('queued', 'running')")
RUNNING = sql("state = 'running'")


class DeliveryRow(Table, table=True):
    """One webhook delivery, as its raw bytes. GitHub repeats a delivery under the same `guid`.

    GitHub's guid names the event: both our Apps get the same one, each in a delivery of its own.

    `ignored_reason` is set if it asked for no work. `body` ages out before the row does.
    """

    __tablename__ = "deliveries"
    __table_args__ = (UniqueConstraint("guid", "app", name="uq_deliveries_guid"),)

    id: int = row_id()
    guid: str = text()
    app: AppRole = member_of(AppRole)
    event: str = text()
    action: str | None = text(optional=True)
    installation_id: int | None = integer(optional=True)
    repository_id: int | None = integer(optional=True)
    ignored_reason: str | None = text(optional=True)
    body: bytes | None = Field(default=None, sa_type=LargeBinary, nullable=True)
    received_at: datetime = moment(index=True)


class Job(Table, table=True):
    """One job. See `app.jobs.ledger` for what may happen to it.

    `key` is unique while the job is live. `subject` groups the jobs about one thing (to supersede
    or cancel them). Of the jobs in one `lane` at most one runs at any time. `lease_owner` is unique
    per claim, so it also tells a stale worker from the present one.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index("uq_jobs_live_key", "key", unique=True, sqlite_where=LIVE, postgresql_where=LIVE),
        Index(
            "uq_jobs_running_lane",
            "lane",
            unique=True,
            sqlite_where=RUNNING,
            postgresql_where=RUNNING,
        ),
        Index("ix_jobs_ready", "state", "run_at"),
        Index("ix_jobs_subject", "subject", "state"),
    )

    id: int = row_id()
    kind: JobKind = member_of(JobKind)
    key: str = text()
    subject: str | None = text(optional=True)
    lane: str | None = text(optional=True)
    installation_id: int | None = integer(optional=True)
    repository_id: int | None = integer(optional=True)
    payload: dict[str, Any] = json_object()
    priority: int = count()
    state: JobState = member_of(JobState, JobState.QUEUED)
    attempts: int = count()
    lost_leases: int = count()
    run_at: datetime = moment()
    lease_owner: str | None = text(optional=True)
    lease_expires_at: datetime | None = moment(optional=True)
    cancel_reason: str | None = text(optional=True)
    cancel_requested_at: datetime | None = moment(optional=True)
    superseded_by: int | None = integer(optional=True)
    error: str | None = text(optional=True)
    delivery_id: int | None = refers_to("deliveries.id", optional=True)
    created_at: datetime = moment()
    started_at: datetime | None = moment(optional=True)
    finished_at: datetime | None = moment(optional=True)


class JobStep(Table, table=True):
    """The result of one step of one job, recorded so that a restart continues after it."""

    __tablename__ = "job_steps"
    __table_args__ = (UniqueConstraint("job_id", "name", name="uq_job_steps_name"),)

    id: int = row_id()
    job_id: int = refers_to("jobs.id")
    name: str = text()
    result: Any = Field(default=None, sa_type=SafeJson, nullable=True)
    recorded_at: datetime = moment()


class DecisionRow(Table, table=True):
    """One decision with everything that explains it: reason code, values compared, trace.

    `kind` says which question was asked (`review_start`, `handoff`, `verdict`, …); the ids say of
    what. Ids have no foreign keys: a decision outlives what it was about.
    """

    __tablename__ = "decisions"

    id: int = row_id()
    kind: str = text(index=True)
    repository_id: int | None = integer(optional=True)
    pull_request_id: int | None = integer(optional=True, index=True)
    finding_id: int | None = integer(optional=True, index=True)
    fix_task_id: int | None = integer(optional=True, index=True)
    run_id: int | None = integer(optional=True)
    job_id: int | None = integer(optional=True)
    outcome: str = text()
    reason: str = text()
    reasons: list[str] = json_list()
    record: dict[str, Any] = json_object()
    decided_at: datetime = moment(index=True)
