"""Carries out what the guards said after a round of a fix task, in the caller's transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import JobKind
from app.domain.permits import must_be
from app.domain.tasks import FixTaskState
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.requests import JobRequest
from app.jobs.turns import turn_request
from app.store.fixtasks import end_task
from app.store.tables import FixTask, ReviewRun
from loop_guards import NextDecision, NextOutcome

PUBLISH_GRACE = timedelta(minutes=2)
"""How long a fixer's next turn waits for the review that asks for it to be published."""


async def follow(
    session: AsyncSession, job: JobContext, run: ReviewRun, following: NextDecision, now: datetime
) -> None:
    """Move the task on. A decision to give another turn is what the turn's job is made from.

    A task that has ended stays as it ended, whatever this round says of its pull request.
    """
    must_be(following, NextDecision)
    assert run.fix_task_id is not None
    task = await session.get_one(FixTask, run.fix_task_id, with_for_update=True)
    if not task.state.is_live:
        return
    match following.outcome:
        case NextOutcome.APPROVE:
            task.state, task.state_reason = FixTaskState.APPROVED, str(following.reason)
        case NextOutcome.TURN:
            task.state, task.state_reason = FixTaskState.QUEUED, str(following.reason)
            # It waits for the page to show the verdict, and starts without that after a crash.
            request = replace(
                turn_request(task, job.claim.installation_id), run_at=now + PUBLISH_GRACE
            )
            await enqueue(session, request, now=now)
        case NextOutcome.ROUND:
            task.state, task.state_reason = FixTaskState.REVIEWING, str(following.reason)
            await enqueue(session, _again(job, run), now=now)
        case NextOutcome.ESCALATE:
            task.escalation_reason = str(following.reason)
            task.escalation_reasons = [str(reason) for reason in following.reasons]
            task.escalated_at = now
            woken = await end_task(
                session, task, FixTaskState.ESCALATED, str(following.reason), now=now
            )
            for other in woken:
                await enqueue(session, turn_request(other, job.claim.installation_id), now=now)
        case _:
            task.state_reason = str(following.reason)
    task.updated_at = now


def _again(job: JobContext, run: ReviewRun) -> JobRequest:
    """Another look at the same head, since the last one did not see all of it."""
    return JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"again:{run.id}",
        payload={**job.payload, "causes": []},
        subject=job.claim.subject,
        lane=job.claim.subject,
        installation_id=job.claim.installation_id,
        repository_id=job.claim.repository_id,
    )
