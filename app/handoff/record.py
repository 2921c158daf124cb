"""What the end of a pull request leaves in the ledger, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.effects import Comment
from app.domain.jobs import JobKind
from app.domain.permits import ResumePermit
from app.domain.tasks import LIVE_TASK_STATES, FixTaskState, OrderState
from app.handoff.facts import CloseFacts
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue, request_cancel
from app.jobs.requests import fix_task_subject, pull_request_subject
from app.jobs.turns import turn_request
from app.store.decisions import HANDOFF, note_decisions
from app.store.fixtasks import (
    MergeContext,
    create_task,
    move,
    resume_task,
    settle_sources,
    wake_waiting,
)
from app.store.tables import (
    DecisionRow,
    FindingRow,
    FixTask,
    FixTaskFinding,
    Lineage,
    Order,
    PullRequestRow,
)
from loop_guards import (
    BATCH_MERGE,
    ClosePlan,
    FindingStatus,
    HandoffDecision,
    HandoffOutcome,
    TaskEvent,
    allowance,
)


async def stop_review(job: JobContext, repository_id: int, number: int) -> None:
    """A review of a closed pull request is of no use to anybody."""
    async with job.store.write() as session:
        await request_cancel(
            session,
            subject=pull_request_subject(repository_id, number),
            reason="closed",
            now=job.clock.now(),
            kinds=(JobKind.REVIEW_PULL_REQUEST,),
        )


async def store_close(
    job: JobContext, facts: CloseFacts, plan: ClosePlan | None, words: Comment | None
) -> None:
    """The plan with its decisions, its tasks, their jobs and what is to be said, or none of it.

    The automatic plan of a merge is stored once, whoever comes first; `words` go with it.
    """
    async with job.store.write() as session:
        await _end_own_task(session, job, facts)
        first = plan is not None and not await _planned_before(session, facts, plan)
        if plan is not None and first:
            await _note(session, job, facts, plan)
            await _settle(session, facts, plan)
            await _create(session, job, facts, plan)
        said = {"id": words.marker.id, "body": words.body} if words and first else None
        await job.record_in(session, "planned", {"comment": said})


async def _planned_before(session: AsyncSession, facts: CloseFacts, plan: ClosePlan) -> bool:
    """Whether the automatic plan of this end was made: a doubled delivery makes none again."""
    if facts.merge is None:
        return not plan.discarded and await _noted_before(session, facts)
    if facts.batch != BATCH_MERGE:
        return False
    row = await session.get_one(PullRequestRow, facts.pull_request_id, with_for_update=True)
    if row.planned_merge_sha == facts.merge.merge_commit:
        return True
    row.planned_merge_sha = facts.merge.merge_commit
    return False


async def _noted_before(session: AsyncSession, facts: CloseFacts) -> bool:
    """Whether this very end without a merge is in the ledger: it may be reopened and close anew."""
    statement = (
        select(DecisionRow)
        .where(
            DecisionRow.kind == HANDOFF,
            DecisionRow.pull_request_id == facts.pull_request_id,
            DecisionRow.reason == "not_merged",
        )
        .order_by(col(DecisionRow.id).desc())
        .limit(1)
    )
    last = (await session.exec(statement)).one_or_none()
    closed_at = (facts.pull_request.closed_at or facts.now).isoformat()
    return last is not None and last.record["compared"].get("closed_at") == closed_at


async def _end_own_task(session: AsyncSession, job: JobContext, facts: CloseFacts) -> None:
    """A fix pull request closed: its task is over, and whoever waited for its files goes on."""
    if facts.own_task_id is None:
        return
    task = await session.get_one(FixTask, facts.own_task_id, with_for_update=True)
    if facts.merge is not None:
        # Also what an ended task had fixed: a person merged it all the same.
        await settle_sources(session, task, fix_sha=facts.merge.merge_commit, now=facts.now)
    moved = await move(session, task, _end_of(facts), now=facts.now)
    if not moved.decision.moved:
        return
    reason = str(moved.decision.reason)
    await request_cancel(session, subject=fix_task_subject(task.id), reason=reason, now=facts.now)
    for woken in moved.woken:
        await enqueue(session, turn_request(woken, job.claim.installation_id), now=facts.now)


def _end_of(facts: CloseFacts) -> TaskEvent:
    """What the end of a fix pull request is to its task."""
    if facts.merge is not None:
        return TaskEvent.PULL_MERGED
    return TaskEvent.PULL_CLOSED_BY_HUMAN if facts.by_human else TaskEvent.PULL_CLOSED_BY_MACHINE


async def _note(session: AsyncSession, job: JobContext, facts: CloseFacts, plan: ClosePlan) -> None:
    await note_decisions(
        session,
        HANDOFF,
        [
            (item, item.finding_id if isinstance(item, HandoffDecision) else None)
            for item in plan.decisions
        ],
        now=facts.now,
        repository_id=facts.repo.repository_id,
        pull_request_id=facts.pull_request_id,
        job_id=job.job_id,
    )


async def _settle(session: AsyncSession, facts: CloseFacts, plan: ClosePlan) -> None:
    """Orders that end with the pull request, and findings that the merge did away with."""
    orders = await session.exec(select(Order).where(col(Order.id).in_(plan.discarded)))
    for order in orders.all():
        order.state, order.outcome_reason = OrderState.DISCARDED, "closed"
        order.settled_at = facts.now
    await _settle_unusable(session, facts, plan)
    rows = await session.exec(select(FindingRow).where(col(FindingRow.id).in_(facts.gone)))
    for row in rows.all():
        row.status, row.status_reason = FindingStatus.GONE, "not_in_merged_tree"
        row.status_at = row.updated_at = facts.now


async def _settle_unusable(session: AsyncSession, facts: CloseFacts, plan: ClosePlan) -> None:
    """An order for a finding that can't be handed off ends with the guard's reason."""
    said = _by_finding(plan)
    pending = await session.exec(
        select(Order).where(col(Order.id).in_([order.id for order in facts.orders]))
    )
    for order in pending.all():
        decision = said.get(order.finding_id)
        if decision is not None and decision.outcome == HandoffOutcome.NO:
            order.state, order.outcome_reason = OrderState.REFUSED, str(decision.reason)
            order.settled_at = facts.now


def _by_finding(plan: ClosePlan) -> dict[int, HandoffDecision]:
    return {item.finding_id: item for item in plan.decisions if isinstance(item, HandoffDecision)}


async def _create(
    session: AsyncSession, job: JobContext, facts: CloseFacts, plan: ClosePlan
) -> None:
    if facts.merge is None:
        return
    row = await session.get_one(PullRequestRow, facts.pull_request_id)
    context = MergeContext(
        source=row,
        lineage=await session.get_one(Lineage, row.lineage_id),
        merge_commit_sha=facts.merge.merge_commit,
        base_ref=facts.merge.base,
        allowance=allowance(facts.limits, 0),
    )
    for task_plan in plan.tasks:
        task = await create_task(session, task_plan, context, now=facts.now)
        if task is not None and task.state is FixTaskState.QUEUED:
            await enqueue(session, turn_request(task, job.claim.installation_id), now=facts.now)
    await _resume(session, job, facts, plan)
    # A lease that the plan still saw may have ended meanwhile.
    base = facts.merge.base
    for woken in await wake_waiting(session, facts.repo.repository_id, base, now=facts.now):
        await enqueue(session, turn_request(woken, job.claim.installation_id), now=facts.now)


async def _resume(
    session: AsyncSession, job: JobContext, facts: CloseFacts, plan: ClosePlan
) -> None:
    """An order for a finding of an escalated task is a resume of that task, once per task."""
    statement = (
        select(FixTask, FixTaskFinding.finding_id)
        .join(FixTaskFinding, col(FixTaskFinding.fix_task_id) == col(FixTask.id))
        .where(
            col(FixTaskFinding.finding_id).in_(plan.resumed),
            col(FixTaskFinding.left_at).is_(None),
            col(FixTask.state).in_(LIVE_TASK_STATES),
        )
        .order_by(col(FixTask.id))
        .with_for_update(of=FixTask)
        .execution_options(populate_existing=True)
    )
    found: Sequence[tuple[FixTask, int]] = (await session.exec(statement)).all()
    orders = await session.exec(
        select(Order).where(
            col(Order.finding_id).in_(plan.resumed), Order.state == OrderState.PENDING
        )
    )
    for order in orders.all():
        order.state, order.settled_at = OrderState.TASK, facts.now
        order.fix_task_id = next((t.id for t, number in found if number == order.finding_id), None)
    said = _by_finding(plan)
    for task, number in {task.id: (task, number) for task, number in found}.values():
        permit = ResumePermit(said[number])
        rounds = facts.limits.resume_rounds
        # Somebody else's order may have resumed it since the plan was made: not twice then.
        if await resume_task(session, task, permit, rounds, now=facts.now):
            await enqueue(session, turn_request(task, job.claim.installation_id), now=facts.now)
