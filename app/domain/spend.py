"""What a purse of a day or month says about the next run. Pure.

A purse holds one amount (US dollars or tokens, the caller's unit throughout) against one cap.
Days and months are those of UTC, wherever the people of a repository live.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum

NOTICES = (50, 75, 90, 100)
"""Percent of a cap at which people are told, once each per period."""

CHEAPER_AT = 80
"""Percent of a cap from which reviews run on the cheaper models."""


class Period(StrEnum):
    """How long a cap holds before it starts again from nothing."""

    DAY = "day"
    MONTH = "month"


class Standing(StrEnum):
    """What may be begun with a purse."""

    FREE = "free"
    CHEAPER = "cheaper"
    SPENT = "spent"


@dataclass(frozen=True, slots=True)
class Purse:
    """A cap, what was really used of it, and what runs that have not ended hold of it."""

    cap: Decimal
    used: Decimal
    reserved: Decimal

    def __post_init__(self) -> None:
        if self.cap < 0 or self.used < 0 or self.reserved < 0:
            raise ValueError(f"a purse holds no amount below zero: {self}")

    @property
    def left(self) -> Decimal:
        """What may still be reserved; zero when more was used than was reserved for it."""
        return max(Decimal(0), self.cap - self.used - self.reserved)


def period_key(at: datetime, period: Period) -> str:
    """The period's name in UTC: `2026-01-31` or `2026-01`. ValueError for a time without zone."""
    if at.tzinfo is None:
        raise ValueError("the time of a spend needs its zone; pass an aware datetime")
    return at.astimezone(UTC).strftime("%Y-%m-%d" if period is Period.DAY else "%Y-%m")


def standing(purse: Purse, worst: Decimal) -> Standing:
    """What a run that costs `worst` at most may do: it must fit whole, or it is not begun.

    What is reserved counts as used, so that runs side by side do not each see the whole purse.
    """
    if worst > purse.left or purse.left == 0:
        return Standing.SPENT
    held = purse.used + purse.reserved
    return Standing.CHEAPER if held * 100 >= purse.cap * CHEAPER_AT else Standing.FREE


def notices_due(purse: Purse, told: frozenset[int]) -> tuple[int, ...]:
    """The marks that real use has reached and nobody was told of in this period, lowest first.

    Reservations do not count: what is given back must not have been announced as spent.
    """
    return tuple(
        mark for mark in NOTICES if mark not in told and purse.used * 100 >= purse.cap * mark
    )
