"""Everything at once at cap 5: one random step at a time, for long runs and the state machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from loop_guards import Acts, Limits, Origin, Severity, bound
from tests.loop_guards.model.check import Violated
from tests.loop_guards.model.closing import pull_acts
from tests.loop_guards.model.field import MERGED, Kind, Setting, State, canonical
from tests.loop_guards.model.fixing import check_bound, check_state
from tests.loop_guards.model.humans import (
    HUMAN_ACTS,
    finding_acts,
    lineage_acts,
    task_acts,
    world_acts,
)
from tests.loop_guards.model.liveness import check_liveness
from tests.loop_guards.model.moves import NOTHING, Cost, Step
from tests.loop_guards.model.working import a_look, task_works
from tests.loop_guards.model.worlds import arrangement

T = TypeVar("T")
Choose = Callable[[Sequence[T]], T]

EVERYTHING: Setting = arrangement(
    "everything",
    (
        Kind(0, 0, Severity.CRITICAL, target="purple"),
        Kind(0, 0),
        Kind(0, 1, also=0b100, target="red"),
        Kind(1, 0),
        Kind(1, 2, Severity.SUGGESTION),
        Kind(1, 1, origin=Origin.VERIFY),
        Kind(2, 2),
        Kind(2, 0, origin=Origin.POST_MERGE),
    ),
    Limits(max_fix_tasks=2, path_tasks=2),
    free=("bots_command", "verify", "short", "upgrades", "delivery_closed"),
    allowed=(
        *((act, 3) for act in HUMAN_ACTS),
        ("machine_closes_fix", 1),
        ("machine_reopens_fix", 1),
        ("kill_switch", 2),
        ("command", 2),
        ("superseded", 3),
        ("unavailable", 1),
        ("base_loses", 2),
        ("close", 2),
        ("reopen", 2),
    ),
    bots=frozenset({2}),
    max_introduced=2,
)
"""Three pull requests, one of a bot, eight findings in three files, two targets, every act."""

STEPS = 90
"""Steps of a random run: enough for three merges, their tasks and several rounds of each."""


def a_step(state: State, setting: Setting, choose: Choose[int]) -> Step:
    """One step: somebody is chosen first, then one of the things that they can do."""
    while True:
        steps = _steps_of(state, setting, choose)
        if steps:
            return steps[choose(range(len(steps)))]


def _steps_of(state: State, setting: Setting, choose: Choose[int]) -> list[Step]:
    pulls, findings, tasks = len(state.pulls), len(state.findings), len(state.tasks)
    # Tasks come up more often than people: else most runs would end before a second round.
    who = choose(range(pulls + 1 + findings + pulls + 8 * tasks))
    if who < pulls:
        return list(pull_acts(state, setting, who))
    who -= pulls
    if who == 0:
        return list(world_acts(state, setting))
    who -= 1
    if who < findings:
        return list(finding_acts(state, setting, who))
    who -= findings
    if who < pulls:
        return list(lineage_acts(state, setting, who))
    who -= pulls
    place, part = who // 8, who % 8
    task = state.tasks[place]
    if part == 0:
        return list(task_acts(state, setting, place, task))
    if task.running and part < 7:
        return [a_look(state, setting, place, choose)]
    works = list(task_works(state, setting, place, task, ends=False))
    # Most targets do something: else hardly a task would see its second round.
    alive = [step for step in works if step[0] not in _ENDS_A_TASK]
    return alive if alive and choose(range(8)) else works


_ENDS_A_TASK = ("silence", "turn_fails", "pushes_nothing", "unavailable")


def random_run(setting: Setting, seed: int, steps: int = STEPS) -> Cost:
    """One run; what it cost. Raises Violated with the acts that led there."""
    random = Random(seed)  # noqa: S311 - a reproducible schedule, no secret
    state, spent, acts = setting.initial(), NOTHING, []
    if seed % 2:
        # Half of the runs begin after the merges, so that they get further.
        pulls = tuple(pull._replace(status=MERGED) for pull in state.pulls)
        state = state._replace(pulls=pulls)

    def choose(among: Sequence[int]) -> int:
        return among[random.randrange(len(among))]

    try:
        for _ in range(steps):
            act, about, after, cost = a_step(state, setting, choose)
            acts.append(f"{act} {about}")
            state, spent = canonical(after, setting), spent.plus(cost)
            check_state(state, setting)
        check_liveness(state, setting)
        check_bound(spent, bound(setting.limits, acts_so_far(state, setting)))
    except Violated as error:
        error.trace = (f"seed {seed}", *acts)
        raise
    return spent


def acts_so_far(state: State, setting: Setting) -> Acts:
    """What people did until now."""

    def done(*names: str) -> int:
        places = {setting.places[name] for name in names}
        return sum(setting.allowed[place][1] - state.left[place] for place in places)

    return Acts(
        merges=sum(pull.status == MERGED for pull in state.pulls),
        orders=done("order"),
        resumes=done("resume", "resume_task", "reopen_fix"),
    )
