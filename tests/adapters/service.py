"""A model service that answers as the steps of a `breaker` case say, and its clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx2

from app.agents.runtimes.direct import ProviderSettings, WireFormat

_STATUS = {"ok": 200, "fail": 503, "-": 200}


class Service:
    """Counts the requests that reach it. One call at a time may be slow: it ends by an event."""

    def __init__(self) -> None:
        self.now = 0.0
        self.requests = 0
        self._answers: list[int] = []
        self._slow, self._arrived = asyncio.Event(), asyncio.Event()
        self._at_once, self._held, self._all_asked = False, 0, asyncio.Event()
        self._waiting: list[asyncio.Task[Any]] = []

    def clock(self) -> float:
        return self.now

    def providers(self) -> Sequence[ProviderSettings]:
        return (ProviderSettings("anthropic", WireFormat.ANTHROPIC, "key", "http://model.test"),)

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def begin(self, step: Mapping[str, Any]) -> int:
        """Set the clock and the answers of a step; the number of requests before it."""
        self.now = float(step["at"])
        count = step.get("calls_at_once", step.get("calls", 1))
        results: Iterable[str] = step.get("results") or [step.get("result", "ok")] * count
        self._at_once = "calls_at_once" in step
        self._answers = [_STATUS[found] if found in _STATUS else int(found) for found in results]
        return self.requests

    def at_once(self, step: Mapping[str, Any]) -> int:
        return int(step.get("calls_at_once", "call" in step))

    def in_turn(self, step: Mapping[str, Any]) -> int:
        return len(step["results"]) if "results" in step else int(step.get("calls", 0))

    async def settle(self, step: Mapping[str, Any], calls: list[asyncio.Task[Any]]) -> None:
        """Wait until the step is over; a slow call goes on until an event ends it."""
        if "call" in step:
            self._waiting += calls
            await self._arrived.wait()
            return
        if "event" in step:
            self._slow.set()
            calls = calls + self._waiting
        if self._at_once:
            await self._until_all_asked(set(calls))
        await asyncio.gather(*calls)

    async def _until_all_asked(self, pending: set[asyncio.Task[Any]]) -> None:
        """Calls at once have all asked before the first of them is answered."""
        while len(pending) > self._held:
            _, pending = await asyncio.wait(pending, timeout=0.02)
        self._all_asked.set()

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        status = self._answers.pop(0)
        self._arrived.set()
        if self._waiting and not self._slow.is_set() and self.requests == 1:
            await self._slow.wait()
        if self._at_once:
            self._held += 1
            await self._all_asked.wait()
        if status != 200:
            kind = "overloaded_error" if status >= 500 else "invalid_request_error"
            body = {"type": "error", "error": {"type": kind, "message": "x"}}
            return httpx2.Response(status, json=body)
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, text="".join(map(_sse, _OK))
        )


def _sse(event: Mapping[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


_USAGE = {"input_tokens": 1, "output_tokens": 1}
_MESSAGE: Mapping[str, Any] = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
    "stop_reason": None, "stop_sequence": None, "usage": _USAGE,
}  # fmt: skip
_OK: tuple[Mapping[str, Any], ...] = (
    {"type": "message_start", "message": _MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": _USAGE},
    {"type": "message_stop"},
)
