from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.store.session import open_store
from tests.review.story import Story, open_story
from tests.store.databases import sqlite_template

__all__ = ["sqlite_template", "story"]


@pytest.fixture
async def story(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Story]:
    """A repository that Mergeward was just installed on. (The store has tests on PostgreSQL.)"""
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    opened = open_store(f"sqlite+aiosqlite:///{tmp_path / 'ledger.db'}")
    yield await open_story(opened, tmp_path)
    await opened.close()
