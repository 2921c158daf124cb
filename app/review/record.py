"""What a review run leaves in the ledger. Every function works in one short transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.coverage import Coverage
from app.domain.findings import Finding
from app.domain.jobs import JobKind
from app.domain.runs import RunState, Tier, Usage
from app.domain.tasks import FixTaskState
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.requests import JobRequest
from app.jobs.turns import turn_request
from app.review.facts import ReviewFacts
from app.review.judge import Judgement, NewFinding
from app.review.verdict import fix_verdict, human_verdict, next_step
from app.store.decisions import note_decision
from app.store.findings import finding_rows, number_findings, to_finding
from app.store.fixtasks import end_task
from app.store.lineages import book
from app.store.tables import FindingRow, FixTask, PullRequestRow, ReviewRun, ThreadRow
from loop_guards import (
    AfterRoundFacts,
    Decision,
    FindingStatus,
    NextDecision,
    NextOutcome,
    VerdictDecision,
    after_round,
)

PUBLISH_GRACE = timedelta(minutes=2)
"""How long a fixer's next turn waits for the review that asks for it to be published."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What the agents of one run came to, before the guards speak."""

    judgement: Judgement
    summary: str
    coverage: Coverage
    tier: Tier
    usage: Usage
    models: tuple[str, ...]
    failed_reviewers: tuple[str, ...]
    prompt_versions: Mapping[str, str]

    @property
    def coverage_full(self) -> bool:
        return self.coverage.is_full and not self.failed_reviewers


async def open_run(job: JobContext, facts: ReviewFacts, now: datetime) -> int:
    """Start (or, after a restart, find again) the run of this job. Returns its id."""
    if job.has("run"):
        return int(job.recorded("run")["id"])
    async with job.store.write() as session:
        run = ReviewRun(
            pull_request_id=facts.pull_request_id,
            fix_task_id=facts.task.task_id if facts.task else None,
            lineage_id=facts.lineage_id,
            job_id=job.job_id,
            head_sha=facts.pull_request.head_sha,
            base_sha=facts.pull_request.base_sha,
            merge_base_sha=facts.merge_base,
            policy_digest=facts.policy.policy.fingerprint,
            trigger=facts.trigger,
            machine_caused=not facts.by_human,
            state=RunState.RUNNING,
            created_at=now,
            started_at=now,
        )
        session.add(run)
        await session.flush()
        await job.record_in(session, "run", {"id": run.id})
        return run.id


async def charge(job: JobContext, run_id: int, now: datetime) -> None:
    """The run is about to make its first model call: from now on it is a round. Never refunded."""
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        if run.charged_at is not None:
            return
        run.charged_at = now
        if run.fix_task_id is not None:
            task = await session.get_one(FixTask, run.fix_task_id, with_for_update=True)
            task.rounds_started += 1
            task.state, task.updated_at = FixTaskState.REVIEWING, now
            run.round_number = task.rounds_started
        else:
            run.round_number = 1 + len(await charged_runs(session, run.pull_request_id))
        if run.machine_caused:
            row = await session.get_one(PullRequestRow, run.pull_request_id, with_for_update=True)
            row.machine_rounds += 1


async def charged_runs(session: AsyncSession, pull_request_id: int) -> Sequence[ReviewRun]:
    """The rounds of a pull request so far, oldest first."""
    statement = (
        select(ReviewRun)
        .where(ReviewRun.pull_request_id == pull_request_id, col(ReviewRun.charged_at).is_not(None))
        .order_by(col(ReviewRun.id))
    )
    return (await session.exec(statement)).all()


async def store_round(
    job: JobContext, run_id: int, facts: ReviewFacts, result: RoundResult, now: datetime
) -> None:
    """Store findings, verdict, decisions and what follows, all or nothing, once per job."""
    if job.has("judged"):
        return
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        await _add_new(session, facts, result, run_id, now)
        await _update_carried(session, facts, result, run_id, now)
        findings = [to_finding(row) for row in await finding_rows(session, facts.pull_request_id)]
        verdict, following = _decide(facts, findings, result)
        _fill_run(run, result, verdict, following, now)
        await book(session, facts.lineage_id, result.usage, now=now)
        await _note(session, job, run, verdict, following, now)
        if following is not None:
            await _follow(session, job, run, following, now)
        row = await session.get_one(PullRequestRow, facts.pull_request_id)
        row.last_reviewed_sha, row.updated_at = facts.pull_request.head_sha, now
        await job.record_in(session, "judged", {})
    job.notify()


def _decide(
    facts: ReviewFacts, findings: Sequence[Finding], result: RoundResult
) -> tuple[VerdictDecision, NextDecision | None]:
    """The guards' answers. On a fix pull request the round just started counts already."""
    full = result.coverage_full
    if facts.task is None:
        return human_verdict(findings, facts.limits, full=full), None
    task = replace(facts.task, rounds_started=facts.task.rounds_started + 1)
    verdict = fix_verdict(findings, task, full=full)
    return verdict, next_step(verdict, task, result.usage, facts.limits, full=full)


async def _add_new(
    session: AsyncSession, facts: ReviewFacts, result: RoundResult, run_id: int, now: datetime
) -> None:
    rows = [_new_row(item, facts, run_id, now) for item in result.judgement.new]
    await number_findings(session, facts.pull_request_id, rows)


def _new_row(item: NewFinding, facts: ReviewFacts, run_id: int, now: datetime) -> FindingRow:
    reported, head = item.reported, facts.pull_request.head_sha
    return FindingRow(
        pull_request_id=facts.pull_request_id,
        number=0,
        path=reported.location.path,
        start_line=reported.location.start_line,
        end_line=reported.location.end_line,
        severity=reported.severity,
        category=reported.category,
        title=reported.title,
        body=reported.body,
        evidence=reported.evidence,
        code=item.code,
        suggestion=reported.suggestion,
        also=list(reported.also),
        origin=item.origin,
        status=FindingStatus.OPEN,
        trivial=reported.trivial,
        production_risk=reported.production_risk,
        reviewers=[reported.reviewer],
        first_seen_run_id=run_id,
        first_seen_sha=head,
        last_seen_run_id=run_id,
        last_seen_sha=head,
        fingerprint=item.fingerprint,
        prompt_version=reported.prompt_version,
        created_at=now,
        updated_at=now,
    )


async def _update_carried(
    session: AsyncSession, facts: ReviewFacts, result: RoundResult, run_id: int, now: datetime
) -> None:
    head = facts.pull_request.head_sha
    for item in result.judgement.carried:
        row = await session.get_one(FindingRow, item.finding.id, with_for_update=True)
        row.updated_at = now
        if item.decision.fixed:
            row.status, row.fixed_sha = FindingStatus.FIXED, head
            row.status_reason, row.status_at = item.evidence[:2000] or "fixed", now
        else:
            row.last_seen_run_id, row.last_seen_sha = run_id, head


def _fill_run(
    run: ReviewRun,
    result: RoundResult,
    verdict: VerdictDecision,
    following: NextDecision | None,
    now: datetime,
) -> None:
    run.state, run.finished_at = RunState.DONE, now
    run.tier, run.summary = result.tier, result.summary
    said = following or verdict
    run.verdict, run.reason = said.verdict, str(said.reason)
    run.blocking = sorted(verdict.blocking)
    run.incomplete, run.models = list(result.failed_reviewers), list(result.models)
    run.coverage = result.coverage.to_json()
    run.dropped = [
        {"refs": list(item.refs), "reason": item.reason.value, "why": item.why}
        for item in result.judgement.dropped
    ]
    run.prompt_versions = dict(result.prompt_versions)
    run.usage = result.usage


async def _note(
    session: AsyncSession,
    job: JobContext,
    run: ReviewRun,
    verdict: VerdictDecision,
    following: NextDecision | None,
    now: datetime,
) -> None:
    named: list[tuple[str, Decision]] = [("verdict", verdict)]
    if following is not None:
        named.append(("after_round", following))
    for kind, decision in named:
        await note_decision(
            session,
            kind,
            decision,
            now=now,
            repository_id=job.claim.repository_id,
            pull_request_id=run.pull_request_id,
            fix_task_id=run.fix_task_id,
            run_id=run.id,
            job_id=job.job_id,
        )


async def _follow(
    session: AsyncSession, job: JobContext, run: ReviewRun, following: NextDecision, now: datetime
) -> None:
    """Move the task on. A decision to give another turn is what the turn's job is made from."""
    assert run.fix_task_id is not None
    task = await session.get_one(FixTask, run.fix_task_id, with_for_update=True)
    match following.outcome:
        case NextOutcome.APPROVE:
            task.state, task.state_reason = FixTaskState.APPROVED, str(following.reason)
        case NextOutcome.TURN:
            task.state, task.state_reason = FixTaskState.QUEUED, str(following.reason)
            # It waits for the page to show the verdict, and starts without that after a crash.
            request = replace(
                turn_request(task, job.claim.installation_id), run_at=now + PUBLISH_GRACE
            )
            await enqueue(session, request, now=now)
        case NextOutcome.ROUND:
            task.state, task.state_reason = FixTaskState.REVIEWING, str(following.reason)
            await enqueue(session, _again(job, run), now=now)
        case NextOutcome.ESCALATE:
            task.escalation_reason = str(following.reason)
            task.escalation_reasons = [str(reason) for reason in following.reasons]
            task.escalated_at = now
            woken = await end_task(
                session, task, FixTaskState.ESCALATED, str(following.reason), now=now
            )
            for other in woken:
                await enqueue(session, turn_request(other, job.claim.installation_id), now=now)
        case _:
            task.state_reason = str(following.reason)
    task.updated_at = now


def _again(job: JobContext, run: ReviewRun) -> JobRequest:
    """Another look at the same head, since the last one did not see all of it."""
    return JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST,
        key=f"again:{run.id}",
        payload={**job.payload, "causes": []},
        subject=job.claim.subject,
        lane=job.claim.subject,
        installation_id=job.claim.installation_id,
        repository_id=job.claim.repository_id,
    )


async def note_admission(
    job: JobContext, facts: ReviewFacts, decisions: Sequence[Decision], *, skipped: bool
) -> None:
    """Keep what was decided about starting; a refused run is one row that says so.

    A person's act also ends a machines' ping-pong: their rounds count from here.
    """
    async with job.store.write() as session:
        row = await session.get_one(PullRequestRow, facts.pull_request_id, with_for_update=True)
        if facts.by_human:
            row.machine_rounds, row.last_human_act_at = 0, facts.now
        for decision in decisions:
            await note_decision(
                session,
                "review_start",
                decision,
                now=facts.now,
                repository_id=facts.repo.repository_id,
                pull_request_id=facts.pull_request_id,
                fix_task_id=facts.task.task_id if facts.task else None,
                job_id=job.job_id,
            )
        if skipped:
            session.add(_ended_run(job, facts, RunState.SKIPPED, str(decisions[-1].reason)))


def _ended_run(job: JobContext, facts: ReviewFacts, state: RunState, reason: str) -> ReviewRun:
    return ReviewRun(
        pull_request_id=facts.pull_request_id,
        fix_task_id=facts.task.task_id if facts.task else None,
        lineage_id=facts.lineage_id,
        job_id=job.job_id,
        head_sha=facts.pull_request.head_sha,
        base_sha=facts.pull_request.base_sha,
        policy_digest=facts.policy.policy.fingerprint,
        trigger=facts.trigger,
        machine_caused=not facts.by_human,
        state=state,
        reason=reason,
        created_at=facts.now,
        finished_at=facts.now,
    )


async def end_run(
    job: JobContext,
    run_id: int,
    state: RunState,
    reason: str,
    *,
    usage: Usage | None = None,
    coverage: Coverage | None = None,
) -> None:
    """End a run without a verdict. What it used is booked all the same."""
    now = job.clock.now()
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        if run.state is not RunState.RUNNING:
            return
        run.state, run.reason, run.finished_at = state, reason[:500], now
        if coverage is not None:
            run.coverage = coverage.to_json()
        if usage is not None:
            run.usage = usage
            await book(session, run.lineage_id, usage, now=now)


async def escalate_unavailable(job: JobContext, facts: ReviewFacts, run_id: int) -> None:
    """A round of a fix task came to nothing: a person is asked, nothing is tried for ever."""
    if facts.task is None:
        return
    decision = after_round(
        AfterRoundFacts(
            rounds_started=facts.task.rounds_started,
            allowance=facts.task.allowance,
            blocking_history=facts.task.blocking_history,
            coverage_full=False,
            spent=facts.task.spent,
            stopped=facts.task.stopped,
            unavailable=True,
        ),
        facts.limits,
    )
    now = job.clock.now()
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id)
        await note_decision(
            session,
            "after_round",
            decision,
            now=now,
            repository_id=facts.repo.repository_id,
            pull_request_id=facts.pull_request_id,
            fix_task_id=facts.task.task_id,
            run_id=run_id,
            job_id=job.job_id,
        )
        await _follow(session, job, run, decision, now)


async def keep_check(job: JobContext, run_id: int, check_run_id: int) -> None:
    """Remember the run's check on GitHub, so that it is updated and not looked for."""
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id)
        run.check_run_id = check_run_id


async def finding_comments(job: JobContext, pull_request_id: int) -> dict[str, int]:
    """The first comment of each finding's thread on GitHub, by short id."""
    statement = (
        select(FindingRow, ThreadRow)
        .join(ThreadRow, col(ThreadRow.id) == col(FindingRow.thread_id))
        .where(FindingRow.pull_request_id == pull_request_id)
    )
    async with job.store.read() as session:
        return {row.short_id: thread.comment_id for row, thread in await session.exec(statement)}
