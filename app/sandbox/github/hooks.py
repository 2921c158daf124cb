"""Webhook deliveries: signed, in order, once, recorded, redelivered on demand only."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import ssl
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from app.sandbox.github.state import App
from app.sandbox.github.world import World, node_id

MAX_PAYLOAD_BYTES = 25 * 1024 * 1024


@dataclass(eq=False)
class Delivery:
    """One attempt. `status_code` is 0 until it was answered or failed."""

    id: int
    guid: str
    app: App
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    raw: bytes
    headers: dict[str, str]
    redelivery: bool
    delivered_at: datetime
    status: str = "pending"
    status_code: int = 0
    duration: float = 0.0
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str | None = None

    @property
    def payload(self) -> Any:
        """The JSON that was signed and sent."""
        return json.loads(self.raw)


def sign(secret: str, raw: bytes) -> str:
    """The value of `X-Hub-Signature-256`."""
    return "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()


class Hooks:
    """One queue and one sender per App, so that a slow receiver delays only itself."""

    def __init__(self, world: World, timeout_seconds: float) -> None:
        self.world = world
        self.deliveries: list[Delivery] = []
        self._timeout = timeout_seconds
        self._client: httpx.AsyncClient | None = None
        self._queues: dict[int, asyncio.Queue[Delivery]] = {}
        self._senders: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        """Stop sending; what is queued stays unsent."""
        for sender in self._senders:
            sender.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def drain(self) -> None:
        """Wait until every delivery queued so far, and those these caused, was answered."""
        while any(d.status == "pending" for d in self.deliveries):
            await asyncio.gather(*(queue.join() for queue in self._queues.values()))

    def enqueue(
        self,
        app: App,
        event: str,
        payload: Mapping[str, Any],
        *,
        guid: str | None = None,
    ) -> Delivery | None:
        """Queue one delivery; None when the App has no webhook or the payload is too large."""
        raw = json.dumps(payload, separators=(",", ":")).encode()
        if app.webhook_url is None or len(raw) > MAX_PAYLOAD_BYTES:
            return None
        guid = guid or str(uuid.uuid4())
        delivery = Delivery(
            id=self.world.next_id(),
            guid=guid,
            app=app,
            event=event,
            action=payload.get("action"),
            installation_id=(payload.get("installation") or {}).get("id"),
            repository_id=(payload.get("repository") or {}).get("id"),
            raw=raw,
            headers=_headers(app, event, guid, raw),
            redelivery=False,
            delivered_at=self.world.now(),
        )
        self._put(delivery)
        return delivery

    def redeliver(self, old: Delivery) -> Delivery:
        """Send the same bytes under the same GUID again."""
        new = Delivery(
            id=self.world.next_id(),
            guid=old.guid,
            app=old.app,
            event=old.event,
            action=old.action,
            installation_id=old.installation_id,
            repository_id=old.repository_id,
            raw=old.raw,
            headers=_headers(old.app, old.event, old.guid, old.raw),
            redelivery=True,
            delivered_at=self.world.now(),
        )
        self._put(new)
        return new

    def of(self, app: App) -> list[Delivery]:
        """An App's deliveries, newest first."""
        return [d for d in reversed(self.deliveries) if d.app is app]

    def _put(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        queue = self._queues.get(delivery.app.id)
        if queue is None:
            queue = self._queues[delivery.app.id] = asyncio.Queue()
            self._senders.append(asyncio.create_task(self._send_all(queue)))
        queue.put_nowait(delivery)

    async def _send_all(self, queue: asyncio.Queue[Delivery]) -> None:
        while True:
            delivery = await queue.get()
            try:
                await self._send(delivery)
            finally:
                queue.task_done()

    async def _send(self, delivery: Delivery) -> None:
        if self._client is None:
            # Loopback only: no proxy of the machine, and no certificates to load (40 ms).
            self._client = httpx.AsyncClient(
                timeout=self._timeout,
                trust_env=False,
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            )
        started = time.perf_counter()
        try:
            url = delivery.app.webhook_url or ""
            answer = await self._client.post(url, content=delivery.raw, headers=delivery.headers)
        except httpx.TimeoutException:
            delivery.status, delivery.status_code = "timed out", 504
        except (httpx.HTTPError, httpx.InvalidURL):
            delivery.status, delivery.status_code = "failed to connect to host", 502
        else:
            good = answer.is_success
            delivery.status = "OK" if good else f"Invalid HTTP Response: {answer.status_code}"
            delivery.status_code = answer.status_code
            delivery.response_headers = dict(answer.headers)
            delivery.response_body = answer.text
        delivery.duration = round(time.perf_counter() - started, 3)


def _headers(app: App, event: str, guid: str, raw: bytes) -> dict[str, str]:
    secret = app.webhook_secret
    headers = {
        "Content-Type": "application/json",
        "Accept": "*/*",
        "User-Agent": "GitHub-Hookshot/sandbox",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid,
        "X-GitHub-Hook-ID": str(app.hook_id),
        "X-GitHub-Hook-Installation-Target-ID": str(app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
    }
    if not secret:
        return headers
    sha1 = hmac.new(secret.encode(), raw, hashlib.sha1).hexdigest()
    return {
        **headers,
        "X-Hub-Signature": f"sha1={sha1}",
        "X-Hub-Signature-256": sign(secret, raw),
    }


def installation_ref(installation_id: int) -> dict[str, object]:
    """The `installation` member of an event."""
    return {"id": installation_id, "node_id": node_id("MDIz", installation_id)}
