"""The job of a fix task's next turn; several stories ask for one."""

from __future__ import annotations

from app.domain.jobs import JobKind
from app.jobs.requests import JobRequest, fix_task_subject
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
