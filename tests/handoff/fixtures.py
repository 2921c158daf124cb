"""Fixtures of the stories around the end of a pull request: SQLite, one database for a module."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import event

from app.git.mirror_folder import create
from app.store.session import Store, open_store
from app.store.tables import METADATA
from tests.git.repos import BareRepo
from tests.handoff.stage import BASE, Stage, open_stage
from tests.store.rows import REPOSITORY

MakeStage = Callable[[str], Awaitable[Stage]]

in_module_loop = pytest.mark.asyncio(loop_scope="module")
"""For `pytestmark`: statements are compiled once for all tests of the module."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_store(
    tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> AsyncIterator[Store]:
    path = tmp_path_factory.mktemp("ledger") / "test.db"
    shutil.copy(sqlite_template, path)
    opened = open_store(f"sqlite+aiosqlite:///{path}")
    event.listen(opened.engine.sync_engine, "connect", _do_not_wait_for_the_disk)
    yield opened
    await opened.close()


def _do_not_wait_for_the_disk(connection: Any, _record: Any) -> None:
    """Nobody pulls the plug on a test; its database need not survive that."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = OFF")
    cursor.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(module_store: Store) -> Store:
    """The module's database, empty."""
    async with module_store.write() as session:
        for table in reversed(METADATA.sorted_tables):
            await session.exec(table.delete())
    return module_store


@pytest.fixture(scope="session")
def stage_templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every stage begins with, made once and copied: most of a short story's processes."""
    folder = tmp_path_factory.mktemp("templates")
    BareRepo.create(folder / "origin.git").commit(BASE)
    asyncio.run(create(folder / "mirrors" / f"{REPOSITORY}.git"))
    return folder


@pytest_asyncio.fixture(loop_scope="module")
async def stage(store: Store, tmp_path: Path, stage_templates: Path) -> Stage:
    shutil.copytree(stage_templates, tmp_path, dirs_exist_ok=True)
    return await open_stage(store, tmp_path)


@pytest.fixture
def make_stage(store: Store, tmp_path: Path, stage_templates: Path) -> MakeStage:
    """A stage whose repository has this policy."""

    async def make(policy: str) -> Stage:
        shutil.copytree(stage_templates, tmp_path, dirs_exist_ok=True)
        return await open_stage(store, tmp_path, policy)

    return make
