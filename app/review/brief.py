"""What the service's review and the command line's have in common: what the agents are given, and
what is made of their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from app.agents.port import ModelRef
from app.agents.prompt_context import AddedContext
from app.agents.prompts import available_agents
from app.agents.workspace import Workspace
from app.control.routing import Routing
from app.domain.coverage import CoverageState
from app.domain.diff import Diff
from app.domain.findings import Finding, ReportedFinding
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
from app.git.objects import Tree
from app.plugins.configuration import RunConfiguration
from app.policy.globs import selected_by
from app.policy.paths import instructions_for, withheld_by
from app.review.anchors import settle
from app.review.budget import room_in, text_tokens, within
from app.review.conduct import Conducted
from app.review.context import changed_files, patch_names
from app.review.found_by_code import found_by_code
from app.review.heard import Heard
from app.review.judge import JudgeInput, Judgement, judge
from app.review.plan import ReviewPlan, plan_review
from app.review.returns import changes_shown
from app.review.reviewing import Brief
from app.review.services import WriteRunFiles
from app.review.source import (
    Source,
    changed_since,
    code_at,
    file_facts,
    line_count,
    texts_of,
    touched,
)
from app.review.unchanged import Seen, without_seen
from app.review.verdict import TaskView
from loop_guards import Limits

MOST_REVIEWERS = Limits().max_reviewers


@dataclass(frozen=True, slots=True)
class Assignment:
    """One review to be briefed: what is read, by whose rules and models. `folder` is the run's,
    `evidence` what plugins found in the change."""

    plan: ReviewPlan
    policy: Policy
    configuration: RunConfiguration
    tree: Tree
    folder: Path
    evidence: tuple[AddedContext, ...] = ()


def models_of(
    agent: AgentName, tier: Tier, policy: Policy, routing: Routing
) -> tuple[ModelRef, ...]:
    """The models an agent may run on, first choice first: those it was pinned to at run time, the
    policy's own, or the chain."""
    chosen = None if agent in routing.pinned else policy.models.of(agent)
    chain = routing.chain_for(agent, tier)
    return tuple(ModelRef(chain.provider, name) for name in ((chosen,) if chosen else chain.models))


async def plan_of(
    source: Source, policy: Policy, configuration: RunConfiguration, seen: Seen | None = None
) -> ReviewPlan:
    """Who reads what of the change: filtered, rated, staffed, without what an earlier round has
    `seen`, and cut to the models' windows."""
    facts = await file_facts(source, policy)

    def decide() -> ReviewPlan:
        shipped = shipped_for(configuration, available_agents())
        plan = staffed(plan_review(facts, policy, shipped), policy, configuration)
        told = added_tokens(configuration.context.added)
        return within_windows(without_seen(plan, seen), policy, configuration.routing, told)

    return await asyncio.to_thread(decide)


def shipped_for(
    configuration: RunConfiguration, available: frozenset[AgentName]
) -> frozenset[AgentName]:
    """The shipped agents that may take part. Without rules there is nothing to comply with."""
    off = configuration.switched_off
    return available - (off if configuration.codex.rules else off | {AgentName.COMPLIANCE})


def staffed(plan: ReviewPlan, policy: Policy, configuration: RunConfiguration) -> ReviewPlan:
    """The plan with the plugins' reviewers that have something to do in it.

    A round has as many reviewers as its bound counts on (DESIGN §3.8): where there are more, an
    operator's own go first, and the last of the shipped ones stay out.
    """
    own = [
        agent.name
        for agent in configuration.agents.values()
        if agent.name not in configuration.switched_off
        and policy.reviewers.allows(agent.name)
        and plan.tier in agent.when.tiers
        and _concerned(agent.when.paths, plan)
    ][: MOST_REVIEWERS - 1]
    shipped = plan.reviewers[: MOST_REVIEWERS - len(own)]
    return replace(plan, reviewers=(*shipped, *own)) if plan.files else plan


def _concerned(globs: tuple[str, ...], plan: ReviewPlan) -> bool:
    return not globs or any(selected_by(file.path, globs) is not None for file in plan.files)


def added_tokens(added: Iterable[AddedContext]) -> int:
    """What plugins tell agents beside the change costs at most, in tokens of each prompt. Evidence
    comes once the plan stands, and goes from the half of a window that is for reading source."""
    return text_tokens("".join(f"{one.title}{one.text}" for one in added))


def within_windows(plan: ReviewPlan, policy: Policy, routing: Routing, told: int = 0) -> ReviewPlan:
    """The plan cut to what its reviewers' models can read beside `told` tokens. The smallest window
    of all counts: each reviewer gets the same parts, and each model of a chain may have to go on
    with them."""

    def window(*agents: AgentName) -> int:
        return min(
            routing.context_window(model.name)
            for agent in agents
            for model in models_of(agent, plan.tier, policy, routing)
        )

    reviewers, coordinator = window(*plan.reviewers), window(AgentName.COORDINATOR)
    return within(plan, room_in(reviewers - told, coordinator - told))


async def write_brief(assignment: Assignment, write_files: WriteRunFiles) -> Brief:
    """Write what the agents read, and say who reads what."""
    plan, policy, configuration = assignment.plan, assignment.policy, assignment.configuration
    patches = patch_names((*plan.files, *plan.seen))
    context = replace(
        configuration.context,
        changed_files=changed_files(plan.files, patches),
        seen_files=changed_files(plan.seen, patches),
        custom_instructions=instructions_for(policy, sorted(plan.paths)),
        added=configuration.context.added + assignment.evidence,
    )
    await write_files(assignment.folder, (*plan.files, *plan.seen), patches, context)
    return Brief(
        context=context,
        workspace=Workspace(
            tree=assignment.tree,
            directory=assignment.folder,
            patches=patches,
            withheld=partial(_withheld, policy, renamed=_withheld_before(plan, policy)),
        ),
        reviewers=plan.reviewers,
        models=lambda agent: models_of(agent, plan.tier, policy, configuration.routing),
        known_paths=plan.paths,
        parts=tuple(frozenset(file.path for file in part) for part in plan.parts),
        system_of=configuration.system_of,
        allowed=configuration.allowed,
    )


def _withheld_before(plan: ReviewPlan, policy: Policy) -> frozenset[str]:
    """Files that were withheld under the name they had: another name makes nothing public."""
    withheld = (entry.path for entry in plan.coverage.of(CoverageState.WITHHELD))
    return frozenset(path for path in withheld if withheld_by(policy, path) is None)


def _withheld(policy: Policy, path: str, *, renamed: frozenset[str]) -> str | None:
    return "for the name it had before" if path in renamed else withheld_by(policy, path)


async def judged(
    source: Source,
    plan: ReviewPlan,
    conducted: Conducted,
    *,
    existing: tuple[Finding, ...] = (),
    task: TaskView | None = None,
    heard: Mapping[str, Heard] = MappingProxyType({}),
    decided: Mapping[str, str] = MappingProxyType({}),
) -> Judgement:
    """What is to be made of the agents' answer. Every place in it is first brought to lines that
    exist: a number beyond the file's end looks exact and points nowhere. `task` is the one that
    this change is the fix of."""
    by_code = await found_by_code(source, plan)
    held = (*conducted.review.judged, *by_code)
    said = (*conducted.reported, *(item.finding for item in held))
    texts = await texts_of(source.tree, (finding.location.path for finding in said))
    reported = tuple(settled(finding, source.diff, texts) for finding in conducted.reported)
    placed = tuple(
        replace(item, finding=settled(item.finding, source.diff, texts)) for item in held
    )
    locations = [finding.location for finding in (*reported, *(one.finding for one in placed))]
    of_judge = len(conducted.review.judged)
    return judge(
        JudgeInput(
            existing=existing,
            reported=reported,
            judged=placed[:of_judge],
            by_code=placed[of_judge:],
            read=conducted.read,
            carried=conducted.review.carried,
            dropped=conducted.review.dropped,
            known_paths=plan.paths,
            changed_since=await changed_since(source.repository, existing, source.head),
            code_at=code_at(texts, [(at.path, at.start_line) for at in locations]),
            touched=touched(source.diff, locations),
            is_fix_pr=task is not None,
            since_handoff=await changes_shown(source, existing, task),
            heard=heard,
            settled=decided,
        )
    )


def settled(finding: ReportedFinding, diff: Diff, texts: Mapping[str, bytes]) -> ReportedFinding:
    """The finding on lines that exist; its suggestion was for the lines it named, so it goes where
    those are not the ones."""
    text = texts.get(finding.location.path or "")
    count = None if text is None else line_count(text)
    location = settle(finding.location, diff, line_count=count, quote=finding.evidence)
    kept = finding.suggestion if location == settle(finding.location, diff) else None
    return replace(finding, location=location, suggestion=kept)
