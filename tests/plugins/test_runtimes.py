"""One runtime for each set of providers (app/plugins/runtimes.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from app.agents.port import (
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ModelRef,
    Runtime,
    ignore_events,
)
from app.agents.runtimes.direct.providers import ProviderSettings, WireFormat
from app.domain.runs import AgentName, Usage
from app.errors import PluginError
from app.plugins.configuration import RunConfiguration
from app.plugins.facts import no_file
from app.plugins.lifecycle import PluginHost
from app.plugins.runtimes import MOST_RUNTIMES, Runtimes
from tests.plugins.factories import FACTS, base

TASK = AgentTask(AgentName.SECURITY, "s", "p", (ModelRef("anthropic", "m"),))


@dataclass
class Opened:
    """Counts what is open, and keeps what ran."""

    open: int = 0
    tasks: list[AgentTask] = field(default_factory=list)

    @asynccontextmanager
    async def make(self, providers: tuple[ProviderSettings, ...]) -> AsyncIterator[Runtime]:
        self.open += 1
        yield self
        self.open -= 1

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        self.tasks.append(task)
        return AgentResult("", Usage(), FinishReason.STOP)


@pytest.fixture
async def made() -> RunConfiguration:
    return await PluginHost((base(),)).configured(FACTS, no_file)


def other(number: int) -> tuple[ProviderSettings, ...]:
    return (ProviderSettings("p", WireFormat.OPENAI, f"key-{number:08}"),)


async def test_runs_share_a_runtime_and_all_are_closed(made: RunConfiguration) -> None:
    """Equal providers are one connection pool; other ones are another."""
    opened = Opened()
    async with Runtimes(opened.make) as runtimes:
        first = await runtimes.for_run(made)
        assert await runtimes.for_run(replace(made)) is first
        await runtimes.for_run(replace(made, providers=other(1)))
        assert opened.open == 2
    assert opened.open == 0


async def test_headers_of_a_run_are_its_own(made: RunConfiguration) -> None:
    """Two runs at once on one runtime never send each other's headers."""
    opened = Opened()
    async with Runtimes(opened.make) as runtimes:
        for user in ("a", "b"):
            headers = {"anthropic": {"x-user": user}}
            await (await runtimes.for_run(replace(made, headers=headers))).run(TASK)
        await (await runtimes.for_run(made)).run(TASK)
    assert opened.open == 0
    assert [dict(task.headers) for task in opened.tasks] == [
        {"anthropic": {"x-user": "a"}},
        {"anthropic": {"x-user": "b"}},
        {},
    ]


async def test_providers_that_change_with_each_run_are_refused(made: RunConfiguration) -> None:
    """Each would keep connections for ever; the message says what to do instead."""
    async with Runtimes(Opened().make) as runtimes:
        for number in range(MOST_RUNTIMES):
            await runtimes.for_run(replace(made, providers=other(number)))
        with pytest.raises(PluginError, match="request headers"):
            await runtimes.for_run(replace(made, providers=other(MOST_RUNTIMES)))
        await runtimes.for_run(replace(made, providers=other(0)))
