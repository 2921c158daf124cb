"""What people and foreign machines do to findings, tasks and fix pull requests. DESIGN §3.9."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loop_guards import (
    ActorFacts,
    DismissalDecision,
    DismissalFacts,
    FindingStatus,
    OrderDecision,
    OrderFacts,
    OrderOutcome,
    ResumeFacts,
    Severity,
    StopFacts,
    TaskEvent,
    TaskState,
    UnqueueDecision,
    UnqueueFacts,
    UnqueueOutcome,
)
from tests.loop_guards.model import asked
from tests.loop_guards.model.check import require
from tests.loop_guards.model.closing import (
    STATES,
    covered_by,
    handed_off,
    order_id,
)
from tests.loop_guards.model.field import (
    ENDED,
    PENDING,
    PULL_CLOSED,
    PULL_OPEN,
    Setting,
    State,
    Task,
)
from tests.loop_guards.model.moves import (
    NOTHING,
    Cost,
    Step,
    left_to_fix,
    moved,
    new_head,
    replaced,
)
from tests.loop_guards.model.working import asked_again

HUMAN_ACTS = (
    "order",
    "unqueue",
    "dismiss",
    "stop",
    "resume",
    "resume_task",
    "merge_fix",
    "close_fix",
    "reopen_fix",
    "push_fix",
)
"""The kinds of human override that worlds combine."""


def human_acts(state: State, setting: Setting) -> Iterator[Step]:
    """Everything a person, or a foreign machine in their place, can do at any time."""
    for number in range(len(state.findings)):
        yield from finding_acts(state, setting, number)
    for place in range(len(state.pulls)):
        yield from lineage_acts(state, setting, place)
    for place, task in enumerate(state.tasks):
        yield from task_acts(state, setting, place, task)
    yield from world_acts(state, setting)


def world_acts(state: State, setting: Setting) -> Iterator[Step]:
    """The operator's switch, and what machines and strangers try."""
    if setting.may(state, "kill_switch"):
        used = setting.used(state, "kill_switch")
        yield "kill_switch", None, used._replace(kill_switch=not state.kill_switch), NOTHING
    yield from _machines_try(state, setting)


def finding_acts(state: State, setting: Setting, number: int) -> Iterator[Step]:
    """What people can do to one finding."""
    if setting.may(state, "order"):
        yield "order", number, *ordered(setting.used(state, "order"), setting, number)
    if setting.may(state, "unqueue"):
        yield "unqueue", number, _unqueued(setting.used(state, "unqueue"), setting, number), NOTHING
    if setting.may(state, "dismiss"):
        yield (
            "dismiss",
            number,
            _dismissed(setting.used(state, "dismiss"), setting, number),
            NOTHING,
        )
    status = state.findings[number].status
    if status is FindingStatus.OPEN and setting.may(state, "base_loses"):
        used = setting.used(state, "base_loses")
        yield "base_loses", number, _status(used, number, FindingStatus.GONE), NOTHING


def lineage_acts(state: State, setting: Setting, place: int) -> Iterator[Step]:
    """What people can do to one lineage."""
    if setting.may(state, "stop"):
        yield "stop", place, _stopped(setting.used(state, "stop"), setting, place), NOTHING
    if setting.may(state, "resume"):
        yield "resume", place, *resumed(setting.used(state, "resume"), setting, place)


def task_acts(state: State, setting: Setting, place: int, task: Task) -> Iterator[Step]:
    """What people and foreign machines can do to one task and its fix pull request."""
    if task.state is TaskState.ESCALATED and setting.may(state, "resume_task"):
        used = setting.used(state, "resume_task")
        yield "resume_task", place, *resumed(used, setting, task.pull, task=task)
        yield "resume_again", place, _resumed_again(state, setting, task), NOTHING
    if task.has_pull == PULL_OPEN:
        yield from _ends_of_fix(state, setting, place, task)
    if task.has_pull == PULL_CLOSED:
        for act, event in (
            ("reopen_fix", TaskEvent.PULL_REOPENED_BY_HUMAN),
            ("machine_reopens_fix", TaskEvent.PULL_REOPENED_BY_MACHINE),
        ):
            if setting.may(state, act):
                opened = task._replace(has_pull=PULL_OPEN)
                after = replaced(setting.used(state, act), place, opened)
                yield (
                    act,
                    place,
                    _gone_if_over(moved(after, setting, place, event), place, opened),
                    NOTHING,
                )


def _ends_of_fix(state: State, setting: Setting, place: int, task: Task) -> Iterator[Step]:
    for act, event in (
        ("merge_fix", TaskEvent.PULL_MERGED),
        ("close_fix", TaskEvent.PULL_CLOSED_BY_HUMAN),
        ("machine_closes_fix", TaskEvent.PULL_CLOSED_BY_MACHINE),
    ):
        # What stands approved can always be merged: that is what it waits for.
        if setting.may(state, act) or (act == "merge_fix" and task.state is TaskState.APPROVED):
            used = setting.used(state, act) if setting.may(state, act) else state
            closed = replaced(used, place, task._replace(has_pull=PULL_CLOSED))
            yield act, place, moved(closed, setting, place, event), NOTHING
    if setting.may(state, "push_fix"):
        pushed = new_head(task, task.paths)
        yield "push_fix", place, replaced(setting.used(state, "push_fix"), place, pushed), NOTHING


def merged_fix(state: State, setting: Setting, place: int) -> State:
    """A human merges the fix pull request."""
    closed = replaced(state, place, state.tasks[place]._replace(has_pull=PULL_CLOSED))
    return moved(closed, setting, place, TaskEvent.PULL_MERGED)


def _gone_if_over(state: State, place: int, task: Task) -> State:
    """A reopened pull request whose task stays over is nobody's business any more."""
    over = place < len(state.tasks) and state.tasks[place] == task and not task.state.is_live
    if not over:
        return state
    return state._replace(tasks=state.tasks[:place] + state.tasks[place + 1 :])


def ordered(state: State, setting: Setting, number: int) -> tuple[State, Cost]:
    """A human orders a fix; the answer is carried out at once."""
    finding, kind = state.findings[number], setting.kinds[number]
    decision = asked.answer_order(_order_facts(state, setting, number))
    if not decision.accepted:
        return state, NOTHING
    finding = finding._replace(
        status=FindingStatus.OPEN,
        order=PENDING,
        newer=state.pulls[kind.pull].stale,
        orders=finding.orders + 1,
        deferred=decision.outcome == OrderOutcome.PENDING,
    )
    findings = list(state.findings)
    findings[number] = finding
    state = state._replace(findings=tuple(findings))
    if decision.outcome in (OrderOutcome.TASK, OrderOutcome.RESUME):
        # All that was ever ordered is asked about: an order that has ended asks for nothing.
        about = sum(
            1 << other
            for other, item in enumerate(state.findings)
            if item.orders and setting.kinds[other].pull == kind.pull
        )
        return handed_off(state, setting, kind.pull, about, str(order_id(finding, number)))
    return state, NOTHING


def _order_facts(state: State, setting: Setting, number: int) -> OrderFacts:
    finding, pull = state.findings[number], state.pulls[setting.kinds[number].pull]
    return OrderFacts(
        by_human=True,
        can_write=True,
        pull_request=STATES[pull.status],
        status=finding.status,
        covered_by=covered_by(state, number),
        already_pending=finding.order == PENDING,
        stopped=pull.stopped,
        kill_switch=state.kill_switch,
    )


def _task_of(state: State, number: int) -> int | None:
    for place, task in enumerate(state.tasks):
        if task.state.is_live and task.findings >> number & 1:
            return place
    return None


def _last(state: State, setting: Setting, number: int) -> bool:
    """Whether the task of this finding would have nothing left to fix without it."""
    place = _task_of(state, number)
    if place is None:
        return False
    task = state.tasks[place]
    return not left_to_fix(state, setting, _without(task, number))


def _without(task: Task, number: int) -> Task:
    keep = ~(1 << number)
    return task._replace(
        findings=task.findings & keep,
        ordered=task.ordered & keep,
        fixed=task.fixed & keep,
        broken=task.broken & keep,
        flips=task.flips & keep,
        upgraded=task.upgraded & keep,
    )


def _unqueued(state: State, setting: Setting, number: int) -> State:
    finding = state.findings[number]
    facts = UnqueueFacts(
        True,
        True,
        finding.order == PENDING,
        covered_by(state, number),
        _last(state, setting, number),
    )
    decision = asked.answer_unqueue(facts)
    if decision.outcome == UnqueueOutcome.REMOVED:
        return _order_ended(state, number)
    if decision.accepted:
        return _released(state, setting, number, empty=decision.outcome == UnqueueOutcome.EMPTIED)
    return state


def _order_ended(state: State, number: int) -> State:
    findings = list(state.findings)
    require(findings[number].order == PENDING, "order_ends_once", f"finding {number}")
    findings[number] = findings[number]._replace(order=ENDED, newer=False)
    return state._replace(findings=tuple(findings))


def _released(state: State, setting: Setting, number: int, *, empty: bool) -> State:
    """The finding leaves its task; a task that has nothing left is told so."""
    place = _task_of(state, number)
    if place is None:
        return state
    findings = list(state.findings)
    findings[number] = findings[number]._replace(covered=str(TaskState.WITHDRAWN))
    state = replaced(state, place, _without(state.tasks[place], number))
    state = state._replace(findings=tuple(findings))
    return moved(state, setting, place, TaskEvent.EMPTIED_BY_HUMAN) if empty else state


def _dismissed(state: State, setting: Setting, number: int) -> State:
    finding, kind = state.findings[number], setting.kinds[number]
    decision = asked.answer_dismissal(
        DismissalFacts(
            by_human=True,
            can_write=True,
            status=finding.status,
            severity=kind.severity,
            order_pending=finding.order == PENDING,
            last_of_task=_last(state, setting, number),
        )
    )
    if not decision.accepted:
        return state
    if decision.withdraws_order:
        state = _order_ended(state, number)
    state = _status(state, number, FindingStatus.DISMISSED)
    return _released(state, setting, number, empty=decision.empties_task)


def _status(state: State, number: int, status: FindingStatus) -> State:
    findings = list(state.findings)
    findings[number] = findings[number]._replace(status=status)
    return state._replace(findings=tuple(findings))


def _stopped(state: State, setting: Setting, place: int) -> State:
    decision = asked.answer_stop(StopFacts(True, True, state.pulls[place].stopped))
    if not decision.accepted:
        return state
    pulls = list(state.pulls)
    pulls[place] = pulls[place]._replace(stopped=True)
    state = state._replace(pulls=tuple(pulls))
    for number, task in enumerate(state.tasks):
        if task.pull == place:
            state = replaced(state, number, state.tasks[number]._replace(reserved=0))
            state = moved(state, setting, number, TaskEvent.STOP)
    return state


def resumed(
    state: State, setting: Setting, place: int, *, task: Task | None = None
) -> tuple[State, Cost]:
    """A human resumes a lineage, or one escalated task of it; deferred findings are asked again."""
    pull = state.pulls[place]
    decision = asked.answer_resume(
        ResumeFacts(
            by_human=True,
            can_write=True,
            stopped=pull.stopped,
            kill_switch=state.kill_switch,
            task=None if task is None else task.state,
            anything_deferred=bool(_deferred(state, setting, place)),
        ),
        setting.limits,
    )
    if not decision.accepted:
        return state, NOTHING
    pulls = list(state.pulls)
    pulls[place] = pull._replace(stopped=pull.stopped and not decision.lifts_stop)
    state = state._replace(pulls=tuple(pulls))
    if decision.rounds and task is not None:
        state = moved(state, setting, state.tasks.index(task), TaskEvent.RESUME)
    if decision.lifts_stop:
        for number in range(len(state.tasks)):
            if number < len(state.tasks) and state.tasks[number].pull == place:
                state = asked_again(state, setting, number)
    deferred = _deferred(state, setting, place)
    return handed_off(
        state, setting, place, deferred, f"resume:{setting.allows('resume')}:{state.left}"
    )


def _deferred(state: State, setting: Setting, place: int) -> int:
    """Findings of a lineage that were deferred, or whose order waits."""
    return sum(
        1 << number
        for number, item in enumerate(state.findings)
        if setting.kinds[number].pull == place and (item.deferred or item.order == PENDING)
    )


def _resumed_again(state: State, setting: Setting, task: Task) -> State:
    """An escalation that was resumed before opens nothing a second time."""
    facts = ResumeFacts(True, True, False, task=task.state, is_current=False)
    decision = asked.answer_resume(facts, setting.limits)
    require(not decision.rounds, "allowance", "one escalation was resumed twice")
    return state


_PERSON = ActorFacts(is_user=True)
_MACHINES = (
    ActorFacts(is_user=False),
    ActorFacts(is_user=True, machine_account=True),
    ActorFacts(is_user=True, through_app=True),
    ActorFacts(is_user=True, posted_by_us=True),
)
"""Every disguise of a machine."""


def _machines_try(state: State, setting: Setting) -> Iterator[Step]:
    """Whatever a person with write access may say, a machine or a stranger says too: nothing comes
    of it, and nobody waives their own critical behind a gate."""
    if not setting.may(state, "bots_command"):
        return
    nobodies = [(asked.judge_actor(facts).is_human, True) for facts in _MACHINES]
    nobodies.append((asked.judge_actor(_PERSON).is_human, False))
    for human, can_write in dict.fromkeys(nobodies):
        for number in range(len(state.findings)):
            answers = _finding_answers(state, setting, number, human=human, can_write=can_write)
            refused = not any(item.accepted for item in answers)
            require(refused, "machines_command_nothing", f"finding {number}")
        for pull in state.pulls:
            stop = asked.answer_stop(StopFacts(human, can_write, pull.stopped))
            resume = asked.answer_resume(
                ResumeFacts(human, can_write, pull.stopped), setting.limits
            )
            refused = not (stop.accepted or resume.accepted)
            require(refused, "machines_command_nothing", "a lineage")
    own = DismissalFacts(True, True, FindingStatus.OPEN, Severity.CRITICAL, True, True)
    require(not asked.answer_dismissal(own).accepted, "machines_command_nothing", "own critical")
    yield "bots_command", None, state, NOTHING


def _finding_answers(
    state: State, setting: Setting, number: int, *, human: bool, can_write: bool
) -> tuple[OrderDecision | UnqueueDecision | DismissalDecision, ...]:
    finding, kind = state.findings[number], setting.kinds[number]
    pending = finding.order == PENDING
    order = replace(_order_facts(state, setting, number), by_human=human, can_write=can_write)
    covered = covered_by(state, number)
    return (
        asked.answer_order(order),
        asked.answer_unqueue(UnqueueFacts(human, can_write, pending, covered)),
        asked.answer_dismissal(
            DismissalFacts(human, can_write, finding.status, kind.severity, order_pending=pending)
        ),
    )
