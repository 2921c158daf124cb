"""A repository on disk that plays the forge's, and how it is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.git.process import Remote
from tests.git.repos import BareRepo


@pytest.fixture
def origin(tmp_path: Path) -> BareRepo:
    return BareRepo.create(tmp_path / "origin.git")


@pytest.fixture
def remote(origin: BareRepo) -> Remote:
    return Remote(origin.url)
