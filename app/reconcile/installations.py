"""Asks GitHub which installations and repositories there are, and takes over what it says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from app.domain.forge import Installation, Repository
from app.domain.jobs import AppRole
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.store.commands import RepositoryFacts, ensure_installation, ensure_repository


@dataclass(frozen=True, slots=True)
class ReconcileServices:
    """Acts as the reviewer App, whose installations decide where we work."""

    open_forge: Callable[[], AbstractAsyncContextManager[Forge]]


async def sync_installation(job: JobContext, services: ReconcileServices) -> None:
    """Bring the rows of one installation (or of all) up to GitHub's word of now."""
    wanted = job.payload.get("installation_id")
    async with services.open_forge() as forge:
        for installation in await forge.installations():
            if installation.suspended or wanted not in (None, installation.id):
                continue
            repositories = await forge.installation_repositories(installation.id)
            await _store(job, installation, repositories)


async def _store(
    job: JobContext, installation: Installation, repositories: tuple[Repository, ...]
) -> None:
    now = job.clock.now()
    async with job.store.write() as session:
        await ensure_installation(
            session,
            installation.id,
            app=AppRole.REVIEWER,
            account=installation.account,
            now=now,
        )
        for item in repositories:
            facts = RepositoryFacts(
                id=item.ref.repository_id,
                owner=item.ref.owner,
                name=item.ref.name,
                default_branch=item.default_branch,
                private=item.private,
            )
            await ensure_repository(session, facts, installation_id=installation.id, now=now)
