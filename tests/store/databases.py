"""The databases a test runs on: SQLite always, PostgreSQL where a server answers.

`MERGEWARD_TEST_POSTGRES_URL` names another server than the local one. Every run makes a schema of
its own and drops it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from app.store.migrate import upgrade
from app.store.session import Store, open_store
from app.store.tables import METADATA

_POSTGRES = os.environ.get(
    "MERGEWARD_TEST_POSTGRES_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/test"
)


@cache
def postgres_url() -> URL | None:
    """The server to test on, or None if none answers within two seconds."""
    url = make_url(_POSTGRES).set(drivername="postgresql+psycopg")
    engine = create_engine(url, connect_args={"connect_timeout": 2})
    try:
        with engine.connect():
            return url
    except OperationalError:
        return None
    finally:
        engine.dispose()


def available() -> list[str]:
    return ["sqlite", "postgresql"] if postgres_url() else ["sqlite"]


def new_schema() -> tuple[URL, str]:
    """A fresh empty schema, and the URL whose connections see only it."""
    url = postgres_url()
    assert url is not None
    schema = f"mergeward_{uuid4().hex}"
    _execute(url, f"CREATE SCHEMA {schema}")
    return url.update_query_dict(
        {"options": f"-csearch_path={schema} -csynchronous_commit=off"}
    ), schema


def drop_schema(schema: str) -> None:
    url = postgres_url()
    assert url is not None
    _execute(url, f"DROP SCHEMA {schema} CASCADE")


def _execute(url: URL, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("database") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_schema() -> Iterator[str]:
    url, schema = new_schema()
    rendered = url.render_as_string(hide_password=False)
    upgrade(rendered)
    yield rendered
    drop_schema(schema)


@pytest.fixture(params=available())
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty migrated database, on each kind that is available."""
    if request.param == "sqlite":
        path = tmp_path / "test.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite+aiosqlite:///{path}"
    rendered: str = request.getfixturevalue("postgres_schema")
    # Much faster than TRUNCATE, which makes new files for every table and index.
    tables = reversed(METADATA.sorted_tables)
    _execute(make_url(rendered), "; ".join(str(table.delete()) for table in tables))
    return rendered


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = open_store(database_url)
    yield opened
    await opened.close()
