"""Words of a review run: what caused it, how large it is, what it used."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


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


class AgentName(StrEnum):
    """The agents. Values are also the names of their prompt files."""

    COORDINATOR = "coordinator"
    GENERAL = "general"
    CODE_QUALITY = "code_quality"
    SECURITY = "security"
    PERFORMANCE = "performance"
    DOCUMENTATION = "documentation"
    RELEASE = "release"
    COMPLIANCE = "compliance"
    AGENTS_MD = "agents_md"
    FIXER = "fixer"


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
