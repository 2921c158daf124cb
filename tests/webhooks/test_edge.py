"""Raw requests: what is answered, what is stored, and that both happen together."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy.exc import OperationalError
from sqlmodel import col, select

from app.clock import FixedClock
from app.domain.jobs import AppRole, Cause, JobKind, JobState
from app.errors import ConfigurationError
from app.jobs.requests import JobRequest
from app.main import create_app
from app.settings import Settings
from app.store.session import Store, open_store
from app.store.tables import DeliveryRow, Installation, Job, PullRequestRow, Repository
from app.webhooks.intake import Accepted, Delivery, TransactionalIntake, store_delivery
from app.webhooks.router import MAX_BODY, EdgeOptions, build_router
from app.webhooks.routing import Route, Work
from app.webhooks.signature import sign
from tests.store.rows import NOW, add_pull_request, add_repository, later
from tests.webhooks.payloads import (
    FIXER_APP,
    INSTALLATION,
    REPOSITORY,
    REVIEWER_APP,
    account,
    comment,
    installation,
    installation_repositories,
    pull_request,
    repository,
)

SECRET, PREVIOUS, FIXER = "reviewer-secret", "previous-secret", "fixer-secret"


class CountingDispatcher:
    """Counts notices, and says whether what they are about was committed."""

    def __init__(self) -> None:
        self.notices = 0

    def notify(self) -> None:
        self.notices += 1


def settings(**difference: Any) -> Settings:
    values: dict[str, Any] = {
        "reviewer_app_id": REVIEWER_APP,
        "reviewer_slug": "review-app",
        "reviewer_webhook_secret": SecretStr(SECRET),
        "reviewer_webhook_secret_previous": SecretStr(PREVIOUS),
        "fixer_app_id": FIXER_APP,
        "fixer_slug": "fix-app",
        "fixer_webhook_secret": SecretStr(FIXER),
    }
    return Settings(**{**values, **difference})


class Edge:
    """The application with a client that signs."""

    def __init__(self, store: Store, **difference: Any) -> None:
        self.store = store
        self.dispatcher = CountingDispatcher()
        self.clock = FixedClock(NOW)
        self.app = create_app(
            settings(**difference), self.dispatcher, store=store, clock=self.clock
        )
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://mergeward.test"
        )

    async def post(self, body: bytes, **headers: str | None) -> httpx.Response:
        """A delivery signed by the reviewer's secret; a header given as None is left out."""
        values: dict[str, str | None] = {
            "X-GitHub-Event": "pull_request",
            "X-GitHub-Delivery": str(uuid4()),
            "X-Hub-Signature-256": sign(SECRET.encode(), body),
            "Content-Type": "application/json",
        }
        for name, value in headers.items():
            values[name.replace("_", "-")] = value
        sent = {
            name.encode(): value.encode("latin-1")
            for name, value in values.items()
            if value is not None
        }
        return await self.client.post("/webhooks/github", content=body, headers=sent)

    async def deliver(
        self, name: str, payload: dict[str, Any], *, secret: str = SECRET, **headers: str
    ) -> httpx.Response:
        body = json.dumps(payload).encode()
        return await self.post(
            body,
            **{
                "X-GitHub-Event": name,
                "X-Hub-Signature-256": sign(secret.encode(), body),
                **headers,
            },
        )

    async def jobs(self) -> list[Job]:
        async with self.store.read() as session:
            return list((await session.exec(select(Job).order_by(col(Job.id)))).all())

    async def deliveries(self) -> list[DeliveryRow]:
        async with self.store.read() as session:
            return list(
                (await session.exec(select(DeliveryRow).order_by(col(DeliveryRow.id)))).all()
            )


@pytest.fixture
async def edge(store: Store) -> AsyncIterator[Edge]:
    made = Edge(store)
    yield made
    await made.client.aclose()


async def test_a_delivery_is_stored_with_its_job(edge: Edge) -> None:
    """202 means: delivery, repository and job are durable, and then the workers were told."""
    response = await edge.deliver("pull_request", pull_request(), **{"X-GitHub-Delivery": "d-1"})
    [job], [delivery] = await edge.jobs(), await edge.deliveries()
    assert (response.status_code, response.json()) == (
        202,
        {"status": "accepted", "jobs": [job.id]},
    )
    assert (job.kind, job.state, job.delivery_id) == (
        JobKind.REVIEW_PULL_REQUEST,
        JobState.QUEUED,
        delivery.id,
    )
    assert (delivery.guid, delivery.app, delivery.event, delivery.action) == (
        "d-1",
        AppRole.REVIEWER,
        "pull_request",
        "opened",
    )
    assert json.loads(delivery.body or b"") == pull_request()
    assert (delivery.repository_id, delivery.installation_id) == (REPOSITORY, INSTALLATION)
    assert delivery.ignored_reason is None
    async with edge.store.read() as session:
        row = await session.get_one(Repository, REPOSITORY)
        assert (row.full_name, row.installation_id) == ("acme/shop", INSTALLATION)
    assert edge.dispatcher.notices == 1


BODY = json.dumps(pull_request()).encode()
NESTED = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
HUGE_NUMBER = b'{"a":' + b"9" * 10_000 + b"}"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        pytest.param(BODY, {"X-Hub-Signature-256": None}, 401, id="unsigned"),
        pytest.param(BODY, {"X-Hub-Signature-256": "sha256=" + "0" * 64}, 401, id="forged"),
        pytest.param(BODY, {"X-Hub-Signature-256": sign(b"x", BODY)}, 401, id="other-secret"),
        pytest.param(BODY, {"X-Hub-Signature-256": "sha256=caf\xe9"}, 401, id="latin-1"),
        pytest.param(BODY, {"X-GitHub-Delivery": None}, 400, id="no-delivery-id"),
        pytest.param(BODY, {"X-GitHub-Delivery": "x" * 101}, 400, id="long-delivery-id"),
        pytest.param(BODY, {"X-GitHub-Delivery": "a b"}, 400, id="odd-delivery-id"),
        pytest.param(BODY, {"X-GitHub-Event": None}, 400, id="no-event"),
        pytest.param(BODY, {"X-GitHub-Event": "../etc"}, 400, id="odd-event"),
        pytest.param(b"", {}, 400, id="empty"),
        pytest.param(b"[]", {}, 400, id="list"),
        pytest.param(b'"x"', {}, 400, id="string"),
        pytest.param(b"null", {}, 400, id="null"),
        pytest.param(b'{"a":', {}, 400, id="broken"),
        pytest.param(b"\xff\xfe", {}, 400, id="not-utf-8"),
        pytest.param(b"payload=%7B%7D", {}, 400, id="form"),
        pytest.param(NESTED, {}, 400, id="nested-too-deep"),
        pytest.param(HUGE_NUMBER, {}, 400, id="number-too-long"),
    ],
)
async def test_refusals(
    edge: Edge, body: bytes, headers: dict[str, str | None], status: int
) -> None:
    """A refused request says why, is not an error of ours, and leaves nothing behind."""
    response = await edge.post(body, **headers)
    assert response.status_code == status
    assert response.json()["error"]
    assert (await edge.jobs(), await edge.deliveries()) == ([], [])
    assert edge.dispatcher.notices == 0


async def test_a_declared_size_is_believed_at_once(edge: Edge) -> None:
    """413 before the first byte of a body that is announced as too big."""
    response = await edge.post(b"{}", **{"Content-Length": "200000000"})
    assert response.status_code == 413


async def test_an_undeclared_size_is_counted(edge: Edge) -> None:
    """A body without a length is cut off as soon as it is too big."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1_000_000
            yield b"x" * 1_000_000

    response = await edge.client.post("/webhooks/github", content=endless())
    assert response.status_code == 413
    assert MAX_BODY < sent < MAX_BODY + 3_000_000


async def test_the_largest_body_is_accepted(edge: Edge) -> None:
    """Exactly 25 MB is what GitHub may send."""
    start, end = b'{"zen":"', b'"}'
    body = start + b"x" * (MAX_BODY - len(start) - len(end)) + end
    response = await edge.post(body, **{"X-GitHub-Event": "ping"})
    assert response.status_code == 202


async def test_a_slow_sender_is_sent_away(store: Store) -> None:
    """A connection cannot be held open by sending nothing."""
    options = replace(EdgeOptions.from_settings(settings()), body_seconds=0.05)
    app = build_router(
        options,
        intake=TransactionalIntake(store),
        dispatcher=CountingDispatcher(),
        clock=FixedClock(NOW),
    )

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://mergeward.test"
    ) as client:
        started = time.monotonic()
        response = await client.post("/webhooks/github", content=slow())
    assert response.status_code == 408
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("name", "payload", "reason"),
    [
        ("an_event_of_2031", {}, "unknown_event"),
        ("ping", {"zen": "…"}, "ping"),
        ("issue_comment", comment("hello"), "no_command"),
        ("pull_request", pull_request("labeled"), "unused_action"),
        ("issue_comment", {"action": "created", "comment": {"body": "x"}}, "unreadable"),
    ],
)
async def test_ignored_events_are_kept_with_their_reason(
    edge: Edge, name: str, payload: dict[str, Any], reason: str
) -> None:
    """202, the reason in the answer and in the table, no job and no notice."""
    response = await edge.deliver(name, payload)
    assert (response.status_code, response.json()["status"]) == (202, "ignored")
    assert response.json()["reason"] == reason
    [delivery] = await edge.deliveries()
    assert delivery.ignored_reason == reason
    assert (await edge.jobs(), edge.dispatcher.notices) == ([], 0)


async def test_a_redelivery_does_nothing(edge: Edge) -> None:
    """GitHub repeats a delivery under the same id, at any later time and also at the same one."""
    send = [
        edge.deliver("pull_request", pull_request(), **{"X-GitHub-Delivery": "same"})
        for _ in range(5)
    ]
    responses = await asyncio.gather(*send)
    answers = sorted(response.json()["status"] for response in responses)
    assert answers == ["accepted"] + ["duplicate"] * 4
    assert len(await edge.jobs()) == len(await edge.deliveries()) == 1


async def test_both_apps_get_the_same_id_for_one_event(edge: Edge) -> None:
    """GitHub's id names the event, not the delivery: the fixer's copy does not hide ours."""
    for secret, status in ((FIXER, "ignored"), (SECRET, "accepted"), (SECRET, "duplicate")):
        response = await edge.deliver(
            "pull_request", pull_request(), secret=secret, **{"X-GitHub-Delivery": "shared"}
        )
        assert response.json()["status"] == status
    assert len(await edge.jobs()) == 1


async def test_a_refused_request_does_not_take_the_id(edge: Edge) -> None:
    """Nobody can block a real delivery by guessing its id."""
    body = json.dumps(pull_request()).encode()
    headers = {"X-GitHub-Delivery": "guessed"}
    refused = await edge.post(body, **{**headers, "X-Hub-Signature-256": None})
    assert refused.status_code == 401
    accepted = await edge.deliver("pull_request", pull_request(), **headers)
    assert accepted.json()["status"] == "accepted"


async def test_two_secrets_are_valid_during_a_rotation(edge: Edge) -> None:
    """The previous secret works until it is taken out of the settings."""
    response = await edge.deliver("ping", {}, secret=PREVIOUS)
    assert response.status_code == 202


async def test_the_fixer_app_has_its_own_secret(edge: Edge) -> None:
    """One address serves both Apps; the same event from both starts one review."""
    for secret in (SECRET, FIXER):
        await edge.deliver("pull_request", pull_request(), secret=secret)
    assert [delivery.app for delivery in await edge.deliveries()] == [
        AppRole.REVIEWER,
        AppRole.FIXER,
    ]
    assert len(await edge.jobs()) == 1


async def test_without_a_secret_the_process_refuses_to_start(store: Store) -> None:
    """An edge that would believe everybody is not built."""
    with pytest.raises(ConfigurationError, match="MERGEWARD_REVIEWER_WEBHOOK_SECRET"):
        Edge(store, reviewer_webhook_secret=None, reviewer_webhook_secret_previous=None)


async def test_half_characters_and_nul_are_stored(edge: Edge) -> None:
    """What JSON allows and databases refuse is replaced, in the job too."""
    body = json.dumps(comment("/mergeward review \ud83d alone \x00 nul \u2028 \U0001f600")).encode()
    response = await edge.post(body, **{"X-GitHub-Event": "issue_comment"})
    assert response.json()["status"] == "accepted"
    [job] = await edge.jobs()
    assert job.payload["body"] == "/mergeward review \ufffd alone \ufffd nul \u2028 \U0001f600"
    [delivery] = await edge.deliveries()
    assert delivery.body == body


async def test_a_job_that_cannot_be_queued_leaves_no_delivery(edge: Edge) -> None:
    """One transaction: GitHub will be told to send it again, so nothing of it may be there."""

    delivery = Delivery(
        guid="d-1",
        app=AppRole.REVIEWER,
        name="pull_request",
        action="opened",
        body=b"{}",
        event=None,
        received_at=NOW,
    )
    request = JobRequest(kind=JobKind.SYNC_INSTALLATION, key="k", payload={"not": object()})

    async def fail() -> None:
        async with edge.store.write() as session:
            await store_delivery(session, delivery, Work(request))

    with pytest.raises(Exception, match="serializable"):
        await fail()
    assert (await edge.jobs(), await edge.deliveries()) == ([], [])


async def test_a_database_that_is_away_is_said_to_be(edge: Edge) -> None:
    """503, so that GitHub shows the delivery as failed; no worker is told of anything."""

    class Broken:
        async def accept(self, delivery: Delivery, route: Route) -> Accepted:
            raise OperationalError("INSERT", {}, ConnectionError("gone"))

    app = build_router(
        EdgeOptions.from_settings(settings()),
        intake=Broken(),
        dispatcher=edge.dispatcher,
        clock=edge.clock,
    )
    edge.client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://mergeward.test"
    )
    response = await edge.deliver("pull_request", pull_request())
    assert (response.status_code, edge.dispatcher.notices) == (503, 0)


async def test_a_push_storm_ends_in_one_review(edge: Edge) -> None:
    """Each push replaces the queued one, inherits its causes, and cannot put it off for ever."""
    people = ["author-1", "bot[bot]", "author-1"]
    for number, login in enumerate(people):
        edge.clock.move_to(later(number))
        await edge.deliver(
            "pull_request",
            pull_request("synchronize", f"a{number}", sender=account(login)),
        )
    jobs = await edge.jobs()
    assert [job.state for job in jobs] == [JobState.SUPERSEDED] * 2 + [JobState.QUEUED]
    causes = [Cause.from_json(cause) for cause in jobs[-1].payload["causes"]]
    assert [cause.actor.login for cause in causes] == people
    assert jobs[-1].run_at == later(2 + 3)
    edge.clock.move_to(later(29))
    await edge.deliver("pull_request", pull_request("synchronize", "a29"))
    assert (await edge.jobs())[-1].run_at == later(30), "ten times the debounce, then it starts"
    edge.clock.move_to(later(40))
    await edge.deliver("pull_request", pull_request("synchronize", "a40"))
    assert (await edge.jobs())[-1].run_at == later(40)


@pytest.mark.parametrize("fix_pr", [False, True])
async def test_a_push_stops_a_running_review_but_not_one_it_answers(
    edge: Edge, fix_pr: bool
) -> None:
    """A newer head makes the review of the old one pointless, except on a fix pull request."""
    async with edge.store.write() as session:
        await add_repository(session)
        row: PullRequestRow = await add_pull_request(session)
        row.is_fix_pr = fix_pr
    await edge.deliver("pull_request", pull_request())
    async with edge.store.write() as session:
        running = await session.get_one(Job, (await edge.jobs())[0].id)
        running.state, running.lease_owner = JobState.RUNNING, "w"
    await edge.deliver("pull_request", pull_request("synchronize", "a2"))
    jobs = await edge.jobs()
    assert [job.state for job in jobs] == [JobState.RUNNING, JobState.QUEUED]
    assert (jobs[0].cancel_requested_at is None) is fix_pr


async def test_installations_come_and_go(edge: Edge) -> None:
    """Installed, a repository added, another removed, suspended, gone: the rows follow."""
    await edge.deliver("installation", installation())
    await edge.deliver(
        "installation_repositories",
        installation_repositories(repositories_added=[repository(id=8, name="docs", owner=None)]),
    )
    await edge.deliver(
        "installation_repositories",
        installation_repositories(repositories_removed=[repository()]),
    )
    await edge.deliver("installation", installation("suspend"))
    async with edge.store.read() as session:
        row = await session.get_one(Installation, INSTALLATION)
        assert (row.account_login, row.suspended_at) == ("acme", NOW)
        assert (await session.get_one(Repository, REPOSITORY)).removed_at == NOW
        docs = await session.get_one(Repository, 8)
        assert (docs.full_name, docs.removed_at) == ("acme/docs", None)
    await edge.deliver("installation", installation("deleted"))
    async with edge.store.read() as session:
        assert (await session.get_one(Installation, INSTALLATION)).removed_at == NOW
        assert (await session.get_one(Repository, 8)).removed_at == NOW


async def test_the_fixers_installation_is_noted_beside_the_reviewers(edge: Edge) -> None:
    """Two Apps, two installations, one repository."""
    await edge.deliver("installation", installation())
    await edge.deliver(
        "installation",
        installation(installation={"id": 99, "account": account("acme", "Organization", 1)}),
        secret=FIXER,
    )
    async with edge.store.read() as session:
        row = await session.get_one(Repository, REPOSITORY)
        assert (row.installation_id, row.fixer_installation_id) == (INSTALLATION, 99)
        assert (await session.get_one(Installation, 99)).app is AppRole.FIXER


async def test_health(edge: Edge) -> None:
    """Alive is not ready: ready means a database with the right tables."""
    assert (await edge.client.get("/healthz")).json() == {"status": "ok"}
    assert (await edge.client.get("/readyz")).status_code == 200


async def test_not_ready_without_tables(tmp_path: Path) -> None:
    """Until the tables exist the process says what to run, and webhooks are answered 503."""
    store = open_store(f"sqlite+aiosqlite:///{tmp_path}/empty.db")
    edge = Edge(store)
    response = await edge.client.get("/readyz")
    assert response.status_code == 503
    assert "mergeward db upgrade" in response.json()["reason"]
    assert (await edge.deliver("ping", {})).status_code == 503
    await store.close()


async def test_the_hook_lives_as_long_as_the_server(store: Store) -> None:
    """Whoever runs beside the web server gets what it opened, and ends with it."""
    seen: list[str] = []

    @asynccontextmanager
    async def hook(services: Any) -> AsyncIterator[None]:
        assert services.store is store
        seen.append("start")
        yield
        seen.append("stop")

    app = create_app(settings(), CountingDispatcher(), store=store, lifespan_hook=hook)
    async with app.router.lifespan_context(app):
        assert seen == ["start"]
    assert seen == ["start", "stop"]
