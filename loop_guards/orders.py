"""What becomes of a human's order to fix a finding, at the moment it is given. DESIGN §3.9."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.facts import TaskState
from loop_guards.findings import FindingStatus


class PullState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class OrderOutcome(StrEnum):
    """MARKED: kept until the merge. TASK: handed off now. RESUME: counts as resume of the task."""

    MARKED = "marked"
    TASK = "task"
    RESUME = "resume"
    PENDING = "pending"
    REFUSED = "refused"


class OrderReason(StrEnum):
    """Why an order ends as it does."""

    NOT_HUMAN = "not_human"
    NO_WRITE_ACCESS = "no_write_access"
    NOT_MERGED = "not_merged"
    NOT_OPEN = "not_open"
    ALREADY_QUEUED = "already_queued"
    LIVE_TASK = "live_task"
    STOPPED = "stopped"
    TASK_ESCALATED = "task_escalated"
    WAITS_FOR_MERGE = "waits_for_merge"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """A finding, its pull request and the person, at the moment of the order."""

    by_human: bool
    can_write: bool
    pull_request: PullState
    status: FindingStatus
    covered_by: TaskState | None = None
    already_pending: bool = False
    stopped: bool = False
    kill_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDecision(Decision):
    """The answer to an order."""

    @property
    def accepted(self) -> bool:
        return self.outcome != OrderOutcome.REFUSED


def answer_order(facts: OrderFacts) -> OrderDecision:
    """What this order becomes. The first row that holds answers; every order gets one answer."""
    live = facts.covered_by is not None and facts.covered_by.is_live
    escalated = facts.covered_by is TaskState.ESCALATED
    done = facts.status in (FindingStatus.FIXED, FindingStatus.GONE)
    stopped = facts.stopped or facts.kill_switch
    refused = OrderOutcome.REFUSED
    rows = (
        (not facts.by_human, refused, OrderReason.NOT_HUMAN),
        (not facts.can_write, refused, OrderReason.NO_WRITE_ACCESS),
        (facts.pull_request is PullState.CLOSED, refused, OrderReason.NOT_MERGED),
        (done, refused, OrderReason.NOT_OPEN),
        (escalated, OrderOutcome.RESUME, OrderReason.TASK_ESCALATED),
        (live, refused, OrderReason.LIVE_TASK),
        (facts.already_pending, refused, OrderReason.ALREADY_QUEUED),
        (stopped, OrderOutcome.PENDING, OrderReason.STOPPED),
        (
            facts.pull_request is PullState.OPEN,
            OrderOutcome.MARKED,
            OrderReason.WAITS_FOR_MERGE,
        ),
        (True, OrderOutcome.TASK, OrderReason.MERGED),
    )
    _, outcome, reason = next(row for row in rows if row[0])
    return OrderDecision(
        outcome=outcome,
        reason=reason,
        compared=values(
            pull_request=facts.pull_request,
            status=facts.status,
            covered_by=facts.covered_by,
            already_pending=facts.already_pending,
        ),
        trace=tuple(Asked(code, code if holds else None) for holds, _, code in rows),
        seal=sealed(),
    )
