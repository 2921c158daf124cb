"""The frozen facts of one turn of a fix task, and the ledger's side of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.findings import Finding
from app.domain.pull_request import RepoRef
from app.domain.runs import RunState
from app.domain.tasks import FixTaskState, LineageState
from app.errors import JobCancelled
from app.jobs.context import JobContext
from app.store.findings import finding_rows, to_finding
from app.store.lineages import spent_of
from app.store.queries import as_repo_ref, repository, task_findings
from app.store.tables import FindingRow, FixTask, Lineage, PullRequestRow, ReviewRun
from loop_guards import FindingStatus, RoundFacts


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """A fix task before one of its turns.

    `findings` are the open ones: those of the task, and on later turns also what blocks the fix
    pull request. `remarks` is what the last review said. `fix_number` is None before the first
    pull request.
    """

    repo: RepoRef
    task_id: int
    lineage_id: int
    branch: str
    base_ref: str
    merge_commit_sha: str
    source_number: int
    source_id: int
    paths: tuple[str, ...]
    turn: int
    findings: tuple[Finding, ...]
    remarks: str
    fix_number: int | None
    round_facts: RoundFacts
    state: FixTaskState


async def gather(job: JobContext) -> TurnFacts:
    """The task as the ledger knows it. Raises JobCancelled when there is nothing to work on."""
    async with job.store.read() as session:
        task = await session.get(FixTask, int(job.payload["fix_task_id"]))
        if task is None or task.branch is None:
            raise JobCancelled("the fix task is gone")
        row = await repository(session, task.repository_id)
        if row is None or row.removed_at is not None:
            raise JobCancelled("the App is not installed on this repository (any more)")
        source = await session.get_one(PullRequestRow, task.source_pull_request_id)
        lineage = await session.get_one(Lineage, task.lineage_id)
        fix = (
            await session.get(PullRequestRow, task.fix_pull_request_id)
            if task.fix_pull_request_id
            else None
        )
        return TurnFacts(
            repo=as_repo_ref(row),
            task_id=task.id,
            lineage_id=task.lineage_id,
            branch=task.branch,
            base_ref=task.base_ref,
            merge_commit_sha=task.merge_commit_sha,
            source_number=source.number,
            source_id=source.id,
            paths=tuple(task.paths),
            turn=task.turns + (0 if job.has("turn") else 1),
            findings=await _findings(session, task, fix),
            remarks=await _remarks(session, fix),
            fix_number=fix.number if fix else None,
            round_facts=RoundFacts(
                rounds_started=task.rounds_started,
                allowance=task.allowance,
                spent=spent_of(lineage),
                stopped=lineage.state is LineageState.STOPPED,
                escalated=task.state is FixTaskState.ESCALATED,
                lineage_resumes=task.resumes,
            ),
            state=task.state,
        )


async def _findings(
    session: AsyncSession, task: FixTask, fix: PullRequestRow | None
) -> tuple[Finding, ...]:
    """First turn: what was handed off. Later: what the last round left blocking."""
    if fix is None:
        return tuple(to_finding(row) for _, row in await task_findings(session, task.id))
    blocking = await _blocking(session, fix.id)
    rows: Sequence[FindingRow] = await finding_rows(session, fix.id)
    return tuple(
        to_finding(row)
        for row in rows
        if row.status is FindingStatus.OPEN and (row.id in blocking or not blocking)
    )


async def _blocking(session: AsyncSession, pull_request_id: int) -> frozenset[int]:
    run = await _last_round(session, pull_request_id)
    return frozenset(run.blocking) if run else frozenset()


async def _remarks(session: AsyncSession, fix: PullRequestRow | None) -> str:
    run = await _last_round(session, fix.id) if fix else None
    return run.summary if run else ""


async def _last_round(session: AsyncSession, pull_request_id: int) -> ReviewRun | None:
    statement = (
        select(ReviewRun)
        .where(ReviewRun.pull_request_id == pull_request_id, ReviewRun.state == RunState.DONE)
        .order_by(col(ReviewRun.id).desc())
        .limit(1)
    )
    return (await session.exec(statement)).one_or_none()
