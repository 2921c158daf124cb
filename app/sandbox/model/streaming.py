"""A streamed answer, and the ways in which it does not arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.sandbox.model.dialects import Dialect
from app.sandbox.model.errors import ErrorType, WireError
from app.sandbox.model.scenario import FaultKind


class SpoiledStream(Response):
    """The events one by one, or as far as the fault lets them.

    A stall sends nothing more and waits until the client gives up. A cut ends the connection in the
    midst of the body; without a finish, the body ends properly but for the events that say so.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: Iterator[bytes],
        fault: FaultKind | None,
        dialect: Dialect,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(headers=dict(headers))
        del self.headers["content-length"]
        self._events = list(events)
        self._fault = fault
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._fault is FaultKind.STALL:
            await _until_gone(receive)
            return
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        for event in self._shown():
            await send({"type": "http.response.body", "body": event, "more_body": True})
        if self._fault is FaultKind.STALL_MIDWAY:
            await _until_gone(receive)
        elif self._fault is not FaultKind.CUT:
            await send({"type": "http.response.body", "body": b""})

    def _shown(self) -> list[bytes]:
        half = self._events[: max(1, len(self._events) // 2)]
        match self._fault:
            case FaultKind.STALL_MIDWAY | FaultKind.CUT:
                return half
            case FaultKind.STREAM_ERROR:
                failed = WireError(ErrorType.OVERLOADED, "Overloaded")
                return [*half, self._dialect.error_event(failed)]
            case FaultKind.NO_FINISH:
                return [event for event in self._events if not self._dialect.is_finish(event)]
            case _:
                return self._events


async def _until_gone(receive: Receive) -> None:
    message = await receive()
    while message["type"] != "http.disconnect":
        message = await receive()
