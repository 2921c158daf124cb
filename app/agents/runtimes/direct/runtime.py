"""The `direct` runtime: hundreds of sessions side by side in one process."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from app.agents.failback import within_family
from app.agents.port import (
    AgentErrorKind,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ignore_events,
)
from app.agents.runtimes.direct.conversation import Conversation
from app.agents.runtimes.direct.providers import Connections, ProviderSettings, WireFormat
from app.agents.runtimes.direct.session import Session, Surroundings
from app.domain.runs import Usage

if TYPE_CHECKING:
    import httpx2

_LIBRARIES = {
    WireFormat.ANTHROPIC: "pydantic_ai.models.anthropic",
    WireFormat.OPENAI: "pydantic_ai.models.openai",
}


class DirectRuntime:
    """Runs sessions through pydantic-ai. Implements `app.agents.port.Runtime`.

    Holds the provider keys and one connection pool: `aclose` when done, or use `async with`.
    """

    def __init__(
        self,
        providers: Iterable[ProviderSettings],
        *,
        around: Surroundings | None = None,
        http_client: Callable[[], httpx2.AsyncClient] | None = None,
    ) -> None:
        self._connections = Connections(providers, http_client=http_client)
        self._around = around or Surroundings()

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        """Run one session. Faults of a provider are in the result, see `app.agents.port`."""
        models = tuple(m for m in within_family(task.models) if self._connections.knows(m))
        if not models:
            return _no_model(task)
        await self.warm()
        talk = Conversation(self._connections, task, self._around.price)
        return await Session(task, models, talk, on_event, self._around).run()

    async def warm(self) -> None:
        """Load what the configured providers need, before the first run has to."""
        await warm(self._connections.wires())

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def __aenter__(self) -> DirectRuntime:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def warm(wires: Iterable[WireFormat] = (WireFormat.ANTHROPIC,)) -> None:
    """Load the model libraries (seconds when cold) in a thread, so that the loop can go on."""
    names = ["pydantic_ai.direct", *(_LIBRARIES[wire] for wire in sorted(wires))]
    if any(name not in sys.modules for name in names):
        await asyncio.to_thread(_load, names)


def _load(names: Iterable[str]) -> None:
    for name in names:
        importlib.import_module(name)


def _no_model(task: AgentTask) -> AgentResult:
    wanted = ", ".join(str(model) for model in task.models) or "none"
    failure = AgentFailure(
        AgentErrorKind.NO_MODEL, f"no configured provider serves this agent's models ({wanted})"
    )
    return AgentResult("", Usage(), FinishReason.ERROR, failure)
