"""Changes to stored facts that several stories make, each in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy.exc import IntegrityError
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import AppRole
from app.domain.pull_request import Account, PullRequest, PullRequestState
from app.domain.tasks import PublicationState
from app.store.tables import (
    DecisionRow,
    Installation,
    Lineage,
    Publication,
    PullRequestRow,
    Repository,
)

Row = TypeVar("Row", bound=SQLModel)


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """A repository as an event or an answer tells it. None: not told, so the old value stays."""

    id: int
    owner: str
    name: str
    default_branch: str | None = None
    private: bool | None = None


@dataclass(frozen=True, slots=True)
class BotFact:
    """Whether a machine wrote the pull request, with the one signal that decided."""

    is_bot: bool
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision to be stored. `record` is JSON: the values compared and the guards' trace."""

    kind: str
    outcome: str
    reason: str
    record: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    repository_id: int | None = None
    pull_request_id: int | None = None
    finding_id: int | None = None
    fix_task_id: int | None = None
    run_id: int | None = None
    job_id: int | None = None


async def ensure_installation(
    session: AsyncSession,
    installation_id: int,
    *,
    app: AppRole,
    account: Account | None,
    now: datetime,
) -> Installation:
    """The installation's row, made if it is new; the account's new name is taken over."""
    row = await _get_or_add(
        session,
        Installation(id=installation_id, app=app, created_at=now, updated_at=now),
        installation_id,
    )
    if account is not None:
        row.account_id, row.account_login = account.id, account.login
        row.account_kind = account.kind
        row.updated_at = now
    await session.flush()
    return row


async def ensure_repository(
    session: AsyncSession,
    facts: RepositoryFacts,
    *,
    installation_id: int,
    app: AppRole = AppRole.REVIEWER,
    now: datetime,
) -> Repository | None:
    """The repository's row, made if it is new; renames, transfers and returns are taken over.

    The fixer App's installation only adds itself to a repository the reviewer knows: None if the
    reviewer has not seen it yet.
    """
    if app is AppRole.FIXER:
        known = await session.get(Repository, facts.id)
        if known is not None:
            known.fixer_installation_id = installation_id
            await session.flush()
        return known
    row = await _get_or_add(
        session,
        Repository(
            id=facts.id,
            installation_id=installation_id,
            owner=facts.owner,
            name=facts.name,
            enabled_at=now,
            updated_at=now,
        ),
        facts.id,
    )
    if row.removed_at is not None:
        row.removed_at, row.enabled_at = None, now
    row.installation_id = installation_id
    row.owner, row.name = facts.owner, facts.name
    row.default_branch = facts.default_branch or row.default_branch
    row.private = row.private if facts.private is None else facts.private
    row.updated_at = now
    await session.flush()
    return row


async def forget_repositories(
    session: AsyncSession, repository_ids: Sequence[int], *, app: AppRole, now: datetime
) -> None:
    """The App was taken off these repositories: no more work for them; their history stays."""
    statement = select(Repository).where(col(Repository.id).in_(repository_ids))
    for row in (await session.exec(statement)).all():
        if app is AppRole.FIXER:
            row.fixer_installation_id = None
        else:
            row.removed_at = now
    await session.flush()


async def ensure_pull_request(
    session: AsyncSession,
    repository_id: int,
    facts: PullRequest,
    *,
    bot: BotFact,
    updated_at: datetime,
    now: datetime,
) -> PullRequestRow:
    """The pull request's row, made if it is new, brought up to date if `facts` are not older.

    `updated_at` is GitHub's own, so that an event that arrives late changes nothing. Merged is
    final. Who wrote it and whether that is a bot is written once, when the row is made.
    """
    row = await _pull_request(session, repository_id, facts.number)
    if row is None:
        fresh = PullRequestRow(
            repository_id=repository_id,
            number=facts.number,
            author_id=facts.author.id,
            author_login=facts.author.login,
            author_kind=facts.author.kind,
            is_bot=bot.is_bot,
            bot_signal=bot.signal,
            created_at=now,
            updated_at=now,
        )
        if await _added(session, fresh):
            row = fresh
        else:
            row = await _pull_request(session, repository_id, facts.number)
    if row is None:
        msg = f"pull request {repository_id}#{facts.number} can neither be added nor found"
        raise RuntimeError(msg)
    if not is_late(row, facts.state, updated_at):
        _follow(row, facts)
        row.forge_updated_at, row.updated_at = updated_at, now
    await session.flush()
    return row


def is_late(row: PullRequestRow, state: PullRequestState, updated_at: datetime) -> bool:
    """Whether facts of that state and time are older than what the row holds."""
    if row.state is PullRequestState.MERGED and state is not PullRequestState.MERGED:
        return True
    return row.forge_updated_at is not None and updated_at < row.forge_updated_at


async def ensure_lineage(
    session: AsyncSession, source: PullRequestRow, *, now: datetime
) -> Lineage:
    """The lineage that grows from this pull request, made if it is new."""
    statement = select(Lineage).where(Lineage.source_pull_request_id == source.id)
    row = (await session.exec(statement)).one_or_none()
    if row is None:
        fresh = Lineage(source_pull_request_id=source.id, created_at=now, updated_at=now)
        row = fresh if await _added(session, fresh) else (await session.exec(statement)).one()
    if source.lineage_id is None:
        source.lineage_id = row.id
    await session.flush()
    return row


async def record_decision(
    session: AsyncSession, decision: DecisionRecord, *, now: datetime
) -> DecisionRow:
    """Store one decision. Decisions are never changed."""
    row = DecisionRow(
        kind=decision.kind,
        outcome=decision.outcome,
        reason=decision.reason,
        reasons=list(decision.reasons),
        record=dict(decision.record),
        repository_id=decision.repository_id,
        pull_request_id=decision.pull_request_id,
        finding_id=decision.finding_id,
        fix_task_id=decision.fix_task_id,
        run_id=decision.run_id,
        job_id=decision.job_id,
        decided_at=now,
    )
    session.add(row)
    await session.flush()
    return row


async def prepare_publication(
    session: AsyncSession, publication: Publication
) -> tuple[Publication, bool]:
    """Announce an effect before it is tried: (row, whether it is new).

    Not new and still `PREPARED` means that an earlier try may have had its effect: look for the
    marker on GitHub before writing.
    """
    statement = select(Publication).where(Publication.marker == publication.marker)
    row = (await session.exec(statement)).one_or_none()
    if row is not None:
        return row, False
    if await _added(session, publication):
        return publication, True
    return (await session.exec(statement)).one(), False


async def finish_publication(
    session: AsyncSession, publication_id: int, receipt: Mapping[str, Any], *, now: datetime
) -> None:
    """The effect is on GitHub; `receipt` is what GitHub answered (ids and links)."""
    row = (await session.exec(select(Publication).where(Publication.id == publication_id))).one()
    row.state, row.receipt, row.updated_at = PublicationState.DONE, dict(receipt), now
    await session.flush()


async def _pull_request(
    session: AsyncSession, repository_id: int, number: int
) -> PullRequestRow | None:
    statement = select(PullRequestRow).where(
        PullRequestRow.repository_id == repository_id, PullRequestRow.number == number
    )
    locked = statement.with_for_update().execution_options(populate_existing=True)
    return (await session.exec(locked)).one_or_none()


def _follow(row: PullRequestRow, facts: PullRequest) -> None:
    row.title, row.state, row.draft = facts.title, facts.state, facts.draft
    row.head_ref, row.head_sha = facts.head_ref, facts.head_sha
    row.base_ref, row.base_sha = facts.base_ref, facts.base_sha
    row.merge_commit_sha = facts.merge_commit_sha
    row.merged_by_id = facts.merged_by.id if facts.merged_by else None
    row.merged_by_login = facts.merged_by.login if facts.merged_by else None
    row.opened_at, row.closed_at = facts.created_at, facts.closed_at
    row.merged_at = facts.closed_at if facts.state is PullRequestState.MERGED else None


async def _get_or_add(session: AsyncSession, fresh: Row, key: int) -> Row:
    known = await session.get(type(fresh), key)
    if known is None and await _added(session, fresh):
        return fresh
    return known if known is not None else await session.get_one(type(fresh), key)


async def _added(session: AsyncSession, row: SQLModel) -> bool:
    """Add a row; False if another transaction added one with the same key first."""
    try:
        async with session.begin_nested():
            session.add(row)
            await session.flush()
    except IntegrityError:
        return False
    return True
