"""What a command leaves in the ledger: orders, their decisions, and the jobs they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.decide import FixAnswer, OrderAnswer, ReviewAnswer, decide
from app.commands.facts import Asked, Ledger
from app.commands.gather import read_ledger
from app.commands.render import reply
from app.domain.jobs import JobKind
from app.domain.runs import Trigger
from app.domain.tasks import OrderState
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.requests import PRIORITY_PERSON, JobRequest, pull_request_subject
from app.jobs.turns import turn_request
from app.store.commands import DecisionRecord, record_decision
from app.store.decisions import note_decision
from app.store.fixtasks import resume_task
from app.store.tables import FindingRow, FixTask, Order
from loop_guards import FindingStatus, OrderOutcome


async def note_machine(job: JobContext, asked: Asked) -> None:
    """Machines command nothing and get no answer; the ledger says why nothing happened."""
    async with job.store.write() as session:
        await record_decision(
            session,
            DecisionRecord(
                kind="command",
                outcome="ignored",
                reason="not_human",
                record={"login": asked.author.login, "comment": asked.comment_id},
                repository_id=asked.repo.repository_id,
                job_id=job.job_id,
            ),
            now=asked.now,
        )


async def store_answers(job: JobContext, asked: Asked) -> None:
    """Answer every command in one transaction, and keep what is to be said about it."""
    async with job.store.write() as session:
        ledger = await read_ledger(session, asked)
        answers = decide(asked, ledger)
        for answer in answers:
            if isinstance(answer, ReviewAnswer) and answer.refused is None:
                await enqueue(session, _review_request(job, asked), now=asked.now)
        orders = [item for part in answers if isinstance(part, FixAnswer) for item in part.orders]
        await _store_orders(session, job, asked, ledger, orders)
        body = reply(answers, asked.author.login)
        await job.record_in(session, "answered", {"body": body})
    job.notify()


def _review_request(job: JobContext, asked: Asked) -> JobRequest:
    repository_id, number = asked.repo.repository_id, asked.pull_request.number
    subject = pull_request_subject(repository_id, number)
    return JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"command:{repository_id}:{number}:{asked.comment_id}",
        payload={
            "repository_id": repository_id,
            "number": number,
            "trigger": Trigger.COMMAND.value,
            "causes": list(job.payload["causes"]),
        },
        subject=subject,
        lane=subject,
        installation_id=job.claim.installation_id,
        repository_id=repository_id,
        priority=PRIORITY_PERSON,
    )


async def _store_orders(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    ledger: Ledger,
    orders: Sequence[OrderAnswer],
) -> None:
    at_once: list[int] = []
    resumed: list[int] = []
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
            resumed.append(item.finding.task_id)
    if at_once:
        await enqueue(session, _handoff_request(job, asked, min(at_once)), now=asked.now)
    for task_id in dict.fromkeys(resumed):
        await _resume(session, job, asked, task_id)


async def _add_order(session: AsyncSession, asked: Asked, item: OrderAnswer) -> Order:
    """Every order is kept; a refused or resuming one has found its end already."""
    ended = {
        OrderOutcome.REFUSED: OrderState.REFUSED,
        OrderOutcome.RESUME: OrderState.TASK,
    }.get(OrderOutcome(item.decision.outcome))
    order = Order(
        finding_id=item.finding.id,
        ordered_by_id=asked.author.id,
        ordered_by_login=asked.author.login,
        ordered_at=asked.now,
        source=f"comment:{asked.comment_id}",
        state=ended or OrderState.PENDING,
        outcome_reason=str(item.decision.reason),
        fix_task_id=item.finding.task_id if ended is OrderState.TASK else None,
        settled_at=asked.now if ended else None,
    )
    session.add(order)
    if item.decision.accepted and item.finding.status is not FindingStatus.OPEN:
        # The latest act of a person holds: who orders a fix takes the finding up again.
        row = await session.get_one(FindingRow, item.finding.id, with_for_update=True)
        row.status, row.status_reason = FindingStatus.OPEN, "ordered"
        row.status_by_id, row.status_by_login = asked.author.id, asked.author.login
        row.status_at = row.updated_at = asked.now
    await session.flush()
    return order


def _handoff_request(job: JobContext, asked: Asked, order_id: int) -> JobRequest:
    """A merged pull request is planned once more, for what was ordered after its merge."""
    repository_id, number = asked.repo.repository_id, asked.pull_request.number
    place = f"close:{repository_id}:{number}"
    return JobRequest(
        kind=JobKind.CLOSE_PULL_REQUEST,
        key=f"{place}:order:{order_id}",
        payload={
            "repository_id": repository_id,
            "number": number,
            "batch": f"order:{order_id}",
            "causes": list(job.payload["causes"]),
        },
        subject=pull_request_subject(repository_id, number),
        lane=place,
        installation_id=job.claim.installation_id,
        repository_id=repository_id,
        priority=PRIORITY_PERSON,
    )


async def _resume(session: AsyncSession, job: JobContext, asked: Asked, task_id: int) -> None:
    task = await session.get_one(FixTask, task_id, with_for_update=True)
    rounds = asked.policy.limits.for_guards().resume_rounds
    if await resume_task(session, task, rounds, now=asked.now):
        await enqueue(session, turn_request(task, job.claim.installation_id), now=asked.now)
