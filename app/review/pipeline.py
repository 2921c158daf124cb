"""One review run, from the job to the page: the story in the order in which it happens."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from app.domain.effects import (
    NEEDS_HUMAN,
    AddLabel,
    CheckConclusion,
    CheckStatus,
    Comment,
    Effect,
    SetCheckRun,
)
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import HumanPrs, Mode
from app.domain.pull_request import PullRequestState
from app.domain.runs import RunState
from app.errors import JobCancelled, LeaseLost, MergewardError
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.places import repo_of
from app.logs import get_logger
from app.review.admit import admit, reason_of, refuse_closed
from app.review.endings import (
    Ended,
    end_run,
    note_admission,
    note_closed,
    note_failure,
    stop_run,
)
from app.review.facts import ReviewFacts
from app.review.forced import forced_for, forced_head
from app.review.gather import Gathered, gather
from app.review.publish import external_id, starting_check, unreviewed_check
from app.review.publishing import publish_round
from app.review.render import (
    escalation_rule,
    failed_text,
    policy_notes,
    skipped_text,
    unanswered_body,
    unpublished_text,
)
from app.review.round import OVERTAKEN, Work, overtaken, review_round
from app.review.services import ReviewServices
from app.store.glass import Forced
from app.store.tables import ReviewRun
from app.telemetry.runlog import FILE_NAME, RunLog

log = get_logger(__name__)

SILENT_SKIPS = frozenset({"closed", "superseded", "already_reviewed"})
"""Skips that say nothing on the page: it already shows what matters."""


async def review_pull_request(job: JobContext, services: ReviewServices) -> None:
    """Review one head of one pull request, or say why not."""
    repo = await repo_of(job)
    async with services.open_forge() as forge:
        as_of = job.clock.now()
        pull = await forge.pull_request(repo, int(job.payload["number"]))
        if pull.state is not PullRequestState.OPEN and not job.has("admission"):
            if not job.has("ended"):
                await note_closed(job, repo, pull, refuse_closed())
            return
        gathered = await gather(job, services, forge, repo, pull, as_of=as_of)
        try:
            await _decided(job, services, forge, gathered)
        except (asyncio.CancelledError, JobCancelled):
            if await _told_to_stop(job, forge, gathered.facts):
                await _end_log(job, services)
            raise
        await _end_log(job, services)
        if job.has("judged"):
            run_id = int(job.recorded("run")["id"])
            await publish_round(job, forge, gathered.facts, run_id)
        else:
            await _say_ended(job, forge, gathered.facts)


async def report_failure(job: JobContext, error: BaseException, services: ReviewServices) -> None:
    """The job has failed for good: the ledger and the check say so, and nothing was approved.

    Of the policy only its mode matters here: a failure always asks for action.
    """
    why = str(error) if isinstance(error, MergewardError) else "an internal error, see the log"
    ended = await note_failure(job, why)
    await _end_log(job, services)
    if job.has("run") and not job.recorded("run")["live"]:
        return
    repo = await repo_of(job)
    async with services.open_forge() as forge:
        pull = await forge.pull_request(repo, int(job.payload["number"]))
        check = unreviewed_check(
            _external(job, ended.run_id),
            pull.head_sha,
            "Not published" if job.has("judged") else "Not reviewed: the review failed",
            unpublished_text(why) if job.has("judged") else failed_text(why),
            gated=True,
            forced=await forced_head(job, repo, pull),
        )
        effects = (check, *_escalation(ended, None))
        await apply(forge, Target(repo, pull.number), effects)


async def _decided(
    job: JobContext, services: ReviewServices, forge: Forge, gathered: Gathered
) -> None:
    """Go on until the round is judged, or has ended without a verdict."""
    resumed = job.has("admission")
    if not resumed:
        await _admit(job, gathered.facts)
    if job.has("judged") or job.has("ended"):
        return
    run_id = int(job.recorded("run")["id"])
    if resumed and await overtaken(forge, gathered.facts):
        await end_run(job, gathered.facts, RunState.CANCELLED, "superseded", OVERTAKEN)
        return
    await review_round(Work(job, services, forge, gathered, run_id), again=resumed)


async def _admit(job: JobContext, facts: ReviewFacts) -> None:
    decisions = admit(facts)
    reason = reason_of(decisions)
    refusal = None
    if reason in SILENT_SKIPS:
        refusal = Ended()
    elif not decisions[-1].allowed:
        refusal = Ended(f"Skipped: {reason}", skipped_text(reason))
    await note_admission(job, facts, decisions, refusal)


async def _told_to_stop(job: JobContext, forge: Forge, facts: ReviewFacts) -> bool:
    """Whether the job was cancelled for good: then its run is over. A worker that only stops goes
    on later."""
    try:
        await job.check_live()
    except LeaseLost:
        return False
    except JobCancelled as stopped:
        await stop_run(job, RunState.CANCELLED, str(stopped) or "cancelled")
        if job.has("run") and facts.policy.policy.mode is Mode.LIVE:
            with suppress(MergewardError):
                await forge.ensure_check_run(facts.repo, _overtaken_check(job, facts))
        return True
    return False


async def _end_log(job: JobContext, services: ReviewServices) -> None:
    """The last line of the run's log, however it ended: who follows it stops there."""
    if not job.has("run"):
        return
    run_id = int(job.recorded("run")["id"])
    async with job.store.read() as session:
        run = await session.get_one(ReviewRun, run_id)
    with RunLog(services.runs / str(run_id) / FILE_NAME, job.clock.now) as log_of_run:
        log_of_run.note("ended", state=run.state.value, verdict=run.verdict, reason=run.reason)


async def _say_ended(job: JobContext, forge: Forge, facts: ReviewFacts) -> None:
    """A run without a verdict: the check says why, and an escalation asks a person."""
    ended = Ended.of(job)
    if ended is None or facts.policy.policy.mode is not Mode.LIVE:
        return
    if ended.overtaken:
        await forge.ensure_check_run(facts.repo, _overtaken_check(job, facts))
        return
    effects = list(_escalation(ended, facts.policy.policy.escalate_to))
    if ended.title:
        effects.append(_ended_check(job, facts, ended, await forced_for(job, facts)))
    await apply(forge, Target(facts.repo, facts.pull_request.number), effects)


def _ended_check(
    job: JobContext, facts: ReviewFacts, ended: Ended, forced: Forced | None
) -> SetCheckRun:
    check = unreviewed_check(
        _external(job, ended.run_id),
        facts.pull_request.head_sha,
        ended.title,
        "\n\n".join((ended.text, *policy_notes(facts.policy))),
        gated=facts.policy.policy.human_prs is HumanPrs.GATE or facts.task is not None,
        forced=forced,
    )
    if forced is not None or not ended.waits:
        return check
    return replace(check, status=CheckStatus.QUEUED, conclusion=None)


def _overtaken_check(job: JobContext, facts: ReviewFacts) -> SetCheckRun:
    check = starting_check(int(job.recorded("run")["id"]), facts.pull_request.head_sha)
    return replace(
        check,
        status=CheckStatus.COMPLETED,
        conclusion=CheckConclusion.CANCELLED,
        title="Superseded",
        summary=OVERTAKEN.text,
    )


def _escalation(ended: Ended, escalate_to: str | None) -> tuple[Effect, ...]:
    if ended.rule is None:
        return ()
    marker = Marker(MarkerKind.COMMENT, f"escalation-{ended.run_id}")
    body = unanswered_body(escalation_rule(ended.rule), escalate_to)
    return Comment(marker, body), AddLabel(NEEDS_HUMAN)


def _external(job: JobContext, run_id: int | None) -> str:
    return external_id(run_id) if run_id is not None else f"job-{job.job_id}"
