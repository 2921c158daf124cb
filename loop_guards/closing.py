"""A pull request closed: what follows. DESIGN §3.2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from loop_guards.coalesce import BATCH_MERGE, Handed, TaskPlan, coalesce
from loop_guards.decisions import Asked, Decision, Sealed, sealed, values
from loop_guards.facts import HandoffFinding, HumanOrder, MergeFacts, instant
from loop_guards.handoff import HandoffOutcome, decide_handoff, over_task_cap
from loop_guards.limits import Limits


@dataclass(frozen=True, slots=True)
class RefusedOrder:
    """An order that can't be carried out any more, and the guard's code that says why."""

    order_id: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePlan(Sealed):
    """What the end of a pull request causes.

    `discarded` are ids of orders that end as `discarded(closed)`, `refused` those that end as
    `refused(reason)`; `tasks` is empty unless it was merged; `resumed` are ids of findings whose
    order resumes the escalated task that covers them; `decisions` holds one answer per finding that
    was asked about.
    """

    tasks: tuple[TaskPlan, ...] = ()
    discarded: tuple[int, ...] = ()
    refused: tuple[RefusedOrder, ...] = ()
    resumed: tuple[int, ...] = ()
    decisions: tuple[Decision, ...]


def plan_unmerged(
    orders: Iterable[HumanOrder], *, closed_at: datetime, still_closed: bool
) -> ClosePlan:
    """Not merged: orders given before it closed are discarded; nothing is created.

    `still_closed` is the forge's word of now: a reopened pull request keeps its orders.
    """
    given = tuple(orders)
    closed = instant(closed_at)
    gone = tuple(order.id for order in given if still_closed and instant(order.at) < closed)
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
    return ClosePlan(discarded=gone, decisions=(decision,), seal=sealed())


def plan_merged(
    findings: Iterable[HandoffFinding],
    facts: MergeFacts,
    limits: Limits,
    *,
    batch: str = BATCH_MERGE,
) -> ClosePlan:
    """Merged: ask for each finding, then group. `max_fix_tasks` bounds the automatic tasks.

    `batch` tells the keys of several plans of one merge apart: the id of the order or resume.
    """
    ordered = sorted(findings, key=lambda item: item.id)
    asked = [(item, decide_handoff(item, facts, limits)) for item in ordered]
    handed = [Handed(item, decision) for item, decision in asked if decision.yes]
    tasks = coalesce(handed, facts, limits, batch=batch)
    dropped = _beyond_cap(tasks, facts, limits, {item.id: item for item in ordered})
    kept = tuple(plan for plan in tasks if plan.key not in dropped)
    over = {number for plan in tasks if plan.key in dropped for number in plan.finding_ids}
    return ClosePlan(
        tasks=kept,
        resumed=tuple(item.id for item, said in asked if said.outcome == HandoffOutcome.RESUME),
        refused=tuple(
            RefusedOrder(item.pending.id, str(said.reason))
            for item, said in asked
            if item.pending is not None and said.outcome == HandoffOutcome.NO
        ),
        decisions=tuple(
            over_task_cap(said, limits) if item.id in over else said for item, said in asked
        ),
        seal=sealed(),
    )


def _beyond_cap(
    tasks: tuple[TaskPlan, ...],
    facts: MergeFacts,
    limits: Limits,
    findings: dict[int, HandoffFinding],
) -> frozenset[str]:
    """Keys of automatic tasks that the merge has no room for: the mildest, newest ones.

    A task that a human's order is part of is paid by that order, one that joins is no new task.
    """

    def worst(plan: TaskPlan) -> tuple[int, int]:
        severity = min(findings[number].severity.rank for number in plan.finding_ids)
        return severity, min(plan.finding_ids)

    # Where there is none, the guard `budget` has said so and no task is automatic.
    room = limits.max_fix_tasks - facts.tasks_of_merge
    automatic = [plan for plan in tasks if not plan.ordered_ids and plan.joins is None]
    return frozenset(plan.key for plan in sorted(automatic, key=worst)[room:])
