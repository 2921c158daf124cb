"""Everything at once at cap 5: long random runs, and a state machine that shrinks what it finds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from loop_guards import bound
from tests.loop_guards.model.everything import (
    EVERYTHING,
    a_step,
    acts_so_far,
    random_run,
)
from tests.loop_guards.model.field import State, canonical
from tests.loop_guards.model.fixing import check_bound, check_state
from tests.loop_guards.model.liveness import check_liveness
from tests.loop_guards.model.moves import NOTHING, Cost

RUNS = int(os.environ.get("MERGEWARD_PROVE_RUNS", "10000"))
"""Random runs; `make prove` asks for 100,000."""
PARTS = 8


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(PARTS))
def test_long_random_runs_break_nothing(part: int) -> None:
    """Every act of everybody, in any order: no invariant breaks, and no run exceeds the bound."""
    most = NOTHING
    for seed in range(part, RUNS, PARTS):
        most = Cost(*map(max, most, random_run(EVERYTHING, seed)))
    # The runs are long enough to mean something: tasks of several merges, driven to their cap.
    assert most.tasks >= 4
    assert most.fix_rounds > EVERYTHING.limits.max_review_iterations


class Everything(RuleBasedStateMachine):
    """The same world, with every choice in hypothesis' hands."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = EVERYTHING.initial()
        self.spent = NOTHING

    @rule(data=st.data())
    def somebody_acts(self, data: st.DataObject) -> None:
        """One step of anybody."""

        def choose(among: Sequence[int]) -> int:
            return data.draw(st.sampled_from(among))

        _, _, after, cost = a_step(self.state, EVERYTHING, choose)
        self.state, self.spent = canonical(after, EVERYTHING), self.spent.plus(cost)

    @invariant()
    def nothing_is_broken(self) -> None:
        """Every invariant, and the bound for what people did until now."""
        check_state(self.state, EVERYTHING)
        check_liveness(self.state, EVERYTHING)
        acts = acts_so_far(self.state, EVERYTHING)
        check_bound(self.spent, bound(EVERYTHING.limits, acts))


TestEverything: Any = Everything.TestCase
TestEverything.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
