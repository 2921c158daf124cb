"""One agent session: call the model, run the tools it asks for, until it answers or must stop.

Knows nothing of pydantic-ai: the conversation is passed in, and the rules are tested without it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from app.agents.breaker import Breakers, CallOutcome, LocalBreakers, outcome_of
from app.agents.failback import DEFAULT_RETRY, Again, NextModel, RetryPolicy, next_step
from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    Finished,
    FinishReason,
    ModelCallFinished,
    ModelCallStarted,
    ModelRef,
    Retrying,
    Started,
    Text,
    Thinking,
    ToolCalled,
    ToolError,
)
from app.agents.prompts import note
from app.agents.runtimes.direct.conversation import Reply, ToolAnswer, ToolCall
from app.domain.runs import Usage
from app.errors import JobError
from app.telemetry.cost import Price, price_of

HEARTBEAT_S = 30.0
"""Silence of a model that is told of (DESIGN §4)."""


class Talk(Protocol):
    """What a session needs of a conversation."""

    async def call(
        self, model: ModelRef, *, may_use_tools: bool, on_output: Callable[[], None]
    ) -> Reply | AgentFailure: ...

    def usage(self, model: ModelRef) -> Usage: ...

    def answer(self, answers: Sequence[ToolAnswer]) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Time, the retry policy, the breakers that all sessions of a runtime share, how often a silent
    model is told of, and what tokens cost."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    retry: RetryPolicy = DEFAULT_RETRY
    breakers: Breakers = field(default_factory=lambda: LocalBreakers(time.monotonic))
    heartbeat_s: float = HEARTBEAT_S
    price: Price = price_of


@dataclass(slots=True)
class _Silence:
    """How long a model has said nothing, and how often that was told. Seconds of one clock."""

    since: float
    told: int = 0

    def ended(self, now: float) -> None:
        self.since, self.told = now, 0

    def until_told(self, now: float, every: float) -> float:
        return max(0.0, self.since + every * (self.told + 1) - now)

    def tell(self, now: float, every: float) -> float:
        """How long it has lasted, if that is to be told now; else 0."""
        lasted = now - self.since
        if lasted < every * (self.told + 1):
            return 0.0
        self.told += 1
        return lasted


class Session:
    """The state of one run. `run` once."""

    def __init__(
        self,
        task: AgentTask,
        models: tuple[ModelRef, ...],
        talk: Talk,
        sink: EventSink,
        around: Surroundings,
    ) -> None:
        """`models` is the chain as it will be used, never empty."""
        self._task = task
        self._models = models
        self._talk = talk
        self._sink = sink
        self._around = around
        self._tools = {tool.name: tool for tool in task.tools}
        self._at = 0
        self._spent_s = 0.0
        self._usage = Usage()
        self._text = ""
        self._tool_calls = 0
        self._has_output = False

    async def run(self) -> AgentResult:
        """Run to the end. The result is also the last event."""
        await self._emit(Started(self._task.key))
        while True:
            reply = await self._reply()
            ending = await self._heard(reply)
            if ending is not None:
                await self._emit(Finished(self._task.key, ending))
                return ending

    async def _heard(self, reply: Reply | AgentFailure) -> AgentResult | None:
        """The result if the session is over, else None with the tools' answers on their way."""
        if isinstance(reply, AgentFailure):
            return self._result(FinishReason.ERROR, reply)
        if reply.text.strip():
            self._text = reply.text
            await self._emit(Text(self._task.key, reply.text))
        if reply.finish is FinishReason.REFUSED:
            refused = AgentFailure(AgentErrorKind.REFUSED, "the model refused to answer")
            return self._result(reply.finish, refused)
        if reply.finish is FinishReason.LENGTH or not reply.tool_calls:
            return self._result(reply.finish, None)
        answers = [await self._use_tool(call) for call in reply.tool_calls]
        if self._usage.model_calls == self._task.limits.model_calls - 1:
            answers[-1] = replace(answers[-1], text=f"{answers[-1].text}\n\n{note('last_call')}")
        self._talk.answer(answers)
        return None

    async def _reply(self) -> Reply | AgentFailure:
        """The next response, through retries and the chain."""
        attempt = 0
        while True:
            limit = self._limit_reached()
            if limit is not None:
                return limit
            attempt += 1
            outcome = await self._admitted_call()
            if isinstance(outcome, Reply):
                return outcome
            step = next_step(
                outcome,
                attempt=attempt,
                models_left=len(self._models) - 1 - self._at,
                remaining_s=self._remaining_s(),
                policy=self._around.retry,
            )
            match step:
                case Again(wait_s):
                    # What a breaker refused was no attempt.
                    attempt -= outcome.kind is AgentErrorKind.BREAKER_OPEN
                    await self._wait(outcome, wait_s)
                case NextModel():
                    self._at, attempt = self._at + 1, 0
                    await self._wait(outcome, 0.0)
                case _:
                    return outcome

    async def _admitted_call(self) -> Reply | AgentFailure:
        """One request, if the model's breaker lets it go; a refusal is no model call."""
        model, breakers = self._models[self._at], self._around.breakers
        admission = await breakers.admit(model)
        if not admission.granted:
            return AgentFailure(
                AgentErrorKind.BREAKER_OPEN,
                f"{model} failed repeatedly; no calls for {admission.wait_s:.0f} s",
                retry_after=admission.wait_s,
            )
        told = CallOutcome.NEITHER
        try:
            outcome = await self._call()
            told = outcome_of(outcome.kind if isinstance(outcome, AgentFailure) else None)
        finally:
            await breakers.record(model, admission, told)
        return outcome

    async def _call(self) -> Reply | AgentFailure:
        """One request, timed and counted."""
        model = self._models[self._at]
        number = self._usage.model_calls + 1
        await self._emit(ModelCallStarted(self._task.key, number, model))
        began = self._around.monotonic()
        try:
            outcome = await self._timed_call(model, last=number >= self._task.limits.model_calls)
        finally:
            took = self._around.monotonic() - began
            self._spent_s += took
            usage = replace(self._talk.usage(model), model_seconds=took)
            self._usage += usage
        await self._emit(ModelCallFinished(self._task.key, number, model, usage))
        return outcome

    async def _timed_call(self, model: ModelRef, *, last: bool) -> Reply | AgentFailure:
        """One request under the start rule and the session's timeout."""
        loop = asyncio.get_running_loop()
        limits = self._task.limits
        ends = loop.time() + self._remaining_s()
        first = ends if self._has_output else min(ends, loop.time() + limits.start_timeout_s)

        silence = _Silence(loop.time())

        def on_output() -> None:
            silence.ended(loop.time())
            if not self._has_output:
                self._has_output = True
                scope.reschedule(ends)

        scope = asyncio.timeout_at(first)
        beating = asyncio.create_task(self._beat(silence))
        try:
            async with scope:
                return await self._talk.call(model, may_use_tools=not last, on_output=on_output)
        except TimeoutError:
            if not self._has_output and first < ends:
                nothing = f"no output within {limits.start_timeout_s:g} s of the start"
                return AgentFailure(AgentErrorKind.NO_START, nothing)
            return AgentFailure(
                AgentErrorKind.TIMEOUT, f"not finished within {limits.timeout_s:g} s"
            )
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self, silence: _Silence) -> None:
        """Tell of silence each time it has lasted so long again; ends only by being cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(silence.until_told(loop.time(), self._around.heartbeat_s))
            lasted = silence.tell(loop.time(), self._around.heartbeat_s)
            if lasted:
                await self._emit(Thinking(self._task.key, lasted))

    async def _wait(self, failure: AgentFailure, wait_s: float) -> None:
        model = self._models[self._at]
        await self._emit(Retrying(self._task.key, failure, wait_s, model))
        if wait_s > 0:
            began = self._around.monotonic()
            await self._around.sleep(wait_s)
            self._spent_s += self._around.monotonic() - began

    async def _use_tool(self, call: ToolCall) -> ToolAnswer:
        arguments = _arguments(call)
        text, failed = await self._tool_text(call, arguments)
        text = _cut(text, self._task.limits.tool_result_chars) or "(empty)"
        self._tool_calls += 1
        event = ToolCalled(self._task.key, call.name, arguments or {}, len(text), failed)
        await self._emit(event)
        return ToolAnswer(call, text, failed)

    async def _tool_text(
        self, call: ToolCall, arguments: Mapping[str, object] | None
    ) -> tuple[str, bool]:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return f"error: there is no tool {call.name!r}; the tools are: {known}", True
        if arguments is None:
            return "error: the arguments are not a JSON object", True
        try:
            async with asyncio.timeout(tool.timeout_s):
                return await tool.call(arguments), False
        except JobError:
            raise
        except ToolError as error:
            return f"error: {error}", True
        except TimeoutError:
            return f"error: {call.name} did not finish in time", True
        except Exception as error:
            return f"error: {call.name} failed ({type(error).__name__})", True

    def _limit_reached(self) -> AgentFailure | None:
        limits, used = self._task.limits, self._usage
        if used.model_calls >= limits.model_calls:
            message = f"{limits.model_calls} model calls are used up"
            return AgentFailure(AgentErrorKind.LIMIT, message)
        tokens = used.input_tokens + used.cache_write_tokens + used.output_tokens
        if tokens >= limits.session_tokens:
            message = f"{limits.session_tokens} tokens are used up"
            return AgentFailure(AgentErrorKind.LIMIT, message)
        if self._remaining_s() <= 0:
            message = f"not finished within {limits.timeout_s:g} s"
            return AgentFailure(AgentErrorKind.TIMEOUT, message)
        return None

    def _remaining_s(self) -> float:
        return self._task.limits.timeout_s - self._spent_s

    def _result(self, finish: FinishReason, error: AgentFailure | None) -> AgentResult:
        model = self._models[self._at]
        return AgentResult(self._text, self._usage, finish, error, model, self._tool_calls)

    async def _emit(self, event: AgentEvent) -> None:
        await self._sink(event)


def _arguments(call: ToolCall) -> Mapping[str, object] | None:
    """The arguments as an object, or None when they are not one."""
    try:
        value: object = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: {most} of {len(text)} characters shown; ask for a smaller part]"
