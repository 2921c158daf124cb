"""Opening the database, and the two ways to use it: `read()` and `write()`.

A write is one short transaction: never hold it across a request to GitHub or to a model. On SQLite
it takes the write lock when it begins (`BEGIN IMMEDIATE`), so it never fails half-way because
another one was faster; within one process writers queue in order instead of polling for the lock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, Engine, Table, event, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from app.errors import ConfigurationError
from app.store.sqlite import creator_of

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

    AnyInsert: TypeAlias = PostgresInsert | SqliteInsert

BUSY_TIMEOUT_MS = 30_000
_WAL_TRIES, _WAL_PAUSE = 100, 0.05
_BEGIN_OPTION = "mergeward_begin"
IMMEDIATE = {_BEGIN_OPTION: "IMMEDIATE"}
"""Execution options under which an SQLite engine takes the write lock when it begins."""
# The task that writes now: tasks started inside a write inherit the variable, not the transaction.
_writing: ContextVar[asyncio.Task[Any] | None] = ContextVar("mergeward_writing", default=None)


class Store:
    """One open database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._write_engine = engine
        self._turn: AbstractAsyncContextManager[Any] = nullcontext()
        if engine.dialect.name == "sqlite":
            self._write_engine = engine.execution_options(**IMMEDIATE)
            self._turn = asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A session for reading. Nothing done in it is kept."""
        async with AsyncSession(self.engine, expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Rows stay readable after the commit. A second `write()` inside the block is a mistake (it
        would wait for the first one for ever) and raises RuntimeError.
        """
        task = asyncio.current_task()
        if task is not None and _writing.get() is task:
            msg = "Store.write() inside Store.write(): pass the open session on instead"
            raise RuntimeError(msg)
        async with self._turn:
            token = _writing.set(task)
            try:
                async with (
                    AsyncSession(self._write_engine, expire_on_commit=False) as session,
                    session.begin(),
                ):
                    yield session
            finally:
                _writing.reset(token)

    async def close(self) -> None:
        await self.engine.dispose()


def open_store(url: str) -> Store:
    """The database at an async SQLAlchemy URL (see `Settings.async_database_url`).

    Creates the folder of an SQLite file, but no tables: `app.store.migrate.upgrade` does that.
    Raises ConfigurationError if the folder cannot be made. Errors of the database never quote
    values: those may be secret, and some are hostile.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return Store(
            create_async_engine(
                parsed, pool_pre_ping=True, pool_size=10, max_overflow=10, hide_parameters=True
            )
        )
    if parsed.database and parsed.database != ":memory:":
        make_folder_of(Path(parsed.database))
    engine = create_async_engine(parsed, async_creator=creator_of(parsed), hide_parameters=True)
    prepare_sqlite(engine.sync_engine)
    return Store(engine)


def dialect_of(session: AsyncSession) -> str:
    """The session's database: `sqlite` or `postgresql`."""
    return session.get_bind().dialect.name


def insert_into(dialect: str, table: Table) -> AnyInsert:
    """An INSERT that can say what is to happen on a conflict, as that database says it."""
    # Each dialect takes its time to load: only the one in use is.
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def make_folder_of(database: Path) -> None:
    """Make the folder an SQLite file is to live in, readable by us alone."""
    try:
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"MERGEWARD_DATABASE_URL: the folder {database.parent} cannot be made: {error}."
        ) from None


def prepare_sqlite(engine: Engine, *, foreign_keys: bool = True) -> None:
    """Give every connection of an SQLite engine our durability and our transactions."""

    # The sqlite3 module opens transactions late and by its own rules; it is told not to
    # (isolation_level None), and BEGIN is sent here.
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        _use_wal(cursor)
        cursor.close()

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        mode = connection.get_execution_options().get(_BEGIN_OPTION, "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")


def _use_wal(cursor: Any) -> None:
    """Once per file. SQLite does not wait for the lock it needs here, so we do."""
    for _ in range(_WAL_TRIES):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except Exception as error:
            if "locked" not in str(error):
                raise
            time.sleep(_WAL_PAUSE)
        else:
            return
