"""What a command leaves in the ledger: orders, their decisions, and the jobs they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.decide import Answer, FixAnswer, OrderAnswer, ReviewAnswer, decide
from app.commands.facts import Asked, Ledger
from app.commands.gather import read_ledger
from app.commands.render import reply
from app.commands.requests import handoff_request, review_request
from app.domain.effects import CommentReceipt
from app.domain.markers import Marker
from app.domain.permits import ResumePermit
from app.domain.tasks import OrderState
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.turns import turn_request
from app.store.commands import (
    DecisionRecord,
    finish_publication,
    prepare_publication,
    record_decision,
)
from app.store.decisions import note_decision
from app.store.fixtasks import resume_task
from app.store.tables import FindingRow, FixTask, Order, Publication
from loop_guards import FindingStatus, OrderOutcome


async def note_machine(job: JobContext, asked: Asked) -> None:
    """Machines command nothing and get no answer; the ledger says why nothing happened."""
    if job.has("ignored"):
        return
    async with job.store.write() as session:
        await record_decision(
            session,
            DecisionRecord(
                kind="command",
                outcome="ignored",
                reason="not_human",
                record={"login": asked.person.account.login, "comment": asked.comment_id},
                repository_id=asked.repo.repository_id,
                job_id=job.job_id,
            ),
            now=asked.now,
        )
        await job.record_in(session, "ignored")


async def store_answers(job: JobContext, asked: Asked, marker: Marker) -> None:
    """Answer every command in one transaction, and keep what is to be said about it.

    A comment is carried out once, whatever number of jobs it gets: a later one only says what the
    first one could not.
    """
    async with job.store.write() as session:
        ledger = await read_ledger(session, asked)
        fresh = Publication(
            marker=str(marker),
            kind="comment",
            pull_request_id=ledger.pull_request_id,
            created_at=asked.now,
            updated_at=asked.now,
        )
        row, new = await prepare_publication(session, fresh)
        if new:
            answers = decide(asked, ledger)
            await _carry_out(session, job, asked, ledger, answers)
            row.receipt = {"body": reply(answers, asked.person.account.login)}
        # Once it is on the page, what it was made from is replaced by what GitHub answered.
        step = {"body": row.receipt.get("body"), "publication": row.id}
        await job.record_in(session, "answered", step)
    job.notify()


async def note_said(job: JobContext, publication_id: int, receipt: CommentReceipt) -> None:
    """The answer is on the page."""
    async with job.store.write() as session:
        told = {"comment_id": receipt.comment_id}
        await finish_publication(session, publication_id, told, now=job.clock.now())


async def _carry_out(
    session: AsyncSession, job: JobContext, asked: Asked, ledger: Ledger, answers: Sequence[Answer]
) -> None:
    for answer in answers:
        if isinstance(answer, ReviewAnswer) and answer.refused is None:
            request = review_request(
                job, asked.repo.repository_id, asked.pull_request.number, source=_source(asked)
            )
            await enqueue(session, request, now=asked.now)
    orders = [item for part in answers if isinstance(part, FixAnswer) for item in part.orders]
    await _store_orders(session, job, asked, ledger, orders)


async def _store_orders(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    ledger: Ledger,
    orders: Sequence[OrderAnswer],
) -> None:
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
            job, asked.repo.repository_id, asked.pull_request.number, order_id=min(at_once)
        )
        await enqueue(session, request, now=asked.now)
    for task_id, permit in resumed.items():
        await _resume(session, job, asked, task_id, permit)


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
        source=_source(asked),
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


async def _resume(
    session: AsyncSession, job: JobContext, asked: Asked, task_id: int, permit: ResumePermit
) -> None:
    task = await session.get_one(FixTask, task_id, with_for_update=True, populate_existing=True)
    rounds = asked.policy.limits.for_guards().resume_rounds
    if await resume_task(session, task, permit, rounds, now=asked.now):
        await enqueue(session, turn_request(task, job.claim.installation_id), now=asked.now)


def _source(asked: Asked) -> str:
    return f"comment:{asked.comment_id}"
