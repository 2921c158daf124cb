"""What is asked of the ledger, and what it hands to a worker: plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.domain.jobs import JobKind

PRIORITY_NORMAL = 0
PRIORITY_PERSON = 10
"""Somebody is waiting for the answer."""
PRIORITY_GLASS = 20
"""Somebody breaks the glass: before everything else."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job to be done. `payload` holds ids and facts of the event, never copies of objects.

    `key`: while a job with it is live, asking again returns that one. `subject`: what the job is
    about, to supersede or cancel it. `lane`: at most one job of a lane runs at a time. `run_at`:
    not before this moment (None: at once).
    """

    kind: JobKind
    key: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    subject: str | None = None
    lane: str | None = None
    installation_id: int | None = None
    repository_id: int | None = None
    priority: int = PRIORITY_NORMAL
    run_at: datetime | None = None
    delivery_id: int | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The live job for a request; `created` is False if it was there before."""

    job_id: int
    created: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """One job in the hands of one worker. `owner` names this claim and no other."""

    job_id: int
    kind: JobKind
    payload: Mapping[str, Any]
    attempt: int
    owner: str
    subject: str | None
    installation_id: int | None
    repository_id: int | None
    delivery_id: int | None
    created_at: datetime
    lost_leases: int = 0


def pull_request_subject(repository_id: int, number: int) -> str:
    """The subject (and lane) of everything that happens to one pull request."""
    return f"pr:{repository_id}:{number}"


def fix_task_subject(fix_task_id: int) -> str:
    """The subject (and lane) of everything that happens to one fix task."""
    return f"task:{fix_task_id}"
