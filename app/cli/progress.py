"""What a person sees while agents work: one moving line on a terminal, else plain lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from app.agents.logged import heartbeat
from app.agents.port import (
    AgentEvent,
    AgentResult,
    Finished,
    ModelCallFinished,
    Retrying,
    Started,
    Thinking,
    ToolCalled,
)
from app.cli.output import one_line
from app.domain.runs import AgentName, Usage

HEARTBEAT_S = 30.0
"""Without a terminal, silence is broken this often."""


@dataclass(slots=True)
class Progress:
    """An event sink that tells who is at work. `used` is what all calls took so far."""

    console: Console
    tier: str
    reviewers: tuple[AgentName, ...]
    used: Usage = field(default_factory=Usage)
    _began: dict[str, float] = field(default_factory=dict)
    _running: dict[str, str] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)
    _status: Status | None = None
    _spoke: float = field(default_factory=time.monotonic)

    async def __call__(self, event: AgentEvent) -> None:
        match event:
            case Started(key=key):
                self._begin(key)
            case ToolCalled(key=key, name=name):
                self._running[key] = one_line(name)
            case Thinking():
                self._say(f"{event.key}: {heartbeat(event)}")
            case Retrying(key=key, failure=failure, wait_s=wait):
                self._say(f"{key}: {failure.kind.value}, trying again in {wait:.0f} s")
            case ModelCallFinished(usage=usage):
                self.used += usage
            case Finished(key=key, result=result):
                self._end(key, result)
        self._refresh()

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Progress is visible until the block ends."""
        beating = asyncio.create_task(self._beat())
        try:
            if self.console.is_terminal:
                with self.console.status(self._line()) as self._status:
                    yield
            else:
                yield
        finally:
            self._status = None
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    def _begin(self, key: str) -> None:
        if key not in self._running:
            self._began[key] = time.monotonic()
            self._say(f"{key} started", only_plain=True)
        self._running[key] = "thinking"

    def _end(self, key: str, result: AgentResult) -> None:
        self._running.pop(key, None)
        self._done.add(key)
        took = time.monotonic() - self._began.get(key, time.monotonic())
        if result.error is not None:
            self._say(f"{key} failed: {result.error.kind.value}: {result.error.message}")
        else:
            self._say(f"{key} done in {took:.1f} s", only_plain=True)

    def _line(self) -> str:
        finished = sum(1 for agent in self.reviewers if agent.value in self._done)
        at_work = ", ".join(f"{key} ({what})" for key, what in sorted(self._running.items()))
        head = f"{self.tier} review: {finished} of {len(self.reviewers)} reviewers done"
        return escape(f"{head}; {at_work or self._idle()}")

    def _idle(self) -> str:
        """What goes on before the first session and after the last."""
        return "finishing" if self._done else "loading the model libraries"

    def _refresh(self) -> None:
        if self._status is not None:
            self._status.update(self._line())

    def _say(self, text: str, *, only_plain: bool = False) -> None:
        """A line that stays; `only_plain` ones are on a terminal in the moving line already."""
        if only_plain and self.console.is_terminal:
            return
        self._spoke = time.monotonic()
        self.console.print(one_line(text), markup=False, highlight=False, soft_wrap=True)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S / 10)
            silent = time.monotonic() - self._spoke
            if silent >= HEARTBEAT_S and not self.console.is_terminal:
                self._say(f"still at it ({self._names()})")

    def _names(self) -> str:
        return ", ".join(sorted(self._running)) or self._idle()


def opening(tier: str, files: int, reviewers: Sequence[AgentName]) -> str:
    """The first line: what is about to be read, and by whom."""
    names = ", ".join(agent.value for agent in reviewers)
    return f"Reviewing {files} file{'' if files == 1 else 's'} ({tier} tier) with {names}."
