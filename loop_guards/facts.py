"""Facts that several questions share. Frozen; `now` is a field wherever time matters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from loop_guards.findings import FindingStatus, Origin, Severity


class HandoffMode(StrEnum):
    """The policy's mode of handoff."""

    AUTO = "auto"
    MANUAL = "manual"
    OFF = "off"


class TaskState(StrEnum):
    """The life of a fix task (DESIGN §3.2, §3.9). From MERGED on it never changes again.

    WAITING has no lease on its paths yet, QUEUED waits for its target, FIXING is a turn, REVIEWING
    a round, APPROVED waits for its fix pull request to be merged.
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
        """Whether the task still covers its findings: none of them is handed off a second time."""
        return self in _LIVE

    @property
    def holds_lease(self) -> bool:
        """A task keeps its paths from the moment it got them until it ends or escalates."""
        return self.is_live and self not in (TaskState.WAITING, TaskState.ESCALATED)


_LIVE = frozenset(
    {
        TaskState.WAITING,
        TaskState.QUEUED,
        TaskState.FIXING,
        TaskState.REVIEWING,
        TaskState.APPROVED,
        TaskState.ESCALATED,
    }
)


def instant(at: datetime) -> datetime:
    """`at` made comparable with every other time: one without a zone is taken as UTC."""
    return at if at.utcoffset() is not None else at.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class HumanOrder:
    """A human's order to fix one finding. `target` None: the policy's first.

    `ended`: it has found its one end (a task, discarded, withdrawn, refused) and asks for nothing
    any more.
    """

    id: int
    at: datetime
    target: str | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class HandoffFinding:
    """A finding as the question "hand it off?" sees it. `id` is unique among those asked about.

    `covered_by` is the state of the latest task that covered it (WITHDRAWN for a live one that a
    human took it off), None if none ever did. `order` is
    the latest order, None if none was given; one that has ended is as good as none. `dismissed_at`
    is the latest human dismissal. `path_tasks` counts automatic tasks of the last `path_window` on
    its files (of the busiest). `acknowledged`: a person with write access accepted it as it is.
    `target` is what the policy picks for it, None for the policy's first.
    """

    id: int
    path: str | None
    severity: Severity
    origin: Origin
    status: FindingStatus
    also: tuple[str, ...] = ()
    in_merged_tree: bool = True
    covered_by: TaskState | None = None
    order: HumanOrder | None = None
    dismissed_at: datetime | None = None
    first_seen_after_merge: bool = False
    acknowledged: bool = False
    path_tasks: int = 0
    target: str | None = None

    @property
    def pending(self) -> HumanOrder | None:
        """The order that still waits for its end."""
        return None if self.order is None or self.order.ended else self.order


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits for its lease: findings that arrive for its files meanwhile join it."""

    id: int
    target: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """The merge and its surroundings, the same for all findings of one pull request.

    `merged` is the forge's word: an open or closed pull request hands nothing off. `targets` are
    the policy's, in its order. `tasks_of_merge` counts the automatic tasks that this merge has made
    already, at its plan or at a resume. `leased_paths` are held by tasks on the same repository and
    base, `waiting_tasks` are the ones in line there.
    """

    now: datetime
    repository: int
    merge_commit: str
    base: str
    default_branch: str
    mode: HandoffMode
    author_is_bot: bool
    is_fix_pr: bool
    merged: bool
    stopped: bool = False
    kill_switch: bool = False
    minimum_severity: Severity = Severity.WARNING
    handoff_bases: tuple[str, ...] = ()
    targets: tuple[str, ...] = ("builtin",)
    tasks_of_merge: int = 0
    budget_spent: bool = False
    leased_paths: frozenset[str] = frozenset()
    waiting_tasks: tuple[WaitingTask, ...] = ()
