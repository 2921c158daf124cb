"""Sends events to an operator's own collector, without ever holding anything up.

What cannot be sent in time is dropped and counted: a review matters more than a count of it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.logs import get_logger

log = get_logger(__name__)

TIMEOUT_S = 2.0
"""Seconds for one request, and for everything that is left at the end (DESIGN §10)."""

MOST_PENDING = 50
"""Events that wait or are on their way; more are dropped."""


@dataclass(slots=True)
class Tracker:
    """Posts events as JSON Lines to `url`, what has gathered meanwhile in one request. `token` goes
    as a bearer token. `transport` replaces the network (tests). For one event loop."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout_s: float = TIMEOUT_S
    transport: httpx.AsyncBaseTransport | None = field(default=None, repr=False)
    sent: int = 0
    dropped: int = 0
    _pending: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_PENDING))
    _leaving: int = 0
    _sending: asyncio.Task[None] | None = None
    _closed: bool = False

    def track(self, event: Mapping[str, Any]) -> None:
        """Take an event; returns at once and never raises. The newest is dropped when too many are
        on their way, and everything after `aclose`."""
        if self._closed or len(self._pending) + self._leaving >= MOST_PENDING:
            self.dropped += 1
            return
        self._pending.append(json.dumps(event, default=str, ensure_ascii=True))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def aclose(self) -> None:
        """Send what waits, for at most `timeout_s` in all; the rest is dropped."""
        self._closed = True
        sending = self._sending
        if sending is not None and not sending.done():
            await asyncio.wait([sending], timeout=self.timeout_s)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        self.dropped += len(self._pending)
        self._pending.clear()
        if self.dropped:
            log.warning("telemetry was dropped", events=self.dropped, sent=self.sent)

    async def _send_all(self) -> None:
        async with httpx.AsyncClient(transport=self.transport, trust_env=False) as client:
            while self._pending:
                batch = list(self._pending)
                self._pending.clear()
                self._leaving = len(batch)
                await self._send(client, batch)

    async def _send(self, client: httpx.AsyncClient, batch: list[str]) -> None:
        headers = {"content-type": "application/x-ndjson"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        arrived = False
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await client.post(
                    self.url, content="\n".join(batch) + "\n", headers=headers, timeout=None
                )
            arrived = answer.is_success
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            log.debug("telemetry did not arrive", error=type(error).__name__)
        finally:
            self._leaving = 0
            if arrived:
                self.sent += len(batch)
            else:
                self.dropped += len(batch)
