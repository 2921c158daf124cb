"""The ledger's side of a turn, one short transaction each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.effects import Comment
from app.domain.permits import TurnPermit, must_be
from app.domain.pull_request import PullRequest
from app.domain.tasks import FixTaskState
from app.errors import JobCancelled
from app.fixer.attempt import Committed, Ended
from app.fixer.facts import Place, TurnFacts
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.turns import look_request, turn_request
from app.store.commands import BotFact, ensure_pull_request
from app.store.decisions import note_decision
from app.store.fixtasks import link_fix_pull_request, move
from app.store.tables import FindingRow, FixTask, FixTaskFinding, PullRequestRow, ReviewRun
from loop_guards import FindingStatus, StartDecision, TaskDecision, TaskEvent


@dataclass(frozen=True, slots=True)
class Words:
    """What is said about the end of a task, on which pull request; `label`: a human is asked."""

    number: int
    comment: Comment
    label: bool = False


async def begin_turn(job: JobContext, facts: TurnFacts, permit: TurnPermit) -> None:
    """The guards let the turn begin; it is counted once, whatever happens to the worker.

    Raises JobCancelled if the task went another way since the turn was asked about.
    """
    must_be(permit, TurnPermit)
    now = job.clock.now()
    async with job.store.write() as session:
        await job.hold(session)
        await _note(session, job, facts, permit.decision)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        if task.state is not FixTaskState.FIXING:
            await move(session, task, TaskEvent.TURN_BEGUN, now=now)
        if task.state is not FixTaskState.FIXING:
            raise JobCancelled(f"fix task {task.id} is {task.state} and takes no turn")
        if not job.has("turn"):
            task.turns, task.updated_at = facts.turn, now
            await job.record_in(session, "turn", {"number": facts.turn})


async def pause(
    job: JobContext, facts: TurnFacts, decision: StartDecision | None, reason: str
) -> None:
    """The turn does not go on now; the task keeps its place and says what it waits for."""
    async with job.store.write() as session:
        await job.hold(session)
        if decision is not None:
            await _note(session, job, facts, decision)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        if task.state is FixTaskState.FIXING:
            await move(session, task, TaskEvent.STOP, now=job.clock.now())
        if task.state is FixTaskState.QUEUED:
            task.state_reason, task.updated_at = reason, job.clock.now()


async def escalate(
    job: JobContext, facts: TurnFacts, decision: StartDecision, words: Words
) -> None:
    """The guards refuse another turn: a person is asked, and the reason is kept."""
    now = job.clock.now()
    async with job.store.write() as session:
        await _note(session, job, facts, decision)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        if task.state is FixTaskState.FIXING:
            # A restart is asked about again: what is refused is a turn that did not begin anew.
            await move(session, task, TaskEvent.STOP, now=now)
        moved = await _tell(session, job, task, TaskEvent.ESCALATE, str(decision.reason))
        if moved.moved:
            task.escalation_reason = str(decision.reason)
            task.escalation_reasons = [str(reason) for reason in decision.reasons]
            task.escalated_at = now
        await _keep_words(session, job, words if moved.moved else None)
    job.notify()


async def drop_gone(job: JobContext, facts: TurnFacts, gone: Collection[int]) -> None:
    """Findings that the base has lost meanwhile leave the task."""
    if not gone:
        return
    now = job.clock.now()
    async with job.store.write() as session:
        await job.hold(session)
        rows = await session.exec(select(FindingRow).where(col(FindingRow.id).in_(gone)))
        for row in rows.all():
            row.status, row.status_reason = FindingStatus.GONE, "not_on_base"
            row.status_at = row.updated_at = now
        links = await session.exec(
            select(FixTaskFinding).where(
                FixTaskFinding.fix_task_id == facts.task_id,
                col(FixTaskFinding.finding_id).in_(gone),
            )
        )
        for link in links.all():
            link.left_at = now


async def end_turn(
    job: JobContext,
    facts: TurnFacts,
    ended: Ended,
    words: Words | None,
    decision: StartDecision | None = None,
) -> None:
    """The turn is over without a push. `words` are kept to be said if that ends the task, too;
    whoever waited for its files goes on then. A proposal is looked at once more instead.

    `decision`: what the guards said of the turn, if it ends before it began.
    """
    async with job.store.write() as session:
        if decision is not None:
            await _note(session, job, facts, decision)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
        await _keep_declined(session, facts, ended.answer.declined)
        moved = await _tell(session, job, task, ended.event, ended.reason)
        if moved.moved and moved.state is FixTaskState.REVIEWING:
            await _look_again(session, job, facts, task)
        over = moved.moved and not moved.state.is_live
        await _keep_words(session, job, words if over else None)
    job.notify()


async def keep_commit(job: JobContext, facts: TurnFacts, place: Place, made: Committed) -> None:
    """Kept before the push: a restart pushes this very commit and makes no other."""
    async with job.store.write() as session:
        await _keep_declined(session, facts, made.answer.declined)
        step = {"sha": made.sha, "tip": place.tip, "answer": made.answer.to_json()}
        await job.record_in(session, "commit", step)


async def finish_turn(
    job: JobContext,
    facts: TurnFacts,
    head: str | None,
    pull: PullRequest | None = None,
    *,
    reason: str = "pushed",
) -> None:
    """The turn is over: what follows is a round of `head`, which its push asks for.

    `pull` is the fix pull request, if new.
    """
    now = job.clock.now()
    async with job.store.write() as session:
        await job.hold(session)
        task = await session.get_one(FixTask, facts.task_id, with_for_update=True)
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
        moved = await _tell(session, job, task, TaskEvent.TURN_DONE, reason)
        if moved.moved and await _was_early(session, task, head):
            await _look_again(session, job, facts, task)
    job.notify()


async def _was_early(session: AsyncSession, task: FixTask, head: str | None) -> bool:
    """Whether a review of this head was over before the turn was: it moved nothing, since a look
    does not end a turn, and no event asks for another one."""
    statement = select(ReviewRun.id).where(
        ReviewRun.fix_task_id == task.id,
        ReviewRun.head_sha == head,
        col(ReviewRun.finished_at).is_not(None),
    )
    return (await session.exec(statement.limit(1))).first() is not None


async def _look_again(
    session: AsyncSession, job: JobContext, facts: TurnFacts, task: FixTask
) -> None:
    """Ask for a round that no push asks for."""
    row = await session.get_one(PullRequestRow, task.fix_pull_request_id)
    request = look_request(
        facts.repo.repository_id,
        row.number,
        job.claim.installation_id,
        after=f"turn:{task.id}:{facts.turn}:{task.resumes}",
    )
    await enqueue(session, request, now=job.clock.now())


async def _keep_declined(
    session: AsyncSession, facts: TurnFacts, declined: Mapping[str, str]
) -> None:
    """What the fixer said of findings it left alone, with the findings of the task."""
    said = {
        item.id: declined[item.short_id] for item in facts.findings if item.short_id in declined
    }
    rows = await session.exec(select(FindingRow).where(col(FindingRow.id).in_(said)))
    for row in rows.all():
        source_id = row.source_finding_id or row.id
        link = await session.get(FixTaskFinding, (facts.task_id, source_id))
        if link is not None:
            link.declined_reason = said[row.id]


async def _keep_words(session: AsyncSession, job: JobContext, words: Words | None) -> None:
    said = None
    if words is not None:
        said = {
            "number": words.number,
            "marker": words.comment.marker.id,
            "body": words.comment.body,
            "label": words.label,
        }
    await job.record_in(session, "ended", said)


async def _tell(
    session: AsyncSession, job: JobContext, task: FixTask, event: TaskEvent, reason: str
) -> TaskDecision:
    """The task learns of the event; whoever gets its files by that has a turn asked for."""
    now = job.clock.now()
    moved = await move(session, task, event, reason=reason, now=now)
    for woken in moved.woken:
        await enqueue(session, turn_request(woken, job.claim.installation_id), now=now)
    return moved.decision


async def _note(
    session: AsyncSession, job: JobContext, facts: TurnFacts, decision: StartDecision
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
