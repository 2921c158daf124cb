"""What was spent, by repository and day, and which notices of caps were given."""

from __future__ import annotations

from sqlalchemy import UniqueConstraint

from app.store.tables.columns import Table, count, integer, refers_to, row_id, text


class SpendDay(Table, table=True):
    """What model calls for one repository cost on one day of UTC, in millionths of a dollar.

    `unpriced_tokens` are those of calls whose price nobody knows: they are in no dollar.
    """

    __tablename__ = "spend_days"
    __table_args__ = (UniqueConstraint("repository_id", "day", name="uq_spend_days_day"),)

    id: int = row_id()
    repository_id: int = refers_to("repositories.id")
    day: str = text()
    micro_dollars: int = integer(0)
    unpriced_tokens: int = integer(0)


class SpendNotice(Table, table=True):
    """A notice that was given: `scope` is `repository:7` or `installation:5`, `period` a day or a
    month of UTC, `percent` the mark of the cap."""

    __tablename__ = "spend_notices"
    __table_args__ = (UniqueConstraint("scope", "period", "percent", name="uq_spend_notices_mark"),)

    id: int = row_id()
    scope: str = text()
    period: str = text()
    percent: int = count()
