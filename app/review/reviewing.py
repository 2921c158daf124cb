"""The reviewers' half of a review: who reads which part, each got once, in halves where need be.

What is finished is recorded at once, so a restart pays for no session twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import TypeAdapter

from app.agents.failback import MINIMUM_LEFT_S
from app.agents.port import AgentTask, EventSink, HostTool, ModelRef, ReviewerDone
from app.agents.prompt_context import PromptContext, reviewer_prompt
from app.agents.prompts import SystemPrompt, render_system
from app.agents.rationed import RationedRuntime
from app.agents.reviewer_results import ReviewerOutcome, joined
from app.agents.scheduler import DEFAULT_LIMITS, SchedulerLimits, run_reviewers
from app.agents.splitting import halves_of, unread_after, with_halves
from app.agents.tasks import agent_task, limits_for
from app.agents.tools import reviewer_tools
from app.agents.workspace import Workspace
from app.domain.runs import AgentName
from app.plugins.contributions import READING

_OUTCOME: TypeAdapter[ReviewerOutcome] = TypeAdapter(ReviewerOutcome)


class Journal(Protocol):
    """Where finished sessions are kept. A job's context is one."""

    def has(self, name: str) -> bool: ...

    def recorded(self, name: str) -> Any: ...

    async def record(self, name: str, result: Any = None) -> None: ...


@dataclass(slots=True)
class MemoryJournal:
    """A journal for runs that are not resumed (the command line)."""

    kept: dict[str, Any] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name in self.kept

    def recorded(self, name: str) -> Any:
        return self.kept[name]

    async def record(self, name: str, result: Any = None) -> None:
        self.kept[name] = result


def _shipped(_: AgentName) -> None:
    return None


def _everything(_: AgentName) -> Collection[str]:
    return READING


@dataclass(frozen=True, slots=True)
class Brief:
    """One review to conduct: what is asked, of whom, with which models and in which jail.

    `parts` are the paths that each session of a reviewer reads, when one can't read all of them.
    `system_of` has the prompts of agents that did not ship, `allowed` the reading tools of each.
    """

    context: PromptContext
    workspace: Workspace
    reviewers: tuple[AgentName, ...]
    models: Callable[[AgentName], tuple[ModelRef, ...]]
    known_paths: frozenset[str]
    parts: tuple[frozenset[str], ...] = ()
    system_of: Callable[[AgentName], SystemPrompt | None] = _shipped
    allowed: Callable[[AgentName], Collection[str]] = _everything

    @property
    def contexts(self) -> tuple[PromptContext, ...]:
        """What each session of a reviewer is told."""
        if len(self.parts) < 2:
            return (self.context,)
        return tuple(
            replace(
                self.context,
                changed_files=tuple(f for f in self.context.changed_files if f.path in paths),
                part=(number, len(self.parts)),
            )
            for number, paths in enumerate(self.parts, start=1)
        )

    def task(
        self,
        agent: AgentName,
        prompt: str,
        tools: tuple[HostTool, ...],
        *,
        spent_s: float = 0.0,
    ) -> AgentTask:
        """A task with what is left of the agent's own time after `spent_s`."""
        limits = limits_for(agent)
        limits = replace(limits, timeout_s=max(0.0, limits.timeout_s - spent_s))
        system = self.system_of(agent)
        return agent_task(agent, prompt, self.models(agent), tools, system=system, limits=limits)

    def reading_tools(self, agent: AgentName) -> tuple[HostTool, ...]:
        """A reviewer's tools, as far as it is permitted to use them."""
        allowed = self.allowed(agent)
        return tuple(t for t in reviewer_tools(self.workspace) if t.name in allowed)

    @property
    def prompt_versions(self) -> dict[str, str]:
        """Of every agent that takes part, also where a restart found its part done."""
        agents = (AgentName.COORDINATOR, *self.reviewers)
        return {
            agent.value: (self.system_of(agent) or render_system(agent)).version for agent in agents
        }


@dataclass(frozen=True, slots=True)
class _Part:
    """What one session of a reviewer is to read, the step its outcome is kept as, and how many
    sessions after it are spoken for."""

    agent: AgentName
    step: str
    context: PromptContext
    later: int

    def halves(self, whole: ReviewerOutcome) -> tuple[_Part, ...]:
        """The halves of a part that was too much. Each is asked once: what is left is for both."""
        return tuple(
            replace(self, step=f"{self.step}:half-{number}", context=context)
            for number, context in enumerate(halves_of(self.context, whole), start=1)
        )


@dataclass(slots=True)
class Reviewers:
    """The reviewers of one brief while they run: their results, got once."""

    brief: Brief
    runtime: RationedRuntime
    journal: Journal
    on_event: EventSink
    unread_by: dict[AgentName, frozenset[str]] = field(default_factory=dict)
    ends: float = 0.0
    _running: asyncio.Future[tuple[ReviewerOutcome, ...]] | None = None

    async def results(self) -> tuple[ReviewerOutcome, ...]:
        """The reviewers' outcomes; they run at the first call, later ones get the same.

        When that call was given up by a session that ended before its tool did, they run again,
        except those that had finished.
        """
        if self._running is None or self._running.cancelled():
            self._running = asyncio.ensure_future(self._review_all())
        try:
            return await asyncio.shield(self._running)
        except asyncio.CancelledError:
            await self.clear()
            raise

    async def clear(self) -> None:
        """End what still runs: nobody waits for it."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _review_all(self) -> tuple[ReviewerOutcome, ...]:
        self.ends = asyncio.get_running_loop().time() + DEFAULT_LIMITS.total_s
        self.unread_by.clear()
        running = [asyncio.ensure_future(self._review_one(one)) for one in self.brief.reviewers]
        try:
            return tuple(await asyncio.gather(*running))
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    @property
    def unread(self) -> frozenset[str]:
        """The files that no reviewer has read."""
        first, *others = (self.unread_by.get(one, frozenset()) for one in self.brief.reviewers)
        return first.intersection(*others)

    async def _review_one(self, agent: AgentName) -> ReviewerOutcome:
        """All parts, one after the other: together they have the agent's sessions."""
        outcomes = []
        contexts = self.brief.contexts
        for number, context in enumerate(contexts, start=1):
            step = f"reviewer:{agent.value}" + (f":{number}" if context.part else "")
            part = _Part(agent, step, context, later=len(contexts) - number)
            outcomes.append(await self._review_part(part))
        whole = joined(outcomes)
        await self.on_event(ReviewerDone(agent.value, len(whole.findings), whole.reason))
        return whole

    async def _review_part(self, part: _Part) -> ReviewerOutcome:
        """One part, and in halves where it was too much at once and sessions are left for them."""
        whole = await self._review_piece(part)
        halves: list[ReviewerOutcome] = []
        unread = unread_after(part.context, whole)
        for half in part.halves(whole):
            if not self.journal.has(half.step) and not self._has_room(half, whole):
                break
            outcome = await self._review_piece(half, spent_s=whole.usage.model_seconds)
            halves.append(outcome)
            read = frozenset(file.path for file in half.context.changed_files)
            unread = (unread - read) | (unread & unread_after(half.context, outcome))
        known = self.unread_by.get(part.agent, frozenset())
        self.unread_by[part.agent] = known | unread
        return with_halves(whole, halves)

    def _has_room(self, part: _Part, whole: ReviewerOutcome) -> bool:
        """Whether one more session may begin: the ration of later parts is theirs, and nothing
        begins with too little time left."""
        own = limits_for(part.agent).timeout_s - whole.usage.model_seconds
        left_s = min(own, self.ends - asyncio.get_running_loop().time())
        return self.runtime.left(part.agent.value) > part.later and left_s >= MINIMUM_LEFT_S

    async def _review_piece(self, part: _Part, *, spent_s: float = 0.0) -> ReviewerOutcome:
        if self.journal.has(part.step):
            return _OUTCOME.validate_python(self.journal.recorded(part.step))
        prompt = reviewer_prompt(part.context.for_agent(part.agent))
        task = self.brief.task(
            part.agent, prompt, self.brief.reading_tools(part.agent), spent_s=spent_s
        )
        limits = SchedulerLimits(
            total_s=max(0.0, self.ends - asyncio.get_running_loop().time()),
            sessions=max(1, self.runtime.left(task.key) - part.later),
        )
        (outcome,) = await run_reviewers(
            (task,), self.runtime, self.brief.known_paths, on_event=self.on_event, limits=limits
        )
        await self.journal.record(part.step, _OUTCOME.dump_python(outcome, mode="json"))
        return outcome
