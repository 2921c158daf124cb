"""A review that is no longer wanted ends within two seconds, whatever its models do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import pytest

from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, WireFormat
from app.domain.jobs import JobKind, JobState
from app.domain.runs import RunState
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.ledger import request_cancel
from app.jobs.requests import pull_request_subject
from app.jobs.worker import Worker
from app.plugins.runtimes import OneRuntime
from app.review.pipeline import review_pull_request
from app.telemetry.runlog import read_log
from tests.agents.test_direct_runtime import calls, opening
from tests.review.story import BASE, PLANTED, Story
from tests.store.rows import REPOSITORY

KEY = "a-key-of-the-story"
GUARDED = "app/auth/login.py"
"""A path that is security-sensitive: more than one reviewer reads it."""

BOUND_S = 2.0


@dataclass
class Stalling:
    """A provider whose coordinator starts its reviewers, and whose reviewers never come to an end:
    they send nothing at all, or begin an answer."""

    begins: bool
    url: str = ""
    coordinators: int = 0
    stalled: int = 0
    most: int = 0

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        try:
            if "agent: coordinator" in json.dumps(asked["system"]):
                self.coordinators += 1
                writer.write(_HEAD + calls("spawn_reviewers", "{}").content)
                await writer.drain()
            else:
                await self._stall(reader, writer)
        finally:
            writer.close()

    async def _stall(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stalled += 1
        self.most = max(self.most, self.stalled)
        try:
            if self.begins:
                event = json.dumps(opening())
                writer.write(_HEAD + f"event: message_start\ndata: {event}\n\n".encode())
                await writer.drain()
            await reader.read()
        finally:
            self.stalled -= 1


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


async def until(holds: Callable[[], bool]) -> None:
    """A socket tells nobody here that it is gone."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@asynccontextmanager
async def working(story: Story) -> AsyncIterator[None]:
    """A worker as a service runs it, with its own heartbeat."""
    worker = Worker(
        story.store,
        {JobKind.REVIEW_PULL_REQUEST: partial(review_pull_request, services=story.services)},
        clock=story.clock,
        wakeups=InProcessDispatcher(),
    )
    running = asyncio.ensure_future(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def cancel(story: Story, reason: str) -> None:
    subject = pull_request_subject(REPOSITORY, story.number)
    async with story.store.write() as session:
        await request_cancel(session, subject=subject, reason=reason, now=story.clock.now())


@pytest.mark.parametrize("reason", ["superseded", "closed"])
@pytest.mark.parametrize("begins", [False, True], ids=["silent", "in-the-middle"])
async def test_a_cancelled_review_ends_in_time(story: Story, begins: bool, reason: str) -> None:
    """From the request to the end of every session, its connection and the job: two seconds."""
    provider = Stalling(begins)
    async with provider.served():
        settings = ProviderSettings("anthropic", WireFormat.ANTHROPIC, KEY, provider.url)
        async with DirectRuntime([settings]) as runtime:
            story.services = replace(story.services, runtimes=OneRuntime(runtime))
            story.open_pull({**BASE, GUARDED: PLANTED})
            await story.ask()
            async with working(story):
                await until(lambda: provider.stalled >= 2)
                began = time.monotonic()
                await cancel(story, reason)
                await until(lambda: provider.stalled == 0)
                while [job.state for job in await story.jobs()] != [JobState.CANCELLED]:
                    assert time.monotonic() - began < 20
                    await asyncio.sleep(0.01)
                took = time.monotonic() - began
    assert took < BOUND_S
    assert (provider.coordinators, provider.most >= 2) == (1, True)
    (run,) = await story.runs()
    assert (run.state, run.reason) == (RunState.CANCELLED, reason)
    *_, (last, _) = read_log(story.services.runs / "1" / "run.jsonl")
    assert (last["kind"], last["state"], last["reason"]) == ("ended", "cancelled", reason)
