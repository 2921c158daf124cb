"""Adding what model calls used to the rows that keep count: one statement each, no row is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Boolean, Integer, Table, Update, bindparam, update
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.runs import Booked, Usage
from app.store.tables import Lineage, ReviewRun

_COLUMNS = tuple(field.name for field in fields(Usage))
_RUNS: Table = ReviewRun.__table__  # type: ignore[attr-defined]  # SQLModel gives it
_LINEAGES: Table = Lineage.__table__  # type: ignore[attr-defined]


def _adding(table: Table, **more: Any) -> Update:
    """The database makes the sums; a cost that is unknown, NULL, stays so. Made once: building a
    statement takes longer than what it does."""
    sums = {
        name: table.c[name] + bindparam(f"more_{name}", type_=table.c[name].type)
        for name in _COLUMNS
    }
    return update(table).where(table.c.id == bindparam("row")).values({**sums, **more})


_ADD_TO_RUN = _adding(_RUNS).returning(_RUNS.c.lineage_id)
_ADD_TO_LINEAGE = _adding(
    _LINEAGES,
    sessions=_LINEAGES.c.sessions + bindparam("more_sessions", type_=Integer),
    cost_unknown=_LINEAGES.c.cost_unknown | bindparam("unknown", type_=Boolean),
    updated_at=bindparam("now"),
).returning(_LINEAGES.c.id)


async def book_run(session: AsyncSession, run_id: int, items: Sequence[Booked]) -> int | None:
    """Add what calls used to the run; the id of its lineage. One price that is unknown makes its
    cost unknown.

    Raises sqlalchemy's NoResultFound if there is no such run.
    """
    added = await session.exec(_ADD_TO_RUN, params={"row": run_id, **_sums(_usages(items))})
    lineage_id: int | None = added.scalar_one()
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
    values = {
        "row": lineage_id,
        "more_sessions": sum(item.sessions for item in items),
        "unknown": any(usage.cost_usd is None for usage in usages),
        "now": now,
        **_sums(known),
    }
    (await session.exec(_ADD_TO_LINEAGE, params=values)).scalar_one()


def _usages(items: Iterable[Booked]) -> list[Usage]:
    return [item.usage for item in items if item.usage is not None]


def _sums(usages: Iterable[Usage]) -> dict[str, Any]:
    used = sum(usages, Usage())
    return {f"more_{name}": getattr(used, name) for name in _COLUMNS}
