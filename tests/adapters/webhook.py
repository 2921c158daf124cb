"""`webhook`: raw requests to the application, as they are."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import httpx
import structlog
from pydantic import SecretStr
from sqlmodel import select

from app.jobs.dispatch import InProcessDispatcher
from app.main import create_app
from app.settings import Settings
from app.store.migrate import upgrade
from app.store.session import Store, open_store
from app.store.tables import Job
from tests.adapters.case import Case, only_knows


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "status_in", "work_started", "errors_logged", "answered_within_seconds")
    upgrade(f"sqlite:///{tmp_path}/cases.db")
    store = open_store(f"sqlite+aiosqlite:///{tmp_path}/cases.db")
    started = time.monotonic()
    try:
        with structlog.testing.capture_logs() as logged:
            statuses = await _post_all(case, store)
        took = time.monotonic() - started
        async with store.read() as session:
            jobs = (await session.exec(select(Job))).all()
    finally:
        await store.close()
    for status, allowed in zip(statuses, case.expect["status_in"], strict=True):
        assert status in allowed
    assert took <= case.expect.get("answered_within_seconds", took)
    assert len(jobs) == case.expect.get("work_started", len(jobs))
    errors = [line for line in logged if line["log_level"] in ("error", "critical")]
    assert len(errors) <= case.expect.get("errors_logged", 0)


async def _post_all(case: Case, store: Store) -> list[int]:
    settings = Settings(reviewer_app_id=1, reviewer_webhook_secret=SecretStr(case.input["secret"]))
    app = create_app(settings, InProcessDispatcher(), store=store)
    transport = httpx.ASGITransport(app=app)
    statuses = []
    async with httpx.AsyncClient(transport=transport, base_url="http://case.test") as client:
        for request in case.input["requests"]:
            headers = dict(request["headers"])
            if "declared_content_length" in request:
                headers["Content-Length"] = str(request["declared_content_length"])
            body = base64.b64decode(request["body_base64"])
            answer = await client.post("/webhooks/github", content=body, headers=headers)
            statuses.append(answer.status_code)
    return statuses
