"""Orders in the ledger: each is kept, with what became of it and the jobs it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.decide import OrderAnswer
from app.commands.facts import Asked, Ledger
from app.commands.requests import handoff_request
from app.domain.permits import ResumePermit
from app.domain.tasks import OrderState
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.turns import turn_request
from app.store.decisions import note_decision
from app.store.fixtasks import resume_task
from app.store.tables import FindingRow, FixTask, Order
from loop_guards import FindingStatus, OrderOutcome


async def store_orders(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    ledger: Ledger,
    orders: Sequence[OrderAnswer],
) -> None:
    """Each order with its decision, and the jobs they ask for."""
    at_once: list[int] = []
    resumed: dict[int, ResumePermit] = {}
    for item in orders:
        await note_decision(
            session,
            "order",
            item.decision,
            now=asked.now,
            repository_id=asked.repo.repository_id,
            pull_request_id=ledger.pull_request_id,
            finding_id=item.finding.id,
            fix_task_id=item.finding.task_id,
            job_id=job.job_id,
        )
        order = await _add_order(session, asked, item)
        if item.decision.outcome == OrderOutcome.TASK:
            at_once.append(order.id)
        if item.decision.outcome == OrderOutcome.RESUME and item.finding.task_id is not None:
            resumed.setdefault(item.finding.task_id, ResumePermit(item.decision))
    if at_once:
        request = handoff_request(
            job,
            asked.repo.repository_id,
            asked.pull_request.number,
            batch=f"order:{min(at_once)}",
        )
        await enqueue(session, request, now=asked.now)
    for task_id, permit in resumed.items():
        await resume(session, job, asked, task_id, permit)


async def _add_order(session: AsyncSession, asked: Asked, item: OrderAnswer) -> Order:
    """Every order is kept; a refused or resuming one has found its end already."""
    ended = {
        OrderOutcome.REFUSED: OrderState.REFUSED,
        OrderOutcome.RESUME: OrderState.TASK,
    }.get(OrderOutcome(item.decision.outcome))
    order = Order(
        finding_id=item.finding.id,
        ordered_by_id=asked.person.account.id,
        ordered_by_login=asked.person.account.login,
        ordered_at=asked.person.at,
        source=asked.source,
        state=ended or OrderState.PENDING,
        outcome_reason=str(item.decision.reason),
        fix_task_id=item.finding.task_id if ended is OrderState.TASK else None,
        settled_at=asked.now if ended else None,
    )
    session.add(order)
    if item.decision.accepted:
        await _reopen(session, asked, item.finding.id)
    await session.flush()
    return order


async def _reopen(session: AsyncSession, asked: Asked, finding_id: int) -> None:
    """The latest act of a person holds: who orders a fix takes the finding up again."""
    row = await session.get_one(FindingRow, finding_id, with_for_update=True)
    later_act = row.status_at is not None and row.status_at > asked.person.at
    if row.status is FindingStatus.OPEN or later_act:
        return
    row.status, row.status_reason = FindingStatus.OPEN, "ordered"
    row.status_by_id = asked.person.account.id
    row.status_by_login = asked.person.account.login
    row.status_at = row.updated_at = asked.now


async def resume(
    session: AsyncSession, job: JobContext, asked: Asked, task_id: int, permit: ResumePermit
) -> None:
    """An escalated task goes on, with the rounds of a resume."""
    task = await session.get_one(FixTask, task_id, with_for_update=True, populate_existing=True)
    if await resume_task(session, task, permit, asked.limits.resume_rounds, now=asked.now):
        await enqueue(session, turn_request(task, job.claim.installation_id), now=asked.now)
