"""`telemetry`: what agents did and used, to an operator's own collector. No text, no login."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.agents.port import AgentEvent, Finished, ModelCallFinished, Retrying, ToolCalled
from app.plugins.context import ConfigureContext
from app.plugins.facts import RunFacts
from app.plugins.port import ReviewPlugin
from app.telemetry.tracker import Tracker


class TelemetryPlugin(ReviewPlugin):
    """Hands each session's calls, repeats and end to the tracker, which never blocks."""

    name = "telemetry"

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def configure(self, context: ConfigureContext) -> None:
        track, run = self._tracker.track, _run(context.facts)

        def session() -> Callable[[AgentEvent], None]:
            def observe(event: AgentEvent) -> None:
                if (said := told(event)) is not None:
                    track({**run, **said})

            return observe

        context.observe(session)

    async def close(self) -> None:
        await self._tracker.aclose()


def _run(facts: RunFacts) -> dict[str, Any]:
    return {
        "repository": facts.repository,
        "number": facts.number,
        "head": facts.head_sha,
        "round": facts.round_number,
        "run": facts.kind.value,
    }


def told(event: AgentEvent) -> dict[str, Any] | None:
    """An event as the collector gets it; None for what it does not get."""
    match event:
        case ModelCallFinished(key, number, model, usage):
            return {
                "event": "model_call",
                "session": key,
                "call": number,
                "model": str(model),
                "input_tokens": usage.input_tokens,
                "cache_read_tokens": usage.cache_read_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
                "output_tokens": usage.output_tokens,
                "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
                "seconds": round(usage.model_seconds, 3),
            }
        case Retrying(key, failure, wait_s, model):
            return {
                "event": "retry",
                "session": key,
                "model": str(model),
                "kind": failure.kind.value,
                "wait_seconds": round(wait_s, 3),
            }
        case ToolCalled(key, name, _, result_chars, failed):
            return {
                "event": "tool",
                "session": key,
                "tool": name,
                "failed": failed,
                "result_chars": result_chars,
            }
        case Finished(key, result):
            return {
                "event": "session",
                "session": key,
                "finish": result.finish.value,
                "error": result.error.kind.value if result.error is not None else None,
                "model_calls": result.usage.model_calls,
                "tool_calls": result.tool_calls,
            }
        case _:
            return None
