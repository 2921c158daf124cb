"""A pull request closed: what follows. DESIGN §3.2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from loop_guards.coalesce import BATCH_MERGE, Handed, TaskPlan, coalesce
from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.facts import HandoffFinding, HumanOrder, MergeFacts
from loop_guards.handoff import (
    HandoffDecision,
    HandoffOutcome,
    HandoffReason,
    decide_handoff,
)
from loop_guards.limits import Limits


@dataclass(frozen=True, slots=True)
class ClosePlan:
    """What the end of a pull request causes.

    `discarded` are orders that end as `discarded(closed)`; `tasks` is empty unless it was merged;
    `decisions` holds one answer per finding that was asked about.
    """

    tasks: tuple[TaskPlan, ...]
    discarded: tuple[int, ...]
    decisions: tuple[Decision, ...]


def plan_unmerged(
    orders: Iterable[HumanOrder], *, closed_at: datetime, still_closed: bool
) -> ClosePlan:
    """Not merged: orders given before it closed are discarded; nothing is created.

    `still_closed` is the forge's word of now: a reopened pull request keeps its orders.
    """
    given = tuple(orders)
    gone = tuple(order.id for order in given if still_closed and order.at < closed_at)
    decision = Decision(
        outcome="nothing_handed_off",
        reason="not_merged" if still_closed else "reopened",
        compared=values(
            closed_at=closed_at.isoformat(),
            still_closed=still_closed,
            orders=len(given),
            discarded=len(gone),
        ),
        trace=(Asked("merged", "not_merged"),),
        seal=sealed(),
    )
    return ClosePlan(tasks=(), discarded=gone, decisions=(decision,))


def plan_merged(
    findings: Iterable[HandoffFinding],
    facts: MergeFacts,
    limits: Limits,
    *,
    batch: str = BATCH_MERGE,
) -> ClosePlan:
    """Merged: ask for each finding, then group. `max_fix_tasks` bounds the automatic tasks."""
    asked = [(item, decide_handoff(item, facts, limits)) for item in _in_order(findings)]
    handed = [Handed(item, decision) for item, decision in asked if decision.yes]
    tasks = coalesce(handed, facts, limits, batch=batch)
    kept = _within(tasks, facts, limits)
    dropped = {number for plan in tasks if plan not in kept for number in plan.finding_ids}
    decisions = tuple(
        _over_budget(decision, limits) if item.id in dropped else decision
        for item, decision in asked
    )
    return ClosePlan(tasks=kept, discarded=(), decisions=decisions)


def _in_order(findings: Iterable[HandoffFinding]) -> list[HandoffFinding]:
    return sorted(findings, key=lambda item: item.id)


def _within(tasks: tuple[TaskPlan, ...], facts: MergeFacts, limits: Limits) -> tuple[TaskPlan, ...]:
    """All ordered tasks, and automatic ones up to the cap: those with the worst, oldest first."""
    room = max(0, limits.max_fix_tasks - facts.tasks_of_merge)
    automatic = sorted(
        (plan for plan in tasks if not plan.ordered_ids), key=lambda plan: min(plan.finding_ids)
    )[:room]
    return tuple(plan for plan in tasks if plan.ordered_ids or plan in automatic)


def _over_budget(decision: HandoffDecision, limits: Limits) -> HandoffDecision:
    return replace(
        decision,
        outcome=HandoffOutcome.NO,
        reason=HandoffReason.BUDGET,
        trace=(*decision.trace, Asked("max_fix_tasks", HandoffReason.BUDGET)),
        compared=values(**decision.compared, tasks_allowed=limits.max_fix_tasks),
    )
