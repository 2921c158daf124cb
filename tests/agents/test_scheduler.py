"""Reviewers side by side: what becomes of each, and that all of it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest

from app.agents.findings_xml import ParseOutcome
from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ModelCallFinished,
    ModelRef,
    ignore_events,
)
from app.agents.prompts import render_system
from app.agents.reviewer_results import ReviewerOutcome
from app.agents.scheduler import SchedulerLimits, run_reviewers
from app.agents.tasks import agent_task, limits_for
from app.domain.runs import AgentName, Usage
from app.errors import LeaseLost
from loop_guards import Limits

MODEL = ModelRef("p", "m-1")
ONE = Usage(model_calls=1, input_tokens=5, model_seconds=0.001)
FINDING = (
    "<finding><path>a.py</path><line>1</line><severity>warning</severity>"
    "<title>T</title><body>B.</body></finding>"
)
LIMITS = SchedulerLimits(minimum_left_s=0.01)
Answer = Callable[[AgentTask], Awaitable[AgentResult]]


def result(
    text: str, finish: FinishReason = FinishReason.STOP, error: AgentFailure | None = None
) -> AgentResult:
    return AgentResult(text, ONE, finish, error, MODEL)


@dataclass
class Scripted:
    """Each agent's answers in order; one may be a coroutine function or an exception."""

    answers: dict[AgentName, list[AgentResult | Exception | Answer]]
    tasks: list[AgentTask] = field(default_factory=list)
    running: int = 0
    most_at_once: int = 0

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        self.tasks.append(task)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            answer = self.answers[task.agent].pop(0)
            if isinstance(answer, Exception):
                raise answer
            if not isinstance(answer, AgentResult):
                answer = await answer(task)
            await on_event(ModelCallFinished(task.key, 1, MODEL, ONE))
            return answer
        finally:
            self.running -= 1


def task(agent: AgentName) -> AgentTask:
    return agent_task(agent, "prompt", (MODEL,), ())


async def run(runtime: Scripted, *, limits: SchedulerLimits = LIMITS) -> list[ReviewerOutcome]:
    tasks = [task(agent) for agent in runtime.answers]
    return list(await run_reviewers(tasks, runtime, ("a.py",), limits=limits))


async def hang(_: AgentTask) -> AgentResult:
    await asyncio.sleep(30)
    return result("<findings/>")


async def test_each_gets_its_own_outcome() -> None:
    """A failure is a value with a reason; the others are not touched; usage is counted per name."""
    broken = AgentFailure(AgentErrorKind.AUTH, "bad key")
    runtime = Scripted(
        {
            AgentName.SECURITY: [result(f"<findings>{FINDING}</findings>")],
            AgentName.GENERAL: [result("", FinishReason.ERROR, broken)],
            AgentName.CODE_QUALITY: [result("<findings/>")],
        }
    )
    security, general, quality = await run(runtime)
    assert (security.status, [f.ref for f in security.findings]) == (
        ParseOutcome.OK,
        ["security-1"],
    )
    assert security.findings[0].prompt_version == render_system(AgentName.SECURITY).version
    assert (general.status, general.reason, general.sessions) == (ParseOutcome.FAILED, "auth", 1)
    assert "bad key" in general.problems[-1]
    assert (quality.status, quality.findings, quality.usage) == (ParseOutcome.OK, (), ONE)


async def test_nonsense_is_asked_for_once_more_and_then_failed() -> None:
    """The second time with a note on what was wrong; then it is failed, never empty."""
    runtime = Scripted({AgentName.SECURITY: [result("LGTM!"), result("Really, LGTM!")]})
    (outcome,) = await run(runtime)
    assert (outcome.status, outcome.reason) == (ParseOutcome.FAILED, "malformed")
    assert (outcome.sessions, outcome.usage.model_calls) == (2, 2)
    assert "there is no &lt;findings&gt; element" in runtime.tasks[1].prompt


async def test_nonsense_then_sense() -> None:
    """The retry's answer counts."""
    runtime = Scripted({AgentName.SECURITY: [result(""), result("<findings/>")]})
    (outcome,) = await run(runtime)
    assert (outcome.status, outcome.reason) == (ParseOutcome.OK, "")


FOREIGN = FINDING.replace("<title>T</title>", "<title>这里缺少对返回值的检查</title>")


@pytest.mark.parametrize(
    ("second", "title"),
    [
        pytest.param(f"<findings>{FINDING}</findings>", "T", id="then-english"),
        pytest.param(
            f"<findings>{FOREIGN}</findings>", "这里缺少对返回值的检查", id="then-as-before"
        ),
        pytest.param("I can't.", "这里缺少对返回值的检查", id="then-nonsense"),
    ],
)
async def test_another_language_is_sent_back_once(second: str, title: str) -> None:
    """The finding is never lost: it stands in English, or as it came."""
    runtime = Scripted(
        {AgentName.SECURITY: [result(f"<findings>{FOREIGN}</findings>"), result(second)]}
    )
    (outcome,) = await run(runtime, limits=replace(LIMITS, sessions=2))
    assert (outcome.status, outcome.reason, outcome.sessions) == (ParseOutcome.OK, "", 2)
    assert [finding.title for finding in outcome.findings] == [title]
    assert "not in English" in runtime.tasks[1].prompt


async def test_a_cut_off_answer_gets_more_room_once() -> None:
    """Twice the allowance; still cut off: what is whole is kept as partial."""
    cut = f"<findings>{FINDING}<finding><path>"
    runtime = Scripted(
        {AgentName.SECURITY: [result(cut, FinishReason.LENGTH), result("", FinishReason.LENGTH)]}
    )
    (outcome,) = await run(runtime)
    assert (outcome.status, outcome.reason) == (ParseOutcome.PARTIAL, "length")
    assert [f.title for f in outcome.findings] == ["T"]
    first, second = runtime.tasks
    assert second.limits.max_output_tokens == 2 * first.limits.max_output_tokens
    assert "cut off" in second.prompt


async def test_an_agent_is_asked_three_times_at_most() -> None:
    """Cut off, then unreadable, then incomplete: there is a remedy for each, and no fourth session.
    The bound of DESIGN §3.8 counts so many a round; the best answer is kept."""
    answers: list[AgentResult | Exception | Answer] = [
        result("", FinishReason.LENGTH),
        result("LGTM!"),
        result(f"<findings>{FINDING}<finding><path>", FinishReason.UNKNOWN),
        result("<findings/>"),
    ]
    runtime = Scripted({AgentName.SECURITY: answers})
    (outcome,) = await run(runtime)
    assert (outcome.status, outcome.reason) == (ParseOutcome.PARTIAL, "incomplete")
    assert (outcome.sessions, len(runtime.tasks), len(answers)) == (3, 3, 1)
    assert Limits().sessions_per_agent == 3


async def test_no_retry_with_too_little_time_left() -> None:
    """Under the minimum nothing is asked again."""
    runtime = Scripted({AgentName.SECURITY: [result("LGTM!")]})
    (outcome,) = await run(runtime, limits=SchedulerLimits(total_s=100.0))
    assert (outcome.status, outcome.sessions) == (ParseOutcome.FAILED, 1)


async def test_the_total_ends_what_hangs() -> None:
    """One hangs past the total: it is failed by timeout, what the others gave is kept."""
    runtime = Scripted({AgentName.SECURITY: [hang], AgentName.GENERAL: [result("<findings/>")]})
    limits = SchedulerLimits(total_s=0.05, minimum_left_s=0.01)
    hanging, done = await run(runtime, limits=limits)
    assert (hanging.status, hanging.reason) == (ParseOutcome.FAILED, "timeout")
    assert done.status is ParseOutcome.OK
    assert runtime.running == 0


async def test_waiting_for_a_place_counts_against_the_total() -> None:
    """At most so many at once; who never gets a place has timed out."""
    runtime = Scripted({AgentName.SECURITY: [hang], AgentName.GENERAL: [result("<findings/>")]})
    limits = SchedulerLimits(total_s=0.05, at_once=1, minimum_left_s=0.01)
    _, waiting = await run(runtime, limits=limits)
    assert (waiting.status, waiting.reason) == (ParseOutcome.FAILED, "timeout")
    assert (waiting.sessions, runtime.most_at_once) == (0, 1)


async def test_a_defect_in_one_session_stays_there() -> None:
    """An exception that is nobody's order fails that reviewer alone."""
    runtime = Scripted(
        {AgentName.SECURITY: [KeyError("x")], AgentName.GENERAL: [result("<findings/>")]}
    )
    broken, fine = await run(runtime)
    assert (broken.status, broken.reason) == (ParseOutcome.FAILED, "internal_KeyError")
    assert fine.status is ParseOutcome.OK


async def test_a_lost_job_stops_all() -> None:
    """When one session learns that the job is lost, the others are cancelled and it is raised."""
    runtime = Scripted({AgentName.SECURITY: [LeaseLost("gone")], AgentName.GENERAL: [hang]})
    with pytest.raises(LeaseLost):
        await run(runtime)
    assert runtime.running == 0


async def test_the_sink_s_own_error_is_raised() -> None:
    """What could not be recorded must not be spent: the caller's error comes through as it is."""

    async def sink(_: AgentEvent) -> None:
        raise ConnectionError("database")

    runtime = Scripted({AgentName.SECURITY: [result("<findings/>")], AgentName.GENERAL: [hang]})
    tasks = [task(agent) for agent in runtime.answers]
    with pytest.raises(ConnectionError):
        await run_reviewers(tasks, runtime, (), on_event=sink)
    assert runtime.running == 0


async def test_cancelling_is_prompt_and_complete() -> None:
    """Superseded: every session is gone when the cancel returns."""
    runtime = Scripted({AgentName.SECURITY: [hang], AgentName.GENERAL: [hang]})
    running = asyncio.create_task(run(runtime))
    await asyncio.sleep(0.01)
    assert runtime.running == 2
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 1)
    assert runtime.running == 0


def test_limits_of_the_agents() -> None:
    """Five minutes for a reviewer, ten for code quality."""
    assert limits_for(AgentName.SECURITY).timeout_s == 300
    assert limits_for(AgentName.CODE_QUALITY).timeout_s == 600
    assert replace(limits_for(AgentName.GENERAL), timeout_s=0).model_calls == 40
