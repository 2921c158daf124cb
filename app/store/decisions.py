"""Storing what the guards decided, with their trace."""

from __future__ import annotations

from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from app.store.commands import DecisionRecord, record_decision
from loop_guards import Decision


async def note_decision(
    session: AsyncSession,
    kind: str,
    decision: Decision,
    *,
    now: datetime,
    repository_id: int | None = None,
    pull_request_id: int | None = None,
    finding_id: int | None = None,
    fix_task_id: int | None = None,
    run_id: int | None = None,
    job_id: int | None = None,
) -> None:
    """Keep one decision. `kind` says which question was asked, the ids say of what."""
    record = decision.as_record()
    await record_decision(
        session,
        DecisionRecord(
            kind=kind,
            outcome=record["outcome"],
            reason=record["reason"],
            reasons=tuple(record["reasons"]),
            record=record,
            repository_id=repository_id,
            pull_request_id=pull_request_id,
            finding_id=finding_id,
            fix_task_id=fix_task_id,
            run_id=run_id,
            job_id=job_id,
        ),
        now=now,
    )
