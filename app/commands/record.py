"""What a command leaves in the ledger, and what is to be said of it, in one transaction."""

from __future__ import annotations

from typing import Any

from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands import acts
from app.commands.decide import (
    Answer,
    DismissAnswer,
    ExplainAnswer,
    FixAnswer,
    ResumeAnswer,
    ReviewAnswer,
    StatusAnswer,
    StopAnswer,
    UnfixAnswer,
    WhyAnswer,
    decide,
)
from app.commands.facts import Asked, Ledger
from app.commands.ledger import read_ledger
from app.commands.orders import store_orders
from app.commands.render import Told, reply, with_note
from app.commands.requests import review_request
from app.commands.standing import standing_of, stories_of
from app.domain.effects import CommentReceipt
from app.domain.markers import Marker
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.store.commands import (
    DecisionRecord,
    finish_publication,
    prepare_publication,
    record_decision,
)
from app.store.tables import Publication


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

    Each command meets what the one before it has left. A comment is carried out once, whatever
    number of jobs it gets: a later one only says what the first one could not.
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
            row.receipt = await _answered(session, job, asked)
        # Once it is on the page, what it was made from is replaced by what GitHub answered.
        step = {
            "body": row.receipt.get("body"),
            "threads": row.receipt.get("threads", []),
            "publication": row.id,
        }
        await job.record_in(session, "answered", step)
    job.notify()


async def _answered(session: AsyncSession, job: JobContext, asked: Asked) -> dict[str, Any]:
    """What is to be said, and the threads whose findings are settled by it."""
    said: list[str] = []
    threads: list[int] = []
    ordered: set[int] = set()
    for command in asked.commands:
        ledger = await read_ledger(session, asked)
        answer = decide(command, asked, ledger, ordered)
        if isinstance(answer, FixAnswer):
            ordered.update(item.finding.id for item in answer.orders)
        told = await _told(session, asked, ledger, answer)
        await _carry_out(session, job, asked, ledger, answer)
        await session.flush()
        if isinstance(answer, DismissAnswer) and answer.decision.accepted:
            threads += [answer.finding.comment_id] if answer.finding.comment_id else []
        said.append(reply(answer, asked, ledger, told))
    return {"body": with_note("\n\n".join(said), asked.person), "threads": threads}


async def _told(session: AsyncSession, asked: Asked, ledger: Ledger, answer: Answer) -> Told:
    """What the ledger has to tell for the answer, if it tells something."""
    match answer:
        case ExplainAnswer(findings):
            return Told(stories=await stories_of(session, findings))
        case StatusAnswer() | WhyAnswer():
            return Told(standing=await standing_of(session, asked, ledger))
        case _:
            return Told()


async def note_said(job: JobContext, publication_id: int, receipt: CommentReceipt) -> None:
    """The answer is on the page."""
    async with job.store.write() as session:
        told = {"comment_id": receipt.comment_id}
        await finish_publication(session, publication_id, told, now=job.clock.now())


async def _carry_out(
    session: AsyncSession, job: JobContext, asked: Asked, ledger: Ledger, answer: Answer
) -> None:
    match answer:
        case ReviewAnswer(refused=None):
            request = review_request(
                job, asked.repo.repository_id, asked.pull_request.number, source=asked.source
            )
            await enqueue(session, request, now=asked.now)
        case FixAnswer(orders):
            await store_orders(session, job, asked, ledger, orders)
        case UnfixAnswer(taken):
            for item in taken:
                await acts.unqueue(session, job, asked, ledger, item)
        case DismissAnswer():
            await acts.dismiss(session, job, asked, ledger, answer)
        case StopAnswer():
            await acts.stop(session, job, asked, ledger, answer)
        case ResumeAnswer():
            await acts.resume_all(session, job, asked, ledger, answer)
        case _:
            pass
