"""What the ledger tells about a pull request and its findings. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.facts import Asked, KnownFinding, LastRun, Ledger, Said, Standing, Story
from app.domain.jobs import JobKind
from app.jobs.ledger import live_jobs
from app.jobs.requests import pull_request_subject
from app.store.findings import to_finding
from app.store.glass import forced_approvals
from app.store.queries import decisions_about
from app.store.tables import DecisionRow, FindingRow, ReviewRun


async def stories_of(session: AsyncSession, findings: Iterable[KnownFinding]) -> tuple[Story, ...]:
    """All that is known of each finding."""
    return tuple([await _story(session, known) for known in findings])


async def _story(session: AsyncSession, known: KnownFinding) -> Story:
    row = await session.get_one(FindingRow, known.id)
    source = await session.get_one(FindingRow, known.source_id)
    run = await session.get(ReviewRun, source.first_seen_run_id or 0)
    decided = await session.exec(
        select(DecisionRow)
        .where(col(DecisionRow.finding_id).in_((known.id, known.source_id, *known.twins)))
        .order_by(col(DecisionRow.id))
    )
    return Story(
        known=known,
        finding=to_finding(row),
        reviewers=tuple(source.reviewers),
        prompt_version=row.prompt_version,
        round_number=run.round_number if run else None,
        models=tuple(run.models) if run else (),
        status_reason=row.status_reason,
        status_by=row.status_by_login,
        decisions=tuple(_said(item) for item in decided.all()),
    )


async def standing_of(session: AsyncSession, asked: Asked, ledger: Ledger) -> Standing:
    """How the pull request stands, and the latest decision of each kind about it."""
    subject = pull_request_subject(asked.repo.repository_id, asked.pull_request.number)
    jobs = await live_jobs(session, subject=subject)
    waiting = sum(job.kind is JobKind.REVIEW_PULL_REQUEST for job in jobs)
    pull = asked.pull_request
    forced = await forced_approvals(session, asked.repo.repository_id, pull.number)
    present = [row for row in forced if row.record["head_sha"] == pull.head_sha]
    glass_by = str(present[-1].record["login"]) if present else None
    if ledger.pull_request_id is None:
        return Standing(waiting=waiting, glasses=len(forced), glass_by=glass_by)
    decisions = await decisions_about(session, ledger.pull_request_id)
    return Standing(
        run=await _last_run(session, ledger.pull_request_id),
        latest=_latest(decisions),
        waiting=waiting,
        glasses=len(forced),
        glass_by=glass_by,
    )


def _latest(decisions: Sequence[DecisionRow]) -> tuple[Said, ...]:
    """The newest decision of each kind, oldest first."""
    newest = {item.kind: item for item in decisions}
    return tuple(_said(item) for item in sorted(newest.values(), key=lambda item: item.id))


def _said(row: DecisionRow) -> Said:
    return Said(row.kind, row.outcome, row.reason)


async def _last_run(session: AsyncSession, pull_request_id: int) -> LastRun | None:
    statement = (
        select(ReviewRun)
        .where(ReviewRun.pull_request_id == pull_request_id)
        .order_by(col(ReviewRun.id).desc())
        .limit(1)
    )
    run = (await session.exec(statement)).one_or_none()
    if run is None:
        return None
    return LastRun(
        head_sha=run.head_sha,
        state=run.state.value,
        verdict=run.verdict.value if run.verdict else None,
        reason=run.reason,
        round_number=run.round_number,
    )
