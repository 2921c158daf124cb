"""Adding what model calls used to the rows that keep count: one statement each, no row is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Table, Update, bindparam, update
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.runs import Booked, Usage
from app.store.tables import Lineage, ReviewRun

_COLUMNS = tuple(field.name for field in fields(Usage))
_RUNS: Table = ReviewRun.__table__  # type: ignore[attr-defined]  # SQLModel gives it
_LINEAGES: Table = Lineage.__table__  # type: ignore[attr-defined]


async def book_run(session: AsyncSession, run_id: int, items: Sequence[Booked]) -> int | None:
    """Add what calls used to the run; the id of its lineage. One price that is unknown makes its
    cost unknown.

    Raises sqlalchemy's NoResultFound if there is no such run.
    """
    added = _adding(_RUNS, run_id, _usages(items))
    lineage_id: int | None = (await session.exec(added.returning(_RUNS.c.lineage_id))).scalar_one()
    return lineage_id


async def book_lineage(
    session: AsyncSession, lineage_id: int | None, items: Sequence[Booked], *, now: datetime
) -> None:
    """Add sessions that began and what calls used to the lineage, whatever becomes of them; without
    one there is nothing to add to. An unknown price is marked, not counted as zero.

    Raises sqlalchemy's NoResultFound if there is no such lineage.
    """
    if lineage_id is None:
        return
    usages = _usages(items)
    known = [replace(usage, cost_usd=usage.cost_usd or Decimal(0)) for usage in usages]
    added = _adding(_LINEAGES, lineage_id, known).values(
        sessions=_LINEAGES.c.sessions + sum(item.sessions for item in items), updated_at=now
    )
    if any(usage.cost_usd is None for usage in usages):
        added = added.values(cost_unknown=True)
    (await session.exec(added.returning(_LINEAGES.c.id))).scalar_one()


def _usages(items: Iterable[Booked]) -> list[Usage]:
    return [item.usage for item in items if item.usage is not None]


def _adding(table: Table, row_id: int, usages: Iterable[Usage]) -> Update:
    """The database makes the sums; a cost that is unknown, NULL, stays so."""
    used = sum(usages, Usage())
    return (
        update(table)
        .where(table.c.id == row_id)
        .values(
            {
                name: table.c[name] + bindparam(None, getattr(used, name), type_=table.c[name].type)
                for name in _COLUMNS
            }
        )
    )
