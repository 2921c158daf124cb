"""Installations and repositories follow what the forge says of them (reconcile/installations)."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlmodel import col, select

from app.domain.forge import Installation as ForgeInstallation
from app.domain.forge import Repository as ForgeRepository
from app.domain.jobs import JobKind
from app.domain.pull_request import RepoRef
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.requests import JobRequest
from app.jobs.worker import Worker
from app.reconcile.installations import sync_installation
from app.reconcile.services import ReconcileServices
from app.store.tables import Installation, Repository
from tests.handoff.fixtures import in_module_loop
from tests.handoff.stage import GitForge, Stage, account
from tests.store.rows import INSTALLATION, REPOSITORY

pytestmark = in_module_loop

NEW = RepoRef(INSTALLATION, REPOSITORY + 1, "acme", "other")


async def sync(stage: Stage, wanted: int | None = None, **services: Any) -> None:
    """One job that asks the forge."""
    openers = {"open_reviewer": stage.opener(stage.reviewer), **services}
    await stage.queue(
        JobRequest(
            kind=JobKind.SYNC_INSTALLATION,
            key="sync:all",
            payload={"installation_id": wanted},
        )
    )
    story = partial(sync_installation, services=ReconcileServices(**openers))
    worker = Worker(
        stage.store,
        {JobKind.SYNC_INSTALLATION: story},
        clock=stage.clock,
        wakeups=InProcessDispatcher(),
    )
    await worker.run_until_idle()


async def repositories(stage: Stage) -> dict[str, tuple[bool, int | None]]:
    """By name: whether we are on it, and the fixer's installation."""
    async with stage.store.read() as session:
        rows = await session.exec(select(Repository).order_by(col(Repository.id)))
        return {r.name: (r.removed_at is None, r.fixer_installation_id) for r in rows.all()}


async def test_new_repositories_become_known(stage: Stage) -> None:
    """An installation that we missed the event of is found by asking, once and again."""
    stage.world.add_repository(NEW, "trunk")
    for _ in range(2):
        await sync(stage)
    assert await repositories(stage) == {"shop": (True, None), "other": (True, None)}
    async with stage.store.read() as session:
        row = await session.get_one(Repository, NEW.repository_id)
    assert row.default_branch == "trunk"


async def test_a_repository_that_we_were_taken_off_gets_no_more_work(stage: Stage) -> None:
    """What the forge no longer lists is forgotten, and known again when it is back."""
    told = stage.world.repositories.pop(REPOSITORY)
    stage.world.add_repository(NEW)
    await sync(stage, INSTALLATION)
    assert await repositories(stage) == {"shop": (False, None), "other": (True, None)}
    stage.world.repositories[REPOSITORY] = told
    await sync(stage, INSTALLATION)
    assert (await repositories(stage))["shop"] == (True, None)


async def test_only_the_named_installation_is_asked_about(stage: Stage) -> None:
    """A job for one installation leaves the others alone."""
    stage.world.add_repository(NEW)
    await sync(stage, INSTALLATION + 5)
    assert await repositories(stage) == {"shop": (True, None)}


async def test_the_fixers_installation_is_noted(stage: Stage) -> None:
    """Where the fixer App is installed is known to the repository, and only there."""

    class Elsewhere(GitForge):
        async def installations(self) -> tuple[ForgeInstallation, ...]:
            return (ForgeInstallation(6, account("acme"), suspended=False),)

        async def installation_repositories(
            self, installation_id: int
        ) -> tuple[ForgeRepository, ...]:
            return (self.world.repositories[REPOSITORY],)

    stage.world.add_repository(NEW)
    fixer = Elsewhere(stage.world, stage.fixer.me, stage.git)
    await sync(stage, open_fixer=stage.opener(fixer))
    assert await repositories(stage) == {"shop": (True, 6), "other": (True, None)}


async def test_a_suspended_installation_is_asked_nothing(stage: Stage) -> None:
    """It refuses every token: its repositories stay as they are until it is back."""

    class Suspended(GitForge):
        async def installations(self) -> tuple[ForgeInstallation, ...]:
            return (ForgeInstallation(INSTALLATION, account("acme"), suspended=True),)

        async def installation_repositories(
            self, installation_id: int
        ) -> tuple[ForgeRepository, ...]:
            raise AssertionError("a suspended installation can't be asked")

    forge = Suspended(stage.world, stage.reviewer.me, stage.git)
    await sync(stage, open_reviewer=stage.opener(forge))
    async with stage.store.read() as session:
        assert (await session.get_one(Installation, INSTALLATION)).suspended_at is not None
    assert (await repositories(stage))["shop"] == (True, None)
    await sync(stage)
    async with stage.store.read() as session:
        assert (await session.get_one(Installation, INSTALLATION)).suspended_at is None
