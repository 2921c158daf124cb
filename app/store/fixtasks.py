"""Fix tasks in the ledger: made from a guard's plan, linked to their pull request, moved on.

All in the caller's transaction, so that a task and the job that works on it exist together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.bots import FIX_BRANCH_PREFIX
from app.domain.permits import ResumePermit, must_be
from app.domain.tasks import LIVE_TASK_STATES, FixTaskState, OrderState
from app.store.decisions import note_decision
from app.store.findings import number_findings
from app.store.queries import lease_holders, task_findings
from app.store.tables import (
    FindingRow,
    FixTask,
    FixTaskFinding,
    Lineage,
    Order,
    PullRequestRow,
    Repository,
)
from loop_guards import (
    FindingStatus,
    TaskDecision,
    TaskEvent,
    TaskFacts,
    TaskPlan,
    move_task,
)


@dataclass(frozen=True, slots=True)
class MergeContext:
    """What all tasks of one merge share."""

    source: PullRequestRow
    lineage: Lineage
    merge_commit_sha: str
    base_ref: str
    allowance: int


async def create_task(
    session: AsyncSession, plan: TaskPlan, context: MergeContext, *, now: datetime
) -> FixTask | None:
    """Make the task of a plan with its findings and settle the orders it answers.

    A plan that joins a waiting task adds its findings to that one. A plan may be older than the
    leases: whoever holds one of its paths now is waited for. None if a task with this key exists: a
    doubled event makes nothing twice.
    """
    must_be(plan, TaskPlan)
    if plan.joins is not None:
        waiting = await session.get_one(FixTask, plan.joins, with_for_update=True)
        if waiting.state is FixTaskState.WAITING and waiting.fix_pull_request_id is None:
            waiting.paths = sorted({*waiting.paths, *plan.paths})
            await _cover(session, waiting, plan, now)
            await session.flush()
            return waiting
    key = _key(plan.key)
    known = await session.exec(select(FixTask).where(FixTask.key == key))
    if known.one_or_none() is not None:
        return None
    repository_id = context.source.repository_id
    await _alone(session, repository_id)
    waits = plan.waiting or bool(
        await lease_holders(session, repository_id, context.base_ref, plan.paths)
    )
    task = FixTask(
        key=key,
        lineage_id=context.lineage.id,
        repository_id=repository_id,
        source_pull_request_id=context.source.id,
        target=plan.target,
        paths=list(plan.paths),
        batch=plan.batch,
        state=FixTaskState.WAITING if waits else FixTaskState.QUEUED,
        base_ref=context.base_ref,
        merge_commit_sha=context.merge_commit_sha,
        allowance=context.allowance,
        lease_taken_at=None if waits else now,
        created_at=now,
        updated_at=now,
    )
    session.add(task)
    await session.flush()
    task.branch = f"{FIX_BRANCH_PREFIX}{task.id}"
    await _cover(session, task, plan, now)
    await session.flush()
    return task


_KEY_CHARS = 500


def _key(key: str) -> str:
    """The key as it is stored: a path can be longer than what a database can index."""
    if len(key) <= _KEY_CHARS:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{key[: _KEY_CHARS - len(digest) - 1]}:{digest}"


async def _alone(session: AsyncSession, repository_id: int) -> None:
    """Leases of one repository are given one after the other, also by several machines."""
    await session.get(Repository, repository_id, with_for_update=True)


async def _cover(session: AsyncSession, task: FixTask, plan: TaskPlan, now: datetime) -> None:
    rows = await session.exec(select(FindingRow).where(col(FindingRow.id).in_(plan.finding_ids)))
    for row in rows.all():
        if row.severity_at_handoff is None:
            row.severity_at_handoff = row.severity
        row.fix_task_id, row.updated_at = task.id, now
        link = await session.get(FixTaskFinding, (task.id, row.id))
        if link is None:
            link = FixTaskFinding(
                fix_task_id=task.id,
                finding_id=row.id,
                severity_at_handoff=row.severity_at_handoff,
                created_at=now,
            )
            session.add(link)
        # A finding that left a task that still waits may come back to it.
        link.left_at, link.ordered = None, link.ordered or row.id in plan.ordered_ids
    orders = await session.exec(
        select(Order).where(
            col(Order.finding_id).in_(plan.ordered_ids), Order.state == OrderState.PENDING
        )
    )
    for order in orders.all():
        order.state, order.fix_task_id, order.settled_at = OrderState.TASK, task.id, now


async def task_of_branch(session: AsyncSession, repository_id: int, branch: str) -> FixTask | None:
    """The task whose fix lives on this branch of the repository, if any."""
    if not branch.startswith(FIX_BRANCH_PREFIX):
        return None
    statement = select(FixTask).where(
        FixTask.repository_id == repository_id, FixTask.branch == branch
    )
    return (await session.exec(statement)).one_or_none()


async def link_fix_pull_request(
    session: AsyncSession, task: FixTask, row: PullRequestRow, *, now: datetime
) -> None:
    """Make `row` the fix pull request of `task`; its ledger mirrors the task's findings.

    Whoever comes first does it, the fixer that opened it or the webhook that tells of it.
    """
    if row.fix_task_id == task.id:
        return
    row.is_fix_pr, row.fix_task_id, row.lineage_id = True, task.id, task.lineage_id
    task.fix_pull_request_id, task.updated_at = row.id, now
    await session.flush()
    mirrors = [
        _mirror(link, source, row, task, now)
        for link, source in await task_findings(session, task.id)
    ]
    await number_findings(session, row.id, mirrors)


def _mirror(
    link: FixTaskFinding, source: FindingRow, row: PullRequestRow, task: FixTask, now: datetime
) -> FindingRow:
    copied = {
        name: getattr(source, name)
        for name in (
            "path", "start_line", "end_line", "severity", "category", "title", "body", "evidence",
            "code", "suggestion", "also", "origin", "trivial", "production_risk", "fingerprint",
            "prompt_version",
        )
    }  # fmt: skip
    return FindingRow(
        **copied,
        pull_request_id=row.id,
        number=0,
        severity_at_handoff=link.severity_at_handoff,
        status=FindingStatus.OPEN,
        first_seen_sha=task.merge_commit_sha,
        last_seen_sha=task.merge_commit_sha,
        source_finding_id=source.id,
        fix_task_id=task.id,
        created_at=now,
        updated_at=now,
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """What an event made of a task; `woken` got their lease by it, are QUEUED and want a job."""

    decision: TaskDecision
    woken: Sequence[FixTask] = ()


async def move(
    session: AsyncSession,
    task: FixTask,
    event: TaskEvent,
    *,
    reason: str | None = None,
    now: datetime,
) -> Moved:
    """Tell a task of an event: the guards say what it makes of it, and that is kept.

    The only place where a task that exists changes its state; its row is locked by the caller.
    `reason` says more than the guards do, if the event means anything to the task. A task that
    stays in its state keeps the reason that it is there for, unless there is a new one.
    """
    if not task.state.holds_lease:
        await _alone(session, task.repository_id)
    decision = move_task(await _facts(session, task), event)
    await note_decision(
        session,
        "task",
        decision,
        now=now,
        repository_id=task.repository_id,
        pull_request_id=task.fix_pull_request_id or task.source_pull_request_id,
        fix_task_id=task.id,
    )
    if decision.moved:
        _carry_out(task, decision, reason, now)
        await session.flush()
    if not decision.frees_lease:
        return Moved(decision)
    return Moved(decision, await wake_waiting(session, task.repository_id, task.base_ref, now=now))


async def _facts(session: AsyncSession, task: FixTask) -> TaskFacts:
    """What is asked of others only where it counts: who holds its paths has nobody beside it, and
    only a closed task can be superseded. Whether anything blocks is not looked up: a turn that
    finds nothing to do says so."""
    holders: Sequence[FixTask] = ()
    if not task.state.holds_lease:
        holders = await lease_holders(session, task.repository_id, task.base_ref, task.paths)
    closed = task.state is FixTaskState.CLOSED
    return TaskFacts(
        state=task.state,
        has_fix_pr=task.fix_pull_request_id is not None,
        paths_free=not holders,
        superseded=closed and await _is_superseded(session, task),
    )


async def _is_superseded(session: AsyncSession, task: FixTask) -> bool:
    own = select(FixTaskFinding.finding_id).where(
        FixTaskFinding.fix_task_id == task.id, col(FixTaskFinding.left_at).is_(None)
    )
    others = (
        select(FixTask.id)
        .join(FixTaskFinding, col(FixTaskFinding.fix_task_id) == col(FixTask.id))
        .where(
            FixTask.id != task.id,
            col(FixTask.state).in_(LIVE_TASK_STATES),
            col(FixTaskFinding.left_at).is_(None),
            col(FixTaskFinding.finding_id).in_(own),
        )
        .limit(1)
    )
    return (await session.exec(others)).first() is not None


def _carry_out(task: FixTask, decision: TaskDecision, reason: str | None, now: datetime) -> None:
    if reason is not None or decision.state is not decision.before:
        task.state_reason = reason or str(decision.reason)
    task.state, task.updated_at = decision.state, now
    if decision.frees_lease:
        task.lease_ended_at = now
    elif decision.takes_lease or decision.state is FixTaskState.WAITING:
        task.lease_taken_at = now if decision.takes_lease else None
        task.lease_ended_at = None
    task.finished_at = None if decision.state.is_live else now


async def wake_waiting(
    session: AsyncSession, repository_id: int, base_ref: str, *, now: datetime
) -> Sequence[FixTask]:
    """Give the waiting tasks of a base whose paths nobody holds their lease, oldest first.

    Returns them: they are QUEUED now and want a job.
    """
    await _alone(session, repository_id)
    statement = (
        select(FixTask)
        .where(
            FixTask.repository_id == repository_id,
            FixTask.base_ref == base_ref,
            FixTask.state == FixTaskState.WAITING,
        )
        .order_by(col(FixTask.id))
    )
    woken: list[FixTask] = []
    for task in (await session.exec(statement)).all():
        # The event is that nobody holds its paths: who still waits is told nothing.
        if await lease_holders(session, task.repository_id, task.base_ref, task.paths):
            continue
        moved = await move(session, task, TaskEvent.LEASE_FREE, now=now)
        if moved.decision.takes_lease:
            woken.append(task)
    return woken


async def resume_task(
    session: AsyncSession, task: FixTask, permit: ResumePermit, rounds: int, *, now: datetime
) -> bool:
    """A person resumes an escalated task: `rounds` more, and its lease again.

    True if it may go on at once, False if it waits for its paths or was resumed before.
    """
    must_be(permit, ResumePermit)
    moved = await move(session, task, TaskEvent.RESUME, now=now)
    if moved.decision.counts_as_resume:
        task.resumes += 1
        task.allowance += rounds
        task.escalation_reason, task.escalated_at = None, None
        await session.flush()
    return moved.decision.takes_lease


async def settle_sources(
    session: AsyncSession,
    task: FixTask,
    *,
    fix_sha: str | None,
    now: datetime,
) -> None:
    """The fix pull request was merged: what it fixed is fixed on the source pull request too."""
    if task.fix_pull_request_id is None:
        return
    mirrors = await session.exec(
        select(FindingRow).where(
            FindingRow.pull_request_id == task.fix_pull_request_id,
            col(FindingRow.source_finding_id).is_not(None),
        )
    )
    fixed: Mapping[int, FindingRow] = {
        row.source_finding_id: row
        for row in mirrors.all()
        if row.source_finding_id is not None and row.status is FindingStatus.FIXED
    }
    for _, source in await task_findings(session, task.id):
        if source.id in fixed:
            source.status, source.fixed_sha = FindingStatus.FIXED, fix_sha
            source.status_reason, source.status_at, source.updated_at = "fix_merged", now, now
    await session.flush()
