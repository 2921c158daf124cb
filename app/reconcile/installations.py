"""Brings installations and repositories in line with what the forge says of them now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.forge import Installation, Repository
from app.domain.jobs import AppRole
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.reconcile.services import ReconcileServices
from app.store.commands import (
    RepositoryFacts,
    ensure_installation,
    ensure_repository,
    forget_repositories,
)
from app.store.queries import repositories_of


@dataclass(frozen=True, slots=True)
class _Seen:
    """One installation with its repositories, None for a suspended one: it tells nothing."""

    installation: Installation
    repositories: tuple[Repository, ...] | None


async def sync_installation(job: JobContext, services: ReconcileServices) -> None:
    """Ask the forge which repositories we are on, for one installation or for all."""
    wanted = job.payload.get("installation_id")
    openers = [(AppRole.REVIEWER, services.open_reviewer), (AppRole.FIXER, services.open_fixer)]
    for app, opener in openers:
        if opener is None:
            continue
        async with opener() as forge:
            seen = await _look(forge, None if wanted is None else int(wanted))
        async with job.store.write() as session:
            for each in seen:
                await _store(session, app, each, job.clock.now())


async def _look(forge: Forge, wanted: int | None) -> tuple[_Seen, ...]:
    found = await forge.installations()
    return tuple(
        [
            _Seen(
                each,
                None if each.suspended else await forge.installation_repositories(each.id),
            )
            for each in found
            if wanted is None or each.id == wanted
        ]
    )


async def _store(session: AsyncSession, app: AppRole, seen: _Seen, now: datetime) -> None:
    told = seen.installation
    row = await ensure_installation(session, told.id, app=app, account=told.account, now=now)
    row.removed_at = None
    row.suspended_at = (row.suspended_at or now) if told.suspended else None
    if seen.repositories is None:
        return
    for each in seen.repositories:
        facts = RepositoryFacts(
            id=each.ref.repository_id,
            owner=each.ref.owner,
            name=each.ref.name,
            default_branch=each.default_branch,
            private=each.private,
        )
        await ensure_repository(session, facts, installation_id=told.id, app=app, now=now)
    present = {each.ref.repository_id for each in seen.repositories}
    known = await repositories_of(session, told.id, app=app)
    gone = [each.id for each in known if each.id not in present and each.removed_at is None]
    await forget_repositories(session, gone, app=app, now=now)
