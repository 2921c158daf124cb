"""What a lineage has spent, booked and read in the guards' units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from sqlmodel import func, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.runs import Booked
from app.store.tables import FixTask, Lineage
from loop_guards import Spent

MICRO = Decimal(1_000_000)
"""Millionths of a dollar in a dollar."""


async def book(
    session: AsyncSession, lineage_id: int | None, items: Sequence[Booked], *, now: datetime
) -> None:
    """Add sessions that began and what calls used to the lineage, whatever becomes of them. An
    unknown price is marked, not counted as zero."""
    if lineage_id is None:
        return
    lineage = await session.get_one(Lineage, lineage_id, with_for_update=True)
    for usage in (item.usage for item in items if item.usage is not None):
        unknown = usage.cost_usd is None
        lineage.usage = lineage.usage + (replace(usage, cost_usd=Decimal(0)) if unknown else usage)
        lineage.cost_unknown = lineage.cost_unknown or unknown
    lineage.sessions += sum(item.sessions for item in items)
    lineage.updated_at = now


async def resumes_of(session: AsyncSession, lineage_id: int) -> int:
    """How often people resumed tasks of the lineage: each resume adds to its purse."""
    statement = select(func.coalesce(func.sum(FixTask.resumes), 0)).where(
        FixTask.lineage_id == lineage_id
    )
    return int((await session.exec(statement)).one())


def spent_of(lineage: Lineage) -> Spent:
    """What a lineage used so far, in the guards' units. A cost nobody knows can't be counted; its
    tokens can."""
    usage = lineage.usage
    return Spent(
        input_tokens=usage.input_tokens,
        micro_dollars=int((usage.cost_usd or Decimal(0)) * MICRO),
        model_seconds=int(usage.model_seconds),
        model_runs=lineage.sessions,
    )
