"""Steps, their costs, and the one way in which a modelled task changes its state."""

from __future__ import annotations

from typing import Any, NamedTuple

from loop_guards import FindingStatus, Severity, TaskEvent, TaskFacts, TaskState
from tests.loop_guards.model import asked
from tests.loop_guards.model.check import require
from tests.loop_guards.model.field import (
    NO_PULL,
    PULL_CLOSED,
    Setting,
    State,
    Task,
    bits,
)


class Cost(NamedTuple):
    """What a step spends of what is bounded."""

    tasks: int = 0
    source_rounds: int = 0
    fix_rounds: int = 0
    turns: int = 0
    verify_runs: int = 0

    def plus(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Cost()
TASK = Cost(tasks=1)
SOURCE_ROUND = Cost(source_rounds=1)
FIX_ROUND = Cost(fix_rounds=1)
TURN = Cost(turns=1)
VERIFY = Cost(verify_runs=1)

Step = tuple[str, Any, Any, Cost]
"""An act, what it is about, the state after it, and what it costs."""


def replaced(state: State, place: int, task: Task) -> State:
    """The state with another task in this place."""
    tasks = list(state.tasks)
    tasks[place] = task
    return state._replace(tasks=tuple(tasks))


def new_head(task: Task, paths: int) -> Task:
    """The task after somebody pushed a change of these paths to its branch."""
    changed, proposed = task.changed | paths, task.proposed | paths
    return task._replace(head=task.head + 1, changed=changed, proposed=proposed)


def reach(setting: Setting, task: Task) -> int:
    """The paths that a fix of the task changes: any, where its findings name no file."""
    return task.paths or (1 << setting.paths) - 1


def blocking_kind(setting: Setting, task: Task, number: int) -> bool:
    """Whether a finding of the task may block, by the words of DESIGN §3.3 and nothing else."""
    count = len(setting.kinds)
    if number >= count:
        return task.introduced[number - count].severity is Severity.CRITICAL
    if not task.findings >> number & 1:
        return False
    severe = setting.kinds[number].severity is not Severity.SUGGESTION
    return severe or bool((task.ordered | task.upgraded) >> number & 1)


def left_to_fix(state: State, setting: Setting, task: Task) -> bool:
    """Whether a turn of this task would have anything to do."""
    count = len(setting.kinds)
    for number in bits(task.findings & ~task.fixed):
        if state.findings[number].status is FindingStatus.OPEN and blocking_kind(
            setting, task, number
        ):
            return True
    return any(
        not item.fixed and blocking_kind(setting, task, count + place)
        for place, item in enumerate(task.introduced)
    )


def moved(state: State, setting: Setting, place: int, event: TaskEvent) -> State:
    """The task after an event, with whoever got its paths by it."""
    task = state.tasks[place]
    free = not any(
        other.paths & task.paths
        for number, other in enumerate(state.tasks)
        if number != place and other.state.holds_lease
    )
    decision = asked.move_task(
        TaskFacts(
            state=task.state,
            has_fix_pr=task.has_pull != NO_PULL,
            paths_free=free,
            anything_blocks=left_to_fix(state, setting, task),
            superseded=any(
                other.findings & task.findings
                for number, other in enumerate(state.tasks)
                if number != place and other.state.is_live
            ),
        ),
        event,
    )
    if decision.state is task.state and not decision.counts_as_resume:
        return state
    task = task._replace(state=decision.state)
    if decision.counts_as_resume:
        require(event in _GIVES_ROUNDS, "allowance", f"{event} gave rounds")
        pull = state.pulls[task.pull]
        pulls = list(state.pulls)
        pulls[task.pull] = pull._replace(resumes=pull.resumes + 1 if setting.budgeted else 0)
        state = state._replace(pulls=tuple(pulls))
        # A resume clears stall and bounce memory (DESIGN §3.4).
        task = task._replace(resumes=task.resumes + 1, flips=0, broken=0, known=False)
    state = replaced(state, place, task)
    if not task.state.is_live:
        state = _ended(state, setting, place, task)
    return woken(state, setting) if decision.frees_lease else state


_GIVES_ROUNDS = (TaskEvent.RESUME, TaskEvent.PULL_REOPENED_BY_HUMAN)


def _ended(state: State, setting: Setting, place: int, task: Task) -> State:
    """Its findings remember how it ended. Only a closed task can come back."""
    findings = list(state.findings)
    for number in bits(task.findings):
        finding = findings[number]
        if task.state is TaskState.MERGED and task.fixed >> number & 1:
            finding = finding._replace(status=FindingStatus.FIXED)
        findings[number] = finding._replace(covered=str(task.state))
    state = state._replace(findings=tuple(findings))
    if (
        task.state is TaskState.CLOSED
        and task.has_pull == PULL_CLOSED
        and setting.may(state, "reopen_fix")
    ):
        return replaced(state, place, task._replace(running=False, reserved=0))
    return state._replace(tasks=state.tasks[:place] + state.tasks[place + 1 :])


def woken(state: State, setting: Setting) -> State:
    """Every waiting task whose paths nobody holds gets them, oldest first."""
    for place, task in enumerate(state.tasks):
        if task.state is TaskState.WAITING:
            state = moved(state, setting, place, TaskEvent.LEASE_FREE)
    return state
