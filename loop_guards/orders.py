"""What becomes of a human's order to fix a finding, at the moment it is given. DESIGN §3.9."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.facts import TaskState
from loop_guards.findings import FindingStatus
from loop_guards.tables import first_row


class PullState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class OrderOutcome(StrEnum):
    """MARKED: kept until the merge. TASK: handed off now. RESUME: counts as resume of the task.
    PENDING: kept until a human resumes the lineage, or the kill switch is off again."""

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
    """A finding, its pull request and the person, at the moment of the order.

    `by_human`: an account of type User, not a machine account of the policy, not through an App.
    `covered_by` is the state of the latest task that covered the finding, None if none ever did.
    `already_pending`: an earlier order for it waits.
    """

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
        """Whether the order stands."""
        return self.outcome != OrderOutcome.REFUSED


def answer_order(facts: OrderFacts) -> OrderDecision:
    """What this order becomes. The first row that holds answers; every order gets one answer.

    The hand-off of DESIGN §3.1 agrees: TASK is a yes there, RESUME a resume, PENDING deferred. An
    order reopens what a human dismissed or acknowledged.
    """
    outcome, reason, trace = first_row(_rows(facts))
    return OrderDecision(
        outcome=outcome,
        reason=reason,
        compared=values(
            by_human=facts.by_human,
            can_write=facts.can_write,
            pull_request=facts.pull_request,
            status=facts.status,
            covered_by=facts.covered_by,
            already_pending=facts.already_pending,
            stopped=facts.stopped,
            kill_switch=facts.kill_switch,
        ),
        trace=trace,
        seal=sealed(),
    )


def _rows(facts: OrderFacts) -> tuple[tuple[bool, OrderOutcome, OrderReason], ...]:
    task = facts.covered_by
    escalated = task is TaskState.ESCALATED
    live = task is not None and task.is_live and not escalated
    done = facts.status in (FindingStatus.FIXED, FindingStatus.GONE)
    is_open = facts.pull_request is PullState.OPEN
    refused = OrderOutcome.REFUSED
    return (
        (not facts.by_human, refused, OrderReason.NOT_HUMAN),
        (not facts.can_write, refused, OrderReason.NO_WRITE_ACCESS),
        (facts.pull_request is PullState.CLOSED, refused, OrderReason.NOT_MERGED),
        (done, refused, OrderReason.NOT_OPEN),
        (live, refused, OrderReason.LIVE_TASK),
        (facts.already_pending, refused, OrderReason.ALREADY_QUEUED),
        # A stop holds until a human resumes by name: an order alone does not undo it.
        (facts.stopped or facts.kill_switch, OrderOutcome.PENDING, OrderReason.STOPPED),
        (escalated, OrderOutcome.RESUME, OrderReason.TASK_ESCALATED),
        (is_open, OrderOutcome.MARKED, OrderReason.WAITS_FOR_MERGE),
        (True, OrderOutcome.TASK, OrderReason.MERGED),
    )
