"""`POST /webhooks/github`: verify, store, queue, answer 202. Nothing else happens here.

Answers: 202 stored (with a reason if it asks for no work), 400 not a delivery we can read, 401 not
signed by GitHub, 408 too slow, 413 too big, 503 not stored; GitHub shows the last and we fetch it
again later. Nothing of a refused request is kept.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Router

from app.clock import Clock
from app.domain.jobs import AppRole
from app.errors import JobError
from app.jobs.dispatch import Dispatcher
from app.logs import get_logger
from app.settings import Settings
from app.webhooks.events import UnreadableEvent, parse_event
from app.webhooks.intake import Accepted, Delivery, Intake
from app.webhooks.routing import Ignore, Route, RoutingFacts, route, route_unreadable
from app.webhooks.signature import Keyring, signing_app

MAX_BODY = 25 * 1024 * 1024
"""GitHub sends nothing bigger."""
BODY_SECONDS = 8.0
"""GitHub gives up after ten."""

_GUID = re.compile(r"[\x21-\x7e]{1,100}\Z")
_EVENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}\Z")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

log = get_logger(__name__)


class Refused(Exception):
    """The request ends here. `str()` tells the sender why, and nothing about us."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """What the edge knows from the settings. App ids and logins are those of our own Apps."""

    keyring: Keyring
    app_ids: dict[AppRole, int] = field(default_factory=dict)
    own_logins: frozenset[str] = frozenset()
    debounce: timedelta = timedelta(0)
    body_seconds: float = BODY_SECONDS

    @classmethod
    def from_settings(cls, settings: Settings) -> EdgeOptions:
        """Raises ConfigurationError if no secret is set: anybody could forge deliveries then."""
        settings.require_web()
        secrets = {
            role: tuple(secret.get_secret_value().encode() for secret in found)
            for role in AppRole
            if (found := settings.webhook_secrets(role))
        }
        ids = {
            AppRole.REVIEWER: settings.reviewer_app_id,
            AppRole.FIXER: settings.fixer_app_id,
        }
        slugs = (settings.reviewer_slug, settings.fixer_slug)
        return cls(
            keyring=secrets,
            app_ids={role: app_id for role, app_id in ids.items() if app_id is not None},
            own_logins=frozenset(f"{slug}[bot]".lower() for slug in slugs if slug),
            debounce=timedelta(seconds=settings.review_debounce_seconds),
        )


def build_router(
    options: EdgeOptions, *, intake: Intake, dispatcher: Dispatcher, clock: Clock
) -> Router:
    """The webhook endpoint of both Apps."""
    edge = _Edge(options, intake, clock)

    async def receive(request: Request) -> Response:
        try:
            delivery, where = await edge.read(request)
        except Refused as refusal:
            log.warning("webhook refused", status=refusal.status, why=str(refusal))
            return JSONResponse({"error": str(refusal)}, status_code=refusal.status)
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            accepted = await intake.accept(delivery, where)
        except (SQLAlchemyError, JobError, OSError):
            log.exception(
                "webhook not stored", delivery_id=delivery.guid, github_event=delivery.name
            )
            return JSONResponse({"error": "The delivery could not be stored."}, status_code=503)
        if accepted.job_ids:
            dispatcher.notify()
        return JSONResponse(_answer(delivery, where, accepted), status_code=202)

    router = Router()
    router.add_route("/webhooks/github", receive, methods=["POST"])
    return router


class _Edge:
    def __init__(self, options: EdgeOptions, intake: Intake, clock: Clock) -> None:
        self._options = options
        self._intake = intake
        self._clock = clock

    async def read(self, request: Request) -> tuple[Delivery, Route]:
        """The authentic delivery and where it goes. Raises Refused."""
        body = await _read_body(request, self._options.body_seconds)
        app = signing_app(
            request.headers.get("x-hub-signature-256"),
            body,
            self._options.keyring,
            hint=self._hint(request),
        )
        if app is None:
            raise Refused(401, "X-Hub-Signature-256 is missing or not made with a secret we know.")
        guid = _header(request, "x-github-delivery", _GUID)
        name = _header(request, "x-github-event", _EVENT_NAME)
        payload = _parse_json(body)
        return self._route(guid, app, name, body, payload)

    def _route(
        self, guid: str, app: AppRole, name: str, body: bytes, payload: dict[str, Any]
    ) -> tuple[Delivery, Route]:
        now = self._clock.now()
        facts = RoutingFacts(
            app=app,
            delivery=guid,
            now=now,
            debounce=self._options.debounce,
            reviewer_app_id=self._options.app_ids.get(AppRole.REVIEWER),
            own_app_ids=frozenset(self._options.app_ids.values()),
            own_logins=self._options.own_logins,
        )
        action = payload.get("action")
        action = action[:100] if isinstance(action, str) else None
        try:
            event = parse_event(name, payload)
            where = route(name, event, facts)
        except UnreadableEvent as unreadable:
            event, where = None, route_unreadable(name, action, str(unreadable), facts)
        return (
            Delivery(
                guid=guid,
                app=app,
                name=name,
                action=action,
                body=body,
                event=event,
                received_at=now,
            ),
            where,
        )

    def _hint(self, request: Request) -> AppRole | None:
        target = request.headers.get("x-github-hook-installation-target-id", "")
        for role, app_id in self._options.app_ids.items():
            if target == str(app_id):
                return role
        return None


async def _read_body(request: Request, seconds: float) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 12 or int(declared) > MAX_BODY):
        raise Refused(413, f"The body is larger than {MAX_BODY} bytes.")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_BODY:
                    raise Refused(413, f"The body is larger than {MAX_BODY} bytes.")
                chunks.append(chunk)
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {seconds:g} s.") from None
    return b"".join(chunks)


def _header(request: Request, name: str, form: re.Pattern[str]) -> str:
    value = request.headers.get(name, "")
    if not form.match(value):
        raise Refused(400, f"The header {name} is missing or malformed.")
    return value


def _parse_json(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(
            400, "The body is not JSON. Set the webhook's content type to application/json."
        ) from None
    if not isinstance(payload, dict):
        raise Refused(400, "The body is not a JSON object.")
    # Half a character, which JSON allows and nothing after us can store.
    if b"\\ud" in body or b"\\uD" in body:
        cleaned: dict[str, Any] = _without_surrogates(payload)
        return cleaned
    return payload


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def _answer(delivery: Delivery, where: Route, accepted: Accepted) -> dict[str, Any]:
    if accepted.duplicate:
        answer: dict[str, Any] = {"status": "duplicate"}
    elif isinstance(where, Ignore):
        answer = {"status": "ignored", "reason": where.reason.value, "detail": where.detail}
    else:
        answer = {"status": "accepted", "jobs": list(accepted.job_ids)}
    log.info(
        "webhook received",
        delivery_id=delivery.guid,
        app=delivery.app.value,
        github_event=delivery.name,
        action=delivery.action,
        **answer,
    )
    return answer
