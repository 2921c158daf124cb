"""`mergeward review`: the service's own review of a local repository, told on the terminal.

Filter, tier, agents, prompts, judge and verdict are those of the service. What differs: the
policy is the base commit's, there are no earlier findings, and nothing is stored or published.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from app.agents.port import ModelRef, Runtime
from app.agents.prompt_context import PromptContext
from app.agents.prompts import available_agents
from app.agents.workspace import Workspace
from app.cli.output import results_only_on_stdout, tolerate, warn
from app.cli.progress import Progress, opening
from app.cli.review_report import Report, Round, print_json, print_text, unable
from app.cli.review_source import Change, open_change
from app.control.routing import Routing
from app.domain.findings import Finding
from app.domain.runs import AgentName
from app.errors import AgentError, MergewardError
from app.logs import configure_logging
from app.policy.paths import instructions_for, withheld_by
from app.review.conduct import Brief, Conducted, MemoryJournal, conduct
from app.review.context import changed_files, patch_names, write_run_files
from app.review.judge import JudgeInput, Judgement, NewFinding, judge
from app.review.plan import ReviewPlan, plan_review
from app.review.source import code_at, file_facts, touched
from app.review.verdict import human_verdict
from app.settings import LogFormat, Settings, load_settings
from loop_guards import FindingStatus, Severity


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What the person asked for. `fail_on` is a severity or `never`; `output` `text` or `json`."""

    path: Path
    base: str | None
    head: str
    output: str
    fail_on: str


def run(request: ReviewRequest) -> int:
    """Review and print. Returns the exit code; raises MergewardError when nothing was reviewed."""
    configure_logging(log_format=LogFormat.CONSOLE, level="error")
    tolerate(sys.stdout, sys.stderr)
    with results_only_on_stdout() as out:
        try:
            report = asyncio.run(_review(request, load_settings()))
        except MergewardError as error:
            if request.output == "json":
                print_json(unable(str(error), request.fail_on), out)
            raise
        if request.output == "json":
            print_json(report.to_json(), out)
        else:
            print_text(report, Console(file=out, highlight=False))
    return report.exit_code


async def _review(request: ReviewRequest, settings: Settings) -> Report:
    from app.wiring import routing_of, runtime_of

    async with runtime_of(settings) as runtime:
        change = await open_change(request.path, request.base, request.head)
        for line in change.remarks:
            warn(line)
        policy = change.policy.policy
        facts = await file_facts(change.source, policy)
        plan = plan_review(facts, policy, available_agents())
        fail_on = None if request.fail_on == "never" else Severity(request.fail_on)
        if not plan.files:
            return Report(change, plan, fail_on)
        conducted = await _conduct(change, plan, runtime, routing_of(settings))
    judgement = await _judged(change, plan, conducted)
    return Report(change, plan, fail_on, _round(change, plan, conducted, judgement))


async def _conduct(
    change: Change, plan: ReviewPlan, runtime: Runtime, routing: Routing
) -> Conducted:
    """Run the agents in a folder of their own, with progress on stderr."""
    console = Console(stderr=True, highlight=False)
    console.print(opening(plan.tier.value, len(plan.files), plan.reviewers), soft_wrap=True)
    progress = Progress(console, plan.tier.value, plan.reviewers)
    with tempfile.TemporaryDirectory(prefix="mergeward-review-") as folder:
        brief = await _brief(change, plan, routing, Path(folder))
        try:
            async with progress.shown():
                return await conduct(brief, runtime, MemoryJournal(), progress)
        except AgentError as error:
            used = progress.used
            raise AgentError(
                f"The change was not reviewed. {error} Used: {used.model_calls} model calls, "
                f"{used.input_tokens:,} uncached tokens in, {used.output_tokens:,} out."
            ) from error


async def _brief(change: Change, plan: ReviewPlan, routing: Routing, folder: Path) -> Brief:
    policy = change.policy.policy
    patches = patch_names(plan.files)
    context = PromptContext(
        repository=change.name,
        number=None,
        title=change.title,
        body=change.body,
        author=change.author,
        base_ref=change.base_name,
        base_sha=change.source.merge_base,
        head_ref=change.head_name,
        head_sha=change.source.head,
        changed_files=changed_files(plan.files, patches),
        custom_instructions=instructions_for(policy, sorted(plan.paths)),
    )
    await write_run_files(folder, plan.files, patches, context)

    def models(agent: AgentName) -> tuple[ModelRef, ...]:
        chain = routing.chain_for(agent, plan.tier)
        chosen = policy.models.of(agent)
        return tuple(
            ModelRef(chain.provider, name) for name in ((chosen,) if chosen else chain.models)
        )

    return Brief(
        context=context,
        workspace=Workspace(
            tree=change.source.tree,
            directory=folder,
            patches=patches,
            withheld=lambda path: withheld_by(policy, path),
        ),
        reviewers=plan.reviewers,
        models=models,
        known_paths=plan.paths,
    )


async def _judged(change: Change, plan: ReviewPlan, conducted: Conducted) -> Judgement:
    findings = (*conducted.reported, *(item.finding for item in conducted.review.judged))
    locations = [finding.location for finding in findings]
    source = change.source
    return judge(
        JudgeInput(
            existing=(),
            reported=conducted.reported,
            judged=conducted.review.judged,
            carried=(),
            dropped=conducted.review.dropped,
            known_paths=plan.paths,
            changed_since={},
            code_at=await code_at(source.tree, [(at.path, at.start_line) for at in locations]),
            touched=touched(source.diff, locations),
            is_fix_pr=False,
        )
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
