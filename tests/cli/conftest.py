"""What the tests of the command line share."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_stage import KEY, Checkout, scripted_model


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A repository whose branch `topic` is checked out and changes nothing yet."""
    return Checkout.create(tmp_path / "notes")


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The shipped scenario `review`, served."""
    with scripted_model("review") as url:
        yield url


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No settings of the machine, and logging as it was, for commands run in this process."""
    for name in list(os.environ):
        if name.startswith(("MERGEWARD_", "ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield monkeypatch
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def model(model_url: str, settled: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Settings that lead to the scripted model."""
    settled.setenv("MERGEWARD_MODEL_BASE_URL", model_url)
    settled.setenv("MERGEWARD_MODEL_API_KEY", KEY)
    return settled
