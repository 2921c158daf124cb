"""The product put together (app/wiring.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from app.clock import SystemClock
from app.domain.jobs import JobKind
from app.errors import ConfigurationError
from app.jobs.context import JobContext
from app.jobs.dispatch import InProcessDispatcher
from app.main import Services
from app.settings import load_settings
from app.store.session import open_store
from app.wiring import open_table

PEM = (
    rsa.generate_private_key(public_exponent=65537, key_size=2048)
    .private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    .decode()
)


def services(folder: Path, **difference: Any) -> Services:
    settings = load_settings(
        data_dir=folder,
        reviewer_app_id=1,
        reviewer_slug="mergeward",
        reviewer_private_key=PEM,
        reviewer_webhook_secret="secret",
        model_base_url="http://127.0.0.1:9",
        **difference,
    )
    store = open_store(settings.async_database_url)
    return Services(settings, store, InProcessDispatcher(), SystemClock())


async def test_every_kind_of_job_has_a_story(tmp_path: Path) -> None:
    """No job can be queued that nobody would ever take."""
    async with open_table(services(tmp_path)) as table:
        assert set(table.stories) == set(JobKind)


async def test_without_a_fixer_app_a_fix_fails_and_says_so(tmp_path: Path) -> None:
    """A task that nobody can do does not wait for ever, and somebody is told."""
    async with open_table(services(tmp_path)) as table:
        assert JobKind.RUN_FIX_TASK in table.after_failure
        with pytest.raises(ConfigurationError, match="MERGEWARD_FIXER_APP_ID"):
            await table.stories[JobKind.RUN_FIX_TASK](cast("JobContext", None))


async def test_an_app_without_its_slug_is_refused(tmp_path: Path) -> None:
    """Without the slug our own acts would look like another bot's: nothing starts then."""
    half = services(tmp_path, fixer_app_id=2, fixer_private_key=PEM, fixer_webhook_secret="s")
    with pytest.raises(ConfigurationError, match="MERGEWARD_FIXER_SLUG"):
        async with open_table(half):
            pass


async def test_a_start_clears_away_what_a_crash_left(tmp_path: Path) -> None:
    """Checkouts of processes that died, before any job runs."""
    (tmp_path / "work" / "fix-0" / "src").mkdir(parents=True)
    async with open_table(services(tmp_path)):
        assert list((tmp_path / "work").iterdir()) == []
