"""Storing what the guards decided, with their trace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import insert
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.store.tables import DecisionRow
from loop_guards import Decision, HandoffOutcome

HANDOFF = "handoff"
"""The kind of the decisions whether a finding is handed off."""


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


async def deferred_findings(session: AsyncSession, pull_request_id: int) -> frozenset[int]:
    """The findings of a merged pull request whose hand-off waits, by the latest word on each."""
    statement = (
        select(DecisionRow.finding_id, DecisionRow.outcome)
        .where(
            DecisionRow.kind == HANDOFF,
            DecisionRow.pull_request_id == pull_request_id,
            col(DecisionRow.finding_id).is_not(None),
        )
        .order_by(col(DecisionRow.id))
    )
    latest = dict((await session.exec(statement)).all())
    return frozenset(
        number
        for number, outcome in latest.items()
        if number is not None and outcome == HandoffOutcome.DEFERRED
    )
