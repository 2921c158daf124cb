"""Where a job takes place: the repository its payload names."""

from __future__ import annotations

from app.domain.pull_request import RepoRef
from app.errors import JobCancelled
from app.jobs.context import JobContext
from app.store.queries import as_repo_ref, repository


async def repo_of(job: JobContext) -> RepoRef:
    """The repository of the job. Raises JobCancelled when the App was taken off it."""
    async with job.store.read() as session:
        row = await repository(session, int(job.payload["repository_id"]))
    if row is None or row.removed_at is not None:
        raise JobCancelled("the App is not installed on this repository (any more)")
    return as_repo_ref(row)
