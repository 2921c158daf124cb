"""Runs a round's reviewers side by side. What becomes of each is a value, never an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.agents.asking import Answer, AskLimits, ask
from app.agents.failback import MINIMUM_LEFT_S
from app.agents.findings_xml import ParsedFindings, ParseOutcome, parse_findings
from app.agents.port import AgentTask, EventSink, FinishReason, Runtime, ignore_events
from app.agents.rationed import SESSIONS_PER_AGENT
from app.agents.reviewer_results import ReviewerOutcome


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Bounds of one round's reviewers (DESIGN §4). Each task has its own timeout besides.

    `sessions` are all that one task may take.
    """

    total_s: float = 25 * 60.0
    at_once: int = 7
    minimum_left_s: float = MINIMUM_LEFT_S
    sessions: int = SESSIONS_PER_AGENT


DEFAULT_LIMITS = SchedulerLimits()


async def run_reviewers(
    tasks: Sequence[AgentTask],
    runtime: Runtime,
    known_paths: Collection[str],
    *,
    on_event: EventSink = ignore_events,
    limits: SchedulerLimits = DEFAULT_LIMITS,
) -> tuple[ReviewerOutcome, ...]:
    """One outcome per task, in their order. Waiting for a place counts against the total.

    Cancelling this cancels every session and waits for them. An error of the event sink or a lost
    job ends all and is raised.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + limits.total_s
    places = asyncio.Semaphore(limits.at_once)

    async def run_one(task: AgentTask) -> ReviewerOutcome:
        async with places:
            left = ends - loop.time()
            if left <= 0:
                return ReviewerOutcome(task.agent, ParseOutcome.FAILED, reason="timeout")
            return await _review(task, runtime, known_paths, on_event, left, limits)

    running = [loop.create_task(run_one(task)) for task in tasks]
    try:
        return tuple(await asyncio.gather(*running))
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _review(
    task: AgentTask,
    runtime: Runtime,
    known_paths: Collection[str],
    on_event: EventSink,
    left_s: float,
    limits: SchedulerLimits,
) -> ReviewerOutcome:
    def parse(text: str, finish: FinishReason) -> ParsedFindings:
        return parse_findings(text, task.agent, known_paths, finish, task.prompt_version)

    answer = await ask(
        task,
        runtime,
        parse,
        on_event=on_event,
        limits=AskLimits(limits.sessions, left_s, limits.minimum_left_s),
    )
    return _outcome(task, answer)


def _outcome(task: AgentTask, answer: Answer[ParsedFindings]) -> ReviewerOutcome:
    problems = answer.parsed.problems
    if answer.failure is not None:
        problems = (*problems, answer.failure.message)
    return ReviewerOutcome(
        task.agent,
        answer.parsed.outcome,
        answer.parsed.findings,
        answer.reason,
        answer.usage,
        answer.model,
        answer.sessions,
        problems,
    )
