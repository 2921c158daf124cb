"""Words of the queue: fix tasks, orders for them, and what is published about them."""

from __future__ import annotations

from enum import StrEnum

from loop_guards import TaskState

RESUME_BATCH = "resume:"
"""How the batches begin that ask a merged pull request's deferred findings again."""

FixTaskState = TaskState
"""The guards' states of a fix task; rows hold them as they are."""

LIVE_TASK_STATES = frozenset(state for state in TaskState if state.is_live)


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
