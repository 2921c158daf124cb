"""What the check run tells while reviewers are at work: the tier, and who is done.

A request for each reviewer would cost more than the whole rest of a round, so it is told at times
that grow apart (DESIGN §7: few requests).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.agents.port import AgentEvent, EventSink, ReviewerDone
from app.clock import Clock
from app.domain.effects import SetCheckRun
from app.errors import ForgeError
from app.forges.port import Forge
from app.logs import get_logger
from app.review.facts import ReviewFacts
from app.review.plan import ReviewPlan
from app.review.publish import starting_check
from app.store.glass import Forced

TOLD_AT_S = (45.0, 150.0)
"""Seconds after the start: a small pull request is done before the first, one of ten files and four
minutes of model time is told of twice."""

TOLD_AGAIN_S = 300.0
"""Seconds between the times after those."""

log = get_logger(__name__)


def is_due(told: int, elapsed_s: float) -> bool:
    """Whether it is time to tell again, after `told` times."""
    if told < len(TOLD_AT_S):
        return elapsed_s >= TOLD_AT_S[told]
    return elapsed_s >= TOLD_AT_S[-1] + TOLD_AGAIN_S * (told + 1 - len(TOLD_AT_S))


@dataclass(slots=True)
class Progress:
    """A sink that keeps the check run of one run up to date. What it cannot tell, it leaves: no
    review fails by that. Of a head that a person approved by force (`forced`) nothing is told any
    more: its check is green."""

    forge: Forge
    facts: ReviewFacts
    plan: ReviewPlan
    run_id: int
    check_run_id: int
    began: datetime
    forced: Callable[[], Awaitable[Forced | None]]
    _done: dict[str, ReviewerDone] = field(default_factory=dict)
    _told: int = 0

    async def heard(self, event: AgentEvent, now: datetime) -> None:
        """Take an event in, and tell how far the review is when that is due."""
        if isinstance(event, ReviewerDone):
            self._done[event.key] = event
        if not is_due(self._told, (now - self.began).total_seconds()):
            return
        self._told += 1
        if await self.forced() is not None:
            return
        head = self.facts.pull_request.head_sha
        check = progress_check(self.run_id, head, self.plan, self._done)
        check = replace(check, check_run_id=self.check_run_id)
        try:
            await self.forge.ensure_check_run(self.facts.repo, check, maybe_published=False)
        except ForgeError as error:
            log.info("progress was not told", run_id=self.run_id, error=str(error))


def progress_check(
    run_id: int, head_sha: str, plan: ReviewPlan, done: Mapping[str, ReviewerDone]
) -> SetCheckRun:
    """The check of a review under way; before anybody is done its title is the plain one."""
    names = [agent.value for agent in plan.reviewers]
    over = [name for name in names if name in done]
    title = f"Reviewing: {len(over)} of {len(names)} reviewers are done"
    rows = "\n".join(f"| {name} | {_state(done.get(name))} |" for name in names)
    lines = [f"A {plan.tier.value} review is under way.", f"| Reviewer | |\n|---|---|\n{rows}"]
    if len(over) == len(names):
        lines.append("The coordinator is judging what they found.")
    started = starting_check(run_id, head_sha)
    return replace(started, title=title if over else started.title, summary="\n\n".join(lines))


def _state(done: ReviewerDone | None) -> str:
    """Numbers alone: nothing that a model wrote goes here."""
    if done is None:
        return "reading"
    found = f"{done.findings} finding{'' if done.findings == 1 else 's'} to judge"
    return f"done in part, {found}" if done.reason else f"done, {found}"


def telling(progress: Progress | None, clock: Clock, sink: EventSink) -> EventSink:
    """The sink, and progress told after it; None where nothing is shown."""
    if progress is None:
        return sink

    async def on_event(event: AgentEvent) -> None:
        await sink(event)
        await progress.heard(event, clock.now())

    return on_event
