"""Bringing a database to the present tables, and asking whether it is there.

Migrations run synchronously (Alembic's way); from async code call them by `asyncio.to_thread`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, create_engine, inspect, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.errors import ConfigurationError
from app.store.session import IMMEDIATE, Store, make_folder_of, prepare_sqlite

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0004"
"""The newest revision. Kept here so that asking for it needs no Alembic; a test compares them."""
_LOCK = 0x6D657267
"""The key of the advisory lock that lets one process migrate at a time (PostgreSQL)."""
_LOCK_TIMEOUT = "10s"
# Alembic keeps its context in module variables.
_one_at_a_time = threading.Lock()


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database to a revision; does nothing if it is there.

    Takes a sync or async URL. Waits at most 10 s for a table lock, and raises ConfigurationError
    if the database cannot be reached or changed.
    """
    _migrate(url, lambda command, config: command.upgrade(config, revision))


def downgrade(url: str, revision: str = "base") -> None:
    """Take the database back to an older revision. Data of the tables that go is lost."""
    _migrate(url, lambda command, config: command.downgrade(config, revision))


async def current_revision(store: Store) -> str | None:
    """The revision the database is at; None if it has no tables of ours."""
    async with store.engine.connect() as connection:
        return await connection.run_sync(_revision)


def behind(revision: str | None) -> str:
    """What is to be done about a database at another revision than `HEAD`."""
    return (
        f"The database is at revision {revision or 'none'}, this version needs {HEAD}: "
        "run `mergeward db upgrade`."
    )


async def is_current(store: Store) -> bool:
    """Whether the database has exactly the tables this version expects."""
    return await current_revision(store) == HEAD


def migrations_dir() -> Path:
    """Where the migrations are: in the wheel inside `app`, in a checkout beside it."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise ConfigurationError("The migrations are missing from this installation; install it again.")


@contextmanager
def migration_connection(url: str) -> Iterator[Connection]:
    """A synchronous connection to migrate by, inside one transaction that nobody else shares.

    Whatever happens in it happens completely or not at all. Other processes that migrate wait, at
    most a minute, and then find the work done.
    """
    engine = create_engine(sync_url(url), hide_parameters=True)
    sqlite = engine.dialect.name == "sqlite"
    if sqlite:
        make_folder_of(Path(engine.url.database or "."))
        # Changing a table on SQLite means copying and dropping it; with references enforced, the
        # drop would delete every row that refers to it.
        prepare_sqlite(engine, foreign_keys=False)
        engine = engine.execution_options(**IMMEDIATE)
    try:
        with engine.begin() as connection:
            if not sqlite:
                connection.execute(text("SET LOCAL lock_timeout = '60s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'"))
            yield connection
            if sqlite:
                _check_references(connection)
    finally:
        engine.dispose()


def _check_references(connection: Connection) -> None:
    broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    if broken:
        raise ConfigurationError(
            f"The database has {len(broken)} rows that refer to nothing (first: table "
            f"{broken[0][0]}). Nothing was changed; restore a backup or remove those rows."
        )


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for one connection; there is no `alembic.ini`."""
    from alembic.config import Config

    config = Config()
    # ConfigParser reads % as the start of a reference.
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def sync_url(url: str) -> URL:
    """The same database by a synchronous driver."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return parsed.set(drivername="sqlite")
    return parsed.set(drivername="postgresql+psycopg")


def _migrate(url: str, action: Callable[[Any, Config], None]) -> None:
    from alembic import command

    try:
        with _one_at_a_time, migration_connection(url) as connection:
            action(command, alembic_config(connection))
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        where = make_url(url).render_as_string(hide_password=True)
        raise ConfigurationError(
            f"MERGEWARD_DATABASE_URL: {where} could not be migrated: {cause}"
        ) from error


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
