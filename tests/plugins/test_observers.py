"""Telemetry and traces of sessions: told of everything, and never in anybody's way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from opentelemetry.trace import NonRecordingSpan, Span, Tracer, get_current_span
from opentelemetry.trace.span import INVALID_SPAN_CONTEXT

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
    ToolCalled,
    ignore_events,
)
from app.domain.runs import AgentName, Usage
from app.plugins.builtin.telemetry import TelemetryPlugin
from app.plugins.builtin.tracing import TracingPlugin
from app.plugins.context import ConfigureContext
from app.plugins.facts import no_file
from app.plugins.lifecycle import PluginHost
from app.plugins.port import ReviewPlugin
from app.plugins.runtimes import OneRuntime
from app.telemetry.tracker import Tracker
from tests.plugins.factories import FACTS, Made, base

MODEL = ModelRef("anthropic", "claude-sonnet-4-6")
SECRET = "words of a stranger"
USAGE = Usage(1, input_tokens=100, cache_read_tokens=40, output_tokens=7, model_seconds=1.5)
FAILURE = AgentFailure(AgentErrorKind.OVERLOADED, SECRET)
EVENTS: tuple[AgentEvent, ...] = (
    Started("security"),
    ModelCallStarted("security", 1, MODEL),
    Retrying("security", FAILURE, 2.0, MODEL),
    ModelCallStarted("security", 1, MODEL),
    ModelCallFinished("security", 1, MODEL, USAGE),
    ToolCalled("security", "read_file", {"path": SECRET}, 12, failed=False),
    ModelCallStarted("security", 2, MODEL),
    ModelCallFinished("security", 2, MODEL, USAGE),
    Text("security", SECRET),
    Finished("security", AgentResult(SECRET, USAGE, FinishReason.STOP, None, MODEL, 1)),
)
TASK = AgentTask(AgentName.SECURITY, "s", "p", (MODEL,), key="security")


@dataclass
class Played:
    """A runtime that plays events."""

    events: tuple[AgentEvent, ...] = EVENTS
    tasks: list[AgentTask] = field(default_factory=list)

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        for event in self.events:
            await on_event(event)
        return AgentResult("", Usage(), FinishReason.STOP)


async def observed(*plugins: ReviewPlugin, events: tuple[AgentEvent, ...] = EVENTS) -> list[Any]:
    """One session under these plugins; what the caller's own sink was told."""
    heard: list[AgentEvent] = []

    async def hear(event: AgentEvent) -> None:
        heard.append(event)

    made = await PluginHost((base(), *plugins)).configured(FACTS, no_file)
    runtime = await OneRuntime(Played(events)).for_run(made)
    await runtime.run(TASK, hear)
    return heard


async def test_observers_fail_alone() -> None:
    """Neither one that raises nor one that cannot begin keeps an event from anybody else."""
    seen: list[AgentEvent] = []

    def raises() -> Callable[[AgentEvent], None]:
        def observe(event: AgentEvent) -> None:
            raise KeyError(event)

        return observe

    def never() -> Callable[[AgentEvent], None]:
        raise OSError("no collector")

    def configure(context: ConfigureContext) -> None:
        for session in (never, raises, lambda: seen.append):
            context.observe(session)

    assert await observed(Made("watch", configure)) == list(EVENTS)
    assert seen == list(EVENTS)


async def test_telemetry_has_numbers_and_no_words() -> None:
    """Calls, repeats, tools and the end, with the run they belong to; no text, path or login."""
    bodies: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200)

    tracker = Tracker("https://collector.test", transport=httpx.MockTransport(handle))
    plugin = TelemetryPlugin(tracker)
    await observed(plugin)
    await plugin.close()
    said = b"".join(bodies)
    assert [line.split(b'"event": "')[1].split(b'"')[0] for line in said.splitlines()] == [
        b"retry", b"model_call", b"tool", b"model_call", b"session",
    ]  # fmt: skip
    assert b'"input_tokens": 100' in said
    assert b'"repository": "acme/shop"' in said
    assert SECRET.encode() not in said
    assert b"alice" not in said


class Recorded(NonRecordingSpan):
    def __init__(self, name: str, parent: Span | None) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.name, self.parent = name, parent
        self.attributes: dict[str, object] = {}
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self.status: object = None
        self.ended = 0

    def set_attribute(self, key: str, value: object) -> None:
        self.attributes[key] = value

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self.events.append((name, attributes))

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status.status_code.name

    def end(self, end_time: int | None = None) -> None:
        self.ended += 1


class Recorder(Tracer):
    """The API's tracer, which keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def start_span(self, name: str, context: Any = None, *args: Any, **more: Any) -> Span:
        parent = get_current_span(context) if context is not None else None
        self.spans.append(Recorded(name, parent))
        return self.spans[-1]

    def start_as_current_span(self, *args: Any, **more: Any) -> Any:
        raise AssertionError("the plugin starts its spans by itself")


async def test_a_session_is_a_tree_of_spans() -> None:
    """Each call, also the one that failed, and each tool below the session; all of them ended once,
    and no word of the prompt, the answer or an error is on any of them."""
    recorder = Recorder()
    await observed(TracingPlugin(recorder))
    root, *below = recorder.spans
    assert [span.name for span in below] == [
        "chat claude-sonnet-4-6",
        "chat claude-sonnet-4-6",
        "execute_tool read_file",
        "chat claude-sonnet-4-6",
    ]
    assert root.name == "agent security"
    assert all(span.parent is root for span in below)
    assert [span.ended for span in recorder.spans] == [1] * 5
    assert [span.status for span in below] == ["ERROR", None, None, None]
    assert below[0].attributes["error.type"] == "overloaded"
    assert below[1].attributes["gen_ai.usage.input_tokens"] == 100
    assert root.attributes["mergeward.number"] == 7
    assert root.events[0][0] == "retry"
    told = repr([(s.name, s.attributes, s.events) for s in recorder.spans])
    assert SECRET not in told


async def test_a_session_that_ends_in_a_call_leaves_no_span_open() -> None:
    """Its kind of error is on the call and on the session."""
    recorder = Recorder()
    failed = AgentResult("", USAGE, FinishReason.ERROR, FAILURE, MODEL)
    await observed(
        TracingPlugin(recorder),
        events=(
            Started("security"),
            ModelCallStarted("security", 1, MODEL),
            Finished("security", failed),
        ),
    )
    assert [(span.ended, span.status) for span in recorder.spans] == [(1, "ERROR"), (1, "ERROR")]


async def test_sessions_side_by_side_have_their_own_spans() -> None:
    """Also two of one agent: their calls are never taken for each other's."""
    recorder = Recorder()
    made = await PluginHost((base(), TracingPlugin(recorder))).configured(FACTS, no_file)
    first, second = (make() for make in made.observers * 2)
    for event in EVENTS[:2]:
        first(event)
        second(event)
    first(EVENTS[4])
    first(EVENTS[-1])
    assert [span.ended for span in recorder.spans] == [1, 0, 1, 0]
