"""Fixtures of the stories around the end of a pull request: SQLite, for speed."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from app.store.session import Store, open_store
from tests.handoff.stage import Stage, open_stage

MakeStage = Callable[[str], Awaitable[Stage]]


@pytest.fixture
async def store(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[Store]:
    path = tmp_path / "test.db"
    shutil.copy(sqlite_template, path)
    opened = open_store(f"sqlite+aiosqlite:///{path}")
    yield opened
    await opened.close()


@pytest.fixture
async def stage(store: Store, tmp_path: Path) -> Stage:
    return await open_stage(store, tmp_path)


@pytest.fixture
def make_stage(store: Store, tmp_path: Path) -> MakeStage:
    """A stage whose repository has this policy."""

    async def make(policy: str) -> Stage:
        return await open_stage(store, tmp_path, policy)

    return make
