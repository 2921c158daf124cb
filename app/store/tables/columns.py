"""Short spellings for the columns that many tables share."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict
from sqlalchemy import BigInteger, Boolean, Float, Integer
from sqlmodel import Field, SQLModel

from app.domain.runs import AgentName, Usage
from app.store.types import EnumText, MicroDollars, RowId, SafeJson, SafeText, UtcDateTime

_REQUIRED: Any = ...

# Every constraint has a name, so that a migration can drop it on either database.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


def row_id() -> Any:
    """Our own key, counted by the database; set once the row is flushed."""
    return Field(default=None, primary_key=True, sa_type=RowId)


def github_id() -> Any:
    """GitHub's own number as the key."""
    return Field(primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False})


def refers_to(
    target: str, *, optional: bool = False, unique: bool = False, key: bool = False
) -> Any:
    """A reference to `table.column`. The row dies with its owner; an optional one forgets it."""
    return Field(
        default=None if optional else _REQUIRED,
        sa_type=BigInteger,
        foreign_key=target,
        ondelete="SET NULL" if optional else "CASCADE",
        primary_key=key,
        nullable=optional,
        index=not unique,
        unique=unique,
    )


def text(default: Any = _REQUIRED, *, optional: bool = False, **more: Any) -> Any:
    """Text of any length; `optional` columns start as None."""
    return Field(default=None if optional else default, sa_type=SafeText, nullable=optional, **more)


def moment(*, optional: bool = False, index: bool = False) -> Any:
    """An aware UTC datetime; `optional` columns start as None."""
    return Field(
        default=None if optional else _REQUIRED,
        sa_type=UtcDateTime,
        nullable=optional,
        index=index,
    )


def integer(default: Any = _REQUIRED, *, optional: bool = False, index: bool = False) -> Any:
    """A whole number of at most 63 bits."""
    return Field(
        default=None if optional else default,
        sa_type=BigInteger,
        nullable=optional,
        index=index,
    )


def count(default: int = 0) -> Any:
    """A small counter."""
    return Field(default=default, sa_type=Integer, nullable=False)


def seconds() -> Any:
    """A duration in seconds."""
    return Field(default=0.0, sa_type=Float, nullable=False)


def flag(default: bool = False) -> Any:
    return Field(default=default, sa_type=Boolean, nullable=False)


def dollars(*, optional: bool = False) -> Any:
    """US dollars. `optional`: None says that some price is unknown, which is not zero."""
    return Field(default=Decimal(0), sa_type=MicroDollars, nullable=optional)


def json_list() -> Any:
    return Field(default_factory=list, sa_type=SafeJson, nullable=False)


def json_object() -> Any:
    return Field(default_factory=dict, sa_type=SafeJson, nullable=False)


def member_of(
    members: type[StrEnum] | type[AgentName],
    default: StrEnum | None = None,
    *,
    optional: bool = False,
    index: bool = False,
) -> Any:
    """A member of one enum (or an agent's name), checked on the way in and out."""
    required = default is None and not optional
    return Field(
        default=_REQUIRED if required else default,
        sa_type=EnumText(members),
        nullable=optional,
        index=index,
    )


class Table(SQLModel):
    """The base of every table. Rows are not validated, so validators are built only if asked for:
    the web process starts with these modules, and building was a fifth of their loading time.
    """

    model_config = ConfigDict(defer_build=True)  # type: ignore[assignment]  # SQLModel's own, narrower type


class UsageColumns(Table):
    """What model calls used. `input_tokens` are the uncached ones."""

    model_calls: int = count()
    input_tokens: int = integer(0)
    cache_read_tokens: int = integer(0)
    cache_write_tokens: int = integer(0)
    output_tokens: int = integer(0)
    cost_usd: Decimal | None = dollars(optional=True)
    model_seconds: float = seconds()

    @property
    def usage(self) -> Usage:
        return Usage(
            model_calls=self.model_calls,
            input_tokens=self.input_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.cost_usd,
            model_seconds=self.model_seconds,
        )

    @usage.setter
    def usage(self, usage: Usage) -> None:
        for name in Usage.__dataclass_fields__:
            setattr(self, name, getattr(usage, name))
