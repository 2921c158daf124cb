"""What a lineage has spent, in the guards' units."""

from __future__ import annotations

from decimal import Decimal

from sqlmodel import func, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.tasks import LineageState
from app.store.tables import FixTask, Lineage
from loop_guards import Spent

MICRO = Decimal(1_000_000)
"""Millionths of a dollar in a dollar."""


async def is_stopped(session: AsyncSession, lineage_id: int | None) -> bool:
    """Whether a person stopped the lineage, as the database has it now."""
    if lineage_id is None:
        return False
    lineage = await session.get_one(Lineage, lineage_id, populate_existing=True)
    return lineage.state is LineageState.STOPPED


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
