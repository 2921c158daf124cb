"""The jobs of a fix task's next turn or look; several stories ask for them."""

from __future__ import annotations

from app.domain.jobs import JobKind
from app.jobs.requests import JobRequest, fix_task_subject, pull_request_subject
from app.store.tables import FixTask


def turn_request(task: FixTask, installation_id: int | None) -> JobRequest:
    """The next turn of the task; asked for twice, it is one job."""
    return JobRequest(
        kind=JobKind.RUN_FIX_TASK,
        # A resume may come while the job that escalated is about to end: it asks for another one.
        key=f"turn:{task.id}:{task.turns + 1}:{task.resumes}",
        payload={"fix_task_id": task.id, "repository_id": task.repository_id},
        subject=fix_task_subject(task.id),
        lane=fix_task_subject(task.id),
        installation_id=installation_id,
        repository_id=task.repository_id,
    )


def look_request(
    repository_id: int, number: int, installation_id: int | None, *, after: str
) -> JobRequest:
    """Another look at the present head of a fix pull request, that no event asks for.

    `after` names what it follows (`run:7`, `turn:3:2`): one look each.
    """
    subject = pull_request_subject(repository_id, number)
    return JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"again:{after}",
        payload={"repository_id": repository_id, "number": number, "causes": [], "again": True},
        subject=subject,
        lane=subject,
        installation_id=installation_id,
        repository_id=repository_id,
    )
