"""What stop, resume, unfix and dismiss leave in the ledger, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.decide import DismissAnswer, ResumeAnswer, StopAnswer, UnqueueAnswer
from app.commands.facts import Asked, KnownFinding, Ledger
from app.commands.orders import resume
from app.commands.requests import handoff_request
from app.domain.jobs import JobKind
from app.domain.permits import ResumePermit
from app.domain.tasks import RESUME_BATCH, LineageState, OrderState
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue, live_jobs, request_cancel
from app.jobs.requests import fix_task_subject, pull_request_subject
from app.jobs.turns import look_request, turn_request
from app.store.decisions import note_decision
from app.store.fixtasks import move
from app.store.tables import (
    FindingRow,
    FixTask,
    FixTaskFinding,
    Job,
    JobStep,
    Lineage,
    Order,
    PullRequestRow,
)
from loop_guards import (
    Decision,
    DismissalDecision,
    FindingStatus,
    ResumeOutcome,
    TaskEvent,
    TaskState,
    UnqueueOutcome,
)


async def stop(
    session: AsyncSession, job: JobContext, asked: Asked, ledger: Ledger, answer: StopAnswer
) -> None:
    """The lineage is stopped: turns that wait or run end, orders are kept."""
    await _note(session, job, asked, ledger, "stop", answer.decision)
    if not answer.decision.accepted or ledger.lineage_id is None:
        return
    lineage = await session.get_one(Lineage, ledger.lineage_id, with_for_update=True)
    lineage.state = LineageState.STOPPED
    lineage.stopped_by_id = asked.person.account.id
    lineage.stopped_by_login = asked.person.account.login
    lineage.stopped_at = lineage.updated_at = asked.now
    for known in ledger.tasks:
        await _stop_turn(session, asked, known.id)


async def _stop_turn(session: AsyncSession, asked: Asked, task_id: int) -> None:
    """A turn whose commit is made only has to be proposed: cut in two it would leave a branch that
    belongs to nobody. Its round does not start."""
    subject = fix_task_subject(task_id)
    if await _has_commit(session, await live_jobs(session, subject=subject)):
        return
    await request_cancel(session, subject=subject, reason="stopped", now=asked.now)
    task = await session.get_one(FixTask, task_id, with_for_update=True, populate_existing=True)
    await move(session, task, TaskEvent.STOP, now=asked.now)


async def _has_commit(session: AsyncSession, jobs: Sequence[Job]) -> bool:
    statement = select(JobStep.id).where(
        col(JobStep.job_id).in_([job.id for job in jobs]), JobStep.name == "commit"
    )
    return (await session.exec(statement.limit(1))).first() is not None


async def resume_all(
    session: AsyncSession, job: JobContext, asked: Asked, ledger: Ledger, answer: ResumeAnswer
) -> None:
    """A stop is lifted, an escalated task goes on, what was deferred is asked about again."""
    decision, task = answer.decision, answer.task
    task_id = task.id if task else None
    await _note(session, job, asked, ledger, "resume", decision, fix_task_id=task_id)
    if not decision.accepted:
        return
    if decision.lifts_stop and ledger.lineage_id is not None:
        lineage = await session.get_one(Lineage, ledger.lineage_id, with_for_update=True)
        lineage.state, lineage.updated_at = LineageState.ACTIVE, asked.now
        lineage.stopped_by_id = lineage.stopped_by_login = lineage.stopped_at = None
        await session.flush()
        for known in ledger.tasks:
            await _go_on(session, job, asked, known.id)
    if decision.outcome == ResumeOutcome.RESUMED and task_id is not None:
        await resume(session, job, asked, task_id, ResumePermit(decision))
    if decision.asks_again and ledger.source_merged and ledger.source_number is not None:
        batch = f"{RESUME_BATCH}{asked.source}"
        request = handoff_request(job, asked.repo.repository_id, ledger.source_number, batch=batch)
        await enqueue(session, request, now=asked.now)


async def _go_on(session: AsyncSession, job: JobContext, asked: Asked, task_id: int) -> None:
    """A task that the stop found in its turn has it again, one that waits for a look gets one."""
    task = await session.get_one(FixTask, task_id, with_for_update=True, populate_existing=True)
    if task.state is TaskState.QUEUED:
        await enqueue(session, turn_request(task, job.claim.installation_id), now=asked.now)
    elif task.state is TaskState.REVIEWING:
        await _look(session, job, asked, task)


async def _look(session: AsyncSession, job: JobContext, asked: Asked, task: FixTask) -> None:
    """Another look at what the task proposed, unless one is on its way."""
    fix = await session.get_one(PullRequestRow, task.fix_pull_request_id)
    repository_id = asked.repo.repository_id
    waiting = await live_jobs(session, subject=pull_request_subject(repository_id, fix.number))
    if any(one.kind is JobKind.REVIEW_PULL_REQUEST for one in waiting):
        return
    after = f"{asked.source}:{task.id}"
    request = look_request(repository_id, fix.number, job.claim.installation_id, after=after)
    await enqueue(session, request, now=asked.now)


async def unqueue(
    session: AsyncSession, job: JobContext, asked: Asked, ledger: Ledger, item: UnqueueAnswer
) -> None:
    """The pending order ends as withdrawn, or the finding leaves its task."""
    finding, decision = item.finding, item.decision
    await _note(session, job, asked, ledger, "unqueue", decision, finding)
    if decision.outcome == UnqueueOutcome.REMOVED:
        await _withdraw(session, asked, finding, str(decision.reason))
    elif decision.accepted:
        emptied = decision.outcome == UnqueueOutcome.EMPTIED
        await _take_off(session, job, asked, finding, emptied=emptied)


async def dismiss(
    session: AsyncSession, job: JobContext, asked: Asked, ledger: Ledger, answer: DismissAnswer
) -> None:
    """The finding is dismissed wherever it stands, with the reason; nobody fixes it any more."""
    finding, decision = answer.finding, answer.decision
    await _note(session, job, asked, ledger, "dismissal", decision, finding)
    if not decision.accepted:
        return
    rows = await session.exec(
        select(FindingRow).where(col(FindingRow.id).in_((finding.id, *finding.twins)))
    )
    for row in rows.all():
        row.status, row.status_reason = FindingStatus.DISMISSED, answer.why
        row.status_by_id = asked.person.account.id
        row.status_by_login = asked.person.account.login
        # From when it was said: an order that was given later holds.
        row.status_at, row.updated_at = asked.person.at, asked.now
    await _end_work(session, job, asked, finding, decision)


async def _end_work(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    finding: KnownFinding,
    decision: DismissalDecision,
) -> None:
    if decision.withdraws_order:
        await _withdraw(session, asked, finding, "dismissed")
    if finding.covered_by is not None and finding.covered_by.is_live:
        await _take_off(session, job, asked, finding, emptied=decision.empties_task)


async def _withdraw(
    session: AsyncSession, asked: Asked, finding: KnownFinding, reason: str
) -> None:
    orders = await session.exec(
        select(Order).where(
            col(Order.finding_id).in_((finding.id, finding.source_id)),
            Order.state == OrderState.PENDING,
        )
    )
    for order in orders.all():
        order.state, order.outcome_reason = OrderState.WITHDRAWN, reason
        order.settled_at = asked.now
    await session.flush()


async def _take_off(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    finding: KnownFinding,
    *,
    emptied: bool,
) -> None:
    """The finding leaves its task; an empty task is over, or is looked at again."""
    if finding.task_id is None:
        return
    link = await session.get(FixTaskFinding, (finding.task_id, finding.source_id))
    if link is not None:
        link.left_at = asked.now
    if not emptied:
        await session.flush()
        return
    task = await session.get_one(
        FixTask, finding.task_id, with_for_update=True, populate_existing=True
    )
    moved = await move(session, task, TaskEvent.EMPTIED_BY_HUMAN, now=asked.now)
    if moved.decision.moved:
        subject = fix_task_subject(task.id)
        await request_cancel(session, subject=subject, reason="withdrawn", now=asked.now)
    if task.state is TaskState.REVIEWING:
        await _look(session, job, asked, task)
    await _wake(session, job, asked, moved.woken)


async def _wake(
    session: AsyncSession, job: JobContext, asked: Asked, woken: Iterable[FixTask]
) -> None:
    for task in woken:
        await enqueue(session, turn_request(task, job.claim.installation_id), now=asked.now)


async def _note(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    ledger: Ledger,
    kind: str,
    decision: Decision,
    finding: KnownFinding | None = None,
    fix_task_id: int | None = None,
) -> None:
    await note_decision(
        session,
        kind,
        decision,
        now=asked.now,
        repository_id=asked.repo.repository_id,
        pull_request_id=ledger.pull_request_id,
        finding_id=finding.id if finding else None,
        fix_task_id=finding.task_id if finding else fix_task_id,
        job_id=job.job_id,
    )
