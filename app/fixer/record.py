"""The ledger's side of a turn, one short transaction each."""

from __future__ import annotations

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.pull_request import PullRequest
from app.domain.tasks import FixTaskState
from app.fixer.agent import FixAnswer
from app.fixer.gather import TurnFacts
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.turns import turn_request
from app.store.commands import BotFact, ensure_pull_request
from app.store.decisions import note_decision
from app.store.fixtasks import end_task, link_fix_pull_request
from app.store.lineages import book
from app.store.tables import FixTask
from loop_guards import Decision


async def begin_turn(job: JobContext, facts: TurnFacts, decision: Decision) -> None:
    """The guards let the turn begin; it is counted once, whatever happens to the worker."""
    if job.has("turn"):
        return
    now = job.clock.now()
    async with job.store.write() as session:
        await _note(session, job, facts, decision)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        task.state, task.turns, task.updated_at = FixTaskState.FIXING, facts.turn, now
        await job.record_in(session, "turn", {"number": facts.turn})


async def refuse_turn(job: JobContext, facts: TurnFacts, decision: Decision) -> None:
    """The guards said no: the task waits for a person, and the reason is kept."""
    async with job.store.write() as session:
        await _note(session, job, facts, decision)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        task.escalation_reason = str(decision.reason)
        task.escalated_at = job.clock.now()
        await _end(session, job, task, FixTaskState.ESCALATED, str(decision.reason))
    job.notify()


async def end(job: JobContext, facts: TurnFacts, state: FixTaskState, reason: str) -> None:
    """The task is over; whoever waited for its files goes on."""
    async with job.store.write() as session:
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        await _end(session, job, task, state, reason)
    job.notify()


async def keep_answer(job: JobContext, facts: TurnFacts, answer: FixAnswer) -> None:
    """Record what the agent came to and book what it used, together and once."""
    if job.has("answer"):
        return
    async with job.store.write() as session:
        await book(session, facts.lineage_id, answer.usage, now=job.clock.now())
        await job.record_in(session, "answer", answer.to_json())


async def finish_turn(job: JobContext, facts: TurnFacts, pull: PullRequest | None) -> None:
    """The turn is pushed: what follows is a round. `pull` is the fix pull request, if new."""
    now = job.clock.now()
    async with job.store.write() as session:
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        if task.state is FixTaskState.FIXING:
            task.state, task.updated_at = FixTaskState.REVIEWING, now
        if pull is not None:
            row = await ensure_pull_request(
                session,
                facts.repo.repository_id,
                pull,
                bot=BotFact(True, "our_app"),
                updated_at=now,
                now=now,
            )
            await link_fix_pull_request(session, task, row, now=now)


async def _end(
    session: AsyncSession, job: JobContext, task: FixTask, state: FixTaskState, reason: str
) -> None:
    now = job.clock.now()
    for woken in await end_task(session, task, state, reason, now=now):
        await enqueue(session, turn_request(woken, job.claim.installation_id), now=now)


async def _note(
    session: AsyncSession, job: JobContext, facts: TurnFacts, decision: Decision
) -> None:
    await note_decision(
        session,
        "turn_start",
        decision,
        now=job.clock.now(),
        repository_id=facts.repo.repository_id,
        pull_request_id=facts.source_id,
        fix_task_id=facts.task_id,
        job_id=job.job_id,
    )
