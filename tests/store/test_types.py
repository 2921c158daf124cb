"""Columns give back what went in, and refuse what they could not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Dialect
from sqlalchemy.dialects import postgresql, sqlite

from app.domain.jobs import AppRole, JobKind, JobState
from app.domain.pull_request import AccountKind, PullRequestState
from app.domain.runs import AgentName, RunState, Tier, Trigger
from app.domain.tasks import (
    FixTaskState,
    LineageState,
    OrderState,
    PublicationState,
    ReviewerState,
)
from app.store.tables import METADATA
from app.store.types import (
    EnumText,
    MicroDollars,
    UtcDateTime,
    storable_json,
    storable_text,
)
from loop_guards import FindingStatus, Origin, Severity, Verdict

ENUMS: tuple[type[StrEnum], ...] = (
    AccountKind,
    AppRole,
    FindingStatus,
    FixTaskState,
    JobKind,
    JobState,
    LineageState,
    OrderState,
    Origin,
    PublicationState,
    PullRequestState,
    ReviewerState,
    RunState,
    Severity,
    Tier,
    Trigger,
    Verdict,
)
DIALECTS: dict[str, Dialect] = {
    "sqlite": sqlite.dialect(),
    "postgresql": postgresql.dialect(),  # type: ignore[no-untyped-call]  # it is untyped
}
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda m: timezone(timedelta(minutes=m)))


def test_every_enum_column_is_in_the_round_trip() -> None:
    """A new enum column must be added to the table above."""
    columns = [column for table in METADATA.sorted_tables for column in table.columns]
    used = {column.type.members for column in columns if isinstance(column.type, EnumText)}
    assert used == {*ENUMS, AgentName}


@pytest.mark.parametrize(
    "member", [pytest.param(m, id=f"{e.__name__}.{m.name}") for e in ENUMS for m in e]
)
def test_every_member_survives(member: StrEnum) -> None:
    """Each state is stored as its value, fits the column, and comes back as itself."""
    column = EnumText(type(member))
    stored = column.process_bind_param(member, DIALECTS["sqlite"])
    assert stored == member.value
    assert len(stored) <= 40
    assert column.process_result_value(stored, DIALECTS["sqlite"]) is member


def test_an_agent_s_name_survives() -> None:
    """A plugin's agent is stored like ours, up to the column's length; a malformed name is not."""
    column = EnumText(AgentName)
    for name in ("security", "acme_sql", "a" * 40):
        stored = column.process_bind_param(AgentName(name), DIALECTS["sqlite"])
        assert stored == name
        assert column.process_result_value(stored, DIALECTS["sqlite"]) == AgentName(name)
    for name in ("", "Acme", "a b", "a" * 41, "sql\n"):
        with pytest.raises(ValueError, match="name of an agent"):
            column.process_bind_param(name, DIALECTS["sqlite"])


def test_unknown_members_are_refused() -> None:
    """A word that is no member neither gets in nor comes out."""
    column = EnumText(Severity)
    with pytest.raises(ValueError, match="catastrophic"):
        column.process_bind_param("catastrophic", DIALECTS["sqlite"])
    with pytest.raises(ValueError, match="catastrophic"):
        column.process_result_value("catastrophic", DIALECTS["sqlite"])


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    moment=st.datetimes(
        min_value=datetime(1990, 1, 2),  # noqa: DTZ001  # hypothesis wants naive bounds
        max_value=datetime(2200, 1, 1),  # noqa: DTZ001  # hypothesis wants naive bounds
        timezones=ZONES,
    )
)
def test_moments_survive(dialect: str, moment: datetime) -> None:
    """A moment of any zone comes back equal, aware, and in UTC."""
    column = UtcDateTime()
    stored = column.process_bind_param(moment, DIALECTS[dialect])
    back = column.process_result_value(stored, DIALECTS[dialect])
    assert back == moment
    assert back.tzinfo is UTC


def test_naive_moments_are_refused() -> None:
    """Nobody can say which moment a naive datetime is."""
    with pytest.raises(ValueError, match="naive"):
        UtcDateTime().process_bind_param(
            datetime(2026, 1, 1),  # noqa: DTZ001  # the point of the test
            DIALECTS["sqlite"],
        )


@given(dollars=st.decimals(min_value=0, max_value=10**6, places=9))
def test_money_is_rounded_up_to_a_millionth(dollars: Decimal) -> None:
    """A budget may over-count by less than a millionth and never under-count."""
    column = MicroDollars()
    stored = column.process_bind_param(dollars, DIALECTS["sqlite"])
    back = column.process_result_value(stored, DIALECTS["sqlite"])
    assert back is not None
    assert dollars <= back < dollars + Decimal("0.000001")
    assert column.process_bind_param(back, DIALECTS["sqlite"]) == stored


@given(hostile=st.text(alphabet=st.characters()))
def test_text_becomes_storable(hostile: str) -> None:
    """Any text can be written as UTF-8 without NUL, and harmless text is not touched."""
    stored = storable_text(hostile)
    assert "\x00" not in stored.encode().decode()
    assert len(stored) == len(hostile)
    assert storable_text(stored) == stored


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
        max_leaves=8,
    )
)
def test_json_becomes_storable(value: Any) -> None:
    """Any JSON value survives a strict encoder after cleaning."""
    cleaned = storable_json(value)
    assert json.loads(json.dumps(cleaned, ensure_ascii=False).encode()) == cleaned
    assert storable_json(cleaned) == cleaned
