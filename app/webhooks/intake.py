"""Making a delivery durable: the delivery, the rows it names and its jobs in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from sqlalchemy import Table
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import AppRole, Cause, JobKind
from app.jobs.ledger import Superseded, enqueue, request_cancel, supersede
from app.jobs.requests import JobRequest
from app.store import queries
from app.store.commands import (
    RepositoryFacts,
    ensure_installation,
    ensure_repository,
    forget_repositories,
)
from app.store.session import Store, dialect_of, insert_into
from app.store.tables import DeliveryRow, Job
from app.webhooks.events import Event, RepositoryPart
from app.webhooks.routing import REVIEW_KEY, Ignore, InstallationChange, Route, Work

MAX_DEBOUNCE_FACTOR = 10
"""A review waits for the pushes after it at most so many times the debounce."""
_MAX_CAUSES = 100


@dataclass(frozen=True, slots=True)
class Delivery:
    """One authenticated delivery. `event` is None if its payload could not be read."""

    guid: str
    app: AppRole
    name: str
    action: str | None
    body: bytes
    event: Event | None
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a delivery. A duplicate asked for nothing again."""

    duplicate: bool = False
    job_ids: tuple[int, ...] = ()


class Intake(Protocol):
    """Returns only once the delivery is durably stored, or was before."""

    async def accept(self, delivery: Delivery, route: Route) -> Accepted: ...


class TransactionalIntake:
    """One transaction per delivery."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def accept(self, delivery: Delivery, route: Route) -> Accepted:
        async with self._store.write() as session:
            return await store_delivery(session, delivery, route)


async def store_delivery(session: AsyncSession, delivery: Delivery, route: Route) -> Accepted:
    """Store one delivery and what it asks for, in the caller's transaction."""
    delivery_id = await _insert(session, delivery, route)
    if delivery_id is None:
        return Accepted(duplicate=True)
    now = delivery.received_at
    if isinstance(route, InstallationChange):
        await _change_installation(session, route, delivery.app, now)
    elif isinstance(route, Work):
        await _know_repository(session, delivery)
        request = replace(route.request, delivery_id=delivery_id)
        return Accepted(job_ids=(await _queue(session, route, request, now),))
    return Accepted()


async def _queue(session: AsyncSession, work: Work, request: JobRequest, now: datetime) -> int:
    queued = await enqueue(session, request, now=now)
    subject = request.subject
    if not queued.created or subject is None:
        return queued.job_id
    if work.supersedes:
        older = await supersede(
            session,
            kind=request.kind,
            subject=subject,
            by=queued.job_id,
            now=now,
            key_prefix=REVIEW_KEY,
        )
        if older:
            await _take_over(session, queued.job_id, older, request, now)
    if work.cancels and not await _is_fix_pull_request(session, request):
        await request_cancel(
            session,
            subject=subject,
            reason="superseded by a newer head",
            now=now,
            kinds=(JobKind.REVIEW_PULL_REQUEST,),
            running_only=True,
        )
    return queued.job_id


async def _take_over(
    session: AsyncSession,
    job_id: int,
    older: tuple[Superseded, ...],
    request: JobRequest,
    now: datetime,
) -> None:
    """Inherit what caused the older jobs, and do not let a storm of pushes delay us for ever."""
    inherited = [cause for job in older for cause in job.payload.get("causes", [])]
    causes = [*inherited, *request.payload["causes"]]
    if len(causes) > _MAX_CAUSES:
        causes = [*causes[: _MAX_CAUSES // 2], *causes[-_MAX_CAUSES // 2 :]]
    job = await session.get_one(Job, job_id)
    job.payload = {**request.payload, "causes": causes}
    wait = (request.run_at or now) - now
    latest = Cause.from_json(causes[0]).at + MAX_DEBOUNCE_FACTOR * wait
    job.run_at = max(now, min(request.run_at or now, latest))
    await session.flush()


async def _is_fix_pull_request(session: AsyncSession, request: JobRequest) -> bool:
    row = await queries.pull_request(
        session, request.payload["repository_id"], request.payload["number"]
    )
    return row is not None and row.is_fix_pr


async def _know_repository(session: AsyncSession, delivery: Delivery) -> None:
    """Jobs carry ids only, so the rows behind them must exist."""
    event = delivery.event
    if event is None or event.repository is None or event.installation is None:
        return
    repository, now = event.repository, delivery.received_at
    known = await queries.repository(session, repository.id)
    told = (repository.owner_login, repository.name, event.installation.id, False)
    if known is not None and told == (
        known.owner,
        known.name,
        known.installation_id,
        known.removed_at is not None,
    ):
        return
    owner = repository.owner.as_account() if repository.owner else None
    await ensure_installation(
        session, event.installation.id, app=delivery.app, account=owner, now=now
    )
    await ensure_repository(
        session, _facts(repository), installation_id=event.installation.id, now=now
    )


async def _change_installation(
    session: AsyncSession, change: InstallationChange, app: AppRole, now: datetime
) -> None:
    row = await ensure_installation(
        session, change.installation_id, app=app, account=change.account, now=now
    )
    if change.suspended is not None:
        row.suspended_at = now if change.suspended else None
    if change.deleted:
        row.removed_at = now
        theirs = await queries.repositories_of(session, change.installation_id, app=app)
        await forget_repositories(session, [each.id for each in theirs], app=app, now=now)
    for repository in change.added:
        await ensure_repository(
            session,
            _facts(repository),
            installation_id=change.installation_id,
            app=app,
            now=now,
        )
    await forget_repositories(session, change.removed, app=app, now=now)
    await session.flush()


def _facts(repository: RepositoryPart) -> RepositoryFacts:
    return RepositoryFacts(
        id=repository.id,
        owner=repository.owner_login,
        name=repository.name,
        default_branch=repository.default_branch,
        private=repository.private,
    )


async def _insert(session: AsyncSession, delivery: Delivery, route: Route) -> int | None:
    """The new row's id; None if this App's delivery with this guid is stored already."""
    table: Table = DeliveryRow.__table__  # type: ignore[attr-defined]  # SQLModel sets it at run time
    event = delivery.event
    statement = (
        insert_into(dialect_of(session), table)
        .values(
            guid=delivery.guid,
            app=delivery.app,
            event=delivery.name,
            action=delivery.action,
            installation_id=event.installation.id if event and event.installation else None,
            repository_id=event.repository.id if event and event.repository else None,
            ignored_reason=route.reason.value if isinstance(route, Ignore) else None,
            body=delivery.body,
            received_at=delivery.received_at,
        )
        .on_conflict_do_nothing(index_elements=[table.c.guid, table.c.app])
        .returning(table.c.id)
    )
    return (await session.exec(statement)).scalar_one_or_none()
