"""SQLite's connections: one trip to the connection's thread per statement.

The driver makes four of them (open a cursor, execute, fetch, close it), and each is a wake-up of
the thread and one of the event loop. A review has some two hundred statements; the trips would
take more of the processor than everything that happens in SQLite (`bench/review.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import aiosqlite
from sqlalchemy import URL


class Cursor:
    """One statement at a time: run, read to its end and closed in one trip.

    What SQLAlchemy's adapter asks of an asyncio cursor, except streaming: a result is read whole.
    """

    arraysize = 1

    def __init__(self, run: Callable[..., Any], connection: sqlite3.Connection) -> None:
        self._run = run
        self._connection = connection
        self._rows: Sequence[Any] = ()
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Cursor:
        return self

    async def execute(self, operation: str, parameters: Any = ()) -> Cursor:
        """Raises what the database raises (sqlite3's errors)."""
        await self._run(self._whole, sqlite3.Cursor.execute, operation, parameters)
        return self

    async def executemany(self, operation: str, parameters: Any) -> Cursor:
        """As `execute`, for many rows of values."""
        await self._run(self._whole, sqlite3.Cursor.executemany, operation, parameters)
        return self

    async def fetchall(self) -> Sequence[Any]:
        """All rows of the last statement, once."""
        rows, self._rows = self._rows, ()
        return rows

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left open."""

    async def close(self) -> None:
        """Nothing is left open."""

    def _whole(self, call: Callable[..., Any], operation: str, parameters: Any) -> None:
        """In the connection's thread."""
        cursor = self._connection.cursor()
        try:
            call(cursor, operation, parameters)
            self.description = cursor.description
            self._rows = cursor.fetchall() if cursor.description else ()
            self.rowcount, self.lastrowid = cursor.rowcount, cursor.lastrowid
        finally:
            cursor.close()


class Connection(aiosqlite.Connection):
    """The driver's connection with our cursor."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        # A process that ends does not wait for a connection that nobody closed.
        self._thread.daemon = True

    def cursor(self) -> Any:
        """A cursor that has nothing to open and nothing to close."""
        return Cursor(self._execute, self._conn)


def creator_of(url: URL) -> Callable[[], Connection]:
    """What opens connections to the SQLite file at an async URL, as the driver itself would."""
    arguments, options = url.get_dialect()().create_connect_args(url)

    open_file: Callable[[], sqlite3.Connection] = partial(sqlite3.connect, *arguments, **options)
    return partial(Connection, open_file)
