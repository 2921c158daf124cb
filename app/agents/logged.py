"""An event of a session as a line of its run's log. Pure."""

from __future__ import annotations

from typing import Any

from app.agents.port import (
    AgentEvent,
    AgentFailure,
    Finished,
    ModelCallFinished,
    ModelCallStarted,
    Retrying,
    ReviewerDone,
    Started,
    Text,
    Thinking,
    ToolCalled,
)
from app.domain.runs import Usage


def line_of(event: AgentEvent) -> tuple[str, dict[str, Any]]:
    """Kind and fields. All texts are untrusted and not yet cleaned."""
    kind, fields = _of_calls(event) or _of_sessions(event)
    return kind, {"session": event.key, **fields}


def _of_calls(event: AgentEvent) -> tuple[str, dict[str, Any]] | None:
    match event:
        case ModelCallStarted(_, number, model):
            return "model_call", {"call": number, "model": str(model)}
        case ModelCallFinished(_, number, model, usage):
            return "model_answered", {"call": number, "model": str(model), **usage_fields(usage)}
        case Thinking(_, silent_s):
            return "thinking", {"silent_s": round(silent_s)}
        case Retrying(_, failure, wait_s, model):
            said = {"wait_s": wait_s, "model": str(model)}
            return "retrying", {**said, **_failure_fields(failure)}
        case _:
            return None


def _of_sessions(event: AgentEvent) -> tuple[str, dict[str, Any]]:
    match event:
        case ToolCalled(_, name, arguments, chars, failed):
            said = {"tool": name, "arguments": dict(arguments)}
            return "tool", {**said, "characters": chars, "failed": failed}
        case Text(_, text):
            return "text", {"text": text}
        case Finished(_, result):
            ended = {"finish": result.finish.value, "tool_calls": result.tool_calls}
            failure = _failure_fields(result.error)
            return "session_finished", {**ended, **usage_fields(result.usage), **failure}
        case Started():
            return "session_started", {}
        case ReviewerDone(_, findings, reason):
            return "reviewer_done", {"findings": findings, "reason": reason}
        case _:
            raise AssertionError(f"no line for {event!r}")


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Tokens, dollars (None: unknown) and seconds."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
        "model_seconds": round(usage.model_seconds, 3),
    }


def _failure_fields(failure: AgentFailure | None) -> dict[str, Any]:
    return {} if failure is None else {"error": failure.kind.value, "message": failure.message}


def heartbeat(event: Thinking) -> str:
    """What a person reads while a model says nothing."""
    return f"model is thinking… ({event.silent_s:.0f} s since last output)"
