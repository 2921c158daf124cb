"""Storing what the guards decided, with their trace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import insert
from sqlmodel.ext.asyncio.session import AsyncSession

from app.store.tables import DecisionRow
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
    await note_decisions(
        session,
        kind,
        [(decision, finding_id)],
        now=now,
        repository_id=repository_id,
        pull_request_id=pull_request_id,
        fix_task_id=fix_task_id,
        run_id=run_id,
        job_id=job_id,
    )


async def note_decisions(
    session: AsyncSession,
    kind: str,
    said: Iterable[tuple[Decision, int | None]],
    *,
    now: datetime,
    repository_id: int | None = None,
    pull_request_id: int | None = None,
    fix_task_id: int | None = None,
    run_id: int | None = None,
    job_id: int | None = None,
) -> None:
    """Keep the answers to one question about many findings, in one insert.

    Each comes with the id of its finding, None if it is about none.
    """
    rows = []
    for decision, finding_id in said:
        record = decision.as_record()
        rows.append(
            {
                "kind": kind,
                "outcome": record["outcome"],
                "reason": record["reason"],
                "reasons": record["reasons"],
                "record": record,
                "repository_id": repository_id,
                "pull_request_id": pull_request_id,
                "finding_id": finding_id,
                "fix_task_id": fix_task_id,
                "run_id": run_id,
                "job_id": job_id,
                "decided_at": now,
            }
        )
    if rows:
        await session.exec(insert(DecisionRow), params=rows)
