"""What the direct runtime makes of a provider's faults, in both wire formats, over real HTTP.

The provider is the sandbox's model server. `asked` are the requests that reached it, by model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentLimits,
    AgentResult,
    AgentTask,
    FinishReason,
    HostTool,
    ModelRef,
    Retrying,
)
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, Surroundings, WireFormat
from app.domain.runs import AgentName
from app.sandbox.model import ModelServer, parse_scenario

KEY = "sk-test-0123456789abcdef"
FIRST = {WireFormat.ANTHROPIC: "claude-opus-4-7", WireFormat.OPENAI: "gpt-5.4"}
SECOND = {WireFormat.ANTHROPIC: "claude-opus-4-6", WireFormat.OPENAI: "gpt-5.3"}
LIMITS = AgentLimits(start_timeout_s=0.4, chunk_timeout_s=0.4)
PATIENT = AgentLimits(timeout_s=600.0)

pytestmark = pytest.mark.parametrize("wire", list(WireFormat))


@dataclass
class Run:
    result: AgentResult
    asked: list[str]
    retries: list[Retrying]
    waits: list[float]


async def run(
    wire: WireFormat,
    *faults: dict[str, Any],
    tools: tuple[HostTool, ...] = (),
    limits: AgentLimits = LIMITS,
) -> Run:
    """One session of the security reviewer whose provider has these faults."""
    scenario = parse_scenario(
        {
            "models": [FIRST[wire], SECOND[wire]],
            "faults": [{"agent": "security"} | fault for fault in faults],
        }
    )
    waits: list[float] = []
    retries: list[Retrying] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, Retrying):
            retries.append(event)

    task = AgentTask(
        agent=AgentName.SECURITY,
        system="# Mergeward agent: security\n\nYou review.",
        prompt='<changed_files>\n<file path="a.py" patch="diff/a.py"/>\n</changed_files>',
        models=(ModelRef("p", FIRST[wire]), ModelRef("p", SECOND[wire])),
        tools=tools,
        limits=limits,
        key="security",
    )
    async with ModelServer(scenario, api_key=KEY) as server:
        url = server.url if wire is WireFormat.ANTHROPIC else f"{server.url}/v1"
        provider = ProviderSettings("p", wire, KEY, url)
        async with DirectRuntime([provider], around=Surroundings(sleep=wait)) as runtime:
            result = await runtime.run(task, listen)
        asked = [call.model or "" for call in server.calls]
    return Run(result, asked, retries, waits)


def always(kind: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "times": "always", **more}


def first_model(kind: str) -> Callable[[WireFormat], dict[str, Any]]:
    return lambda wire: always(kind, model=FIRST[wire])


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param("rate_limit", AgentErrorKind.RATE_LIMITED, id="429"),
        pytest.param("overloaded", AgentErrorKind.OVERLOADED, id="529"),
        pytest.param("unavailable", AgentErrorKind.OVERLOADED, id="503"),
        pytest.param("server_error", AgentErrorKind.SERVER, id="500"),
        pytest.param("cut", AgentErrorKind.CUT_STREAM, id="cut-stream"),
        pytest.param("stall", AgentErrorKind.NO_START, id="never-starts"),
        pytest.param("stall_midway", AgentErrorKind.STALLED, id="stalls-midway"),
        pytest.param("stream_error", None, id="error-in-the-stream"),
    ],
)
async def test_an_outage_of_one_model(
    wire: WireFormat, kind: str, error: AgentErrorKind | None
) -> None:
    """Tried twice, then the next model of the family answers; the failure is told as it was."""
    done = await run(wire, first_model(kind)(wire), limits=_patient(kind))
    assert done.asked == [FIRST[wire]] * 2 + [SECOND[wire]]
    assert done.result.error is None
    assert done.result.finish is FinishReason.STOP
    kinds = {retry.failure.kind for retry in done.retries}
    assert len(done.retries) == 2
    assert all(kind.is_retryable for kind in kinds)
    if error is not None:
        assert kinds == {error}


def _patient(kind: str) -> AgentLimits:
    """Only silence needs short limits; they would call a slow machine's answer silence too."""
    short = {"stall": 0.4, "stall_midway": 60.0}
    if kind not in short:
        return PATIENT
    return AgentLimits(timeout_s=600.0, start_timeout_s=short[kind], chunk_timeout_s=0.4)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param("auth", AgentErrorKind.AUTH, id="401"),
        pytest.param("context_overflow", AgentErrorKind.CONTEXT_OVERFLOW, id="context-overflow"),
    ],
)
async def test_what_another_try_cannot_cure(
    wire: WireFormat, kind: str, error: AgentErrorKind
) -> None:
    """One request, no failback, and the key is in no message."""
    done = await run(wire, always(kind), limits=PATIENT)
    assert done.asked == [FIRST[wire]]
    assert done.result.error is not None
    assert done.result.error.kind is error
    assert KEY not in done.result.error.message


@pytest.mark.parametrize(
    ("asked_for", "waits"),
    [
        pytest.param(7, [7.0], id="told"),
        pytest.param(None, [1.0], id="not-told"),
        pytest.param(0, [1.0], id="at-once-is-too-soon"),
        pytest.param(4000, [0.0], id="too-long-to-wait"),
    ],
)
async def test_a_rate_limit_says_how_long(
    wire: WireFormat, asked_for: float | None, waits: list[float]
) -> None:
    """Its wish is heard, at least our own pause, and not beyond what a session has."""
    fault = {"kind": "rate_limit", "retry_after": asked_for, "times": 1}
    done = await run(wire, fault, limits=PATIENT)
    assert done.result.error is None
    assert [retry.wait_s for retry in done.retries] == waits


async def test_length_is_no_error(wire: WireFormat) -> None:
    """The text that came is kept, and the reason says that it is not all."""
    done = await run(wire, always("length"), limits=PATIENT)
    assert (done.result.error, done.result.finish) == (None, FinishReason.LENGTH)
    assert done.result.text
    assert len(done.asked) == 1


async def test_an_empty_answer_is_an_answer(wire: WireFormat) -> None:
    """Nothing was said: the reader of answers decides, not the runtime."""
    done = await run(wire, always("empty"), limits=PATIENT)
    assert done.result.text == ""
    assert done.result.finish is not FinishReason.LENGTH
    assert set(done.asked) <= {FIRST[wire], SECOND[wire]}


async def test_no_finish_reason_is_never_success(wire: WireFormat) -> None:
    """Whoever does not say why it stopped was cut off: tried again, then the next model, then an
    error, whatever text had come."""
    done = await run(wire, always("no_finish"), limits=PATIENT)
    assert done.result.error is not None
    assert done.result.error.kind is AgentErrorKind.CUT_STREAM
    assert done.asked == [FIRST[wire]] * 2 + [SECOND[wire]] * 2


async def test_a_stalled_session_is_cancelled_at_once(wire: WireFormat) -> None:
    """Within two seconds, though the provider would never end."""
    running = asyncio.create_task(run(wire, always("stall_midway"), limits=PATIENT))
    await asyncio.sleep(0.5)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 2


async def test_tools_are_called_and_answered(wire: WireFormat) -> None:
    """A conversation with tools has the same course in both formats."""
    asked: list[object] = []

    async def read(arguments: Any) -> str:
        asked.append(arguments)
        return "@@ -0,0 +1 @@\n             1 +x = 1"

    tool = HostTool("read_patch", "Read a patch.", {"type": "object", "properties": {}}, read)
    done = await run(wire, tools=(tool,), limits=PATIENT)
    assert done.result.error is None
    assert asked == [{"path": "diff/a.py"}] or asked == [{"path": "a.py"}]
    assert done.result.tool_calls == 1
    assert len(done.asked) == 2
