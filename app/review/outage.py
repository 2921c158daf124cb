"""What follows when no model can be reached: the review waits in the queue, and its check with it.

Each wait is a new run, caused by a machine, so the guards' count of machine rounds bounds it like
any other (DESIGN §3.5): what an outage may cost is known beforehand. A fix is different: there a
round that says nothing asks a person at once (§3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.domain.effects import CheckConclusion, CheckStatus, SetCheckRun
from app.domain.jobs import Cause, JobKind
from app.domain.pull_request import Account, AccountKind
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.requests import JobRequest
from app.review.facts import ReviewFacts
from app.review.publish import external_id
from app.store.tables import ReviewRun

WAITS_S = (300.0, 1_200.0, 3_600.0)
"""Pauses before the tries after the first: outages of providers last minutes, some an hour. A
breaker lets the next probe pass after two minutes, so the first pause is longer than that."""

MACHINE_ACT = "models_unavailable"
"""The action of the cause that a try after an outage has."""

_WAITED = "waited_check"
"""In the payload of a try after an outage: the check that told of the wait."""

_US = Account(id=0, login="mergeward[bot]", kind=AccountKind.BOT)


@dataclass(frozen=True, slots=True)
class NextTry:
    """When the review is tried again, and which try of how many that is."""

    at: datetime
    number: int
    most: int

    @property
    def title(self) -> str:
        return f"Waiting for models: next try about {self.at:%H:%M} UTC"

    @property
    def text(self) -> str:
        return (
            "No model can be reached at the moment. Nothing is lost: the review waits in the queue "
            f"and is tried again about {self.at:%H:%M} UTC (try {self.number} of {self.most})."
        )


def next_try(waited: int, now: datetime) -> NextTry | None:
    """The try after `waited` waits; None when there were enough."""
    if waited >= len(WAITS_S):
        return None
    at = now + timedelta(seconds=WAITS_S[waited])
    return NextTry(at, number=waited + 2, most=len(WAITS_S) + 1)


async def wait_in_queue(job: JobContext, facts: ReviewFacts) -> NextTry | None:
    """Queue the next try of this review, once; None where nothing is tried again."""
    waited = int(job.payload.get("waited", 0))
    following = next_try(waited, job.clock.now()) if facts.task is None else None
    if following is None:
        return None
    pull = facts.pull_request
    place = f"{facts.repo.repository_id}:{pull.number}"
    cause = Cause(MACHINE_ACT, _US, job.clock.now(), "")
    request = JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"review:{place}:{pull.head_sha}:{MACHINE_ACT}:{waited + 1}",
        payload={**job.payload, "causes": [cause.to_json()], "waited": waited + 1},
        subject=job.claim.subject,
        lane=job.claim.subject,
        installation_id=job.claim.installation_id,
        repository_id=facts.repo.repository_id,
        run_at=following.at,
    )
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, int(job.recorded("run")["id"]))
        shown = {"external_id": external_id(run.id), "check_run_id": run.check_run_id}
        request = replace(request, payload={**request.payload, _WAITED: shown})
        await enqueue(session, request, now=job.clock.now())
    return following


def waited_check(job: JobContext, facts: ReviewFacts) -> SetCheckRun | None:
    """The end of the check that told of the wait, now that the review is tried again; None where
    nothing waited."""
    shown = job.payload.get(_WAITED)
    if not shown or shown["check_run_id"] is None:
        return None
    return SetCheckRun(
        head_sha=facts.pull_request.head_sha,
        external_id=shown["external_id"],
        status=CheckStatus.COMPLETED,
        conclusion=CheckConclusion.CANCELLED,
        title="Tried again",
        summary="The review goes on in a check of its own.",
        check_run_id=shown["check_run_id"],
    )
