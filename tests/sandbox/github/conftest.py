"""Fixtures of the GitHub double's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.sandbox.github.stage import Receiver, Stage, receiving, staged


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """The cast without webhooks."""
    async with staged() as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[Stage]:
    """One cast for all tests of refusals: they leave it as it was."""
    async with staged() as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def battered() -> AsyncIterator[Stage]:
    """One cast for requests of odd shapes, some of which are accepted."""
    async with staged() as made:
        yield made


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """An independent webhook receiver."""
    async with receiving() as made:
        yield made


@pytest.fixture
async def hooked(receiver: Receiver) -> AsyncIterator[Stage]:
    """The cast with App `ward` sending webhooks to `receiver`; those of the set-up are gone."""
    async with staged(webhook=receiver.url) as made:
        await made.gh.drain()
        receiver.received.clear()
        yield made
