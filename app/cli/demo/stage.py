"""The demo's world: both doubles and the whole product on free loopback ports."""

from __future__ import annotations

import asyncio
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn
from sqlmodel import col, select

from app.cli.demo.report import Check, Narrator, StoryReport
from app.domain.jobs import LIVE_JOB_STATES
from app.jobs.dispatch import InProcessDispatcher
from app.main import create_app
from app.sandbox.github import (
    FIXER_PERMISSIONS,
    AppConfig,
    DoubleConfig,
    GitHubDouble,
    PullView,
)
from app.sandbox.model import ModelServer, load_demo_repository
from app.settings import Settings, load_settings
from app.store.migrate import upgrade
from app.store.session import Store, open_store
from app.store.tables import (
    FindingRow,
    FixTask,
    Job,
    Lineage,
    PullRequestRow,
    Repository,
    ReviewRun,
)
from app.wiring import Parts
from app.worker import embedded_worker

OWNER, NAME = "acme", "notes"
REPOSITORY = f"{OWNER}/{NAME}"
REVIEWER, FIXER = "mergeward", "mergeward-fixer"
AUTHOR, MAINTAINER = "mara", "tomas"
SETTLE_SECONDS = 60.0
"""A story that is not quiet after this long has gone wrong."""
_QUIET = 3
"""Looks in a row that must find nothing on its way."""

Asgi = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Props:
    """What may be put in place of a part of the product, to see the demo notice."""

    parts: Parts = field(default_factory=Parts)
    around_web: Callable[[Asgi, str], Asgi] | None = None
    """Wraps the web application; told the webhook secret of the reviewer App."""


class Stage:
    """`async with Stage(...) as stage`: everything runs until the block ends."""

    def __init__(self, props: Props, voice: Narrator) -> None:
        self._props = props
        self.voice = voice
        self._stack = AsyncExitStack()
        self.github: GitHubDouble
        self.model: ModelServer
        self.store: Store
        self.url = ""
        self._secrets = {name: secrets.token_hex(20) for name in (REVIEWER, FIXER)}

    async def __aenter__(self) -> Self:
        try:
            await self._set_up()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _set_up(self) -> None:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mergeward-")))
        listening = _listen()
        self._stack.callback(listening.close)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        key = secrets.token_hex(16)
        self.model = await self._stack.enter_async_context(ModelServer("demo", api_key=key))
        self.github = await self._stack.enter_async_context(GitHubDouble(self._double()))
        settings = self._settings(folder, key)
        await asyncio.to_thread(upgrade, settings.async_database_url)
        self.store = open_store(settings.async_database_url)
        self._stack.push_async_callback(self.store.close)
        await self._serve(settings, listening)
        await self._people()
        self.voice.say("GitHub double", self.github.url)
        self.voice.say("Model server ", self.model.url)
        self.voice.say("Mergeward    ", self.url)

    def _double(self) -> DoubleConfig:
        hook = f"{self.url}/webhooks/github"
        reviewer = AppConfig(
            id=101, slug=REVIEWER, webhook_url=hook, webhook_secret=self._secrets[REVIEWER]
        )
        fixer = AppConfig(
            id=102,
            slug=FIXER,
            webhook_url=hook,
            webhook_secret=self._secrets[FIXER],
            permissions=FIXER_PERMISSIONS,
            events=(),
        )
        return DoubleConfig(apps=(reviewer, fixer))

    def _settings(self, folder: Path, key: str) -> Settings:
        github = self.github
        return load_settings(
            data_dir=folder,
            database_url=f"sqlite:///{folder / 'mergeward.db'}",
            github_api_url=github.url,
            github_web_url=github.url,
            github_pacing=False,
            reviewer_app_id=101,
            reviewer_slug=REVIEWER,
            reviewer_private_key=github.app(REVIEWER).private_key,
            reviewer_webhook_secret=self._secrets[REVIEWER],
            fixer_app_id=102,
            fixer_slug=FIXER,
            fixer_private_key=github.app(FIXER).private_key,
            fixer_webhook_secret=self._secrets[FIXER],
            model_base_url=self.model.url,
            model_api_key=key,
            model=None,
            review_debounce_seconds=0.2,
        )

    async def _serve(self, settings: Settings, listening: socket.socket) -> None:
        wakeups = InProcessDispatcher()
        app: Asgi = create_app(
            settings,
            wakeups,
            store=self.store,
            lifespan_hook=embedded_worker(wakeups, self._props.parts),
        )
        if self._props.around_web is not None:
            app = self._props.around_web(app, self._secrets[REVIEWER])
        server = _Guest(
            uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2)
        )
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        self._stack.push_async_callback(_stop, server, serving)
        while not server.started:
            if serving.done():
                await serving
            await asyncio.sleep(0.01)

    async def _people(self) -> None:
        await self.github.create_repository(OWNER, NAME, load_demo_repository())
        self.github.permit(REPOSITORY, AUTHOR, "write")
        self.github.permit(REPOSITORY, MAINTAINER, "admin")
        for slug in (REVIEWER, FIXER):
            self.github.install(slug, OWNER)
        await self.github.drain()

    async def settle(self) -> None:
        """Wait until nothing is on its way: no webhook, no job that is due or running.

        Raises TimeoutError when that takes too long.
        """
        with self.voice.waiting("webhooks, reviewers and fixers at work"):
            async with asyncio.timeout(SETTLE_SECONDS):
                quiet = 0
                while quiet < _QUIET:
                    await self.github.drain()
                    quiet = 0 if await self._live_jobs() else quiet + 1
                    await asyncio.sleep(0.05)

    async def _live_jobs(self) -> int:
        async with self.store.read() as session:
            found = await session.exec(select(Job.id).where(col(Job.state).in_(LIVE_JOB_STATES)))
            return len(found.all())

    def pull(self, number: int) -> PullView:
        """A pull request as GitHub shows it now."""
        return self.github.pull(REPOSITORY, number)

    def newest_pull(self) -> int:
        """The number of the newest pull request."""
        return max(self.github.repository(REPOSITORY).pulls)

    async def send_forged_webhook(self) -> int:
        """A delivery that GitHub never sent: the status code it is answered with."""
        async with httpx.AsyncClient() as client:
            response = await client.post(
                f"{self.url}/webhooks/github",
                content=b'{"action":"opened"}',
                headers={
                    "x-github-event": "pull_request",
                    "x-github-delivery": secrets.token_hex(8),
                    "x-hub-signature-256": "sha256=" + "0" * 64,
                    "content-type": "application/json",
                },
            )
        return response.status_code

    async def row(self, number: int) -> PullRequestRow | None:
        """What Mergeward remembers of a pull request."""
        async with self.store.read() as session:
            found = await session.exec(
                select(PullRequestRow)
                .join(Repository, col(Repository.id) == col(PullRequestRow.repository_id))
                .where(PullRequestRow.number == number, Repository.name == NAME)
            )
            return found.one_or_none()

    async def tasks_of(self, number: int) -> Sequence[FixTask]:
        """The fix tasks that came from a pull request."""
        row = await self.row(number)
        if row is None:
            return ()
        async with self.store.read() as session:
            found = await session.exec(
                select(FixTask).where(FixTask.source_pull_request_id == row.id)
            )
            return found.all()

    async def findings_of(self, number: int) -> Sequence[FindingRow]:
        """The findings in the ledger of a pull request."""
        row = await self.row(number)
        if row is None:
            return ()
        async with self.store.read() as session:
            found = await session.exec(
                select(FindingRow)
                .where(FindingRow.pull_request_id == row.id)
                .order_by(col(FindingRow.number))
            )
            return found.all()

    async def rounds_of(self, number: int) -> Sequence[ReviewRun]:
        """The rounds of the whole lineage that a pull request began."""
        row = await self.row(number)
        if row is None or row.lineage_id is None:
            return ()
        async with self.store.read() as session:
            found = await session.exec(
                select(ReviewRun)
                .where(
                    ReviewRun.lineage_id == row.lineage_id,
                    col(ReviewRun.charged_at).is_not(None),
                )
                .order_by(col(ReviewRun.id))
            )
            return found.all()

    async def fill(self, report: StoryReport, number: int) -> None:
        """Copy rounds, tasks, calls and cost of a lineage from the ledger into the report."""
        row = await self.row(number)
        report.rounds = len(await self.rounds_of(number))
        report.tasks = len(await self.tasks_of(number))
        if row is None or row.lineage_id is None:
            return
        async with self.store.read() as session:
            lineage = await session.get_one(Lineage, row.lineage_id)
        report.model_calls = lineage.model_calls
        report.cost_usd = None if lineage.cost_unknown else lineage.cost_usd

    def check(self, report: StoryReport, promise: str, held: bool, seen: object = "") -> None:
        """Note and show whether a promise of the story held."""
        check = Check(promise, held, str(seen))
        report.checks.append(check)
        self.voice.check(check)

    async def keep_running(self) -> None:
        """Leave everything as it is until the person has seen enough."""
        self.voice.say("Everything keeps running. Ctrl-C ends it.", self.github.url)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def _listen() -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    return listening


class _Guest(uvicorn.Server):
    """Leaves the process's signals alone: Ctrl-C belongs to the demo."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _stop(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    server.should_exit = True
    await serving
