"""The bound of DESIGN §3.8 by hand, and that more acts or larger limits never bound less."""

from __future__ import annotations

from dataclasses import astuple, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_guards import ONE_MERGE, Acts, Bound, Limits, bound
from tests.loop_guards.factories import PATIENT

SHIPPED = Limits()
SMALL = Limits(
    max_review_iterations=1,
    max_fix_tasks=1,
    pingpong_cap=1,
    verify_cycles=1,
    max_reviewers=1,
    sessions_per_agent=1,
)
"""One of each: the coordinator and one reviewer, one session each, so W = 2."""


def at_most(
    fix_tasks: int, source_rounds: int, fix_rounds: int, verify_runs: int, model_runs: int
) -> Bound:
    return Bound(
        fix_tasks=fix_tasks,
        source_rounds=source_rounds,
        fix_rounds=fix_rounds,
        turns=fix_rounds,
        verify_runs=verify_runs,
        model_runs=model_runs,
    )


@pytest.mark.parametrize(
    ("limits", "acts", "most"),
    [
        pytest.param(SHIPPED, Acts(), at_most(0, 0, 0, 0, 0), id="nobody-does-anything"),
        # W = 24; 24*50 rounds + 3*(50 turns + 20 verify runs) + 24*20 verify runs
        pytest.param(SHIPPED, ONE_MERGE, at_most(10, 0, 50, 20, 1_890), id="a-merge"),
        # 24*5 + 3*(5 + 2) + 24*2
        pytest.param(SHIPPED, Acts(orders=1), at_most(1, 0, 5, 2, 189), id="an-order"),
        # 24*2 + 3*2: a resume opens half the rounds, and no verify cycle
        pytest.param(SHIPPED, Acts(resumes=1), at_most(0, 0, 2, 0, 54), id="a-resume"),
        # the person's round and three of machines: 24*4
        pytest.param(SHIPPED, Acts(source_acts=1), at_most(0, 4, 0, 0, 96), id="a-push"),
        # three of machines: 24*3
        pytest.param(SHIPPED, Acts(bot_prs=1), at_most(0, 3, 0, 0, 72), id="a-bot-s-pull-request"),
        # 2*1 + 1*(1 + 1) + 2*1
        pytest.param(SMALL, ONE_MERGE, at_most(1, 0, 1, 1, 6), id="small-merge"),
        # a resume of a small task still opens one round: 2*1 + 1*1
        pytest.param(SMALL, Acts(resumes=1), at_most(0, 0, 1, 0, 3), id="small-resume"),
        # tasks 2 + 3; source 1*2 + 1*1; fix rounds 5 + 4; 2*(3 + 9) + 1*(9 + 5) + 2*5
        pytest.param(
            SMALL,
            Acts(source_acts=1, bot_prs=1, merges=2, orders=3, resumes=4),
            at_most(5, 3, 9, 5, 48),
            id="all-together",
        ),
        pytest.param(
            replace(SHIPPED, max_fix_tasks=0), ONE_MERGE, at_most(0, 0, 0, 0, 0), id="no-tasks"
        ),
        # 24*50 + 3*50
        pytest.param(
            replace(SHIPPED, verify_cycles=0),
            ONE_MERGE,
            at_most(10, 0, 50, 0, 1_350),
            id="no-verify",
        ),
    ],
)
def test_the_bound_by_hand(limits: Limits, acts: Acts, most: Bound) -> None:
    """The formulas of the derivation, worked out on paper."""
    assert bound(limits, acts) == most


ACTS = st.builds(Acts, **{item.name: st.integers(0, 50) for item in fields(Acts)})
COUNTED = ("max_review_iterations", "max_fix_tasks", "pingpong_cap", "verify_cycles")
SIZES = ("max_reviewers", "sessions_per_agent")
LIMITS = st.builds(Limits, **{name: st.integers(1, 9) for name in (*COUNTED, *SIZES)})


def never_less(before: Bound, after: Bound) -> bool:
    pairs = zip(astuple(before), astuple(after), strict=True)
    return all(low <= high for low, high in pairs)


@given(limits=LIMITS, acts=ACTS, name=st.sampled_from([item.name for item in fields(Acts)]))
@PATIENT
def test_another_act_never_bounds_less(limits: Limits, acts: Acts, name: str) -> None:
    """Each act adds something to the model runs, and takes nothing away anywhere."""
    before = bound(limits, acts)
    after = bound(limits, replace(acts, **{name: getattr(acts, name) + 1}))
    assert never_less(before, after)
    assert after.model_runs > before.model_runs


@given(limits=LIMITS, acts=ACTS, name=st.sampled_from([*COUNTED, *SIZES]))
@PATIENT
def test_a_larger_limit_never_bounds_less(limits: Limits, acts: Acts, name: str) -> None:
    """Whoever raises a limit does not lower the bound of anything."""
    larger = replace(limits, **{name: getattr(limits, name) + 1})
    assert never_less(bound(limits, acts), bound(larger, acts))


@given(limits=LIMITS, one=ACTS, two=ACTS)
@PATIENT
def test_acts_add_up(limits: Limits, one: Acts, two: Acts) -> None:
    """What each further act adds does not depend on what was done before: it can be said alone."""
    both = Acts(*(left + right for left, right in zip(astuple(one), astuple(two), strict=True)))
    sums = zip(astuple(bound(limits, one)), astuple(bound(limits, two)), strict=True)
    assert astuple(bound(limits, both)) == tuple(left + right for left, right in sums)


@pytest.mark.parametrize("name", [item.name for item in fields(Acts)])
def test_acts_are_counted(name: str) -> None:
    """Less than none is no count; the message names it."""
    with pytest.raises(ValueError, match=name):
        Acts(**{name: -1})
