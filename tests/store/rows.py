"""Rows that are valid by default, so that a test states only its difference."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import AppRole
from app.domain.pull_request import Account, AccountKind, PullRequest, PullRequestState
from app.store.commands import (
    BotFact,
    RepositoryFacts,
    ensure_installation,
    ensure_pull_request,
    ensure_repository,
)
from app.store.tables import PullRequestRow, Repository

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
INSTALLATION = 5_000_000_001
REPOSITORY = 7_000_000_001


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def account(login: str = "author-1", kind: AccountKind = AccountKind.USER) -> Account:
    return Account(id=crc32(login.encode()), login=login, kind=kind)


def pull_request(**difference: Any) -> PullRequest:
    values: dict[str, Any] = {
        "number": 7,
        "title": "Add a search",
        "body": "",
        "author": account(),
        "state": PullRequestState.OPEN,
        "draft": False,
        "head_ref": "feature",
        "head_sha": "a1",
        "head_repo": "acme/shop",
        "base_ref": "main",
        "base_sha": "b1",
        "default_branch": "main",
    }
    return PullRequest(**{**values, **difference})


async def add_repository(session: AsyncSession) -> Repository:
    await ensure_installation(
        session, INSTALLATION, app=AppRole.REVIEWER, account=account("acme"), now=NOW
    )
    row = await ensure_repository(
        session,
        RepositoryFacts(id=REPOSITORY, owner="acme", name="shop", default_branch="main"),
        installation_id=INSTALLATION,
        now=NOW,
    )
    assert row is not None
    return row


async def add_pull_request(
    session: AsyncSession, updated_at: datetime = NOW, **difference: Any
) -> PullRequestRow:
    return await ensure_pull_request(
        session,
        REPOSITORY,
        pull_request(**difference),
        bot=BotFact(is_bot=False),
        updated_at=updated_at,
        now=updated_at,
    )
