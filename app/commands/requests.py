"""The jobs that a person's word asks for."""

from __future__ import annotations

from app.domain.jobs import JobKind
from app.domain.runs import Trigger
from app.jobs.context import JobContext
from app.jobs.requests import PRIORITY_PERSON, JobRequest, pull_request_subject


def review_request(job: JobContext, repository_id: int, number: int, *, source: str) -> JobRequest:
    """A review of the present head. `source` names the act (`comment:123`): one review each."""
    subject = pull_request_subject(repository_id, number)
    return JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"command:{repository_id}:{number}:{source}",
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


def handoff_request(job: JobContext, repository_id: int, number: int, *, batch: str) -> JobRequest:
    """A merged pull request is planned once more: for what was ordered after its merge (`batch` is
    `order:3`), or for what waited for a resume (`resume:comment:123`)."""
    place = f"close:{repository_id}:{number}"
    return JobRequest(
        kind=JobKind.CLOSE_PULL_REQUEST,
        key=f"{place}:{batch}",
        payload={
            "repository_id": repository_id,
            "number": number,
            "batch": batch,
            "causes": list(job.payload["causes"]),
        },
        subject=pull_request_subject(repository_id, number),
        lane=place,
        installation_id=job.claim.installation_id,
        repository_id=repository_id,
        priority=PRIORITY_PERSON,
    )
