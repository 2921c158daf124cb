"""How a run ends without a verdict: refused, nothing to read, failed, overtaken.

Such an end is one transaction that also keeps what the page is to say (`Ended`), so a restart says
the same once and decides nothing again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.coverage import Coverage
from app.domain.permits import ReviewPermit
from app.domain.policy import Mode
from app.domain.pull_request import PullRequest, RepoRef
from app.domain.runs import RunState, Trigger
from app.domain.tasks import FixTaskState
from app.jobs.context import JobContext
from app.review.facts import ReviewFacts
from app.review.following import follow
from app.review.gather import task_view
from app.review.record import as_of_now, open_run
from app.review.verdict import refused, unavailable
from app.store.decisions import note_decision
from app.store.findings import finding_rows
from app.store.queries import pull_request
from app.store.tables import FixTask, PullRequestRow, ReviewRun
from loop_guards import (
    Decision,
    Limits,
    NextDecision,
    NextOutcome,
    ReviewDecision,
    StartDecision,
    StartReason,
    machine_rounds_after_act,
)

_SPENT = frozenset({StartReason.CAP, StartReason.BUDGET})
"""Refusals after which nothing more happens to a task by itself: a person is asked."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What is said of a run without a verdict; an empty `title` says nothing on the page.

    `run_id` is None when no run had begun, `rule` the reason of an escalation that followed.
    `waits`: the review is queued again, so the check is not over.
    """

    title: str = ""
    text: str = ""
    overtaken: bool = False
    run_id: int | None = None
    rule: str | None = None
    waits: bool = False

    @classmethod
    def of(cls, job: JobContext) -> Ended | None:
        """What this or an earlier try kept; None while the run goes on."""
        return cls(**job.recorded("ended")) if job.has("ended") else None


async def note_admission(
    job: JobContext,
    facts: ReviewFacts,
    decisions: tuple[ReviewDecision | StartDecision, ...],
    refusal: Ended | None,
) -> None:
    """Keep what was decided about starting, and start; a refused run is one row that says so.

    Some acts of persons also end a machines' ping-pong: their rounds count from here.
    """
    reason = str(decisions[-1].reason)
    async with job.store.write() as session:
        row = await session.get_one(PullRequestRow, facts.pull_request_id, with_for_update=True)
        if facts.by_human:
            row.last_human_act_at = facts.now
        for act in facts.acts:
            row.machine_rounds = machine_rounds_after_act(
                row.machine_rounds, act.kind, by_human=act.by_human
            )
        run = None
        if refusal is not None:
            run = _ended_run(job, row, RunState.SKIPPED, reason)
            run.machine_caused = not facts.by_human
            run.policy_digest = facts.policy.policy.fingerprint
            session.add(run)
            await session.flush()
        for decision in decisions:
            await _note(session, job, row, "review_start", decision, run)
        if refusal is None or run is None:
            await open_run(session, job, facts, ReviewPermit(decisions))
        else:
            rule = None
            if facts.task is not None and reason in _SPENT and _acts(facts):
                asked = partial(refused, facts.task, facts.limits)
                rule = await _escalate(session, job, run, asked)
            await _keep(session, job, replace(refusal, run_id=run.id, rule=rule))
        await job.record_in(session, "admission", {})
    job.notify()


async def note_closed(job: JobContext, repo: RepoRef, pull: PullRequest, why: Decision) -> None:
    """The pull request was closed before its review began. Nothing is fetched for that."""
    async with job.store.write() as session:
        row = await pull_request(session, repo.repository_id, pull.number)
        run = None
        if row is not None:
            run = _ended_run(job, row, RunState.SKIPPED, str(why.reason))
            session.add(run)
            await session.flush()
        await _note(session, job, row, "review_start", why, run)
        await _keep(session, job, Ended())


async def end_run(
    job: JobContext,
    facts: ReviewFacts,
    state: RunState,
    reason: str,
    words: Ended,
    *,
    coverage: Coverage | None = None,
) -> None:
    """End the job's run without a verdict, once. A fix task whose round came to nothing is
    escalated: a person is asked, nothing is tried for ever."""
    if job.has("ended"):
        return
    run_id = int(job.recorded("run")["id"])
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        run.state, run.reason, run.finished_at = state, reason[:500], job.clock.now()
        if coverage is not None:
            run.coverage = coverage.to_json()
        rule = None
        if facts.task is not None and not words.overtaken and _acts(facts):
            task = await as_of_now(session, facts.task)
            asked = partial(unavailable, task, facts.limits)
            rule = await _escalate(session, job, run, asked)
        await _keep(session, job, replace(words, run_id=run_id, rule=rule))
    job.notify()


def _acts(facts: ReviewFacts) -> bool:
    """Whether the policy lets us do more than look on."""
    return facts.policy.policy.mode is Mode.LIVE


async def stop_run(job: JobContext, state: RunState, reason: str) -> None:
    """The job was stopped or has failed for good: if its run is under way, it is over."""
    if not job.has("run"):
        return
    async with job.store.write() as session:
        run_id = int(job.recorded("run")["id"])
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        if run.state is RunState.RUNNING:
            run.state, run.reason, run.finished_at = state, reason[:500], job.clock.now()


async def note_failure(job: JobContext, why: str) -> Ended:
    """The job has failed for good: the ledger says so, and a task that waited is escalated.

    Neither the forge nor git is needed for that: they may be why it failed.
    """
    await stop_run(job, RunState.FAILED, why)
    repository_id, number = int(job.payload["repository_id"]), int(job.payload["number"])
    async with job.store.write() as session:
        row = await pull_request(session, repository_id, number)
        if job.has("run"):
            run = await session.get_one(ReviewRun, int(job.recorded("run")["id"]))
        elif row is not None:
            run = _ended_run(job, row, RunState.FAILED, why)
            session.add(run)
            await session.flush()
        else:
            return Ended()
        rule = None
        if run.fix_task_id is not None and run.state is RunState.FAILED:
            task = await session.get_one(FixTask, run.fix_task_id)
            view = await task_view(session, task, await finding_rows(session, run.pull_request_id))
            rule = await _escalate(session, job, run, partial(unavailable, view, Limits()))
    job.notify()
    return Ended(run_id=run.id, rule=rule)


async def _escalate(
    session: AsyncSession, job: JobContext, run: ReviewRun, ask: Callable[[], NextDecision]
) -> str | None:
    """Ask the guards about a task that gets no answer to its last turn, and carry that out.

    The reason of the escalation, if it is one. A task that waits for no round is left alone.
    """
    if run.fix_task_id is None:
        return None
    task = await session.get_one(FixTask, run.fix_task_id, with_for_update=True)
    if task.state is not FixTaskState.REVIEWING:
        return None
    asked = ask()
    row = await session.get_one(PullRequestRow, run.pull_request_id)
    await _note(session, job, row, "after_round", asked, run)
    await follow(session, job, run, asked, job.clock.now())
    return str(asked.reason) if asked.outcome == NextOutcome.ESCALATE else None


async def _keep(session: AsyncSession, job: JobContext, ended: Ended) -> None:
    await job.record_in(session, "ended", asdict(ended))


async def _note(
    session: AsyncSession,
    job: JobContext,
    row: PullRequestRow | None,
    kind: str,
    decision: Decision,
    run: ReviewRun | None,
) -> None:
    await note_decision(
        session,
        kind,
        decision,
        now=job.clock.now(),
        repository_id=job.claim.repository_id,
        pull_request_id=row.id if row else None,
        fix_task_id=row.fix_task_id if row else None,
        run_id=run.id if run else None,
        job_id=job.job_id,
    )


def _ended_run(job: JobContext, row: PullRequestRow, state: RunState, reason: str) -> ReviewRun:
    now = job.clock.now()
    return ReviewRun(
        pull_request_id=row.id,
        fix_task_id=row.fix_task_id,
        lineage_id=row.lineage_id,
        job_id=job.job_id,
        head_sha=row.head_sha,
        base_sha=row.base_sha,
        trigger=Trigger(job.payload.get("trigger", Trigger.WEBHOOK)),
        state=state,
        reason=reason[:500],
        created_at=now,
        finished_at=now,
    )
