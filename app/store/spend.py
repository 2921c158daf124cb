"""Money: booked by repository and day, held for runs that go on, and what is left of caps.

A run holds its estimate from its start until it ends, however it ends: what is held is read from
the runs that are under way, so a worker's death neither loses nor doubles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from sqlalchemy import func as sql
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.runs import Booked, RunState
from app.domain.spend import Period, Purse, Standing, notices_due, period_key, standing
from app.store.session import dialect_of, insert_into
from app.store.tables import PullRequestRow, Repository, ReviewRun, SpendDay, SpendNotice

_MICRO = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Cap:
    """At most `dollars` in a period, for one repository, or for all of an installation."""

    installation: bool
    period: Period
    dollars: Decimal

    @property
    def words(self) -> str:
        where = "this installation" if self.installation else "this repository"
        return f"the {self.period.value}'s cap of ${self.dollars} for {where}"


@dataclass(frozen=True, slots=True)
class Held:
    """The answer to a run that wants to begin: how it may, and what is to be said.

    `cap` is the one that decided, None where nothing did. `left` is what may be used until a cap
    is reached, the run's own part included; None without caps.
    """

    standing: Standing = Standing.FREE
    cap: Cap | None = None
    notices: tuple[str, ...] = ()
    left: Decimal | None = None


async def book_spend(
    session: AsyncSession, repository_id: int, items: Sequence[Booked], *, now: datetime
) -> None:
    """Add what calls cost to the repository's day."""
    usages = [item.usage for item in items if item.usage is not None]
    if not usages:
        return
    micro = sum(int((usage.cost_usd or Decimal(0)) * _MICRO) for usage in usages)
    unpriced = sum(
        usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        + usage.output_tokens
        for usage in usages
        if usage.cost_usd is None
    )  # fmt: skip
    values = {
        "repository_id": repository_id,
        "day": period_key(now, Period.DAY),
        "micro_dollars": micro,
        "unpriced_tokens": unpriced,
    }
    await session.exec(_adding(dialect_of(session)), params=values)


@cache
def _adding(dialect: str) -> Any:
    """The statement that books a part of a day. Made once: making it takes longer than what it
    does."""
    table = SpendDay.__table__  # type: ignore[attr-defined]  # SQLModel gives it
    added = insert_into(dialect, table)
    names = ("micro_dollars", "unpriced_tokens")
    return added.on_conflict_do_update(
        index_elements=["repository_id", "day"],
        set_={name: table.c[name] + added.excluded[name] for name in names},
    )


async def hold(
    session: AsyncSession,
    run: ReviewRun,
    repository: Repository,
    caps: Sequence[Cap],
    estimates: tuple[Decimal, Decimal],
    *,
    now: datetime,
) -> Held:
    """Hold the run's estimate (at the ordinary models, at the cheaper ones) against every cap.

    In one transaction with everybody else of the installation: two runs never hold the same money.
    A run that fits only on the cheaper models gets those; one that does not fit holds nothing.
    """
    if not caps:
        return Held()
    if dialect_of(session) == "postgresql":
        await session.exec(select(sql.pg_advisory_xact_lock(repository.installation_id)))
    ordinary, cheaper = estimates
    purses = [(cap, await _purse(session, cap, run, repository, now)) for cap in caps]
    notices = [
        note
        for cap, purse in purses
        for note in await _notices(session, cap, purse, repository, now)
    ]
    answers = [(_fits(purse, ordinary, cheaper), cap) for cap, purse in purses]
    order = (Standing.FREE, Standing.CHEAPER, Standing.SPENT)
    worst, cap = max(answers, key=lambda answer: order.index(answer[0]))
    left = min(purse.left for _, purse in purses)
    if worst is not Standing.SPENT:
        run.reserved_micro = int((ordinary if worst is Standing.FREE else cheaper) * _MICRO)
    return Held(worst, cap if worst is not Standing.FREE else None, tuple(notices), left)


def _fits(purse: Purse, ordinary: Decimal, cheaper: Decimal) -> Standing:
    found = standing(purse, ordinary)
    if found is Standing.SPENT and standing(purse, cheaper) is not Standing.SPENT:
        return Standing.CHEAPER
    return found


async def _purse(
    session: AsyncSession, cap: Cap, run: ReviewRun, repository: Repository, now: datetime
) -> Purse:
    mine = (
        Repository.installation_id == repository.installation_id
        if cap.installation
        else Repository.id == repository.id
    )
    used = (
        select(sql.coalesce(sql.sum(SpendDay.micro_dollars), 0))
        .join(Repository, col(Repository.id) == col(SpendDay.repository_id))
        .where(mine, col(SpendDay.day).startswith(period_key(now, cap.period)))
    )
    running = (
        select(ReviewRun)
        .join(PullRequestRow, col(PullRequestRow.id) == col(ReviewRun.pull_request_id))
        .join(Repository, col(Repository.id) == col(PullRequestRow.repository_id))
        .where(mine, ReviewRun.state == RunState.RUNNING, ReviewRun.id != run.id)
    )
    held = sum(
        max(0, other.reserved_micro - int((other.cost_usd or Decimal(0)) * _MICRO))
        for other in await session.exec(running)
    )
    spent = (await session.exec(used)).one()
    return Purse(cap.dollars, Decimal(int(spent)) / _MICRO, Decimal(held) / _MICRO)


async def _notices(
    session: AsyncSession, cap: Cap, purse: Purse, repository: Repository, now: datetime
) -> tuple[str, ...]:
    """What is to be said of the cap now, and never again in this period."""
    kind = "installation" if cap.installation else "repository"
    number = repository.installation_id if cap.installation else repository.id
    scope, period = f"{kind}:{number}", period_key(now, cap.period)
    known = await session.exec(
        select(SpendNotice.percent).where(SpendNotice.scope == scope, SpendNotice.period == period)
    )
    due = notices_due(purse, frozenset(known))
    session.add_all(SpendNotice(scope=scope, period=period, percent=mark) for mark in due)
    if not due:
        return ()
    return (f"{max(due)} % of {cap.words} is used (${purse.used:.2f}).",)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one repository used: today and this month, in dollars, and tokens without a price."""

    repository: str
    day: Decimal
    month: Decimal
    unpriced_tokens: int


async def spent_by_repository(session: AsyncSession, now: datetime) -> tuple[Spent, ...]:
    """Every repository that used anything this month, by name."""
    month, today = period_key(now, Period.MONTH), period_key(now, Period.DAY)
    rows = await session.exec(
        select(Repository, SpendDay)
        .join(SpendDay, col(SpendDay.repository_id) == col(Repository.id))
        .where(col(SpendDay.day).startswith(month))
        .order_by(col(Repository.owner), col(Repository.name))
    )
    found: dict[str, Spent] = {}
    for repository, day in rows:
        name = f"{repository.owner}/{repository.name}"
        dollars = Decimal(day.micro_dollars) / _MICRO
        known = found.get(name, Spent(name, Decimal(0), Decimal(0), 0))
        found[name] = Spent(
            name,
            known.day + (dollars if day.day == today else 0),
            known.month + dollars,
            known.unpriced_tokens + day.unpriced_tokens,
        )
    return tuple(found.values())
