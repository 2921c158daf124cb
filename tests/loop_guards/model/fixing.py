"""The world of merges and fix tasks: all acts together, and what must hold in every state of it."""

from __future__ import annotations

from collections.abc import Iterator

from loop_guards import Acts, Bound, TaskState, bound
from tests.loop_guards.model.check import require
from tests.loop_guards.model.closing import closing_acts
from tests.loop_guards.model.field import MERGED, PENDING, Setting, State, canonical
from tests.loop_guards.model.graph import World
from tests.loop_guards.model.humans import human_acts
from tests.loop_guards.model.liveness import check_liveness
from tests.loop_guards.model.moves import Cost, Step
from tests.loop_guards.model.working import granted, working_acts


def fixing_world(setting: Setting) -> World[State]:
    """The world of one arrangement."""

    def acts(state: State) -> Iterator[Step]:
        yield from closing_acts(state, setting)
        yield from working_acts(state, setting)
        yield from human_acts(state, setting)

    def check(state: State) -> None:
        check_state(state, setting)
        check_liveness(state, setting)

    return World(
        name=setting.name,
        initial=setting.initial(),
        acts=acts,
        canonical=lambda state: canonical(state, setting),
        check=check,
    )


def check_state(state: State, setting: Setting) -> None:
    """Every invariant that one state can break."""
    held = 0
    covered = 0
    for task in state.tasks:
        if not task.state.is_live:
            continue
        require(not covered & task.findings, "one_live_task", str(task.findings))
        covered |= task.findings
        require(len(task.rounds) <= granted(setting, task), "allowance", "rounds")
        require(task.turns <= granted(setting, task), "allowance", "turns")
        if task.state not in (TaskState.WAITING, TaskState.ESCALATED):
            require(not held & task.paths, "one_task_per_file", f"paths {held & task.paths}")
            held |= task.paths
    _check_waiting(state, held)
    _check_findings(state, setting)


def _check_waiting(state: State, held: int) -> None:
    for task in state.tasks:
        if task.state is TaskState.WAITING:
            require(bool(held & task.paths), "lease_for_a_reason", f"paths {task.paths}")


def _check_findings(state: State, setting: Setting) -> None:
    for number, finding in enumerate(state.findings):
        require(finding.tasks <= 1 + finding.orders, "tasks_by_orders", f"finding {number}")
        pull = state.pulls[setting.kinds[number].pull]
        require(finding.tasks == 0 or pull.status == MERGED, "merge_first", f"finding {number}")
        if finding.order == PENDING and pull.planned:
            # The answer to it said so: it waits for a resume.
            lost = f"the order for finding {number} waits for nothing"
            require(finding.deferred, "order_ends_once", lost)


def bound_of(setting: Setting) -> Bound:
    """The bound for the human acts that the world allows."""
    resumes = sum(setting.allows(act) for act in ("resume", "resume_task", "reopen_fix"))
    return bound(
        setting.limits,
        Acts(merges=setting.pulls, orders=setting.allows("order"), resumes=resumes),
    )


def check_bound(most: Cost, allowed: Bound) -> None:
    """No path costs more than the bound, in any dimension."""
    pairs = (
        (most.tasks, allowed.fix_tasks),
        (most.source_rounds, allowed.source_rounds),
        (most.fix_rounds, allowed.fix_rounds),
        (most.turns, allowed.turns),
        (most.verify_runs, allowed.verify_runs),
    )
    require(all(cost <= limit for cost, limit in pairs), "bound", f"{most} over {allowed}")
