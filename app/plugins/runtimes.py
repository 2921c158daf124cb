"""The runtime of a run: one for each set of providers, shared by all runs of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from app.agents.port import (
    AgentEvent,
    AgentResult,
    AgentTask,
    EventSink,
    Runtime,
    ignore_events,
)
from app.agents.runtimes.direct.providers import ProviderSettings
from app.errors import PluginError
from app.logs import get_logger
from app.plugins.configuration import RunConfiguration
from app.plugins.contributions import SessionObserver

log = get_logger(__name__)

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
        return _for_run(runtime, configuration)

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
        return _for_run(self.runtime, configuration)


def _for_run(runtime: Runtime, configuration: RunConfiguration) -> Runtime:
    if not configuration.headers and not configuration.observers:
        return runtime
    return _RunRuntime(runtime, configuration.headers, configuration.observers)


@dataclass(frozen=True, slots=True)
class _RunRuntime:
    """Gives each task the headers of its run, and tells the observers of each session's events."""

    runtime: Runtime
    headers: Mapping[str, Mapping[str, str]]
    observers: tuple[SessionObserver, ...]

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        told = [observe for make in self.observers if (observe := _begun(make)) is not None]

        async def on_all(event: AgentEvent) -> None:
            for observe in told:
                _tell(observe, event)
            await on_event(event)

        task = replace(task, headers=self.headers) if self.headers else task
        return await self.runtime.run(task, on_all if told else on_event)


def _begun(make: SessionObserver) -> Callable[[AgentEvent], None] | None:
    try:
        return make()
    except Exception:
        log.exception("an observer of sessions failed")
        return None


def _tell(observe: Callable[[AgentEvent], None], event: AgentEvent) -> None:
    try:
        observe(event)
    except Exception:
        log.exception("an observer of sessions failed")
