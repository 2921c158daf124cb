"""What a purse says about the next run."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.spend import NOTICES, Period, Purse, Standing, notices_due, period_key, standing

amounts = st.decimals(min_value=0, max_value=10_000, places=2)


def purse(used: int, reserved: int = 0, cap: int = 100) -> Purse:
    return Purse(Decimal(cap), Decimal(used), Decimal(reserved))


@pytest.mark.parametrize(
    ("held", "worst", "expected"),
    [
        pytest.param(purse(0), 100, Standing.FREE, id="fits-exactly"),
        pytest.param(purse(0), 101, Standing.SPENT, id="does-not-fit"),
        pytest.param(purse(79), 1, Standing.FREE, id="below-80"),
        pytest.param(purse(80), 1, Standing.CHEAPER, id="at-80"),
        pytest.param(purse(40, 40), 1, Standing.CHEAPER, id="reserved-counts"),
        pytest.param(purse(40, 60), 1, Standing.SPENT, id="all-reserved"),
        pytest.param(purse(130), 0, Standing.SPENT, id="overdrawn"),
        pytest.param(purse(0, cap=0), 0, Standing.SPENT, id="cap-of-nothing"),
    ],
)
def test_standing(held: Purse, worst: int, expected: Standing) -> None:
    """The worst case must fit; from 80 % on it is the cheaper models."""
    assert standing(held, Decimal(worst)) is expected


@pytest.mark.parametrize(
    ("used", "told", "expected"),
    [
        pytest.param(49, (), (), id="below"),
        pytest.param(50, (), (50,), id="at-50"),
        pytest.param(91, (50,), (75, 90), id="two-at-once"),
        pytest.param(120, (50, 75, 90), (100,), id="over"),
        pytest.param(120, NOTICES, (), id="all-told"),
    ],
)
def test_notices(used: int, told: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Each mark once per period, and reservations announce nothing."""
    assert notices_due(purse(used, reserved=10), frozenset(told)) == expected


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        pytest.param(Period.DAY, "2026-01-31", id="day"),
        pytest.param(Period.MONTH, "2026-01", id="month"),
    ],
)
def test_periods_are_of_utc(period: Period, expected: str) -> None:
    """A February morning in the east is still January in UTC."""
    east = timezone(timedelta(hours=9))
    assert period_key(datetime(2026, 2, 1, 8, 59, tzinfo=east), period) == expected


def test_a_time_without_zone_is_refused() -> None:
    """A guess of the zone would book to the wrong day."""
    with pytest.raises(ValueError, match="zone"):
        period_key(datetime(2026, 1, 1), Period.DAY)  # noqa: DTZ001


def test_no_amount_is_below_zero() -> None:
    """A negative reservation would be money from nowhere."""
    with pytest.raises(ValueError, match="below zero"):
        purse(0, reserved=-1)


@given(cap=amounts, costs=st.lists(amounts, max_size=20))
def test_reservations_never_pass_the_cap(cap: Decimal, costs: list[Decimal]) -> None:
    """Whatever runs ask, in whatever order, those admitted fit the cap together."""
    held = Purse(cap, Decimal(0), Decimal(0))
    for cost in costs:
        if standing(held, cost) is not Standing.SPENT:
            held = Purse(cap, held.used, held.reserved + cost)
    assert held.reserved <= cap


@given(cap=amounts, uses=st.lists(amounts, max_size=20))
def test_no_notice_twice(cap: Decimal, uses: list[Decimal]) -> None:
    """As use grows, each mark is told at most once, in rising order."""
    told: list[int] = []
    used = Decimal(0)
    for use in uses:
        used += use
        told.extend(notices_due(Purse(cap, used, Decimal(0)), frozenset(told)))
    assert told == sorted(set(told))
