"""Words of a review run: what caused it, how large it is, what it used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Self


class Trigger(StrEnum):
    """What caused a review run (DESIGN: words)."""

    WEBHOOK = "webhook"
    COMMAND = "command"
    VERIFY = "verify"
    CLI = "cli"
    API = "api"


class Tier(StrEnum):
    """How much a change deserves."""

    TRIVIAL = "trivial"
    LITE = "lite"
    FULL = "full"


class RunState(StrEnum):
    """The life of a review run. The last four never change again."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AgentName(str):
    """The name of an agent: of one that ships with Mergeward, or of one that a plugin registered.

    1 to 40 lower-case letters, digits and underscores, a letter first. For a shipped agent it is
    also the name of the prompt file. Raises ValueError for anything else.
    """

    __slots__ = ()

    COORDINATOR: ClassVar[AgentName]
    GENERAL: ClassVar[AgentName]
    CODE_QUALITY: ClassVar[AgentName]
    SECURITY: ClassVar[AgentName]
    PERFORMANCE: ClassVar[AgentName]
    DOCUMENTATION: ClassVar[AgentName]
    RELEASE: ClassVar[AgentName]
    COMPLIANCE: ClassVar[AgentName]
    AGENTS_MD: ClassVar[AgentName]
    FIXER: ClassVar[AgentName]

    def __new__(cls, name: str) -> Self:
        if not _AGENT_NAME.fullmatch(name):
            raise ValueError(
                f"{name[:60]!r} is no name of an agent: use up to 40 lower-case letters, digits "
                "and underscores, a letter first"
            )
        return super().__new__(cls, name)

    @property
    def value(self) -> str:
        """The name as plain text."""
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema

        plain = core_schema.to_string_ser_schema()
        return core_schema.no_info_after_validator_function(
            cls, core_schema.str_schema(), serialization=plain
        )


_AGENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

SHIPPED_AGENTS = tuple(AgentName(name.lower()) for name in AgentName.__annotations__)
"""The agents that ship with Mergeward; only they can be named without a plugin."""

for _agent in SHIPPED_AGENTS:
    setattr(AgentName, _agent.upper(), _agent)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls, and their cost in US dollars.

    `input_tokens` are the uncached ones. `cost_usd` is None when any call's price is unknown:
    unknown is not zero.
    """

    model_calls: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    model_seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=None if unknown else (self.cost_usd or 0) + (other.cost_usd or Decimal(0)),
            model_seconds=self.model_seconds + other.model_seconds,
        )


@dataclass(frozen=True, slots=True)
class Booked:
    """What an event of a session costs: the session itself, when it begins, or a call's usage."""

    sessions: int = 0
    usage: Usage | None = None
