"""What a review run leaves in the ledger. Every function works in one short transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.agents.findings_xml import ParseOutcome
from app.agents.reviewer_results import ReviewerOutcome
from app.domain.coverage import Coverage
from app.domain.findings import Finding
from app.domain.permits import ReviewPermit, must_be
from app.domain.policy import Mode
from app.domain.runs import Booked, RunState, Tier
from app.domain.tasks import LineageState, ReviewerState
from app.jobs.context import JobContext
from app.review.facts import ReviewFacts
from app.review.following import follow
from app.review.history import RETURN, Turn, records_of, runs_of_task
from app.review.judge import Judgement, NewFinding
from app.review.returns import Returned, judge_returns
from app.review.verdict import (
    Question,
    RoundSigns,
    TaskView,
    as_json,
    fix_verdict,
    human_question,
    next_question,
)
from app.store.decisions import note_decisions
from app.store.findings import finding_rows, number_findings, to_finding
from app.store.fixtasks import move
from app.store.lineages import spent_of
from app.store.spend import book_spend
from app.store.tables import (
    FindingRow,
    FixTask,
    Lineage,
    PullRequestRow,
    ReviewerRun,
    ReviewRun,
)
from app.store.usage import book_lineage, book_run
from loop_guards import (
    Decision,
    FindingStatus,
    NextDecision,
    ReturnDecision,
    ReturnReason,
    TaskEvent,
    VerdictDecision,
    machine_rounds_after_call,
    rounds_started,
)


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What the agents of one run came to, before the guards speak.

    What they used is not here: it was booked call by call.
    """

    judgement: Judgement
    summary: str
    coverage: Coverage
    tier: Tier
    models: tuple[str, ...]
    failed_reviewers: tuple[str, ...]
    prompt_versions: Mapping[str, str]
    outcomes: tuple[ReviewerOutcome, ...] = ()
    returned: tuple[Returned, ...] = ()

    @property
    def coverage_full(self) -> bool:
        return self.coverage.is_full and not self.failed_reviewers


async def open_run(
    session: AsyncSession, job: JobContext, facts: ReviewFacts, permit: ReviewPermit
) -> None:
    """Start the run of this job, as step `run`. ValueError if it would be a round of a fix task and
    the guards were not asked for one."""
    must_be(permit, ReviewPermit)
    if facts.task is not None and not permit.allows_round:
        raise ValueError(f"no round of fix task {facts.task.task_id} was asked for")
    now = job.clock.now()
    run = ReviewRun(
        pull_request_id=facts.pull_request_id,
        fix_task_id=facts.task.task_id if facts.task else None,
        lineage_id=facts.lineage_id,
        job_id=job.job_id,
        head_sha=facts.pull_request.head_sha,
        base_sha=facts.pull_request.base_sha,
        merge_base_sha=facts.merge_base,
        patch_id=facts.turn.now.patch_id if facts.turn else None,
        task_resumes=facts.task.resumes if facts.task else 0,
        policy_digest=facts.policy.policy.fingerprint,
        trigger=facts.trigger,
        machine_caused=not facts.by_human,
        state=RunState.RUNNING,
        created_at=now,
        started_at=now,
    )
    session.add(run)
    await session.flush()
    live = facts.policy.policy.mode is Mode.LIVE
    # The task's own word of it is gone once the round is charged; a later try needs it too.
    idle = facts.task is not None and facts.task.idle_turn
    await job.record_in(session, "run", {"id": run.id, "live": live, "idle_turn": idle})


async def charge(job: JobContext, run_id: int, now: datetime) -> None:
    """The run is about to make its first model call: from now on it is a round. Never refunded.

    Raises LeaseLost or JobCancelled when the job is no longer ours: then nothing may be spent.
    """
    async with job.store.write() as session:
        await job.hold(session)
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        if run.charged_at is not None:
            return
        if run.fix_task_id is not None:
            task = await session.get_one(FixTask, run.fix_task_id, with_for_update=True)
            task.rounds_started += 1
            await move(session, task, TaskEvent.FIRST_CALL, now=now)
            run.round_number = task.rounds_started
        else:
            run.round_number = 1 + len(await charged_runs(session, run.pull_request_id))
        run.charged_at = now
        row = await session.get_one(PullRequestRow, run.pull_request_id, with_for_update=True)
        row.machine_rounds = machine_rounds_after_call(
            row.machine_rounds, machine_caused=run.machine_caused
        )


async def book_all(job: JobContext, run_id: int, items: Sequence[Booked], now: datetime) -> None:
    """Sessions of the run begin, its model calls are over: the run and its lineage have used this,
    whatever becomes of them."""
    async with job.store.write() as session:
        lineage_id = await book_run(session, run_id, items)
        await book_lineage(session, lineage_id, items, now=now)
        if job.claim.repository_id is not None:
            await book_spend(session, job.claim.repository_id, items, now=now)


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
        row = await session.get_one(PullRequestRow, facts.pull_request_id, populate_existing=True)
        task = await as_of_now(session, facts.task) if facts.task else None
        returns = judge_returns(result.returned, task, facts.limits) if task else ()
        signs = _signs(facts.turn, returns, newest_head=row.head_sha == run.head_sha)
        question, verdict, following = _decide(replace(facts, task=task), findings, result, signs)
        _fill_run(run, result, verdict, following, now)
        session.add_all([_reviewer_run(item, run_id, now) for item in result.outcomes])
        answers = _answers(result.judgement, returns, verdict, following)
        await _note(session, job, run, answers)
        if following is not None and facts.policy.policy.mode is Mode.LIVE:
            await follow(session, job, run, following, now)
        row.last_reviewed_sha, row.updated_at = facts.pull_request.head_sha, now
        await job.record_in(session, "judged", as_json(question))
    job.notify()


async def as_of_now(session: AsyncSession, task: TaskView) -> TaskView:
    """The task with its counters of this moment: the round under way counts already."""
    row = await session.get_one(FixTask, task.task_id, with_for_update=True, populate_existing=True)
    lineage = await session.get_one(Lineage, task.lineage_id, populate_existing=True)
    return replace(
        task,
        rounds_started=rounds_started(records_of(await runs_of_task(session, task.task_id))),
        allowance=row.allowance,
        spent=spent_of(lineage),
        stopped=lineage.state is LineageState.STOPPED,
    )


def _signs(
    turn: Turn | None, returns: Sequence[tuple[ReturnDecision, int]], *, newest_head: bool
) -> RoundSigns:
    reasons = {decision.reason for decision, _ in returns}
    return RoundSigns(
        touched=turn is None or turn.touched,
        known_patch=turn is not None and turn.known_patch,
        bounced=ReturnReason.BOUNCE in reasons,
        second_flip=ReturnReason.UNSTABLE_REVIEW in reasons,
        newest_head=newest_head,
    )


def _decide(
    facts: ReviewFacts, findings: Sequence[Finding], result: RoundResult, signs: RoundSigns
) -> tuple[Question, VerdictDecision, NextDecision | None]:
    """The guards' answers, and the question whose answer is published. On a fix pull request the
    round just started counts already."""
    full = result.coverage_full
    if facts.task is None:
        asked = human_question(findings, facts.limits, full=full)
        return asked, asked.answer(), None
    verdict = fix_verdict(findings, facts.task, full=full)
    question = next_question(verdict, facts.task, facts.limits, signs, full=full)
    return question, verdict, question.answer()


async def _add_new(
    session: AsyncSession, facts: ReviewFacts, result: RoundResult, run_id: int, now: datetime
) -> None:
    """New findings are numbered; one that was fixed and is back is itself again, and blocks again
    if it did."""
    rows = await finding_rows(session, facts.pull_request_id)
    fixed = {row.fingerprint: row for row in rows if row.status is FindingStatus.FIXED}
    fresh = []
    for item in result.judgement.new:
        back = fixed.get(item.fingerprint)
        if back is None:
            fresh.append(_new_row(item, facts, run_id, now))
        else:
            back.status, back.status_reason, back.status_at = FindingStatus.OPEN, "returned", now
            back.fixed_sha, back.updated_at = None, now
            back.last_seen_run_id, back.last_seen_sha = run_id, facts.pull_request.head_sha
    await number_findings(session, facts.pull_request_id, fresh)


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
        elif item.settled and item.heard is not None:
            # On a fix only a dismissal lifts a block (DESIGN §3.3); elsewhere it is taken note of.
            on_fix = facts.task is not None
            row.status = FindingStatus.DISMISSED if on_fix else FindingStatus.ACKNOWLEDGED
            row.status_reason, row.status_at = item.heard.how.value, now
            row.status_by_login = item.heard.who
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


_REVIEWER_STATES = {
    ParseOutcome.OK: ReviewerState.OK,
    ParseOutcome.PARTIAL: ReviewerState.PARTIAL,
    ParseOutcome.FAILED: ReviewerState.FAILED,
}


def _reviewer_run(outcome: ReviewerOutcome, run_id: int, now: datetime) -> ReviewerRun:
    row = ReviewerRun(
        run_id=run_id,
        agent=outcome.reviewer,
        model=str(outcome.model) if outcome.model else None,
        state=_REVIEWER_STATES[outcome.status],
        reason=outcome.reason or None,
        findings_count=len(outcome.findings),
        attempts=outcome.sessions,
        finished_at=now,
    )
    row.usage = outcome.usage
    return row


_Said = tuple[Decision, int | None]
"""A decision, and the id of the finding it is about."""


def _answers(
    judgement: Judgement,
    returns: Sequence[_Said],
    verdict: VerdictDecision,
    following: NextDecision | None,
) -> dict[str, Sequence[_Said]]:
    """Everything that was asked about the round, by kind: earlier findings, those that came back,
    the verdict, what follows."""
    return {
        "fixed": [(item.decision, item.finding.id) for item in judgement.carried],
        "dismissal": [
            (said.decision, item.finding.id)
            for item in judgement.carried
            if (said := item.heard) is not None and said.is_decision
        ],
        RETURN: returns,
        "verdict": [(verdict, None)],
        "after_round": [] if following is None else [(following, None)],
    }


async def _note(
    session: AsyncSession, job: JobContext, run: ReviewRun, answers: Mapping[str, Sequence[_Said]]
) -> None:
    for kind, said in answers.items():
        await note_decisions(
            session,
            kind,
            said,
            now=job.clock.now(),
            repository_id=job.claim.repository_id,
            pull_request_id=run.pull_request_id,
            fix_task_id=run.fix_task_id,
            run_id=run.id,
            job_id=job.job_id,
        )


async def keep_check(job: JobContext, run_id: int, check_run_id: int) -> None:
    """Remember the run's check on GitHub, so that it is updated and not looked for."""
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id)
        run.check_run_id = check_run_id
