"""The life of a fix task: what each event makes of each state. DESIGN §3.2, §3.4 and §3.9.

This is the one place where a task changes its state. Every pair of state and event has an answer;
what changes nothing says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.facts import TaskState
from loop_guards.progress import NextOutcome


class TaskEvent(StrEnum):
    """What can happen to a fix task.

    LEASE_FREE: nobody else holds its paths. TURN_BEGUN, TURN_DONE: a target took it up, said done.
    TURN_EMPTY: a turn ended without any change. TURN_FAILED: it broke down for good. SILENCE: a
    deadline passed. EMPTIED_*: nothing of it is left to fix, because the base lost it or because
    humans dismissed it or took it off the task. FIRST_CALL: a round of it made its first model
    call. APPROVE, TURN, ROUND, ESCALATE, WAIT: what `after_round` said. STOP: a human stopped the
    lineage. PULL_*: its fix pull request was merged, closed or reopened. RESUME: a human resumed
    it.
    """

    LEASE_FREE = "lease_free"
    TURN_BEGUN = "turn_begun"
    TURN_DONE = "turn_done"
    TURN_EMPTY = "turn_empty"
    TURN_FAILED = "turn_failed"
    SILENCE = "silence"
    EMPTIED_BY_BASE = "emptied_by_base"
    EMPTIED_BY_HUMAN = "emptied_by_human"
    FIRST_CALL = "first_call"
    APPROVE = "approve"
    TURN = "turn"
    ROUND = "round"
    ESCALATE = "escalate"
    WAIT = "wait"
    STOP = "stop"
    PULL_MERGED = "pull_merged"
    PULL_CLOSED_BY_HUMAN = "pull_closed_by_human"
    PULL_CLOSED_BY_MACHINE = "pull_closed_by_machine"
    PULL_REOPENED_BY_HUMAN = "pull_reopened_by_human"
    PULL_REOPENED_BY_MACHINE = "pull_reopened_by_machine"
    RESUME = "resume"


class TaskReason(StrEnum):
    """Why a task moves, or stays where it is."""

    LEASE_TAKEN = "lease_taken"
    LEASE_HELD = "lease_held"
    TURN_BEGUN = "turn_begun"
    TURN_DONE = "turn_done"
    NOTHING_CHANGED = "nothing_changed"
    TURN_FAILED = "turn_failed"
    SILENT = "silent"
    NOTHING_LEFT = "nothing_left"
    WITHDRAWN = "withdrawn"
    ROUND_BEGUN = "round_begun"
    APPROVED = "approved"
    TURN_WANTED = "turn_wanted"
    ROUND_WANTED = "round_wanted"
    ESCALATED = "escalated"
    STOPPED = "stopped"
    FIX_MERGED = "fix_merged"
    CLOSED_BY_HUMAN = "closed_by_human"
    CLOSED_BY_MACHINE = "closed_by_machine"
    REOPENED_BY_MACHINE = "reopened_by_machine"
    RESUMED = "resumed"
    TASK_OVER = "task_over"
    SUPERSEDED = "superseded"
    NOT_NOW = "not_now"


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A fix task at the moment of an event.

    `has_fix_pr`: it proposed something. `paths_free`: no other task holds one of its paths.
    `anything_blocks`: something of it is left that a turn could work on. `superseded`: a finding of
    it belongs to another live task by now.
    """

    state: TaskState
    has_fix_pr: bool = False
    paths_free: bool = True
    anything_blocks: bool = True
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDecision(Decision):
    """The state after the event. `counts_as_resume`: the task has a resume's rounds from now on."""

    before: TaskState
    state: TaskState
    counts_as_resume: bool = False

    @property
    def moved(self) -> bool:
        """Whether the event meant anything to the task."""
        return self.reason not in _STAYS

    @property
    def takes_lease(self) -> bool:
        """Whether its paths are its own from now on."""
        return self.state.holds_lease and not self.before.holds_lease

    @property
    def frees_lease(self) -> bool:
        """Whether whoever waits for its paths may go on."""
        return self.before.holds_lease and not self.state.holds_lease


_STAYS = frozenset(
    {TaskReason.TASK_OVER, TaskReason.SUPERSEDED, TaskReason.NOT_NOW, TaskReason.LEASE_HELD}
)

_Move = tuple[TaskState, TaskReason]


def move_task(facts: TaskFacts, event: TaskEvent) -> TaskDecision:
    """What the event makes of the task. Total: every state has an answer to every event."""
    state, reason = _move(facts, event)
    return TaskDecision(
        outcome=state,
        reason=reason,
        before=facts.state,
        state=state,
        counts_as_resume=reason is TaskReason.RESUMED,
        compared=values(
            state=facts.state,
            event=event,
            has_fix_pr=facts.has_fix_pr,
            paths_free=facts.paths_free,
            anything_blocks=facts.anything_blocks,
            superseded=facts.superseded,
        ),
        trace=(Asked(event, reason),),
        seal=sealed(),
    )


def event_after_round(outcome: str) -> TaskEvent:
    """The event that an outcome of `after_round` is to the task."""
    return TaskEvent(NextOutcome(outcome).value)


def _move(facts: TaskFacts, event: TaskEvent) -> _Move:
    if event in _REOPENED:
        return _reopened(facts, event)
    if not facts.state.is_live:
        return facts.state, TaskReason.TASK_OVER
    if event in _ENDS:
        return _ENDS[event]
    match event:
        case TaskEvent.LEASE_FREE:
            return _leased(facts)
        case TaskEvent.RESUME:
            return _resumed(facts)
        case TaskEvent.EMPTIED_BY_BASE | TaskEvent.EMPTIED_BY_HUMAN:
            return _emptied(facts, event)
        case TaskEvent.FIRST_CALL:
            return _round_begun(facts)
        case _:
            return _worked(facts, event)


_REOPENED = frozenset({TaskEvent.PULL_REOPENED_BY_HUMAN, TaskEvent.PULL_REOPENED_BY_MACHINE})

_ENDS: dict[TaskEvent, _Move] = {
    TaskEvent.PULL_MERGED: (TaskState.MERGED, TaskReason.FIX_MERGED),
    TaskEvent.PULL_CLOSED_BY_HUMAN: (TaskState.CLOSED, TaskReason.CLOSED_BY_HUMAN),
    TaskEvent.PULL_CLOSED_BY_MACHINE: (TaskState.FAILED, TaskReason.CLOSED_BY_MACHINE),
}
"""A fix pull request that ends is the end of its task, whatever it was doing."""


def _reopened(facts: TaskFacts, event: TaskEvent) -> _Move:
    """Only what a person closed can a person bring back, and only while nothing took its place."""
    if facts.state is not TaskState.CLOSED:
        over = TaskReason.NOT_NOW if facts.state.is_live else TaskReason.TASK_OVER
        return facts.state, over
    if event is TaskEvent.PULL_REOPENED_BY_MACHINE:
        return TaskState.FAILED, TaskReason.REOPENED_BY_MACHINE
    if facts.superseded:
        return TaskState.CLOSED, TaskReason.SUPERSEDED
    return _place(facts), TaskReason.RESUMED


def _resumed(facts: TaskFacts) -> _Move:
    if facts.state is not TaskState.ESCALATED:
        return facts.state, TaskReason.NOT_NOW
    return _place(facts), TaskReason.RESUMED


def _leased(facts: TaskFacts) -> _Move:
    if facts.state is not TaskState.WAITING:
        return facts.state, TaskReason.NOT_NOW
    if not facts.paths_free:
        return TaskState.WAITING, TaskReason.LEASE_HELD
    return _place(facts), TaskReason.LEASE_TAKEN


def _place(facts: TaskFacts) -> TaskState:
    """Where a task begins (again): in line, at its turn, or at a look if no turn has work."""
    if not facts.paths_free:
        return TaskState.WAITING
    looks = facts.has_fix_pr and not facts.anything_blocks
    return TaskState.REVIEWING if looks else TaskState.QUEUED


def _emptied(facts: TaskFacts, event: TaskEvent) -> _Move:
    """Nothing is left to fix. What was proposed is looked at once more; else the task is over."""
    if not facts.has_fix_pr:
        if event is TaskEvent.EMPTIED_BY_HUMAN:
            return TaskState.WITHDRAWN, TaskReason.WITHDRAWN
        return TaskState.OBSOLETE, TaskReason.NOTHING_LEFT
    if facts.state in (TaskState.QUEUED, TaskState.FIXING):
        return TaskState.REVIEWING, TaskReason.NOTHING_LEFT
    return facts.state, TaskReason.NOT_NOW


def _round_begun(facts: TaskFacts) -> _Move:
    """A person may ask for a look at any time. It does not end a turn that is under way, and an
    escalated task stays with its human."""
    looks = facts.state in (TaskState.QUEUED, TaskState.REVIEWING, TaskState.APPROVED)
    if looks and facts.has_fix_pr:
        return TaskState.REVIEWING, TaskReason.ROUND_BEGUN
    return facts.state, TaskReason.NOT_NOW


def _worked(facts: TaskFacts, event: TaskEvent) -> _Move:
    move = _WORK.get((facts.state, event))
    if move is None:
        return facts.state, TaskReason.NOT_NOW
    if event is TaskEvent.TURN_EMPTY and facts.has_fix_pr:
        # "There is nothing to do" may be true: a reviewer can have kept what was fixed. One more
        # look decides, and after it the turn that touched nothing is a stall.
        return TaskState.REVIEWING, TaskReason.NOTHING_CHANGED
    return move


_WORK: dict[tuple[TaskState, TaskEvent], _Move] = {
    (TaskState.QUEUED, TaskEvent.TURN_BEGUN): (TaskState.FIXING, TaskReason.TURN_BEGUN),
    (TaskState.QUEUED, TaskEvent.TURN_FAILED): (TaskState.FAILED, TaskReason.TURN_FAILED),
    (TaskState.QUEUED, TaskEvent.SILENCE): (TaskState.FAILED, TaskReason.SILENT),
    (TaskState.QUEUED, TaskEvent.ESCALATE): (TaskState.ESCALATED, TaskReason.ESCALATED),
    (TaskState.FIXING, TaskEvent.TURN_DONE): (TaskState.REVIEWING, TaskReason.TURN_DONE),
    (TaskState.FIXING, TaskEvent.TURN_EMPTY): (TaskState.DECLINED, TaskReason.NOTHING_CHANGED),
    (TaskState.FIXING, TaskEvent.TURN_FAILED): (TaskState.FAILED, TaskReason.TURN_FAILED),
    (TaskState.FIXING, TaskEvent.SILENCE): (TaskState.FAILED, TaskReason.SILENT),
    (TaskState.FIXING, TaskEvent.STOP): (TaskState.QUEUED, TaskReason.STOPPED),
    (TaskState.REVIEWING, TaskEvent.APPROVE): (TaskState.APPROVED, TaskReason.APPROVED),
    (TaskState.REVIEWING, TaskEvent.TURN): (TaskState.QUEUED, TaskReason.TURN_WANTED),
    (TaskState.REVIEWING, TaskEvent.ROUND): (TaskState.REVIEWING, TaskReason.ROUND_WANTED),
    (TaskState.REVIEWING, TaskEvent.ESCALATE): (TaskState.ESCALATED, TaskReason.ESCALATED),
    (TaskState.REVIEWING, TaskEvent.WAIT): (TaskState.REVIEWING, TaskReason.STOPPED),
}
"""A task's own work. What is not listed does not move it: a late or doubled word of a turn or round
that it has left behind."""
