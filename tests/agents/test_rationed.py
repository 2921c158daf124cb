"""So many sessions of one agent and no more, whoever asks and whichever worker died meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from app.agents.port import (
    AgentErrorKind,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ModelRef,
    ignore_events,
)
from app.agents.rationed import SESSIONS_PER_AGENT, RationedRuntime
from app.agents.tasks import agent_task
from app.domain.runs import AgentName, Usage
from app.errors import LeaseLost
from loop_guards import Limits


@dataclass
class Kept:
    """A journal in memory."""

    names: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return name in self.names

    async def record(self, name: str, result: Any = None) -> None:
        self.names.append(name)


class Lost(Kept):
    async def record(self, name: str, result: Any = None) -> None:
        raise LeaseLost("another worker has it")


@dataclass
class Counting:
    """Counts its sessions."""

    begun: list[str] = field(default_factory=list)

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        self.begun.append(task.key)
        return AgentResult("said", Usage(), FinishReason.STOP)


def task(agent: AgentName = AgentName.SECURITY) -> AgentTask:
    return agent_task(agent, "prompt", (ModelRef("p", "m-1"),), ())


async def test_the_ration_is_an_agent_s_own() -> None:
    """Each agent has its sessions; the one after the last is refused as a value and not run."""
    inner = Counting()
    runtime = RationedRuntime(inner, Kept(), most=2)
    texts = [(await runtime.run(task())).text for _ in range(3)]
    assert texts == ["said", "said", ""]
    refused = await runtime.run(task())
    assert refused.error is not None
    assert refused.error.kind is AgentErrorKind.LIMIT
    assert (await runtime.run(task(AgentName.GENERAL))).succeeded
    assert inner.begun == ["security", "security", "general"]


async def test_another_worker_goes_on_with_what_is_left() -> None:
    """What an earlier try began is in the journal and counts."""
    journal = Kept()
    await RationedRuntime(Counting(), journal).run(task())
    later = RationedRuntime(Counting(), journal)
    assert (later.left("security"), later.left("general")) == (2, 3)


async def test_nothing_begins_that_can_not_be_recorded() -> None:
    """A job that is lost pays for no session."""
    inner = Counting()
    with pytest.raises(LeaseLost):
        await RationedRuntime(inner, Lost()).run(task())
    assert inner.begun == []


def test_the_ration_is_the_one_of_the_bound() -> None:
    """What the bound counts with is what the agents get."""
    assert Limits().sessions_per_agent == SESSIONS_PER_AGENT
    assert RationedRuntime(Counting(), Kept()).left("any") == SESSIONS_PER_AGENT
