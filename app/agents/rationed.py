"""A runtime that runs so many sessions of one agent and no more: the A of DESIGN §3.8."""

from __future__ import annotations

from typing import Any, Protocol

from app.agents.port import (
    AgentErrorKind,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    Runtime,
    ignore_events,
)
from app.domain.runs import Usage
from loop_guards import Limits

SESSIONS_PER_AGENT = Limits().sessions_per_agent
"""Sessions that one agent may need in one round or one turn; no policy changes it."""


class Journal(Protocol):
    """Where it is kept what has begun. A job's context is one."""

    def has(self, name: str) -> bool: ...

    async def record(self, name: str, result: Any = None) -> None: ...


class RationedRuntime:
    """Implements `app.agents.port.Runtime` for one round or one turn: `most` sessions a task key.

    Each session is recorded before it begins, so one that a worker's death cut short counts too. A
    session beyond the ration is not run: its result is a `limit` failure.
    """

    def __init__(
        self, runtime: Runtime, journal: Journal, *, most: int = SESSIONS_PER_AGENT
    ) -> None:
        self._runtime = runtime
        self._journal = journal
        self._most = most

    def left(self, key: str) -> int:
        """How many sessions the agent of this key may still begin."""
        begun = 0
        while self._journal.has(_step(key, begun + 1)):
            begun += 1
        return max(0, self._most - begun)

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        """Run the session if one is left. Raises what the journal raises, before it begins."""
        left = self.left(task.key)
        if left == 0:
            used_up = f"the {self._most} sessions of {task.key} are used up"
            failure = AgentFailure(AgentErrorKind.LIMIT, used_up)
            return AgentResult("", Usage(), FinishReason.ERROR, failure)
        await self._journal.record(_step(task.key, self._most - left + 1))
        return await self._runtime.run(task, on_event)


def _step(key: str, number: int) -> str:
    return f"session:{key}:{number}"
