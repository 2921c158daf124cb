"""The service's own review of a change in a local repository.

Filter, tier, agents, prompts, judge and verdict are those of the service. What differs: the
policy is the base commit's, there are no earlier findings, and nothing is stored or published.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from app.agents.port import Runtime
from app.agents.prompt_context import AddedContext
from app.cli.output import warn
from app.cli.progress import Progress, opening
from app.cli.review import ReviewRequest
from app.cli.review_report import Report, Round
from app.cli.review_source import Change, open_change
from app.domain.findings import Finding
from app.errors import AgentError
from app.plugins.configuration import RunConfiguration
from app.plugins.facts import RunFacts, RunKind
from app.plugins.lifecycle import PluginHost
from app.plugins.runtimes import RuntimeSource
from app.review.assembly import configured, evidence
from app.review.brief import Assignment, judged, plan_of, write_brief
from app.review.codex import by_the_codex
from app.review.conduct import Conducted, conduct
from app.review.context import write_run_files
from app.review.judge import Judgement, NewFinding
from app.review.plan import ReviewPlan
from app.review.reviewing import MemoryJournal
from app.review.verdict import human_verdict
from loop_guards import FindingStatus, Severity


async def review(request: ReviewRequest, plugins: PluginHost, runtimes: RuntimeSource) -> Report:
    """Gather the change, let the agents read it, judge what they say.

    Raises GitError when there is no such change, AgentError when nothing can be concluded.
    """
    change = await open_change(request.path, request.base, request.head)
    for line in change.remarks:
        warn(line)
    facts = _facts(change)
    configuration = await configured(plugins, facts, change.source)
    plan = await plan_of(change.source, change.policy.policy, configuration)
    fail_on = None if request.fail_on == "never" else Severity(request.fail_on)
    if not plan.files:
        return Report(change, plan, fail_on)
    found = await evidence(plugins, facts, change.source, plan)
    runtime = await runtimes.for_run(configuration)
    conducted = await _conduct(change, Prepared(plan, configuration, found), runtime)
    plan = replace(plan, coverage=plan.coverage.failed("not_reviewed", conducted.unread))
    conducted = by_the_codex(conducted, configuration.codex)
    judgement = await judged(change.source, plan, conducted)
    return Report(change, plan, fail_on, _round(change, plan, conducted, judgement))


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is going to be reviewed, by whom, and what plugins found in it."""

    plan: ReviewPlan
    configuration: RunConfiguration
    evidence: tuple[AddedContext, ...]


async def _conduct(change: Change, prepared: Prepared, runtime: Runtime) -> Conducted:
    """Run the agents in a folder of their own, with progress on stderr."""
    plan = prepared.plan
    console = Console(stderr=True, highlight=False)
    console.print(opening(plan.tier.value, len(plan.files), plan.reviewers), soft_wrap=True)
    progress = Progress(console, plan.tier.value, plan.reviewers)
    with tempfile.TemporaryDirectory(prefix="mergeward-review-") as folder:
        assignment = Assignment(
            plan=plan,
            policy=change.policy.policy,
            configuration=prepared.configuration,
            tree=change.source.tree,
            folder=Path(folder),
            evidence=prepared.evidence,
        )
        brief = await write_brief(assignment, write_run_files)
        try:
            async with progress.shown():
                return await conduct(brief, runtime, MemoryJournal(), progress)
        except AgentError as error:
            used = progress.used
            raise AgentError(
                f"The change was not reviewed. {error} Used: {used.model_calls} model calls, "
                f"{used.input_tokens:,} uncached tokens in, {used.output_tokens:,} out."
            ) from error


def _facts(change: Change) -> RunFacts:
    return RunFacts(
        kind=RunKind.LOCAL,
        repository=change.name,
        title=change.title,
        body=change.body,
        author=change.author,
        base_ref=change.base_name,
        base_sha=change.source.merge_base,
        head_ref=change.head_name,
        head_sha=change.source.head,
        policy=change.policy.policy,
    )


def _round(change: Change, plan: ReviewPlan, conducted: Conducted, judgement: Judgement) -> Round:
    head = change.source.head
    ordered = sorted(judgement.new, key=_place)
    findings = tuple(_finding(n, item, head) for n, item in enumerate(ordered, start=1))
    full = plan.coverage.is_full and not conducted.incomplete
    limits = change.policy.policy.limits.for_guards()
    return Round(
        findings=findings,
        conducted=conducted,
        dropped=judgement.dropped,
        verdict=human_verdict(findings, limits, full=full),
        full=full,
    )


def _place(item: NewFinding) -> tuple[int, str, int]:
    at = item.reported.location
    return item.reported.severity.rank, at.path or "", at.start_line or 0


def _finding(number: int, item: NewFinding, head: str) -> Finding:
    reported = item.reported
    return Finding(
        id=number,
        short_id=f"F{number}",
        location=reported.location,
        severity=reported.severity,
        category=reported.category,
        title=reported.title,
        body=reported.body,
        suggestion=reported.suggestion,
        also=reported.also,
        origin=item.origin,
        status=FindingStatus.OPEN,
        first_seen_sha=head,
        last_seen_sha=head,
        trivial=reported.trivial,
        production_risk=reported.production_risk,
        code=item.code,
        evidence=reported.evidence,
    )
