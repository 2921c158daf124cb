"""What a decision is: an outcome, the reason for it, what was compared, and who was asked.

Decisions that allow an effect are sealed: only this package can make them, so code that holds one
has asked. The seal is a guard against mistakes, not against malice inside the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Compared = Mapping[str, str | int | float | bool | None]

_SEAL = object()
NOTHING: Compared = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asked:
    """One guard's answer. `reason` is the code it gave when it spoke, None when it let pass."""

    guard: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One answered question. `reasons` are all codes that hold, the deciding one first.

    Raises TypeError when made outside of `loop_guards`.
    """

    outcome: str
    reason: str
    compared: Compared = field(default_factory=lambda: NOTHING)
    trace: tuple[Asked, ...] = ()
    reasons: tuple[str, ...] = ()
    seal: object = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            name = type(self).__name__
            raise TypeError(f"{name} can only be made by loop_guards: ask it instead")

    def as_record(self) -> dict[str, Any]:
        """The decision as plain JSON-able data, to be stored."""
        return {
            "outcome": str(self.outcome),
            "reason": str(self.reason),
            "reasons": [str(code) for code in self.reasons or (self.reason,)],
            "compared": dict(self.compared),
            "trace": [[asked.guard, asked.reason] for asked in self.trace],
        }


def sealed() -> object:
    """The seal, for this package alone."""
    return _SEAL


def values(**compared: str | int | float | bool | None) -> Compared:
    """What a decision compared, frozen."""
    return MappingProxyType(compared)
