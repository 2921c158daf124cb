"""Carries out what the guards said after a round of a fix task, in the caller's transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.permits import must_be
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.requests import JobRequest
from app.jobs.turns import look_request, turn_request
from app.store.fixtasks import move
from app.store.tables import FixTask, ReviewRun
from loop_guards import NextDecision, NextOutcome, event_after_round

PUBLISH_GRACE = timedelta(minutes=2)
"""How long a fixer's next turn waits for the review that asks for it to be published."""


async def follow(
    session: AsyncSession, job: JobContext, run: ReviewRun, following: NextDecision, now: datetime
) -> None:
    """Move the task on. A decision to give another turn is what the turn's job is made from.

    A task that has ended, or whose turn is under way, stays as it is, whatever this round says of
    its pull request.
    """
    must_be(following, NextDecision)
    assert run.fix_task_id is not None
    task = await session.get_one(FixTask, run.fix_task_id, with_for_update=True)
    event, reason = event_after_round(following.outcome), str(following.reason)
    moved = await move(session, task, event, reason=reason, now=now)
    for other in moved.woken:
        await enqueue(session, turn_request(other, job.claim.installation_id), now=now)
    if not moved.decision.moved:
        return
    match following.outcome:
        case NextOutcome.TURN:
            # It waits for the page to show the verdict, and starts without that after a crash.
            request = replace(
                turn_request(task, job.claim.installation_id), run_at=now + PUBLISH_GRACE
            )
            await enqueue(session, request, now=now)
        case NextOutcome.ROUND:
            await enqueue(session, _again(job, run), now=now)
        case NextOutcome.ESCALATE:
            task.escalation_reason = reason
            task.escalation_reasons = [str(reason) for reason in following.reasons]
            task.escalated_at = now
        case _:
            pass


def _again(job: JobContext, run: ReviewRun) -> JobRequest:
    """Another look at the same head, since the last one did not see all of it."""
    return look_request(
        int(job.payload["repository_id"]),
        int(job.payload["number"]),
        job.claim.installation_id,
        after=f"run:{run.id}",
    )
