"""One round of a review: who reads what, what they say, what it comes to, stored once.

The part of a run that costs money. It ends with the stored round, or with the reason why there is
none; what the page shows of either is `app.review.pipeline`'s.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from app.agents.port import AgentEvent, EventSink, ModelCallStarted, booked_by
from app.domain.coverage import Coverage
from app.domain.policy import Mode
from app.domain.pull_request import PullRequestState
from app.domain.runs import Booked, RunState
from app.domain.spend import Standing
from app.errors import AgentError, ModelsUnavailable
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.logs import get_logger
from app.plugins.configuration import RunConfiguration
from app.plugins.facts import RunFacts
from app.review.assembly import configured, conversation, evidence, run_facts
from app.review.brief import Assignment, judged, plan_of, write_brief
from app.review.codex import by_the_codex
from app.review.conduct import Conducted, conduct
from app.review.context import known_findings
from app.review.endings import (
    Ended,
    end_run,
)
from app.review.facts import ReviewFacts
from app.review.forced import forced_for
from app.review.gather import Gathered
from app.review.logged import note_answer, note_crowding, note_judgement, note_plan, noted
from app.review.outage import wait_in_queue, waited_check
from app.review.plan import ReviewPlan
from app.review.progress import Progress, progress_check, telling
from app.review.record import (
    RoundResult,
    book_all,
    charge,
    keep_check,
    store_round,
)
from app.review.render import (
    failed_text,
    nothing_to_read,
)
from app.review.returns import find_returns
from app.review.services import ReviewServices
from app.review.source import Source
from app.review.spending import CappedRuntime, Spending, SpendRules, cheaper, hold_for, spent_text
from app.review.unchanged import nothing_new, seen_in
from app.store.together import Together
from app.telemetry.runlog import FILE_NAME, RunLog

log = get_logger(__name__)

_MOST_PROBLEMS, _PROBLEM_CHARS = 20, 300
"""What a line of the log holds of a coordinator's protocol errors."""

OVERTAKEN = Ended("Superseded", "The head moved or the pull request closed.", overtaken=True)


@dataclass(frozen=True, slots=True)
class Work:
    """An admitted run, and all that it works with."""

    job: JobContext
    services: ReviewServices
    forge: Forge
    gathered: Gathered
    run_id: int

    @property
    def facts(self) -> ReviewFacts:
        return self.gathered.facts

    async def end(
        self, state: RunState, reason: str, said: Ended, coverage: Coverage | None = None
    ) -> None:
        await end_run(self.job, self.facts, state, reason, said, coverage=coverage)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Who is to read what of the change, as far as it takes no model to know that."""

    run: RunFacts
    configuration: RunConfiguration
    plan: ReviewPlan

    @property
    def nothing_new(self) -> bool:
        """Whether an earlier round has read everything as it is now."""
        return bool(self.plan.seen) and not (self.plan.files or self.plan.left_out)


async def review_round(work: Work, *, again: bool) -> None:
    """The part that costs money: plan, agents, judge, verdict; ends with the stored round."""
    facts, ready = work.facts, await _prepared(work)
    plan = ready.plan
    if facts.previous is not None and ready.nothing_new:
        conducted = nothing_new(facts.previous, facts.existing)
        result = await _judged(facts, work.gathered.source, plan, conducted)
        await store_round(work.job, work.run_id, facts, result, work.job.clock.now())
        return
    if not plan.files:
        title, why = "Nothing to review", "nothing_to_review"
        if plan.left_out:
            title, why = "Not reviewed: too large", "too_large"
        said = Ended(title, nothing_to_read(plan.coverage))
        await work.end(RunState.SKIPPED, why, said, plan.coverage)
        return
    rules = SpendRules(work.services.price, work.services.installation_caps)
    routing = ready.configuration.routing
    held = await hold_for(work.job, work.run_id, plan, facts.policy.policy, routing, rules)
    if held.standing is Standing.SPENT:
        said = Ended("Not reviewed: spend cap", spent_text(held))
        await work.end(RunState.SKIPPED, "spend_cap", said, plan.coverage.failed("not_reviewed"))
        return
    if held.standing is Standing.CHEAPER:
        less = replace(ready.configuration, routing=cheaper(routing))
        ready = replace(ready, configuration=less)
    progress = await _announce(work, plan, again=again)
    await _ask(work, ready, Spending(held.left), progress)


async def _prepared(work: Work) -> _Prepared:
    facts, source = work.facts, work.gathered.source
    known = known_findings(facts.existing, facts.threads, facts.comment_ids, facts.writers)
    run = run_facts(facts, known, await conversation(work.forge, facts))
    configuration = await configured(work.services.plugins, run, source)
    seen = await seen_in(source.repository, facts.previous)
    plan = await plan_of(source, facts.policy.policy, configuration, seen)
    return _Prepared(run, configuration, plan)


async def _ask(work: Work, ready: _Prepared, spending: Spending, progress: Progress | None) -> None:
    """Brief the agents, hear them, and store what they came to."""
    services, source, plan = work.services, work.gathered.source, ready.plan
    configuration = ready.configuration
    assignment = Assignment(
        plan=plan,
        policy=work.facts.policy.policy,
        configuration=configuration,
        tree=source.tree,
        folder=services.runs / str(work.run_id),
        evidence=await evidence(services.plugins, ready.run, source, plan),
    )
    brief = await write_brief(assignment, services.write_files)
    runtime = CappedRuntime(
        await services.runtimes.for_run(configuration), lambda: spending.is_over
    )
    with RunLog(assignment.folder / FILE_NAME, work.job.clock.now) as log_of_run:
        note_plan(log_of_run, plan)
        note_crowding(log_of_run, brief, configuration.routing)
        sink = spending.watching(_metered(work.job, work.run_id))
        sink = telling(progress, work.job.clock, noted(log_of_run, sink))
        try:
            conducted = await conduct(brief, runtime, work.job, sink)
        except AgentError as error:
            said = await _said_of(work.job, work.facts, error)
            coverage = plan.coverage.failed("not_reviewed")
            await work.end(RunState.FAILED, str(error), said, coverage)
            return
        conducted = by_the_codex(conducted, configuration.codex)
        note_answer(log_of_run, conducted)
        result = await _judged(work.facts, source, plan, conducted)
        note_judgement(log_of_run, result.judgement)
    if await overtaken(work.forge, work.facts):
        await work.end(RunState.CANCELLED, "superseded", OVERTAKEN)
        return
    await store_round(work.job, work.run_id, work.facts, result, work.job.clock.now())


async def _said_of(job: JobContext, facts: ReviewFacts, error: AgentError) -> Ended:
    """What is said of a run in which no agent came to an answer. Where no model can be reached the
    review is queued again first."""
    if isinstance(error, ModelsUnavailable):
        following = await wait_in_queue(job, facts)
        if following is not None:
            return Ended(following.title, following.text, waits=True)
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


async def overtaken(forge: Forge, facts: ReviewFacts) -> bool:
    """Whether the head moved or the pull request closed while the models were thinking."""
    current = await forge.pull_request(facts.repo, facts.pull_request.number)
    return (
        current.head_sha != facts.pull_request.head_sha
        or current.state is not PullRequestState.OPEN
    )


async def _announce(work: Work, plan: ReviewPlan, *, again: bool) -> Progress | None:
    """Show that the review is under way; None where nothing is shown. A check that is under way
    would take back the approval that somebody forced."""
    facts = work.facts
    forced = partial(forced_for, work.job, facts)
    if facts.policy.policy.mode is not Mode.LIVE or await forced() is not None:
        return None
    if (waited := waited_check(work.job, facts)) is not None:
        await work.forge.ensure_check_run(facts.repo, waited, maybe_published=False)
    check = progress_check(work.run_id, facts.pull_request.head_sha, plan, {})
    receipt = await work.forge.ensure_check_run(facts.repo, check, maybe_published=again)
    await keep_check(work.job, work.run_id, receipt.check_run_id)
    began = work.job.clock.now()
    return Progress(work.forge, facts, plan, work.run_id, receipt.check_run_id, began, forced)
