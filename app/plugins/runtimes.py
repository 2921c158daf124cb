"""The runtime of a run: one for each set of providers, shared by all runs of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from app.agents.port import AgentResult, AgentTask, EventSink, Runtime, ignore_events
from app.agents.runtimes.direct.providers import ProviderSettings
from app.errors import PluginError
from app.plugins.configuration import RunConfiguration

MakeRuntime = Callable[[tuple[ProviderSettings, ...]], AbstractAsyncContextManager[Runtime]]

MOST_RUNTIMES = 32
"""Sets of providers in one process. Each has a connection pool of its own, so what differs from run
to run belongs into headers of the run, not into a provider's settings."""


class RuntimeSource(Protocol):
    """Where runs get their runtime."""

    async def for_run(self, configuration: RunConfiguration) -> Runtime:
        """The runtime that reaches the configuration's providers and sends its headers."""
        ...


class Runtimes:
    """Implements `RuntimeSource`. Close it with `async with`; runs must be over by then."""

    def __init__(self, make: MakeRuntime) -> None:
        self._make = make
        self._opened: list[tuple[tuple[ProviderSettings, ...], Runtime]] = []
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def for_run(self, configuration: RunConfiguration) -> Runtime:
        """Raises PluginError when every run has other providers."""
        async with self._opening:
            runtime = await self._runtime(configuration.providers)
        return _WithHeaders(runtime, configuration.headers) if configuration.headers else runtime

    async def _runtime(self, providers: tuple[ProviderSettings, ...]) -> Runtime:
        for known, runtime in self._opened:
            if known == providers:
                return runtime
        if len(self._opened) >= MOST_RUNTIMES:
            raise PluginError(
                f"Plugins have registered {MOST_RUNTIMES} different sets of providers. Give what "
                "differs from run to run as request headers."
            )
        runtime = await self._stack.enter_async_context(self._make(providers))
        self._opened.append((providers, runtime))
        return runtime

    async def __aenter__(self) -> Runtimes:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._opened.clear()
        await self._stack.aclose()


@dataclass(frozen=True, slots=True)
class OneRuntime:
    """Implements `RuntimeSource` with the one runtime that there is."""

    runtime: Runtime

    async def for_run(self, configuration: RunConfiguration) -> Runtime:
        if configuration.headers:
            return _WithHeaders(self.runtime, configuration.headers)
        return self.runtime


@dataclass(frozen=True, slots=True)
class _WithHeaders:
    """Gives each task the headers of its run."""

    runtime: Runtime
    headers: Mapping[str, Mapping[str, str]]

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        return await self.runtime.run(replace(task, headers=self.headers), on_event)
