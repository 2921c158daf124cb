"""Pull requests close, merge and reopen; what was found is handed off. The ledger's part of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from loop_guards import (
    BATCH_MERGE,
    ClosePlan,
    HandoffDecision,
    HandoffFinding,
    HumanOrder,
    MergeFacts,
    Origin,
    PullState,
    Spent,
    TaskEvent,
    TaskPlan,
    TaskState,
    WaitingTask,
)
from tests.loop_guards.model import asked
from tests.loop_guards.model.check import require
from tests.loop_guards.model.field import (
    CLOSED,
    ENDED,
    MERGED,
    NO_ORDER,
    OPEN,
    PENDING,
    Finding,
    Pull,
    Setting,
    State,
    Task,
    bits,
)
from tests.loop_guards.model.moves import (
    NOTHING,
    TASK,
    Cost,
    Step,
    moved,
    replaced,
    woken,
)

PATHS = ("a.py", "b.py", "c.py", "d.py", "e.py", "f.py")
STATES = (PullState.OPEN, PullState.CLOSED, PullState.MERGED)
CLOSED_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
BEFORE, AFTER = CLOSED_AT - timedelta(hours=1), CLOSED_AT + timedelta(hours=1)


def closing_acts(state: State, setting: Setting) -> Iterator[Step]:
    """What can happen to source pull requests and to the deliveries that tell of it."""
    for place in range(len(state.pulls)):
        yield from pull_acts(state, setting, place)


def pull_acts(state: State, setting: Setting, place: int) -> Iterator[Step]:
    """What can happen to one of them."""
    pull = state.pulls[place]
    yield from _forge_acts(state, setting, place, pull)
    yield from _deliveries(state, setting, place, pull)


def _forge_acts(state: State, setting: Setting, place: int, pull: Pull) -> Iterator[Step]:
    if pull.status == OPEN and setting.may(state, "merge"):
        yield (
            "merge",
            place,
            _set(setting.used(state, "merge"), place, pull._replace(status=MERGED)),
            NOTHING,
        )
    if pull.status == OPEN and setting.may(state, "close"):
        closed = _set(setting.used(state, "close"), place, pull._replace(status=CLOSED))
        yield (
            "close",
            place,
            closed if pull.stale else _forget_newer(closed, setting, place),
            NOTHING,
        )
    if pull.status == CLOSED and setting.may(state, "reopen"):
        yield (
            "reopen",
            place,
            _set(setting.used(state, "reopen"), place, pull._replace(status=OPEN)),
            NOTHING,
        )


def _deliveries(state: State, setting: Setting, place: int, pull: Pull) -> Iterator[Step]:
    """Late, twice or never; a worker may have read the forge long before it stores."""
    if pull.status == MERGED:
        after, cost = planned(state, setting, place)
        yield "delivery_merged", place, after, cost
    if pull.status == CLOSED and not pull.stale and setting.may(state, "delivery_closed"):
        yield "delivery_closed", place, _set(state, place, pull._replace(stale=True)), NOTHING
    if pull.status == OPEN and setting.may(state, "delivery_closed"):
        yield "delivery_late", place, discarded(state, setting, place, still_closed=False), NOTHING
    if pull.stale:
        after = discarded(state, setting, place, still_closed=True)
        yield "close_stored", place, _set(after, place, pull._replace(stale=False)), NOTHING


def planned(state: State, setting: Setting, place: int) -> tuple[State, Cost]:
    """The automatic plan of a merge, stored once."""
    pull = state.pulls[place]
    if pull.planned:
        return state, NOTHING
    state = _set(state, place, pull._replace(planned=True))
    everything = _of_pull(setting, place)
    return handed_off(state, setting, place, everything, BATCH_MERGE)


def handed_off(
    state: State, setting: Setting, place: int, about: int, batch: str
) -> tuple[State, Cost]:
    """Ask the guards about these findings, and store all that they answer."""
    merge = _merge_facts(state, setting, place)
    facts = tuple(_facts(state, setting, number) for number in bits(about))
    plan = asked.plan_merged(facts, merge, setting.limits, batch=batch)
    require(not plan.tasks or state.pulls[place].status == MERGED, "merge_first", str(plan.tasks))
    state = _answers(state, plan)
    cost = NOTHING
    made: set[int | None] = set()
    for task in plan.tasks:
        own = {setting.kinds[number].path for number in task.finding_ids}
        require(not made & own, "one_task_per_file", f"two tasks of {batch} in one file")
        made |= own
        state, new = _created(state, setting, place, task, batch)
        cost = cost.plus(TASK) if new else cost
    state = _resumed(state, setting, plan)
    return woken(state, setting), cost


def discarded(state: State, setting: Setting, place: int, *, still_closed: bool) -> State:
    """The end without a merge, as a worker saw it: the orders of then are discarded."""
    numbers = [
        number
        for number in bits(_of_pull(setting, place))
        if state.findings[number].order == PENDING
    ]
    orders = tuple(_order(state.findings[number], number) for number in numbers)
    plan = asked.plan_unmerged(orders, closed_at=CLOSED_AT, still_closed=still_closed)
    require(not plan.tasks, "merge_first", "an end without a merge made a task")
    findings = list(state.findings)
    for number, order in zip(numbers, orders, strict=True):
        if order.id in plan.discarded:
            require(still_closed, "newer_order_kept", "the pull request is open again")
            require(order.at < CLOSED_AT, "newer_order_kept", f"order for finding {number}")
            findings[number] = findings[number]._replace(order=ENDED, newer=False)
        elif still_closed:
            require(order.at >= CLOSED_AT, "order_ends_once", f"order for finding {number} kept")
            findings[number] = findings[number]._replace(newer=False)
    return state._replace(findings=tuple(findings))


def covered_by(state: State, number: int) -> TaskState | None:
    """The state of the latest task that covered a finding."""
    for task in state.tasks:
        if task.findings >> number & 1 and task.state.is_live:
            return task.state
    ended = state.findings[number].covered
    return TaskState(ended) if ended else None


def _facts(state: State, setting: Setting, number: int) -> HandoffFinding:
    kind, finding = setting.kinds[number], state.findings[number]
    also = tuple(PATHS[path] for path in bits(kind.also))
    of_paths = kind.also | (0 if kind.path is None else 1 << kind.path)
    return HandoffFinding(
        id=number,
        path=None if kind.path is None else PATHS[kind.path],
        severity=kind.severity,
        origin=kind.origin,
        status=finding.status,
        also=also,
        covered_by=covered_by(state, number),
        order=None if finding.order == NO_ORDER else _order(finding, number),
        first_seen_after_merge=kind.origin is Origin.POST_MERGE,
        acknowledged=kind.acknowledged,
        path_tasks=max((state.path_tasks[path] for path in bits(of_paths)), default=0),
        target=kind.target,
    )


def _order(finding: Finding, number: int) -> HumanOrder:
    return HumanOrder(
        id=order_id(finding, number),
        at=AFTER if finding.newer else BEFORE,
        ended=finding.order == ENDED,
    )


def order_id(finding: Finding, number: int) -> int:
    """The id of a finding's latest order."""
    return 100 * (number + 1) + finding.orders


def _merge_facts(state: State, setting: Setting, place: int) -> MergeFacts:
    pull = state.pulls[place]
    held = 0
    for task in state.tasks:
        held |= task.paths if task.state.holds_lease else 0
    return MergeFacts(
        now=AFTER,
        repository=1,
        merge_commit=f"merge{place}",
        base=setting.base,
        default_branch="main",
        mode=setting.mode,
        author_is_bot=place in setting.bots,
        is_fix_pr=False,
        merged=pull.status == MERGED,
        stopped=pull.stopped,
        kill_switch=state.kill_switch,
        minimum_severity=setting.minimum_severity,
        targets=setting.targets,
        tasks_of_merge=pull.autos,
        budget_spent=setting.budgeted
        and Spent(input_tokens=state.spent).exceeds(setting.limits, pull.resumes),
        leased_paths=frozenset(PATHS[path] for path in bits(held)),
        waiting_tasks=tuple(
            WaitingTask(number, "", tuple(PATHS[path] for path in bits(task.paths)))
            for number, task in enumerate(state.tasks)
            # One that proposed something already has its findings for good.
            if task.state is TaskState.WAITING and not task.has_pull
        ),
    )


def _answers(state: State, plan: ClosePlan) -> State:
    """What each finding was told; orders that can't be carried out end."""
    findings = list(state.findings)
    refused = {item.order_id for item in plan.refused}
    for decision in plan.decisions:
        assert isinstance(decision, HandoffDecision)
        number = decision.finding_id
        finding = findings[number]._replace(deferred=decision.asks_again)
        if finding.order == PENDING and order_id(finding, number) in refused:
            finding = finding._replace(order=ENDED, newer=False)
        findings[number] = finding
    return state._replace(findings=tuple(findings))


def _created(
    state: State, setting: Setting, place: int, plan: TaskPlan, batch: str
) -> tuple[State, bool]:
    """Store a task once per key, or let its findings join the one that waits."""
    if plan.joins is not None:
        waiting = state.tasks[plan.joins]
        mask, ordered, paths = _masks(plan)
        joined = waiting._replace(
            findings=waiting.findings | mask,
            ordered=waiting.ordered | ordered,
            paths=waiting.paths | paths,
        )
        return _cover(replaced(state, plan.joins, joined), setting, plan, batch), False
    if not setting.symmetries:
        if plan.key in state.keys:
            return state, False
        state = state._replace(keys=state.keys | {plan.key})
    mask, ordered, paths = _masks(plan)
    held = any(task.paths & paths for task in state.tasks if task.state.holds_lease)
    waits = plan.waiting or held
    task = Task(
        pull=place,
        state=TaskState.WAITING if waits else TaskState.QUEUED,
        findings=mask,
        ordered=ordered,
        paths=paths,
    )
    state = state._replace(tasks=(*state.tasks, task))
    if not ordered:
        pull = state.pulls[place]
        state = _set(state, place, pull._replace(autos=pull.autos + 1))
        cap = setting.limits.path_tasks
        counts = list(state.path_tasks)
        for path in bits(paths):
            counts[path] = min(cap, counts[path] + 1)
        state = state._replace(path_tasks=tuple(counts))
    return _cover(state, setting, plan, batch), True


def _masks(plan: TaskPlan) -> tuple[int, int, int]:
    findings = sum(1 << number for number in plan.finding_ids)
    ordered = sum(1 << number for number in plan.ordered_ids)
    return findings, ordered, sum(1 << PATHS.index(path) for path in plan.paths)


def _cover(state: State, setting: Setting, plan: TaskPlan, batch: str) -> State:
    findings = list(state.findings)
    for number in plan.finding_ids:
        finding, kind = findings[number], setting.kinds[number]
        by_order = number in plan.ordered_ids
        if by_order:
            require(finding.order == PENDING, "order_ends_once", f"order {number} used again")
        foreign = kind.origin is not Origin.ORIGINAL or kind.pull in setting.bots
        require(by_order or not foreign, "human_order_needed", f"{kind} in batch {batch}")
        autos = finding.autos + (not by_order)
        require(autos <= 1, "one_automatic_task", f"finding {number}")
        findings[number] = finding._replace(
            order=ENDED if by_order else finding.order,
            newer=False,
            covered="",
            autos=autos,
            tasks=finding.tasks + 1,
            deferred=False,
        )
    return state._replace(findings=tuple(findings))


def _resumed(state: State, setting: Setting, plan: ClosePlan) -> State:
    """Orders for findings of an escalated task resume it, once."""
    findings = list(state.findings)
    for number in plan.resumed:
        require(findings[number].order == PENDING, "order_ends_once", f"order {number} used again")
        findings[number] = findings[number]._replace(order=ENDED, newer=False, deferred=False)
    state = state._replace(findings=tuple(findings))
    for place, task in enumerate(state.tasks):
        if task.state is TaskState.ESCALATED and any(
            task.findings >> number & 1 for number in plan.resumed
        ):
            state = moved(state, setting, place, TaskEvent.RESUME)
    return state


def _of_pull(setting: Setting, place: int) -> int:
    return sum(1 << number for number, kind in enumerate(setting.kinds) if kind.pull == place)


def _set(state: State, place: int, pull: Pull) -> State:
    pulls = list(state.pulls)
    pulls[place] = pull
    return state._replace(pulls=tuple(pulls))


def _forget_newer(state: State, setting: Setting, place: int) -> State:
    findings = list(state.findings)
    for number in bits(_of_pull(setting, place)):
        findings[number] = findings[number]._replace(newer=False)
    return state._replace(findings=tuple(findings))
