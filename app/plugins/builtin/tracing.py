"""`tracing`: a span for each agent session, with its model calls, tools and repeats below it.

Through OpenTelemetry's API alone: which SDK and exporter there is, the operator says by starting
the process under `opentelemetry-instrument`. Names and numbers only, never a prompt or an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.agents.port import (
    AgentEvent,
    Finished,
    ModelCallFinished,
    ModelCallStarted,
    Retrying,
    Started,
    ToolCalled,
)
from app.plugins.context import ConfigureContext
from app.plugins.facts import RunFacts
from app.plugins.port import ReviewPlugin

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer


class TracingPlugin(ReviewPlugin):
    """`tracer` replaces the one of the process (tests)."""

    name = "tracing"

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer

    def configure(self, context: ConfigureContext) -> None:
        tracer, facts = self._tracer or _global_tracer(), context.facts

        def session() -> Callable[[AgentEvent], None]:
            return _SessionSpans(tracer, facts).observe

        context.observe(session)


def _global_tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer("mergeward")


class _SessionSpans:
    """The spans of one session."""

    def __init__(self, tracer: Tracer, facts: RunFacts) -> None:
        self._tracer = tracer
        self._facts = facts
        self._root: Span | None = None
        self._call: Span | None = None

    def observe(self, event: AgentEvent) -> None:
        match event:
            case Started(key):
                self._root = self._begin(key)
            case ModelCallStarted(_, number, model):
                self._end_call("not finished")
                self._call = self._child("chat " + model.name)
                self._call.set_attribute("gen_ai.operation.name", "chat")
                self._call.set_attribute("gen_ai.provider.name", model.provider)
                self._call.set_attribute("gen_ai.request.model", model.name)
                self._call.set_attribute("mergeward.call", number)
            case ModelCallFinished():
                self._finish_call(event)
            case ToolCalled():
                self._tool(event)
            case Retrying(_, failure, wait_s):
                self._end_call(failure.kind.value)
                if self._root is not None:
                    said = {"kind": failure.kind.value, "wait_seconds": wait_s}
                    self._root.add_event("retry", said)
            case Finished():
                self._finish(event)

    def _begin(self, key: str) -> Span:
        span = self._tracer.start_span(f"agent {key}")
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        span.set_attribute("gen_ai.agent.name", key)
        span.set_attribute("mergeward.repository", self._facts.repository)
        span.set_attribute("mergeward.head", self._facts.head_sha)
        if self._facts.number is not None:
            span.set_attribute("mergeward.number", self._facts.number)
        return span

    def _child(self, name: str) -> Span:
        from opentelemetry import trace

        parent = trace.set_span_in_context(self._root) if self._root is not None else None
        return self._tracer.start_span(name, context=parent)

    def _finish_call(self, event: ModelCallFinished) -> None:
        if self._call is not None:
            self._call.set_attribute("gen_ai.usage.input_tokens", event.usage.input_tokens)
            self._call.set_attribute("gen_ai.usage.output_tokens", event.usage.output_tokens)
            self._call.set_attribute("mergeward.cache_read", event.usage.cache_read_tokens)
            self._call.set_attribute("mergeward.cache_write", event.usage.cache_write_tokens)
        self._end_call(None)

    def _tool(self, event: ToolCalled) -> None:
        """A tool is told of when it has answered: its span has no length of its own."""
        span = self._child("execute_tool " + event.name)
        span.set_attribute("gen_ai.tool.name", event.name)
        span.set_attribute("mergeward.result_chars", event.result_chars)
        span.set_attribute("mergeward.failed", event.failed)
        span.end()

    def _finish(self, event: Finished) -> None:
        error = event.result.error
        self._end_call(error.kind.value if error is not None else None)
        if self._root is not None:
            self._root.set_attribute("mergeward.finish", event.result.finish.value)
            _mark(self._root, error.kind.value if error is not None else None)
            self._root.end()
            self._root = None

    def _end_call(self, error: str | None) -> None:
        call, self._call = self._call, None
        if call is not None:
            _mark(call, error)
            call.end()


def _mark(span: Span, error: str | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, error))
