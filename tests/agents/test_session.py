"""The rules of one session, without any model library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

import pytest

from app.agents.breaker import BreakerSettings, LocalBreakers
from app.agents.failback import RetryPolicy
from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentFailure,
    AgentLimits,
    AgentResult,
    AgentTask,
    FinishReason,
    HostTool,
    ModelRef,
    Thinking,
    ToolError,
    ignore_events,
)
from app.agents.runtimes.direct.conversation import Reply, ToolAnswer, ToolCall
from app.agents.runtimes.direct.session import Session, Surroundings
from app.domain.runs import AgentName, Usage
from app.errors import LeaseLost

MODEL = ModelRef("p", "model-1")
SIBLING = ModelRef("p", "model-2")
Step: TypeAlias = Reply | AgentFailure | Callable[[Callable[[], None]], object]


def says(text: str, finish: FinishReason = FinishReason.STOP) -> Reply:
    return Reply(text, (), finish)


def calls(name: str = "tool", arguments: str = "{}") -> Reply:
    return Reply("", (ToolCall("1", name, arguments),), FinishReason.STOP)


@dataclass
class Script:
    """Plays replies in order. A step may also be a coroutine function of `on_output`."""

    steps: list[Step]
    answers: list[ToolAnswer] = field(default_factory=list)
    asked: list[tuple[ModelRef, bool]] = field(default_factory=list)
    each: Usage = field(default_factory=lambda: Usage(model_calls=1, input_tokens=10))

    async def call(
        self, model: ModelRef, *, may_use_tools: bool, on_output: Callable[[], None]
    ) -> Reply | AgentFailure:
        self.asked.append((model, may_use_tools))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Reply | AgentFailure):
            on_output()
            return step
        outcome = step(on_output)
        assert asyncio.iscoroutine(outcome)
        result = await outcome
        assert isinstance(result, Reply | AgentFailure)
        return result

    def usage(self, model: ModelRef) -> Usage:
        return self.each

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        self.answers += answers


async def run(
    script: Script,
    *,
    tool: Callable[[Mapping[str, object]], object] | None = None,
    limits: AgentLimits | None = None,
    around: Surroundings | None = None,
    models: tuple[ModelRef, ...] = (MODEL,),
) -> AgentResult:
    async def call(arguments: Mapping[str, object]) -> str:
        outcome = tool(arguments) if tool else "done"
        if asyncio.iscoroutine(outcome):
            outcome = await outcome
        return str(outcome)

    task = AgentTask(
        AgentName.GENERAL,
        "s",
        "p",
        models,
        (HostTool("tool", "d", {}, call, timeout_s=0.05),),
        limits or AgentLimits(),
    )
    return await Session(task, models, script, ignore_events, around or Surroundings()).run()


async def test_the_cap_on_model_calls_is_ours() -> None:
    """A model that never ends is ended: the last call has no tools, and it was told before."""
    script = Script([calls()])
    result = await run(script, limits=AgentLimits(model_calls=4))
    assert result.error is not None
    assert result.error.kind is AgentErrorKind.LIMIT
    assert [may for _, may in script.asked] == [True, True, True, False]
    assert "last use of a tool" in script.answers[2].text
    assert "last use of a tool" not in script.answers[1].text


async def test_the_cap_on_tokens_is_ours() -> None:
    """Uncached input, cache writes and output count together."""
    each = Usage(model_calls=1, input_tokens=10, cache_write_tokens=20, output_tokens=30)
    script = Script([calls()], each=each)
    result = await run(script, limits=AgentLimits(session_tokens=100))
    assert result.error is not None
    assert result.error.kind is AgentErrorKind.LIMIT
    assert len(script.asked) == 2


async def test_text_of_the_last_answer_that_had_any() -> None:
    """An empty last message does not lose the report before it."""
    script = Script([Reply("<findings/>", calls().tool_calls, FinishReason.STOP), says("")])
    assert (await run(script)).text == "<findings/>"


async def raise_tool_error(_: Mapping[str, object]) -> str:
    raise ToolError("no such file")


async def raise_defect(_: Mapping[str, object]) -> str:
    raise ZeroDivisionError


async def hang(_: Mapping[str, object]) -> str:
    await asyncio.sleep(10)
    return ""


@pytest.mark.parametrize(
    ("reply", "tool", "expected"),
    [
        pytest.param(calls(), raise_tool_error, "error: no such file", id="refused"),
        pytest.param(calls(), raise_defect, "error: tool failed (ZeroDivisionError)", id="defect"),
        pytest.param(calls(), hang, "error: tool did not finish in time", id="hangs"),
        pytest.param(
            calls("other"), None, "error: there is no tool 'other'; the tools are: tool", id="name"
        ),
        pytest.param(
            calls(arguments="{"), None, "error: the arguments are not a JSON object", id="json"
        ),
        pytest.param(
            calls(arguments="[]"), None, "error: the arguments are not a JSON object", id="list"
        ),
        pytest.param(calls(), lambda _: "", "(empty)", id="empty"),
    ],
)
async def test_tool_errors_are_told_to_the_model(
    reply: Reply, tool: Callable[[Mapping[str, object]], object] | None, expected: str
) -> None:
    """A tool's trouble is text for the model, and the session goes on."""
    script = Script([reply, says("x")])
    result = await run(script, tool=tool)
    assert result.error is None
    assert script.answers[0].text == expected
    assert script.answers[0].failed == expected.startswith("error")


async def test_a_lost_job_ends_the_session() -> None:
    """When the job is no longer ours nothing may go on: that is raised, not told to the model."""

    async def lost(_: Mapping[str, object]) -> str:
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        await run(Script([calls(), says("x")]), tool=lost)


async def test_long_tool_answers_are_cut() -> None:
    """With how much there was, so that the model can ask for less."""
    script = Script([calls(), says("x")])
    await run(script, tool=lambda _: "y" * 50, limits=AgentLimits(tool_result_chars=10))
    assert script.answers[0].text.startswith("y" * 10 + "\n[cut: 10 of 50")


async def silent(_: Callable[[], None]) -> Reply:
    await asyncio.sleep(10)
    return says("late")


async def slow_after_start(on_output: Callable[[], None]) -> Reply:
    on_output()
    await asyncio.sleep(0.08)
    return says("thought about it")


NO_RETRY = Surroundings(retry=RetryPolicy(attempts_per_model=1))


async def test_a_silent_start_is_dead() -> None:
    """No output at all within the start timeout ends the call, long before the session's own."""
    limits = AgentLimits(start_timeout_s=0.03)
    result = await run(Script([silent]), limits=limits, around=NO_RETRY)
    assert result.error is not None
    assert result.error.kind is AgentErrorKind.NO_START


async def test_later_silence_is_not_the_start_rule_s_business() -> None:
    """Once something came, models may think for minutes."""
    limits = AgentLimits(start_timeout_s=0.03)
    result = await run(Script([slow_after_start]), limits=limits)
    assert result.text == "thought about it"


async def test_the_second_call_has_no_start_rule() -> None:
    """The rule is about the session's start, not about each call's."""

    async def slow(_: Callable[[], None]) -> Reply:
        await asyncio.sleep(0.08)
        return says("second")

    limits = AgentLimits(start_timeout_s=0.03)
    assert (await run(Script([calls(), slow]), limits=limits)).text == "second"


async def test_the_timeout_counts_own_time_only() -> None:
    """Time in a tool does not count; time of calls does."""

    async def wait(_: Mapping[str, object]) -> str:
        await asyncio.sleep(0.04)
        return "ok"

    limits = AgentLimits(timeout_s=0.1, start_timeout_s=1)
    script = Script([calls(), calls(), calls(), says("x")])
    assert (await run(script, tool=wait, limits=limits)).error is None
    late = await run(Script([slow_after_start, silent]), limits=AgentLimits(timeout_s=0.05))
    assert late.error is not None
    assert late.error.kind is AgentErrorKind.TIMEOUT


async def test_cancelling_ends_it_at_once() -> None:
    """Cancellation is the one thing that comes through, promptly."""
    running = asyncio.create_task(run(Script([silent])))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 1)


async def test_a_refusal_is_an_error() -> None:
    """A model that refuses has not reviewed."""
    result = await run(Script([says("no", FinishReason.REFUSED)]))
    assert result.error is not None
    assert result.error.kind is AgentErrorKind.REFUSED


async def test_an_unknown_price_makes_the_sum_unknown() -> None:
    """One call without a price, and the session's cost is not known."""
    prices = [Decimal(1), None]
    script = Script([calls(), says("x")])
    script.usage = lambda model: Usage(model_calls=1, cost_usd=prices.pop(0))  # type: ignore[method-assign]  # a script's own accounting
    assert (await run(script)).usage.cost_usd is None


async def test_an_open_breaker_sends_nothing_and_the_sibling_answers() -> None:
    """After repeated failures no request leaves for that model; its sibling is asked instead."""
    overloaded = AgentFailure(AgentErrorKind.OVERLOADED, "busy")

    async def no_sleep(_: float) -> None:
        return None

    breakers = LocalBreakers(lambda: 0.0, BreakerSettings(failures_to_open=2))
    around = Surroundings(sleep=no_sleep, breakers=breakers)
    first = Script([overloaded, overloaded, says("x")])
    await run(first, around=around, models=(MODEL, SIBLING))
    assert [model for model, _ in first.asked] == [MODEL, MODEL, SIBLING]
    second = Script([says("y")])
    result = await run(second, around=around, models=(MODEL, SIBLING))
    assert [model for model, _ in second.asked] == [SIBLING]
    assert result.usage.model_calls == 1


async def silences(*steps: Step, tool_s: float = 0.0, every: float = 0.08) -> list[float]:
    """How long each silence was when it was told of."""
    told: list[float] = []

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, Thinking):
            told.append(event.silent_s)

    async def call(_: Mapping[str, object]) -> str:
        await asyncio.sleep(tool_s)
        return "done"

    tool = HostTool("tool", "d", {}, call, timeout_s=5)
    task = AgentTask(AgentName.GENERAL, "s", "p", (MODEL,), (tool,), AgentLimits())
    around = Surroundings(heartbeat_s=every)
    await Session(task, (MODEL,), Script(list(steps)), listen, around).run()
    return told


async def thinks(seconds: float, on_output: Callable[[], None], *, speaks: int = 0) -> Reply:
    """Says nothing for so long, or `speaks` so often in between."""
    for _ in range(speaks + 1):
        await asyncio.sleep(seconds / (speaks + 1))
        on_output()
    return says("<findings/>")


async def test_a_silent_model_is_told_of_again_and_again() -> None:
    """Every so many seconds of silence, with how long it has lasted."""
    told = await silences(lambda heard: thinks(0.3, heard))
    assert len(told) >= 2
    assert told[0] >= 0.08
    assert told == sorted(set(told))


async def test_output_ends_a_silence() -> None:
    """A model that goes on writing is not thinking, however long it writes."""
    assert await silences(lambda heard: thinks(1.5, heard, speaks=14), every=1.0) == []


async def test_time_in_tools_is_no_silence() -> None:
    """The coordinator waits for its reviewers; nobody is worried."""
    assert await silences(calls(), says("<findings/>"), tool_s=1.2, every=1.0) == []
