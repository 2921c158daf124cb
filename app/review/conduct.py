"""Runs the agents of a review: the coordinator, and through it the reviewers.

What is finished is recorded at once, so a restart pays for no session twice. The coordinator
decides when its reviewers run; if it never asks for them they run all the same, and it is asked
again with their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import TypeAdapter

from app.agents.asking import AskLimits, ask
from app.agents.failback import MINIMUM_LEFT_S, unanswered
from app.agents.findings_xml import ParsedReview, ParseOutcome, parse_review
from app.agents.port import (
    AgentEvent,
    AgentTask,
    EventSink,
    FinishReason,
    HostTool,
    ModelRef,
    Runtime,
)
from app.agents.prompt_context import PromptContext, coordinator_prompt, reviewer_prompt
from app.agents.prompts import SystemPrompt
from app.agents.rationed import SESSIONS_PER_AGENT, RationedRuntime
from app.agents.reviewer_results import ReviewerOutcome, joined, render_reviewer_results
from app.agents.scheduler import DEFAULT_LIMITS, SchedulerLimits, run_reviewers
from app.agents.splitting import halves_of, unread_after, with_halves
from app.agents.tasks import agent_task, limits_for
from app.agents.tools import coordinator_tools, reviewer_tools
from app.agents.workspace import Workspace
from app.domain.findings import ReportedFinding
from app.domain.runs import AgentName, Usage
from app.errors import AgentError
from app.plugins.contributions import READING
from app.review.looked import kept_unread, looked_at

_OUTCOME: TypeAdapter[ReviewerOutcome] = TypeAdapter(ReviewerOutcome)
_USAGE: TypeAdapter[Usage] = TypeAdapter(Usage)


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


@dataclass(frozen=True, slots=True)
class Conducted:
    """What the agents said. `incomplete` names those whose part is missing or was cut off;
    `unread` are files that no reviewer has read, `read` those that the coordinator looked at."""

    outcomes: tuple[ReviewerOutcome, ...]
    review: ParsedReview
    usage: Usage
    models: tuple[str, ...]
    incomplete: tuple[str, ...]
    prompt_versions: Mapping[str, str]
    unread: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    coordinator_usage: Usage = field(default_factory=Usage)

    @property
    def reported(self) -> tuple[ReportedFinding, ...]:
        return tuple(finding for outcome in self.outcomes for finding in outcome.findings)


async def conduct(
    brief: Brief, runtime: Runtime, journal: Journal, on_event: EventSink
) -> Conducted:
    """Run the review. Raises AgentError when nothing can be concluded from it."""
    # However often an agent is asked again, also after restarts: DESIGN §3.8 counts on it.
    desk = _Desk(brief, RationedRuntime(runtime, journal), journal, on_event)
    try:
        answer = await desk.coordinate()
        outcomes = await desk.results()
    finally:
        await desk.clear()
    if all(item.status is ParseOutcome.FAILED for item in outcomes):
        why = ", ".join(f"{item.reviewer}: {item.reason or 'failed'}" for item in outcomes)
        reasons = [item.reason for item in outcomes]
        raise unanswered(f"No reviewer gave an answer ({why}).", reasons)
    if answer.review.outcome is ParseOutcome.FAILED:
        raise AgentError(f"The coordinator gave no usable answer ({answer.reason}).")
    return replace(_conducted(answer, outcomes, desk.versions), unread=desk.unread)


@dataclass(frozen=True, slots=True)
class _CoordinatorAnswer:
    review: ParsedReview
    reason: str
    usage: Usage
    model: str | None
    read: frozenset[str]


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
class _Desk:
    """The state of one review while it runs: results of reviewers, each got once."""

    brief: Brief
    runtime: RationedRuntime
    journal: Journal
    on_event: EventSink
    versions: dict[str, str] = field(default_factory=dict)
    asked_for: bool = False
    unread_by: dict[AgentName, frozenset[str]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    ends: float = 0.0
    _running: asyncio.Future[tuple[ReviewerOutcome, ...]] | None = None

    async def coordinate(self) -> _CoordinatorAnswer:
        """The coordinator's answer. One that never saw its reviewers' results is asked again."""
        if self.journal.has("coordinator"):
            return _restore(self.journal.recorded("coordinator"), self.brief)
        context = self.brief.context.for_agent(AgentName.COORDINATOR)
        answer = await self._ask(coordinator_prompt(context))
        if not self.asked_for:
            results = await self.results()
            second = await self._ask(coordinator_prompt(context, results=results))
            answer = {**second, "usage": _sum(answer["usage"], second["usage"])}
        answer = await self._looked_at(context, answer)
        answer["read"] = sorted(self.read)
        await self.journal.record("coordinator", answer)
        return _restore(answer, self.brief)

    async def _looked_at(self, context: PromptContext, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, or a second one if the first kept what is in doubt and did not look.

        It is sent back once, within the coordinator's sessions and its time. If that comes to no
        whole answer the first one stands: the reviewer's word then counts as it was given, since
        a doubt that nobody looked into is no reason to lose what may be true.
        """
        results = await self.results()
        first = _restore(answer, self.brief).review
        unread = kept_unread(first, results, self.brief.known_paths, self.read)
        spent = _USAGE.validate_python(answer["usage"]).model_seconds
        if not unread or not self.runtime.left(AgentName.COORDINATOR.value):
            return answer
        if limits_for(AgentName.COORDINATOR).timeout_s - spent < MINIMUM_LEFT_S:
            return answer
        prompt = coordinator_prompt(context, results=results, unread=unread)
        try:
            second = await self._ask(prompt, sessions=1, spent_s=spent)
        except AgentError:
            return answer
        both = _sum(answer["usage"], second["usage"])
        whole = _restore(second, self.brief).review.outcome is ParseOutcome.OK
        return {**(second if whole else answer), "usage": both}

    async def _see(self, event: AgentEvent) -> None:
        """Note which files the coordinator looked at, then pass the event on."""
        self.read |= looked_at(event, self.brief.workspace.patches, self.brief.known_paths)
        await self.on_event(event)

    async def spawn(self, names: tuple[AgentName, ...]) -> str:
        """The tool `spawn_reviewers`: all reviewers of the tier, whichever were named."""
        self.asked_for = True
        return render_reviewer_results(await self.results())

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
        return joined(outcomes)

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
        task = self._task(part.agent, prompt, self._reading(part.agent), spent_s=spent_s)
        limits = SchedulerLimits(
            total_s=max(0.0, self.ends - asyncio.get_running_loop().time()),
            sessions=max(1, self.runtime.left(task.key) - part.later),
        )
        (outcome,) = await run_reviewers(
            (task,), self.runtime, self.brief.known_paths, on_event=self.on_event, limits=limits
        )
        await self.journal.record(part.step, _OUTCOME.dump_python(outcome, mode="json"))
        return outcome

    async def _ask(
        self, prompt: str, *, sessions: int = SESSIONS_PER_AGENT, spent_s: float = 0.0
    ) -> dict[str, Any]:
        tools = coordinator_tools(self.brief.workspace, self.spawn)
        task = self._task(AgentName.COORDINATOR, prompt, tools, spent_s=spent_s)
        answer = await ask(
            task,
            self.runtime,
            lambda text, finish: parse_review(
                text, self.brief.known_paths, finish, task.prompt_version
            ),
            on_event=self._see,
            limits=AskLimits(sessions=max(1, min(sessions, self.runtime.left(task.key)))),
        )
        if answer.failure is not None and answer.parsed.outcome is ParseOutcome.FAILED:
            # Asking it once more, with results that cost money, would meet the same wall.
            message = f"The coordinator could not be asked ({answer.reason})."
            raise unanswered(message, [answer.reason])
        cut = answer.parsed.outcome is ParseOutcome.PARTIAL
        return {
            "text": answer.text,
            "finish": FinishReason.LENGTH.value if cut else FinishReason.STOP.value,
            "reason": answer.reason,
            "usage": _USAGE.dump_python(answer.usage, mode="json"),
            "model": str(answer.model) if answer.model else None,
            "version": task.prompt_version,
        }

    def _reading(self, agent: AgentName) -> tuple[HostTool, ...]:
        """The reviewer's tools, as far as it is permitted to use them."""
        allowed = self.brief.allowed(agent)
        return tuple(t for t in reviewer_tools(self.brief.workspace) if t.name in allowed)

    def _task(
        self, agent: AgentName, prompt: str, tools: Any, *, spent_s: float = 0.0
    ) -> AgentTask:
        """A task with what is left of the agent's own time after `spent_s`."""
        system, limits = self.brief.system_of(agent), limits_for(agent)
        limits = replace(limits, timeout_s=max(0.0, limits.timeout_s - spent_s))
        task = agent_task(
            agent, prompt, self.brief.models(agent), tools, system=system, limits=limits
        )
        self.versions[agent.value] = task.prompt_version
        return task


def _restore(kept: Mapping[str, Any], brief: Brief) -> _CoordinatorAnswer:
    """The recorded text, read again: parsing is pure, so nothing else has to be stored."""
    review = parse_review(
        kept["text"], brief.known_paths, FinishReason(kept["finish"]), kept["version"]
    )
    usage = _USAGE.validate_python(kept["usage"])
    read = frozenset(kept.get("read", ()))
    return _CoordinatorAnswer(review, kept["reason"] or "malformed", usage, kept["model"], read)


def _sum(first: Any, second: Any) -> Any:
    total = _USAGE.validate_python(first) + _USAGE.validate_python(second)
    return _USAGE.dump_python(total, mode="json")


def _conducted(
    answer: _CoordinatorAnswer,
    outcomes: tuple[ReviewerOutcome, ...],
    versions: Mapping[str, str],
) -> Conducted:
    incomplete = [item.reviewer.value for item in outcomes if item.status is not ParseOutcome.OK]
    if answer.review.outcome is not ParseOutcome.OK:
        incomplete.append(AgentName.COORDINATOR.value)
    models = {str(item.model) for item in outcomes if item.model is not None}
    models |= {answer.model} if answer.model else set()
    return Conducted(
        outcomes=outcomes,
        review=answer.review,
        usage=sum((item.usage for item in outcomes), start=answer.usage),
        models=tuple(sorted(models)),
        incomplete=tuple(incomplete),
        prompt_versions=dict(versions),
        read=answer.read,
        coordinator_usage=answer.usage,
    )
