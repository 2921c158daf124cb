"""Transactions: all or nothing, in order, and never two deep."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text
from sqlmodel import func, select

from app.store.session import Store, open_store
from app.store.tables import Installation
from tests.store.rows import NOW


def installation(number: int) -> Installation:
    return Installation(id=number, created_at=NOW, updated_at=NOW)


async def count(store: Store) -> int:
    async with store.read() as session:
        return (await session.exec(select(func.count()).select_from(Installation))).one()


async def test_a_write_is_kept(store: Store) -> None:
    """What a block wrote is there when it has ended, and its rows stay readable."""
    async with store.write() as session:
        row = installation(1)
        session.add(row)
    assert row.id == 1
    assert await count(store) == 1


async def test_a_write_that_raises_leaves_nothing(store: Store) -> None:
    """One error undoes the whole block."""

    async def fail() -> None:
        async with store.write() as session:
            session.add(installation(1))
            await session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await count(store) == 0


async def test_reading_keeps_nothing(store: Store) -> None:
    """A session for reading has no effect, whatever is done in it."""
    async with store.read() as session:
        session.add(installation(1))
        await session.flush()
    assert await count(store) == 0


async def test_a_write_inside_a_write_is_a_mistake(store: Store) -> None:
    """It would wait for itself; it is told at once instead."""
    async with store.write():
        with pytest.raises(RuntimeError, match="inside"):
            async with store.write():
                pass
    assert await count(store) == 0


async def test_tasks_started_in_a_write_may_write(store: Store) -> None:
    """Only the task that writes is inside its transaction; its children are not."""

    async def child() -> None:
        async with store.write() as session:
            session.add(installation(2))

    async with store.write() as session:
        task = asyncio.create_task(child())
        session.add(installation(1))
    await task
    assert await count(store) == 2


async def test_many_writers_at_once(store: Store) -> None:
    """Writers wait for each other and none fails."""

    async def write(number: int) -> None:
        async with store.write() as session:
            before = (await session.exec(select(func.count()).select_from(Installation))).one()
            assert before >= 0
            session.add(installation(number))

    await asyncio.gather(*(write(number) for number in range(30)))
    assert await count(store) == 30


async def test_two_processes_write_one_sqlite_file(store: Store, database_url: str) -> None:
    """Another process (here: another store) waits for the lock instead of failing half-way."""
    other = open_store(database_url)

    async def write(target: Store, number: int) -> None:
        async with target.write() as session:
            await session.exec(select(Installation))
            session.add(installation(number))

    await asyncio.gather(
        *(write(target, 2 * n + i) for n in range(10) for i, target in enumerate((store, other)))
    )
    await other.close()
    assert await count(store) == 20


async def test_a_cancelled_write_frees_the_database(store: Store) -> None:
    """A task that is cut down in the middle of a transaction leaves no lock and no row."""
    for delay in (0.0, 0.0005, 0.001, 0.002, 0.005):

        async def write() -> None:
            async with store.write() as session:
                for number in range(1, 200):
                    session.add(installation(number))
                    await session.flush()

        task = asyncio.create_task(write())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await count(store) == 0
    async with store.write() as session:
        session.add(installation(1))
    assert await count(store) == 1


async def test_sqlite_is_durable_and_checks_references(store: Store) -> None:
    """A commit is on the disk before anybody is told of it, and no row refers to nothing."""
    if store.engine.dialect.name != "sqlite":
        return
    async with store.read() as session:
        connection = await session.connection()
        for pragma, value in (("synchronous", 2), ("foreign_keys", 1), ("journal_mode", "wal")):
            assert (await connection.execute(text(f"PRAGMA {pragma}"))).scalar() == value
