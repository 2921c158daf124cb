"""Column types that mean the same on SQLite and PostgreSQL.

All text that reaches a column may be hostile: NUL and lone surrogates, which one database or the
other refuses, are replaced by U+FFFD on the way in.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_UP, Decimal
from typing import Any, Generic, TypeVar

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MICRO = Decimal(1_000_000)

E = TypeVar("E", bound=str)

RowId = BigInteger().with_variant(Integer(), "sqlite")
"""A key counted by us; SQLite counts only columns of exactly this type."""


def storable_text(text: str) -> str:
    """The text with every character that no database stores replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def storable_json(value: Any) -> Any:
    """The JSON value with `storable_text` applied to every string in it, keys included."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {storable_text(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value


class SafeText(TypeDecorator[str]):
    """Text of any length."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable_text(value)


class SafeJson(TypeDecorator[Any]):
    """A JSON value; Python None is SQL NULL. Tuples come back as lists."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import JSONB

            return dialect.type_descriptor(JSONB(none_as_null=True))
        return dialect.type_descriptor(JSON(none_as_null=True))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return storable_json(value)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment. Goes in aware of any zone, comes out aware in UTC; naive ones are refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            msg = f"a naive datetime cannot be stored: {value!r}"
            raise ValueError(msg)
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class EnumText(TypeDecorator[E], Generic[E]):
    """A word of one closed set (a StrEnum) or of one form (`AgentName`), stored as its text.

    Anything else is refused in both directions.
    """

    impl = String(40)
    cache_ok = True

    def __init__(self, members: type[E]) -> None:
        super().__init__()
        self.members = members

    def process_bind_param(self, value: E | str | None, dialect: Dialect) -> str | None:
        return None if value is None else str(self.members(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> E | None:
        return None if value is None else self.members(value)


class MicroDollars(TypeDecorator[Decimal]):
    """US dollars, stored as whole millionths; rounded up, so that a budget never under-counts."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        if value is None:
            return None
        return int((value * _MICRO).to_integral_value(rounding=ROUND_UP))

    def process_result_value(self, value: int | None, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value) / _MICRO
