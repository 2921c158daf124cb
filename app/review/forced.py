"""A head that a person approved by force stays approved, whatever its review comes to."""

from __future__ import annotations

from app.domain.pull_request import PullRequest, RepoRef
from app.jobs.context import JobContext
from app.review.facts import ReviewFacts
from app.store.glass import Forced, forced_approval


async def forced_head(job: JobContext, repo: RepoRef, pull: PullRequest) -> Forced | None:
    """Who approved the head by force, as the ledger has it at this moment."""
    async with job.store.read() as session:
        return await forced_approval(session, repo.repository_id, pull.number, pull.head_sha)


async def forced_for(job: JobContext, facts: ReviewFacts) -> Forced | None:
    """The same of the head that the run looks at."""
    return await forced_head(job, facts.repo, facts.pull_request)
