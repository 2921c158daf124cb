"""What the ledger knows of a pull request when somebody commands something there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.facts import Asked, KnownFinding, KnownTask, Ledger
from app.commands.gather import STATES
from app.domain.pull_request import PullRequestState
from app.domain.tasks import LIVE_TASK_STATES, LineageState, OrderState
from app.store.commands import ensure_lineage, ensure_pull_request
from app.store.decisions import deferred_findings
from app.store.findings import finding_comments, finding_rows
from app.store.queries import pending_orders, pull_request
from app.store.tables import FindingRow, FixTask, FixTaskFinding, Lineage, Order, PullRequestRow
from loop_guards import FindingStatus, PullState, TaskState


async def read_ledger(session: AsyncSession, asked: Asked) -> Ledger:
    """What we know of the pull request, locked: a merge sees the orders, or they see the merge."""
    told = STATES[asked.pull_request.state]
    row = await _row(session, asked)
    if row is None:
        return Ledger(state=told)
    row = await session.get_one(
        PullRequestRow, row.id, with_for_update=True, populate_existing=True
    )
    # Merged is final: the ledger may have heard of it after the forge was asked.
    merged = row.state is PullRequestState.MERGED
    state = PullState.MERGED if merged else told
    lineage = await session.get(Lineage, row.lineage_id) if row.lineage_id else None
    source = await _source(session, lineage) or row
    source_merged = source.state is PullRequestState.MERGED
    return Ledger(
        pull_request_id=row.id,
        state=state,
        lineage_id=row.lineage_id,
        stopped=lineage is not None and lineage.state is LineageState.STOPPED,
        stopped_by=lineage.stopped_by_login if lineage else None,
        findings=await _findings(session, row),
        tasks=await _live_tasks(session, row.lineage_id),
        own_task_id=row.fix_task_id,
        source_number=source.number,
        source_merged=source_merged,
        deferred=source_merged and await _anything_deferred(session, source.id),
    )


async def _row(session: AsyncSession, asked: Asked) -> PullRequestRow | None:
    """The row of the pull request, made where a command needs one before the first review."""
    row = await pull_request(session, asked.repo.repository_id, asked.pull_request.number)
    if row is not None or asked.bot is None or not asked.person.can_write:
        return row
    row = await ensure_pull_request(
        session,
        asked.repo.repository_id,
        asked.pull_request,
        bot=asked.bot,
        updated_at=asked.now,
        now=asked.now,
    )
    await ensure_lineage(session, row, now=asked.now)
    return row


async def _source(session: AsyncSession, lineage: Lineage | None) -> PullRequestRow | None:
    if lineage is None:
        return None
    return await session.get(PullRequestRow, lineage.source_pull_request_id)


async def _anything_deferred(session: AsyncSession, source_id: int) -> bool:
    """Whether a resume has something to ask about again."""
    waits = await pending_orders(session, source_id)
    return bool(waits) or bool(await deferred_findings(session, source_id))


async def _live_tasks(session: AsyncSession, lineage_id: int | None) -> tuple[KnownTask, ...]:
    statement = (
        select(FixTask, PullRequestRow.number)
        .outerjoin(PullRequestRow, col(PullRequestRow.id) == col(FixTask.fix_pull_request_id))
        .where(FixTask.lineage_id == lineage_id, col(FixTask.state).in_(LIVE_TASK_STATES))
        .order_by(col(FixTask.id))
        .execution_options(populate_existing=True)
    )
    found = (await session.exec(statement)).all()
    return tuple(KnownTask(task.id, task.state, number) for task, number in found)


@dataclass(frozen=True, slots=True)
class _Cover:
    """A task with the number of its pull request, its findings that are left to fix, and those that
    people took off it. Findings go by their row on the source pull request."""

    task: FixTask
    fix_number: int | None
    left: frozenset[int]
    taken_off: frozenset[int]


async def _findings(session: AsyncSession, row: PullRequestRow) -> tuple[KnownFinding, ...]:
    rows = await finding_rows(session, row.id)
    sources = [item.source_finding_id or item.id for item in rows]
    queued = await _queued(session, [*sources, *(item.id for item in rows)])
    tasks = {item.fix_task_id for item in rows if item.fix_task_id is not None}
    covers = {task_id: await _cover(session, task_id) for task_id in tasks}
    twins = await _twins(session, sources)
    comments = await finding_comments(session, row.id)
    return tuple(
        _known(
            item,
            covers.get(item.fix_task_id or 0),
            queued.get(item.id) or queued.get(item.source_finding_id or 0),
            tuple(one for one in twins[item.source_finding_id or item.id] if one != item.id),
            comments.get(item.short_id),
        )
        for item in rows
    )


async def _queued(session: AsyncSession, finding_ids: Sequence[int]) -> dict[int, str]:
    """Who ordered a finding whose order waits."""
    statement = select(Order).where(
        col(Order.finding_id).in_(finding_ids), Order.state == OrderState.PENDING
    )
    return {
        item.finding_id: item.ordered_by_login for item in (await session.exec(statement)).all()
    }


async def _twins(session: AsyncSession, sources: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
    """Every row of each finding, by its row on the source pull request."""
    statement = select(FindingRow.id, FindingRow.source_finding_id).where(
        col(FindingRow.source_finding_id).in_(sources)
    )
    mirrors = (await session.exec(statement)).all()
    return {
        source: (source, *(number for number, of in mirrors if of == source)) for source in sources
    }


async def _cover(session: AsyncSession, task_id: int) -> _Cover:
    task = await session.get_one(FixTask, task_id, populate_existing=True)
    links = await session.exec(
        select(FixTaskFinding.finding_id, FixTaskFinding.left_at, FindingRow.status)
        .join(FindingRow, col(FindingRow.id) == col(FixTaskFinding.finding_id))
        .where(FixTaskFinding.fix_task_id == task_id)
    )
    found = links.all()
    mirrors: dict[int | None, FindingStatus] = {}
    number = None
    if task.fix_pull_request_id is not None:
        fix = await session.get_one(PullRequestRow, task.fix_pull_request_id)
        number = fix.number
        rows = await finding_rows(session, fix.id)
        mirrors = {item.source_finding_id: item.status for item in rows}
    return _Cover(
        task,
        number,
        left=frozenset(
            source
            for source, left_at, status in found
            if left_at is None and mirrors.get(source, status) is FindingStatus.OPEN
        ),
        taken_off=frozenset(source for source, left_at, _ in found if left_at is not None),
    )


def _known(
    row: FindingRow,
    cover: _Cover | None,
    queued_by: str | None,
    twins: tuple[int, ...],
    comment_id: int | None,
) -> KnownFinding:
    source = row.source_finding_id or row.id
    state = cover.task.state if cover else None
    if cover is not None and source in cover.taken_off and cover.task.state.is_live:
        state = TaskState.WITHDRAWN
    return KnownFinding(
        id=row.id,
        short_id=row.short_id,
        status=row.status,
        severity=row.severity,
        covered_by=state,
        task_id=cover.task.id if cover else None,
        fix_number=cover.fix_number if cover else None,
        last_of_task=cover is not None
        and cover.task.state.is_live
        and source not in cover.taken_off
        and not cover.left - {source},
        queued_by=queued_by,
        source_id=source,
        twins=twins,
        comment_id=comment_id,
    )
