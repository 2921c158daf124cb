"""What calls used is added up by the database, on both of them (store/usage.py)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy.exc import NoResultFound
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.runs import Booked, RunState, Trigger, Usage
from app.store.commands import ensure_lineage
from app.store.session import Store
from app.store.tables import Lineage, PullRequestRow, ReviewRun
from app.store.usage import book_lineage, book_run
from tests.store.rows import NOW, add_pull_request, add_repository, later

FIRST = Usage(
    model_calls=1,
    input_tokens=100,
    cache_read_tokens=20,
    cache_write_tokens=30,
    output_tokens=7,
    cost_usd=Decimal("0.25"),
    model_seconds=1.5,
)
SECOND = Usage(model_calls=2, input_tokens=11, output_tokens=1, cost_usd=Decimal("0.000001"))
UNPRICED = Usage(model_calls=1, input_tokens=1000, cost_usd=None)
BEGAN = Booked(sessions=1)


def booked(*usages: Usage) -> list[Booked]:
    return [Booked(usage=usage) for usage in usages]


async def a_run(store: Store) -> tuple[int, int]:
    """Ids of a run and of its lineage."""
    async with store.write() as session:
        await add_repository(session)
        row: PullRequestRow = await add_pull_request(session)
        lineage = await ensure_lineage(session, row, now=NOW)
        run = ReviewRun(
            pull_request_id=row.id,
            lineage_id=lineage.id,
            head_sha="a" * 40,
            base_sha="b" * 40,
            policy_digest="0",
            trigger=Trigger.WEBHOOK,
            state=RunState.RUNNING,
            created_at=NOW,
        )
        session.add(run)
        await session.flush()
        return run.id, lineage.id


async def both(session: AsyncSession, run_id: int, lineage_id: int) -> tuple[ReviewRun, Lineage]:
    return await session.get_one(ReviewRun, run_id), await session.get_one(Lineage, lineage_id)


@pytest.mark.parametrize(
    ("bookings", "of_run", "of_lineage", "sessions", "unknown"),
    [
        pytest.param([[BEGAN, BEGAN]], Usage(), Usage(), 2, False, id="only-sessions"),
        pytest.param([booked(FIRST)], FIRST, FIRST, 0, False, id="one"),
        pytest.param(
            [booked(FIRST, SECOND)], FIRST + SECOND, FIRST + SECOND, 0, False, id="together"
        ),
        pytest.param(
            [[BEGAN, *booked(FIRST)], booked(SECOND)],
            FIRST + SECOND,
            FIRST + SECOND,
            1,
            False,
            id="one-after-the-other",
        ),
        pytest.param(
            [booked(FIRST), booked(UNPRICED), booked(SECOND)],
            FIRST + UNPRICED + SECOND,
            FIRST + Usage(model_calls=1, input_tokens=1000) + SECOND,
            0,
            True,
            id="a-price-nobody-knows",
        ),
    ],
)
async def test_it_adds_up(
    store: Store,
    bookings: list[list[Booked]],
    of_run: Usage,
    of_lineage: Usage,
    sessions: int,
    unknown: bool,
) -> None:
    """An unknown price makes a run's cost unknown for good, and is marked on the lineage."""
    run_id, lineage_id = await a_run(store)
    for items in bookings:
        async with store.write() as session:
            found = await book_run(session, run_id, items)
            assert found == lineage_id
            await book_lineage(session, found, items, now=later(5))
    async with store.read() as session:
        run, lineage = await both(session, run_id, lineage_id)
        assert (run.usage, lineage.usage) == (of_run, of_lineage)
        assert (lineage.sessions, lineage.cost_unknown) == (sessions, unknown)
        assert lineage.updated_at == later(5)


async def test_nothing_is_booked_on_what_is_not_there(store: Store) -> None:
    """Money that nobody counts is a defect, not a quiet nothing."""
    async with store.write() as session:
        with pytest.raises(NoResultFound):
            await book_run(session, 99, booked(FIRST))
        with pytest.raises(NoResultFound):
            await book_lineage(session, 99, booked(FIRST), now=NOW)
        await book_lineage(session, None, booked(FIRST), now=NOW)
