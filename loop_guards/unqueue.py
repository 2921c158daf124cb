"""A human takes a finding out of the queue. DESIGN §3.9, the column "unqueue"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.facts import TaskState
from loop_guards.tables import first_row


class UnqueueOutcome(StrEnum):
    """REMOVED: the pending order ends as withdrawn. RELEASED: the task goes on without the finding.
    EMPTIED: it was the task's last one (`TaskEvent.EMPTIED_BY_HUMAN`)."""

    REMOVED = "removed"
    RELEASED = "released"
    EMPTIED = "emptied"
    REFUSED = "refused"


class UnqueueReason(StrEnum):
    """Why an unqueue ends as it does, in the order asked."""

    NOT_HUMAN = "not_human"
    NO_WRITE_ACCESS = "no_write_access"
    ORDER_PENDING = "order_pending"
    LAST_OF_TASK = "last_of_task"
    OF_LIVE_TASK = "of_live_task"
    NOT_QUEUED = "not_queued"


@dataclass(frozen=True, slots=True)
class UnqueueFacts:
    """A finding and the person. `covered_by` as in `HandoffFinding`; `last_of_task`: no other
    finding of that task is left to fix."""

    by_human: bool
    can_write: bool
    order_pending: bool
    covered_by: TaskState | None = None
    last_of_task: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnqueueDecision(Decision):
    """The answer to an unqueue."""

    @property
    def accepted(self) -> bool:
        """Whether anything was taken out."""
        return self.outcome != UnqueueOutcome.REFUSED


def answer_unqueue(facts: UnqueueFacts) -> UnqueueDecision:
    """What taking this finding out comes to: the pending order first, else its live task.

    A finding that leaves a task leaves its blocking set; only a new order hands it off again.
    """
    live = facts.covered_by is not None and facts.covered_by.is_live
    refused = UnqueueOutcome.REFUSED
    outcome, reason, trace = first_row(
        (
            (not facts.by_human, refused, UnqueueReason.NOT_HUMAN),
            (not facts.can_write, refused, UnqueueReason.NO_WRITE_ACCESS),
            (facts.order_pending, UnqueueOutcome.REMOVED, UnqueueReason.ORDER_PENDING),
            (live and facts.last_of_task, UnqueueOutcome.EMPTIED, UnqueueReason.LAST_OF_TASK),
            (live, UnqueueOutcome.RELEASED, UnqueueReason.OF_LIVE_TASK),
            (True, refused, UnqueueReason.NOT_QUEUED),
        )
    )
    return UnqueueDecision(
        outcome=outcome,
        reason=reason,
        trace=trace,
        compared=values(
            by_human=facts.by_human,
            can_write=facts.can_write,
            order_pending=facts.order_pending,
            covered_by=facts.covered_by,
            last_of_task=facts.last_of_task,
        ),
        seal=sealed(),
    )
