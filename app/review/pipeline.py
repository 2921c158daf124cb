"""One review run, from the job to the page: the story in the order in which it happens."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from app.agents.port import AgentEvent, EventSink, ModelCallStarted, booked_by
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
from app.domain.runs import Booked, RunState
from app.domain.spend import Standing
from app.errors import AgentError, JobCancelled, LeaseLost, MergewardError, ModelsUnavailable
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.places import repo_of
from app.logs import get_logger
from app.review.admit import admit, reason_of, refuse_closed
from app.review.assembly import configured, conversation, evidence, run_facts
from app.review.brief import Assignment, judged, plan_of, write_brief
from app.review.codex import by_the_codex
from app.review.conduct import Conducted, conduct
from app.review.context import known_findings
from app.review.endings import (
    Ended,
    end_run,
    note_admission,
    note_closed,
    note_failure,
    stop_run,
)
from app.review.facts import ReviewFacts
from app.review.gather import Gathered, gather
from app.review.logged import note_answer, note_crowding, note_judgement, note_plan, noted
from app.review.outage import wait_in_queue
from app.review.plan import ReviewPlan
from app.review.publish import external_id, starting_check, unreviewed_check
from app.review.publishing import publish_round
from app.review.record import (
    RoundResult,
    book_all,
    charge,
    keep_check,
    store_round,
)
from app.review.render import (
    escalation_rule,
    failed_text,
    nothing_to_read,
    policy_notes,
    skipped_text,
    unanswered_body,
    unpublished_text,
)
from app.review.returns import find_returns
from app.review.services import ReviewServices
from app.review.source import Source
from app.review.spending import CappedRuntime, Spending, SpendRules, cheaper, hold_for, spent_text
from app.review.unchanged import nothing_new, seen_in
from app.store.together import Together
from app.telemetry.runlog import FILE_NAME, RunLog

log = get_logger(__name__)

SILENT_SKIPS = frozenset({"closed", "superseded", "already_reviewed"})
"""Skips that say nothing on the page: it already shows what matters."""

_MOST_PROBLEMS, _PROBLEM_CHARS = 20, 300
"""What a line of the log holds of a coordinator's protocol errors."""

OVERTAKEN = Ended("Superseded", "The head moved or the pull request closed.", overtaken=True)


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
            await _told_to_stop(job, forge, gathered.facts)
            raise
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
    if resumed and await _overtaken(forge, gathered.facts):
        await end_run(job, gathered.facts, RunState.CANCELLED, "superseded", OVERTAKEN)
        return
    await _review(job, services, forge, gathered, run_id, again=resumed)


async def _admit(job: JobContext, facts: ReviewFacts) -> None:
    decisions = admit(facts)
    reason = reason_of(decisions)
    refusal = None
    if reason in SILENT_SKIPS:
        refusal = Ended()
    elif not decisions[-1].allowed:
        refusal = Ended(f"Skipped: {reason}", skipped_text(reason))
    await note_admission(job, facts, decisions, refusal)


async def _review(
    job: JobContext,
    services: ReviewServices,
    forge: Forge,
    gathered: Gathered,
    run_id: int,
    *,
    again: bool,
) -> None:
    """The part that costs money: plan, agents, judge, verdict; ends with the stored round."""
    facts, source = gathered.facts, gathered.source
    known = known_findings(facts.existing, facts.threads, facts.comment_ids, facts.writers)
    run = run_facts(facts, known, await conversation(forge, facts))
    configuration = await configured(services.plugins, run, source)
    seen = await seen_in(source.repository, facts.previous)
    plan = await plan_of(source, facts.policy.policy, configuration, seen)
    if facts.previous is not None and plan.seen and not (plan.files or plan.left_out):
        conducted = nothing_new(facts.previous, facts.existing)
        result = await _judged(facts, source, plan, conducted)
        await store_round(job, run_id, facts, result, job.clock.now())
        return
    if not plan.files:
        title, why = "Nothing to review", "nothing_to_review"
        if plan.left_out:
            title, why = "Not reviewed: too large", "too_large"
        said = Ended(title, nothing_to_read(plan.coverage))
        await end_run(job, facts, RunState.SKIPPED, why, said, coverage=plan.coverage)
        return
    rules = SpendRules(services.price, services.installation_caps)
    held = await hold_for(job, run_id, plan, facts.policy.policy, configuration.routing, rules)
    if held.standing is Standing.SPENT:
        said = Ended("Not reviewed: spend cap", spent_text(held))
        coverage = plan.coverage.failed("not_reviewed")
        await end_run(job, facts, RunState.SKIPPED, "spend_cap", said, coverage=coverage)
        return
    if held.standing is Standing.CHEAPER:
        configuration = replace(configuration, routing=cheaper(configuration.routing))
    await _announce(job, forge, facts, run_id, again=again)
    assignment = Assignment(
        plan=plan,
        policy=facts.policy.policy,
        configuration=configuration,
        tree=source.tree,
        folder=services.runs / str(run_id),
        evidence=await evidence(services.plugins, run, source, plan),
    )
    brief = await write_brief(assignment, services.write_files)
    spending = Spending(held.left)
    runtime = CappedRuntime(
        await services.runtimes.for_run(configuration), lambda: spending.is_over
    )
    with RunLog(assignment.folder / FILE_NAME, job.clock.now) as log_of_run:
        note_plan(log_of_run, plan)
        note_crowding(log_of_run, brief, configuration.routing)
        sink = noted(log_of_run, spending.watching(_metered(job, run_id)))
        try:
            conducted = await conduct(brief, runtime, job, sink)
        except AgentError as error:
            said = await _said_of(job, facts, error)
            coverage = plan.coverage.failed("not_reviewed")
            await end_run(job, facts, RunState.FAILED, str(error), said, coverage=coverage)
            log_of_run.note("ended", state=RunState.FAILED.value, reason=str(error))
            return
        conducted = by_the_codex(conducted, configuration.codex)
        note_answer(log_of_run, conducted)
        result = await _judged(facts, source, plan, conducted)
        note_judgement(log_of_run, result.judgement)
        if await _overtaken(forge, facts):
            await end_run(job, facts, RunState.CANCELLED, "superseded", OVERTAKEN)
            log_of_run.note("ended", state=RunState.CANCELLED.value, reason="superseded")
            return
        await store_round(job, run_id, facts, result, job.clock.now())
        log_of_run.note("ended", state=RunState.DONE.value)


async def _said_of(job: JobContext, facts: ReviewFacts, error: AgentError) -> Ended:
    """What is said of a run in which no agent came to an answer. Where no model can be reached the
    review is queued again first."""
    if isinstance(error, ModelsUnavailable):
        following = await wait_in_queue(job, facts)
        if following is not None:
            return Ended(following.title, following.text)
    return Ended("Not reviewed: the review failed", failed_text(str(error)))


def _metered(job: JobContext, run_id: int) -> EventSink:
    """The event sink that turns the run into a round before its first model call leaves, and books
    each session when it begins and what each call used when it is over."""
    charging = asyncio.Lock()
    charged = False
    booking = Together[Booked](lambda items: book_all(job, run_id, items, job.clock.now()))

    async def on_event(event: AgentEvent) -> None:
        nonlocal charged
        if isinstance(event, ModelCallStarted):
            async with charging:
                if not charged:
                    await charge(job, run_id, job.clock.now())
                    charged = True
        if (item := booked_by(event)) is not None:
            await booking.add(item)

    return on_event


async def _judged(
    facts: ReviewFacts, source: Source, plan: ReviewPlan, conducted: Conducted
) -> RoundResult:
    judgement = await judged(
        source,
        plan,
        conducted,
        existing=facts.existing,
        task=facts.task,
        heard=facts.heard,
        decided=facts.settled,
    )
    if judgement.problems:
        said = [problem[:_PROBLEM_CHARS] for problem in judgement.problems[:_MOST_PROBLEMS]]
        log.warning(
            "the coordinator's answer was put right", number=len(judgement.problems), problems=said
        )
    return RoundResult(
        judgement=judgement,
        returned=await find_returns(facts, source, judgement),
        summary=conducted.review.summary,
        coverage=plan.coverage.failed("not_reviewed", conducted.unread),
        tier=plan.tier,
        models=conducted.models,
        failed_reviewers=conducted.incomplete,
        prompt_versions=conducted.prompt_versions,
        outcomes=conducted.outcomes,
    )


async def _overtaken(forge: Forge, facts: ReviewFacts) -> bool:
    """Whether the head moved or the pull request closed while the models were thinking."""
    current = await forge.pull_request(facts.repo, facts.pull_request.number)
    return (
        current.head_sha != facts.pull_request.head_sha
        or current.state is not PullRequestState.OPEN
    )


async def _announce(
    job: JobContext, forge: Forge, facts: ReviewFacts, run_id: int, *, again: bool
) -> None:
    if facts.policy.policy.mode is Mode.LIVE:
        check = starting_check(run_id, facts.pull_request.head_sha)
        receipt = await forge.ensure_check_run(facts.repo, check, maybe_published=again)
        await keep_check(job, run_id, receipt.check_run_id)


async def _told_to_stop(job: JobContext, forge: Forge, facts: ReviewFacts) -> None:
    """The job was cancelled for good: its run is over. A worker that only stops goes on later."""
    try:
        await job.check_live()
    except LeaseLost:
        return
    except JobCancelled as stopped:
        await stop_run(job, RunState.CANCELLED, str(stopped) or "cancelled")
        if job.has("run") and facts.policy.policy.mode is Mode.LIVE:
            with suppress(MergewardError):
                await forge.ensure_check_run(facts.repo, _overtaken_check(job, facts))


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
        effects.append(_ended_check(job, facts, ended))
    await apply(forge, Target(facts.repo, facts.pull_request.number), effects)


def _ended_check(job: JobContext, facts: ReviewFacts, ended: Ended) -> SetCheckRun:
    return unreviewed_check(
        _external(job, ended.run_id),
        facts.pull_request.head_sha,
        ended.title,
        "\n\n".join((ended.text, *policy_notes(facts.policy))),
        gated=facts.policy.policy.human_prs is HumanPrs.GATE or facts.task is not None,
    )


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
