"""Our connections to SQLite do what the driver's do, in fewer trips to their thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.store.sqlite import Cursor, creator_of

TABLE = "CREATE TABLE word (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL)"


def url_of(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder / 'words.db'}"


@pytest.fixture(params=["driver", "ours"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """One contract for the driver's own connections and ours."""
    url = make_url(url_of(tmp_path))
    options = {"async_creator": creator_of(url)} if request.param == "ours" else {}
    engine = create_async_engine(url, **options)
    async with engine.begin() as connection:
        await connection.execute(text(TABLE))
        await connection.execute(
            text("INSERT INTO word (name) VALUES (:name)"),
            [{"name": name} for name in ("one", "two", "three")],
        )
    yield engine
    await engine.dispose()


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        pytest.param(
            "SELECT name FROM word ORDER BY id", [("one",), ("two",), ("three",)], id="all"
        ),
        pytest.param("SELECT name FROM word WHERE id > 9", [], id="none"),
        pytest.param("SELECT id, name FROM word WHERE id = 2", [(2, "two")], id="one"),
        pytest.param(
            "INSERT INTO word (name) VALUES ('four') RETURNING id", [(4,)], id="returning"
        ),
        pytest.param("PRAGMA user_version", [(0,)], id="pragma"),
    ],
)
async def test_rows(engine: AsyncEngine, statement: str, rows: list[Any]) -> None:
    """Every row, also of a statement that writes."""
    async with engine.begin() as connection:
        result = await connection.execute(text(statement))
        assert [tuple(row) for row in result.all()] == rows


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        pytest.param("UPDATE word SET name = name || '!'", 3, id="all"),
        pytest.param("UPDATE word SET name = 'x' WHERE id = 9", 0, id="none"),
        pytest.param("DELETE FROM word WHERE id < 3", 2, id="some"),
    ],
)
async def test_how_many_were_changed(engine: AsyncEngine, statement: str, count: int) -> None:
    """Leases and claims are decided by this number."""
    async with engine.begin() as connection:
        assert (await connection.execute(text(statement))).rowcount == count


async def test_the_columns_and_the_new_id_are_told(engine: AsyncEngine) -> None:
    """By name, and for an insert that returns nothing."""
    async with engine.begin() as connection:
        inserted = await connection.execute(text("INSERT INTO word (name) VALUES ('four')"))
        assert inserted.lastrowid == 4
        assert list((await connection.execute(text("SELECT id, name FROM word"))).keys()) == [
            "id",
            "name",
        ]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        pytest.param("INSERT INTO word (name) VALUES ('one')", IntegrityError, id="not-unique"),
        pytest.param("INSERT INTO word (name) VALUES (NULL)", IntegrityError, id="missing"),
        pytest.param("SELECT * FROM nothing", OperationalError, id="no-table"),
        pytest.param("SELEKT 1", OperationalError, id="no-sql"),
    ],
)
async def test_errors(engine: AsyncEngine, statement: str, error: type[Exception]) -> None:
    """They keep their kind, and the connection goes on."""
    async with engine.connect() as connection:
        with pytest.raises(error):
            await connection.execute(text(statement))
        await connection.rollback()
        assert await words(connection) == ["one", "two", "three"]


async def test_what_is_rolled_back_is_gone(engine: AsyncEngine) -> None:
    """A transaction is one, whatever was read meanwhile."""
    async with engine.connect() as connection:
        await connection.execute(text("DELETE FROM word"))
        assert await words(connection) == []
        await connection.rollback()
        assert await words(connection) == ["one", "two", "three"]


async def test_a_cancelled_statement_leaves_a_connection_that_works(engine: AsyncEngine) -> None:
    """What has begun in the thread ends there; the next statement comes after it."""
    slow = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) "
        "SELECT max(i) FROM n"
    )
    async with engine.connect() as connection:
        running = asyncio.ensure_future(connection.execute(text(slow)))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    async with engine.connect() as connection:
        assert await words(connection) == ["one", "two", "three"]


async def test_a_statement_is_one_trip() -> None:
    """That is what they are for."""
    trips = 0

    async def run(call: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal trips
        trips += 1
        return call(*arguments)

    connection = sqlite3.connect(":memory:")
    async with Cursor(run, connection) as cursor:
        await cursor.execute("SELECT 1")
        assert await cursor.fetchall() == [(1,)]
        await cursor.close()
    connection.close()
    assert trips == 1


async def words(connection: AsyncConnection) -> list[str]:
    found = await connection.execute(text("SELECT name FROM word ORDER BY id"))
    return [row[0] for row in found.all()]
