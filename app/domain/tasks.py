"""Words of the queue: fix tasks, orders for them, and what is published about them."""

from __future__ import annotations

from enum import StrEnum


class FixTaskState(StrEnum):
    """The life of a fix task (DESIGN 3.2, 3.9). The members from `MERGED` on are final.

    `WAITING` has no lease on its paths yet, `QUEUED` waits for its target, `FIXING` is a turn,
    `REVIEWING` a round, `APPROVED` waits for its fix pull request to be merged.
    """

    WAITING = "waiting"
    QUEUED = "queued"
    FIXING = "fixing"
    REVIEWING = "reviewing"
    APPROVED = "approved"
    ESCALATED = "escalated"
    MERGED = "merged"
    CLOSED = "closed"
    DECLINED = "declined"
    FAILED = "failed"
    OBSOLETE = "obsolete"
    WITHDRAWN = "withdrawn"

    @property
    def is_live(self) -> bool:
        """Live tasks cover their findings: none of those is handed off a second time."""
        return self in LIVE_TASK_STATES

    @property
    def holds_lease(self) -> bool:
        """A task keeps its paths from the moment it got them until it ends or escalates."""
        return self.is_live and self not in (FixTaskState.WAITING, FixTaskState.ESCALATED)


LIVE_TASK_STATES = frozenset(
    {
        FixTaskState.WAITING,
        FixTaskState.QUEUED,
        FixTaskState.FIXING,
        FixTaskState.REVIEWING,
        FixTaskState.APPROVED,
        FixTaskState.ESCALATED,
    }
)


class OrderState(StrEnum):
    """What became of a human's order to fix one finding. Only `PENDING` ever changes."""

    PENDING = "pending"
    TASK = "task"
    DISCARDED = "discarded"
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"


class LineageState(StrEnum):
    """A lineage runs, or a human stopped it."""

    ACTIVE = "active"
    STOPPED = "stopped"


class PublicationState(StrEnum):
    """`PREPARED`: the effect may or may not have happened; look for its marker. `DONE`: it did."""

    PREPARED = "prepared"
    DONE = "done"


class ReviewerState(StrEnum):
    """How one reviewer's session ended; `PARTIAL` gave some findings before it failed."""

    RUNNING = "running"
    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
