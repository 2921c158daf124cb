"""Amounts of the four budgets. DESIGN §3.4."""

from __future__ import annotations

import pytest

from loop_guards import Limits, Spent
from tests.loop_guards.factories import LIMITS

ONE_EACH = Limits(
    budget_input_tokens=10, budget_micro_dollars=10, budget_model_seconds=10, max_model_runs=10
)
AMOUNTS = [
    pytest.param(Spent(9, 9, 9, 9), False, False, id="below"),
    pytest.param(Spent(10), True, False, id="all tokens"),
    pytest.param(Spent(0, 10), True, False, id="all dollars"),
    pytest.param(Spent(0, 0, 10), True, False, id="all seconds"),
    pytest.param(Spent(0, 0, 0, 10), True, False, id="all runs"),
    pytest.param(Spent(11), True, True, id="more tokens"),
    pytest.param(Spent(0, 11), True, True, id="more dollars"),
    pytest.param(Spent(0, 0, 11), True, True, id="more seconds"),
    pytest.param(Spent(0, 0, 0, 11), True, True, id="more runs"),
]


@pytest.mark.parametrize(("amount", "used_up", "overdrawn"), AMOUNTS)
def test_any_of_the_four_is_enough(amount: Spent, used_up: bool, overdrawn: bool) -> None:
    """Used up: nothing is left to begin with. Overdrawn: a worst case that does not fit."""
    assert amount.exceeds(ONE_EACH) is used_up
    assert amount.overdraws(ONE_EACH) is overdrawn


def test_a_resume_makes_each_of_them_larger() -> None:
    """Two rounds of five bring 4 of 10."""
    assert not Spent(13, 13, 13, 13).exceeds(ONE_EACH, 1)
    assert Spent(14).exceeds(ONE_EACH, 1)
    assert not Spent(14, 14, 14, 14).overdraws(ONE_EACH, 1)
    assert Spent(0, 0, 0, 15).overdraws(ONE_EACH, 1)


def test_amounts_add_up_each_by_itself() -> None:
    """Tokens to tokens, dollars to dollars."""
    assert Spent(1, 2, 3, 4) + Spent(10, 20, 30, 40) == Spent(11, 22, 33, 44)


def test_without_a_cut_model_runs_are_not_budgeted() -> None:
    """The bound of DESIGN §3.8 is what limits them then."""
    assert not Spent(model_runs=10**9).overdraws(LIMITS)
