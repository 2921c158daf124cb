"""A person's comment that commands something: permission asked now, done, answered once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.grammar import Command, Fix, Review, Unknown, parse
from app.commands.render import (
    OrderAnswer,
    orders_text,
    refused_text,
    review_text,
    unknown_text,
)
from app.commands.services import CommandServices
from app.domain.bots import is_human_act
from app.domain.effects import Reaction
from app.domain.jobs import Cause, JobKind, causes_of
from app.domain.markers import Marker, MarkerKind
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.domain.runs import Trigger
from app.domain.tasks import LineageState, OrderState
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.places import repo_of
from app.jobs.requests import PRIORITY_PERSON, JobRequest, pull_request_subject
from app.store.decisions import note_decision
from app.store.findings import finding_rows
from app.store.queries import live_task_of, pull_request
from app.store.tables import FindingRow, FixTask, FixTaskFinding, Lineage, Order, PullRequestRow
from loop_guards import (
    FindingStatus,
    OrderDecision,
    OrderFacts,
    OrderOutcome,
    OrderReason,
    PullState,
    TaskState,
    answer_order,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, where, and with which rights at this moment."""

    repo: RepoRef
    pull: PullRequest
    cause: Cause
    comment_id: int
    can_write: bool
    by_human: bool


async def handle_comment(job: JobContext, services: CommandServices) -> None:
    """Carry out what a comment asks and answer it once. A machine's comment is never answered."""
    commands = parse(str(job.payload["body"]))
    causes = causes_of(job.payload)
    if not commands or not causes:
        return
    repo = await repo_of(job)
    cause = causes[0]
    if not is_human_act(cause, (), services.our_logins):
        return
    async with services.open_forge() as forge:
        comment_id = int(job.payload["comment_id"])
        await forge.react(repo, comment_id, Reaction.EYES)
        permission = await forge.permission(repo, cause.actor.login)
        pull = await forge.pull_request(repo, int(job.payload["number"]))
        asked = Asked(repo, pull, cause, comment_id, permission.can_write, by_human=True)
        answers = [await _carry_out(job, asked, command) for command in commands]
        await _answer(job, forge, asked, answers)


async def _carry_out(job: JobContext, asked: Asked, command: Command) -> str:
    match command:
        case Unknown(text):
            return unknown_text(text)
        case _ if not asked.can_write:
            return refused_text(OrderReason.NO_WRITE_ACCESS)
        case Review():
            return await _review(job, asked)
        case Fix(short_ids):
            return await _fix(job, asked, short_ids)


async def _answer(job: JobContext, forge: Forge, asked: Asked, answers: Sequence[str]) -> None:
    marker = Marker(MarkerKind.COMMENT, f"command-{asked.comment_id}")
    await forge.ensure_comment(
        asked.repo,
        asked.pull.number,
        marker,
        "\n\n".join(answers),
        maybe_published=job.attempt > 1,
    )


async def _review(job: JobContext, asked: Asked) -> str:
    subject = pull_request_subject(asked.repo.repository_id, asked.pull.number)
    request = JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"command:{asked.repo.repository_id}:{asked.comment_id}",
        payload={
            "repository_id": asked.repo.repository_id,
            "number": asked.pull.number,
            "trigger": Trigger.COMMAND.value,
            "causes": [asked.cause.to_json()],
        },
        subject=subject,
        lane=subject,
        installation_id=job.claim.installation_id,
        repository_id=asked.repo.repository_id,
        priority=PRIORITY_PERSON,
    )
    if not job.has("review"):
        async with job.store.write() as session:
            await enqueue(session, request, now=job.clock.now())
            await job.record_in(session, "review", {})
        job.notify()
    return review_text(asked.pull.head_sha)


async def _fix(job: JobContext, asked: Asked, short_ids: tuple[str, ...]) -> str:
    """Order findings fixed: one answer per finding, all in one transaction."""
    step = f"fix:{','.join(short_ids) or 'all'}"
    if job.has(step):
        return str(job.recorded(step))
    async with job.store.write() as session:
        row = await pull_request(session, asked.repo.repository_id, asked.pull.number)
        rows = await finding_rows(session, row.id) if row else []
        wanted = _wanted(rows, short_ids)
        answers = [
            OrderAnswer(name, finding.title, await _order(session, job, asked, row, finding))
            if finding is not None and row is not None
            else OrderAnswer(name, "", None)
            for name, finding in wanted
        ]
        await _hand_off_now(session, job, asked, answers)
        text = orders_text(answers)
        await job.record_in(session, step, text)
    job.notify()
    return text


def _wanted(
    rows: Sequence[FindingRow], short_ids: tuple[str, ...]
) -> list[tuple[str, FindingRow | None]]:
    by_name = {row.short_id: row for row in rows}
    if short_ids:
        return [(name, by_name.get(name)) for name in short_ids]
    return [(row.short_id, row) for row in rows if row.status is FindingStatus.OPEN]


async def _order(
    session: AsyncSession,
    job: JobContext,
    asked: Asked,
    row: PullRequestRow,
    finding: FindingRow,
) -> OrderDecision:
    decision = answer_order(await _order_facts(session, asked, row, finding))
    await note_decision(
        session,
        "order",
        decision,
        now=job.clock.now(),
        repository_id=asked.repo.repository_id,
        pull_request_id=row.id,
        finding_id=finding.id,
        job_id=job.job_id,
    )
    if decision.outcome != OrderOutcome.REFUSED:
        session.add(
            Order(
                finding_id=finding.id,
                ordered_by_id=asked.cause.actor.id,
                ordered_by_login=asked.cause.actor.login,
                ordered_at=asked.cause.at,
                source=f"comment:{asked.comment_id}",
                state=OrderState.PENDING,
            )
        )
        await session.flush()
    return decision


async def _order_facts(
    session: AsyncSession, asked: Asked, row: PullRequestRow, finding: FindingRow
) -> OrderFacts:
    pending = await session.exec(
        select(Order.id).where(Order.finding_id == finding.id, Order.state == OrderState.PENDING)
    )
    lineage = await session.get(Lineage, row.lineage_id) if row.lineage_id else None
    return OrderFacts(
        by_human=asked.by_human,
        can_write=asked.can_write,
        pull_request=_STATES[asked.pull.state],
        status=finding.status,
        covered_by=await _covered_by(session, finding.id),
        already_pending=pending.first() is not None,
        stopped=lineage is not None and lineage.state is LineageState.STOPPED,
    )


_STATES = {
    PullRequestState.OPEN: PullState.OPEN,
    PullRequestState.CLOSED: PullState.CLOSED,
    PullRequestState.MERGED: PullState.MERGED,
}


async def _covered_by(session: AsyncSession, finding_id: int) -> TaskState | None:
    live = await live_task_of(session, finding_id)
    if live is not None:
        return live.state
    statement = (
        select(FixTask.state)
        .join(FixTaskFinding, col(FixTaskFinding.fix_task_id) == col(FixTask.id))
        .where(FixTaskFinding.finding_id == finding_id)
        .order_by(col(FixTask.id).desc())
        .limit(1)
    )
    found = (await session.exec(statement)).one_or_none()
    return TaskState(found) if found is not None else None


async def _hand_off_now(
    session: AsyncSession, job: JobContext, asked: Asked, answers: Sequence[OrderAnswer]
) -> None:
    """Orders on a merged pull request are planned at once, as a batch of their own."""
    now_wanted = (OrderOutcome.TASK, OrderOutcome.RESUME)
    if not any(item.decision and item.decision.outcome in now_wanted for item in answers):
        return
    place = f"{asked.repo.repository_id}:{asked.pull.number}"
    await enqueue(
        session,
        JobRequest(
            kind=JobKind.CLOSE_PULL_REQUEST,
            key=f"order:{place}:{asked.comment_id}",
            payload={
                "repository_id": asked.repo.repository_id,
                "number": asked.pull.number,
                "batch": f"order-{asked.comment_id}",
                "causes": [asked.cause.to_json()],
            },
            subject=pull_request_subject(asked.repo.repository_id, asked.pull.number),
            lane=f"close:{place}",
            installation_id=job.claim.installation_id,
            repository_id=asked.repo.repository_id,
            priority=PRIORITY_PERSON,
        ),
        now=job.clock.now(),
    )
