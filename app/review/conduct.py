"""Runs the agents of a review: the coordinator, and through it the reviewers.

What is finished is recorded at once, so a restart pays for no session twice. The coordinator
decides when its reviewers run; if it never asks for them they run all the same, and it is asked
again with their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from app.agents.asking import AskLimits, ask
from app.agents.failback import MINIMUM_LEFT_S, unanswered
from app.agents.findings_xml import ParsedReview, ParseOutcome, parse_review
from app.agents.port import (
    AgentEvent,
    EventSink,
    FinishReason,
    Runtime,
)
from app.agents.prompt_context import PromptContext, coordinator_prompt
from app.agents.rationed import SESSIONS_PER_AGENT, RationedRuntime
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.agents.tasks import limits_for
from app.agents.tools import coordinator_tools
from app.domain.findings import ReportedFinding
from app.domain.runs import AgentName, Usage
from app.errors import AgentError
from app.review.looked import kept_unread, looked_at
from app.review.reviewing import Brief, Journal, Reviewers

_USAGE: TypeAdapter[Usage] = TypeAdapter(Usage)


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
    rationed = RationedRuntime(runtime, journal)
    reviewers = Reviewers(brief, rationed, journal, on_event)
    try:
        answer = await _Coordinator(brief, rationed, journal, on_event, reviewers).answer()
        outcomes = await reviewers.results()
    finally:
        await reviewers.clear()
    if all(item.status is ParseOutcome.FAILED for item in outcomes):
        why = ", ".join(f"{item.reviewer}: {item.reason or 'failed'}" for item in outcomes)
        reasons = [item.reason for item in outcomes]
        raise unanswered(f"No reviewer gave an answer ({why}).", reasons)
    if answer.review.outcome is ParseOutcome.FAILED:
        raise AgentError(f"The coordinator gave no usable answer ({answer.reason}).")
    return replace(_conducted(answer, outcomes, brief.prompt_versions), unread=reviewers.unread)


@dataclass(frozen=True, slots=True)
class _CoordinatorAnswer:
    review: ParsedReview
    reason: str
    usage: Usage
    model: str | None
    read: frozenset[str]


@dataclass(slots=True)
class _Coordinator:
    """The coordinator of one review, from its first question to the answer that counts."""

    brief: Brief
    runtime: RationedRuntime
    journal: Journal
    on_event: EventSink
    reviewers: Reviewers
    asked_for: bool = False
    read: set[str] = field(default_factory=set)

    async def answer(self) -> _CoordinatorAnswer:
        """The coordinator's answer. One that never saw its reviewers' results is asked again."""
        if self.journal.has("coordinator"):
            return _restore(self.journal.recorded("coordinator"), self.brief)
        context = self.brief.context.for_agent(AgentName.COORDINATOR)
        answer = await self._ask(coordinator_prompt(context))
        if not self.asked_for:
            results = await self.reviewers.results()
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
        results = await self.reviewers.results()
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
        return render_reviewer_results(await self.reviewers.results())

    async def _ask(
        self, prompt: str, *, sessions: int = SESSIONS_PER_AGENT, spent_s: float = 0.0
    ) -> dict[str, Any]:
        tools = coordinator_tools(self.brief.workspace, self.spawn)
        task = self.brief.task(AgentName.COORDINATOR, prompt, tools, spent_s=spent_s)
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
