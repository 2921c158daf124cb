"""Findings of a pull request: rows to values, and the numbers that give them their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.findings import Finding, Location
from app.store.tables import FindingRow, PullRequestRow, ThreadRow
from loop_guards import FindingStatus


async def finding_rows(session: AsyncSession, pull_request_id: int) -> Sequence[FindingRow]:
    """All findings ever raised on the pull request, by number."""
    statement = (
        select(FindingRow)
        .where(FindingRow.pull_request_id == pull_request_id)
        .order_by(col(FindingRow.number))
    )
    return (await session.exec(statement)).all()


async def finding_comments(session: AsyncSession, pull_request_id: int) -> dict[str, int]:
    """The first comment of each finding's thread on GitHub, by short id."""
    statement = (
        select(FindingRow, ThreadRow)
        .join(ThreadRow, col(ThreadRow.id) == col(FindingRow.thread_id))
        .where(FindingRow.pull_request_id == pull_request_id)
    )
    return {row.short_id: thread.comment_id for row, thread in await session.exec(statement)}


def to_finding(row: FindingRow) -> Finding:
    """The value of a row."""
    return Finding(
        id=row.id,
        short_id=row.short_id,
        location=Location(row.path, row.start_line, row.end_line),
        severity=row.severity,
        category=row.category,
        title=row.title,
        body=row.body,
        suggestion=row.suggestion,
        also=tuple(row.also),
        origin=row.origin,
        status=row.status,
        first_seen_sha=row.first_seen_sha,
        last_seen_sha=row.last_seen_sha,
        trivial=row.trivial,
        production_risk=row.production_risk,
        severity_at_handoff=row.severity_at_handoff,
        code=row.code,
        evidence=row.evidence,
    )


async def settled_findings(
    session: AsyncSession, repository_id: int, rows: Sequence[FindingRow]
) -> dict[str, str]:
    """What people decided to live with, by fingerprint: findings of this pull request (`rows`) that
    were acknowledged or dismissed, and those that were dismissed anywhere in the repository. The
    value names the finding (`F3`, `#12 F3`).

    A fingerprint holds the code at its place, so the memory ends when that changes.
    """
    statement = (
        select(FindingRow.fingerprint, PullRequestRow.number, FindingRow.number)
        .join(PullRequestRow, col(PullRequestRow.id) == col(FindingRow.pull_request_id))
        .where(
            PullRequestRow.repository_id == repository_id,
            FindingRow.status == FindingStatus.DISMISSED,
        )
    )
    known = {print_: f"#{pull} F{number}" for print_, pull, number in await session.exec(statement)}
    own = (FindingStatus.ACKNOWLEDGED, FindingStatus.DISMISSED)
    return {**known, **{row.fingerprint: row.short_id for row in rows if row.status in own}}


async def number_findings(
    session: AsyncSession, pull_request_id: int, rows: Iterable[FindingRow]
) -> None:
    """Add new findings, each with the pull request's next number (never reused).

    The pull request's row is locked until the transaction ends, so two runs can't share a number.
    """
    # A row that this session read earlier may be stale by now: read it again, under the lock.
    await session.flush()
    pull_request = await session.get_one(
        PullRequestRow, pull_request_id, populate_existing=True, with_for_update=True
    )
    for row in rows:
        pull_request.findings_numbered += 1
        row.number = pull_request.findings_numbered
        session.add(row)
    await session.flush()
