from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from app.store.session import open_store
from tests.review.story import Story, open_story
from tests.store.databases import database_url, postgres_schema, sqlite_template, store

__all__ = ["database_url", "postgres_schema", "sqlite_template", "store", "story"]


@pytest.fixture
async def story(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Story]:
    """A repository that Mergeward was just installed on. (The store has tests on PostgreSQL.)"""
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    opened = open_store(f"sqlite+aiosqlite:///{tmp_path / 'ledger.db'}")
    event.listen(opened.engine.sync_engine, "connect", _quick)
    yield await open_story(opened, tmp_path)
    await opened.close()


def _quick(connection: Any, _record: Any) -> None:
    """No test pulls the plug: what is written need not reach the disk."""
    connection.execute("PRAGMA synchronous = OFF")
