"""Migrations lead to the tables of this version and back, on every database."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, Table, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from app.errors import ConfigurationError
from app.store.migrate import (
    HEAD,
    alembic_config,
    current_revision,
    downgrade,
    is_current,
    migration_connection,
    migrations_dir,
    upgrade,
)
from app.store.session import open_store
from app.store.tables import METADATA


def tables(url: str) -> set[str]:
    with migration_connection(url) as connection:
        return set(inspect(connection).get_table_names())


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, METADATA))


def test_up_and_down(empty_url: str) -> None:
    """Up makes every table, down takes every one away, and up works again."""
    upgrade(empty_url)
    assert tables(empty_url) == set(METADATA.tables) | {"alembic_version"}
    downgrade(empty_url)
    assert tables(empty_url) == {"alembic_version"}
    upgrade(empty_url)
    upgrade(empty_url)
    assert tables(empty_url) >= set(METADATA.tables)


def test_models_and_migrations_agree(empty_url: str) -> None:
    """After all migrations there is nothing left to migrate."""
    upgrade(empty_url)
    with migration_connection(empty_url) as connection:
        assert differences(connection) == []


def test_disagreement_would_be_seen(empty_url: str) -> None:
    """The comparison above notices a column and an index that are not there."""
    upgrade(empty_url)
    with migration_connection(empty_url) as connection:
        connection.execute(text("DROP INDEX ix_jobs_ready"))
        connection.execute(text("ALTER TABLE jobs DROP COLUMN error"))
        kinds = {difference[0] for difference in differences(connection)}
    assert kinds == {"add_index", "add_column"}


def test_partial_indexes_are_partial(empty_url: str) -> None:
    """The comparison does not look at conditions, and the ledger stands on these three."""
    upgrade(empty_url)
    with migration_connection(empty_url) as connection:
        catalogue = "sqlite_master" if connection.dialect.name == "sqlite" else "pg_indexes"
        column = "sql" if connection.dialect.name == "sqlite" else "indexdef"
        rows = connection.execute(text(f"SELECT {column} FROM {catalogue}")).scalars()  # noqa: S608  # two constants
        partial = {
            row.split()[3]: row for row in rows if row and "UNIQUE" in row and "WHERE" in row
        }
    assert set(partial) == {"uq_jobs_live_key", "uq_jobs_running_lane", "uq_orders_pending"}
    assert "queued" in partial["uq_jobs_live_key"]
    assert "running" in partial["uq_jobs_live_key"]


async def test_the_present_revision_is_known(empty_url: str) -> None:
    """Asking for it needs no Alembic, and an empty database has none."""
    before = open_store(empty_url)
    assert await current_revision(before) is None
    assert not await is_current(before)
    await before.close()
    await asyncio.to_thread(upgrade, empty_url)
    after = open_store(empty_url)
    assert await current_revision(after) == HEAD
    assert await is_current(after)
    await after.close()


def test_two_processes_may_start_at_once(empty_url: str) -> None:
    """Both migrate, one waits for the other, and neither fails."""
    program = "import sys; from app.store.migrate import upgrade; upgrade(sys.argv[1])"
    started = [
        subprocess.Popen([sys.executable, "-c", program, empty_url], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [(process.communicate()[1], process.returncode) for process in started] == [(b"", 0)] * 2
    with migration_connection(empty_url) as connection:
        assert differences(connection) == []


def filled(table: Table) -> dict[str, Any]:
    """Something for every column that needs a value; 1 for whole numbers, so for references too."""
    some: dict[type, Any] = {int: 1, str: "1", bool: False, float: 1.0, datetime: datetime.now(UTC)}
    return {
        column.name: some.get(column.type.python_type, [])
        for column in table.columns
        if not column.nullable
    }


def test_a_lineage_of_before_begins_to_count_its_sessions(empty_url: str) -> None:
    """0002 keeps the rows that are there, up and down: they start at zero."""
    upgrade(empty_url, "0001")
    with migration_connection(empty_url) as connection:
        for name in ("installations", "repositories", "pull_requests", "lineages"):
            table = Table(name, MetaData(), autoload_with=connection, resolve_fks=False)
            connection.execute(table.insert().values(filled(table)))
    upgrade(empty_url)
    with migration_connection(empty_url) as connection:
        rows = connection.execute(text("SELECT id, sessions FROM lineages")).all()
        assert [tuple(row) for row in rows] == [(1, 0)]
    downgrade(empty_url, "0001")
    with migration_connection(empty_url) as connection:
        assert connection.execute(text("SELECT count(*) FROM lineages")).scalar() == 1


def test_a_failed_migration_changes_nothing(empty_url: str) -> None:
    """All of it or none of it, on both databases."""

    def fail() -> None:
        with migration_connection(empty_url) as connection:
            command.upgrade(alembic_config(connection), "head")
            connection.execute(text("SELECT * FROM no_such_table"))

    with pytest.raises(SQLAlchemyError):
        fail()
    assert tables(empty_url) == set()


def test_broken_references_stop_a_migration(tmp_path: Path) -> None:
    """References are not enforced while SQLite copies tables, so they are checked at the end."""
    url = f"sqlite:///{tmp_path / 'x.db'}"
    upgrade(url)

    def break_one() -> None:
        with migration_connection(url) as connection:
            connection.execute(
                text("INSERT INTO job_steps (job_id, name, recorded_at) VALUES (1, 'x', 'now')")
            )

    with pytest.raises(ConfigurationError, match="job_steps"):
        break_one()


def test_the_constant_is_the_newest_revision(tmp_path: Path) -> None:
    """`HEAD` is kept by hand; here is who reminds us."""
    with migration_connection(f"sqlite:///{tmp_path / 'x.db'}") as connection:
        script = ScriptDirectory.from_config(alembic_config(connection))
    assert script.get_heads() == [HEAD]
    assert Path(script.dir) == migrations_dir()


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("postgresql://nobody:hunter2@127.0.0.1:1/none", id="nobody-listens"),
        pytest.param("sqlite:////proc/none/mergeward.db", id="no-folder"),
    ],
)
def test_an_unreachable_database_is_a_setting_to_correct(url: str) -> None:
    """The message names the setting and never the password."""
    with pytest.raises(ConfigurationError, match="MERGEWARD_DATABASE_URL") as caught:
        upgrade(url)
    assert "hunter2" not in str(caught.value)


def test_migrations_do_not_depend_on_the_models() -> None:
    """A migration that imports `app` would change when the models do."""
    for path in (migrations_dir() / "versions").glob("*.py"):
        assert not re.search(r"^\s*(from|import) app", path.read_text(), re.MULTILINE), path.name
