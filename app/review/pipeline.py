"""One review run, from the job to the page: the story in the order in which it happens."""

from __future__ import annotations

import asyncio

from app.agents.port import AgentEvent, EventSink, ModelCallStarted, ModelRef
from app.agents.prompt_context import PromptContext
from app.agents.prompts import available_agents
from app.agents.workspace import Workspace
from app.domain.policy import HumanPrs, Mode
from app.domain.pull_request import PullRequestState
from app.domain.runs import AgentName, RunState
from app.errors import AgentError, MergewardError
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.places import repo_of
from app.policy.paths import instructions_for, withheld_by
from app.review.admit import admit, reason_of
from app.review.conduct import Brief, Conducted, conduct
from app.review.context import changed_files, known_findings, patch_names
from app.review.facts import ReviewFacts
from app.review.gather import Gathered, gather
from app.review.judge import JudgeInput, judge
from app.review.plan import ReviewPlan, plan_review
from app.review.publish import external_id, starting_check, unreviewed_check
from app.review.publishing import publish_round
from app.review.record import (
    RoundResult,
    charge,
    end_run,
    escalate_unavailable,
    finding_comments,
    keep_check,
    note_admission,
    open_run,
    store_round,
)
from app.review.render import failed_text, nothing_to_read, skipped_text
from app.review.services import ReviewServices
from app.review.source import Source, changed_since, code_at, file_facts, touched

SILENT_SKIPS = frozenset({"closed", "superseded", "already_reviewed"})
"""Skips that say nothing on the page: it already shows what matters."""


async def review_pull_request(job: JobContext, services: ReviewServices) -> None:
    """Review one head of one pull request, or say why not."""
    repo = await repo_of(job)
    async with services.open_forge() as forge:
        pull = await forge.pull_request(repo, int(job.payload["number"]))
        if pull.state is not PullRequestState.OPEN and not job.has("run"):
            return
        gathered = await gather(job, services, forge, repo, pull)
        if not job.has("run") and not await _admitted(job, forge, gathered.facts):
            return
        run_id = await open_run(job, gathered.facts, job.clock.now())
        if not job.has("judged"):
            await _review(job, services, forge, gathered, run_id)
        if job.has("judged"):
            await publish_round(job, forge, gathered.facts, run_id)


async def report_failure(job: JobContext, error: BaseException, services: ReviewServices) -> None:
    """The job has failed for good: the check says so, and nothing was approved."""
    if job.has("judged"):
        return
    repo = await repo_of(job)
    async with services.open_forge() as forge:
        pull = await forge.pull_request(repo, int(job.payload["number"]))
        why = str(error) if isinstance(error, MergewardError) else "an internal error, see the log"
        run = int(job.recorded("run")["id"]) if job.has("run") else None
        if run is not None:
            await end_run(job, run, RunState.FAILED, why)
        check = unreviewed_check(
            external_id(run) if run is not None else f"job-{job.job_id}",
            pull.head_sha,
            "Not reviewed: the review failed",
            failed_text(why),
            gated=True,
        )
        await forge.ensure_check_run(repo, check)


async def _admitted(job: JobContext, forge: Forge, facts: ReviewFacts) -> bool:
    decisions = admit(facts)
    allowed = decisions[-1].allowed
    await note_admission(job, facts, decisions, skipped=not allowed)
    if allowed or reason_of(decisions) in SILENT_SKIPS:
        return allowed
    await _say_unreviewed(
        job, forge, facts, f"Skipped: {reason_of(decisions)}", skipped_text(reason_of(decisions))
    )
    return False


async def _review(
    job: JobContext, services: ReviewServices, forge: Forge, gathered: Gathered, run_id: int
) -> None:
    """The part that costs money: plan, agents, judge, verdict; ends with the stored round."""
    facts, source = gathered.facts, gathered.source
    plan = plan_review(
        await file_facts(source, facts.policy.policy), facts.policy.policy, available_agents()
    )
    if not plan.files:
        await _nothing_left(job, forge, facts, plan, run_id)
        return
    await _announce(job, forge, facts, run_id)
    brief = await _brief(job, services, facts, source, plan, run_id)
    try:
        conducted = await conduct(brief, services.runtime, job, _charging(job, run_id))
    except AgentError as error:
        await _failed(job, forge, facts, run_id, str(error))
        return
    result = await _judged(facts, source, plan, conducted)
    if await _overtaken(forge, facts):
        await end_run(job, run_id, RunState.CANCELLED, "superseded", usage=result.usage)
        return
    await store_round(job, run_id, facts, result, job.clock.now())


async def _brief(
    job: JobContext,
    services: ReviewServices,
    facts: ReviewFacts,
    source: Source,
    plan: ReviewPlan,
    run_id: int,
) -> Brief:
    policy = facts.policy.policy
    folder = services.runs / str(run_id)
    patches = patch_names(plan.files)
    pull = facts.pull_request
    context = PromptContext(
        repository=facts.repo.full_name,
        number=pull.number,
        title=pull.title,
        body=pull.body,
        author=pull.author.login,
        base_ref=pull.base_ref,
        base_sha=facts.merge_base,
        head_ref=pull.head_ref,
        head_sha=pull.head_sha,
        changed_files=changed_files(plan.files, patches),
        findings=known_findings(
            facts.existing, facts.threads, await finding_comments(job, facts.pull_request_id)
        ),
        previous_review=facts.previous_summary,
        custom_instructions=_instructions(facts, plan),
        round_number=(facts.task.rounds_started if facts.task else 0) + 1,
        is_fix=facts.task is not None,
    )
    await services.write_files(folder, plan.files, patches, context)

    def models(agent: AgentName) -> tuple[ModelRef, ...]:
        chosen = policy.models.of(agent)
        chain = services.routing.chain_for(agent, plan.tier)
        names = (chosen,) if chosen else chain.models
        return tuple(ModelRef(chain.provider, name) for name in names)

    return Brief(
        context=context,
        workspace=Workspace(
            tree=source.tree,
            directory=folder,
            patches=patches,
            withheld=lambda path: withheld_by(policy, path),
        ),
        reviewers=plan.reviewers,
        models=models,
        known_paths=plan.paths,
    )


def _instructions(facts: ReviewFacts, plan: ReviewPlan) -> tuple[str, ...]:
    return instructions_for(facts.policy.policy, sorted(plan.paths))


def _charging(job: JobContext, run_id: int) -> EventSink:
    """The event sink that turns the run into a round before its first model call leaves."""
    charged = asyncio.Lock()
    done = False

    async def on_event(event: AgentEvent) -> None:
        nonlocal done
        if isinstance(event, ModelCallStarted) and not done:
            async with charged:
                if not done:
                    await charge(job, run_id, job.clock.now())
                    done = True

    return on_event


async def _judged(
    facts: ReviewFacts, source: Source, plan: ReviewPlan, conducted: Conducted
) -> RoundResult:
    findings = (*conducted.reported, *(item.finding for item in conducted.review.judged))
    locations = [finding.location for finding in findings]
    judgement = judge(
        JudgeInput(
            existing=facts.existing,
            reported=conducted.reported,
            judged=conducted.review.judged,
            carried=conducted.review.carried,
            dropped=conducted.review.dropped,
            known_paths=plan.paths,
            changed_since=await changed_since(source.repository, facts.existing, source.head),
            code_at=await code_at(source.tree, [(at.path, at.start_line) for at in locations]),
            touched=touched(source.diff, locations),
            is_fix_pr=facts.task is not None,
        )
    )
    return RoundResult(
        judgement=judgement,
        summary=conducted.review.summary,
        coverage=plan.coverage,
        tier=plan.tier,
        usage=conducted.usage,
        models=conducted.models,
        failed_reviewers=conducted.incomplete,
        prompt_versions=conducted.prompt_versions,
    )


async def _overtaken(forge: Forge, facts: ReviewFacts) -> bool:
    """Whether the head moved or the pull request closed while the models were thinking."""
    current = await forge.pull_request(facts.repo, facts.pull_request.number)
    return (
        current.head_sha != facts.pull_request.head_sha
        or current.state is not PullRequestState.OPEN
    )


async def _announce(job: JobContext, forge: Forge, facts: ReviewFacts, run_id: int) -> None:
    if facts.policy.policy.mode is Mode.LIVE:
        again = job.attempt > 1
        check = starting_check(run_id, facts.pull_request.head_sha)
        receipt = await forge.ensure_check_run(facts.repo, check, maybe_published=again)
        await keep_check(job, run_id, receipt.check_run_id)


async def _nothing_left(
    job: JobContext, forge: Forge, facts: ReviewFacts, plan: ReviewPlan, run_id: int
) -> None:
    await end_run(job, run_id, RunState.SKIPPED, "nothing_to_review", coverage=plan.coverage)
    await _say_unreviewed(
        job, forge, facts, "Nothing to review", nothing_to_read(plan.coverage), run_id=run_id
    )


async def _failed(job: JobContext, forge: Forge, facts: ReviewFacts, run_id: int, why: str) -> None:
    await end_run(job, run_id, RunState.FAILED, why)
    await escalate_unavailable(job, facts, run_id)
    await _say_unreviewed(
        job, forge, facts, "Not reviewed: the review failed", failed_text(why), run_id=run_id
    )


async def _say_unreviewed(
    job: JobContext,
    forge: Forge,
    facts: ReviewFacts,
    title: str,
    text: str,
    *,
    run_id: int | None = None,
) -> None:
    policy = facts.policy.policy
    if policy.mode is not Mode.LIVE:
        return
    external = external_id(run_id) if run_id is not None else f"job-{job.job_id}"
    problem = f"\n\n{facts.policy.problem}" if facts.policy.problem else ""
    check = unreviewed_check(
        external,
        facts.pull_request.head_sha,
        title,
        text + problem,
        gated=policy.human_prs is HumanPrs.GATE or facts.task is not None,
    )
    await forge.ensure_check_run(facts.repo, check)
