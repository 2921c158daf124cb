"""No dead-lock: once a fixer fixes and a reviewer is fair, a task is approved within its allowance.

Asked of every state that an explorer reached: whatever happened before, from here on the fixer
fixes all it is given, the reviewer says so and raises no new critical, and nobody else acts. Then
each live task that may still run must be approved without another act of a human, and each waiting
one must get its turn when those before it are merged.
"""

from __future__ import annotations

from loop_guards import TaskState
from tests.loop_guards.model.check import require
from tests.loop_guards.model.field import PULL_OPEN, Setting, State, Task, bits
from tests.loop_guards.model.humans import merged_fix
from tests.loop_guards.model.moves import left_to_fix, reach
from tests.loop_guards.model.working import (
    Look,
    Push,
    base_merged_in,
    granted,
    pushed,
    reported,
    round_begun,
    turn_begun,
)

_STEPS = 12
"""More steps than a task of these worlds can need."""


def check_liveness(state: State, setting: Setting) -> None:
    """Raise Violated("no_deadlock") if a fair fixer and reviewer don't end in approval."""
    for place, task in enumerate(state.tasks):
        if _can_converge(state, setting, task):
            end = converged(state, setting, place)
            said = "over or escalated" if end is None else end.state
            fair = end is not None and end.state in (TaskState.APPROVED, TaskState.OBSOLETE)
            require(fair, "no_deadlock", f"{task} ends as {said}")


def _can_converge(state: State, setting: Setting, task: Task) -> bool:
    """Whether the task may begin a turn and a round, or needs no more than one fair look."""
    pull = state.pulls[task.pull]
    if pull.stopped or state.kill_switch or setting.budgeted or task.running:
        return False
    rounds_left = len(task.rounds) < granted(setting, task)
    if task.state is TaskState.QUEUED:
        return (
            rounds_left
            and task.turns < granted(setting, task)
            and left_to_fix(state, setting, task)
        )
    if task.state is TaskState.REVIEWING and task.has_pull == PULL_OPEN:
        fresh = not task.rounds or task.rounds[-1].head != task.head
        return rounds_left and fresh and not task.known and _looks_fixed(state, setting, task)
    return False


def _looks_fixed(state: State, setting: Setting, task: Task) -> bool:
    """Whether a fair reviewer has evidence for every open finding."""
    paths = 0
    for number in bits(task.findings & ~task.fixed):
        kind = setting.kinds[number]
        paths |= kind.also | (0 if kind.path is None else 1 << kind.path)
    if any(not item.fixed for item in task.introduced):
        paths |= task.paths & -task.paths
    return paths & ~task.changed == 0


def converged(state: State, setting: Setting, place: int) -> Task | None:
    """The task of this place after fair turns and rounds; None if it is over or escalated."""
    watched = state.tasks[place].paths
    for _ in range(_STEPS):
        place = _holder(state, watched)
        if place < 0:
            return None
        after = _fair_step(state, setting, place)
        if after == state:
            break
        state = after
    return state.tasks[place]


def _holder(state: State, paths: int) -> int:
    """The task that holds these paths, -1 if none does."""
    for place, task in enumerate(state.tasks):
        if task.state.holds_lease and task.paths == paths:
            return place
    return -1


def fair_look(setting: Setting, task: Task) -> Look:
    """A reviewer that believes the fixer: everything is fixed, nothing new."""
    count = len(setting.kinds)
    everything = task.findings | ((1 << len(task.introduced)) - 1) << count
    return Look(fixed=everything, cites=True)


def all_merged(state: State, setting: Setting) -> State:
    """Every task runs its fair course and is merged, and so are those that waited for it."""
    for _ in range(_STEPS * len(setting.kinds)):
        live = [place for place, task in enumerate(state.tasks) if task.state.is_live]
        if not live:
            return state
        approved = next((n for n in live if state.tasks[n].state is TaskState.APPROVED), None)
        if approved is not None:
            state = merged_fix(state, setting, approved)
            # The forge wants the siblings up to date with the base: that costs them nothing.
            for sibling in state.tasks:
                if sibling.has_pull == PULL_OPEN:
                    state = base_merged_in(state, sibling)
            continue
        for place in live:
            state = _fair_step(state, setting, place)
    return state


def _fair_step(state: State, setting: Setting, place: int) -> State:
    task = state.tasks[place]
    if task.state is TaskState.QUEUED:
        return turn_begun(state, setting, place)[0]
    if task.state is TaskState.FIXING:
        return pushed(state, setting, place, Push("fixes_all", reach(setting, task)))
    if task.running:
        return reported(state, setting, place, fair_look(setting, task))
    if task.state is TaskState.REVIEWING and task.has_pull == PULL_OPEN:
        return round_begun(state, setting, place)[0]
    return state
