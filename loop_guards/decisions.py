"""What a decision is: an outcome, the reason for it, what was compared, and who was asked.

Decisions that allow an effect are sealed: only this package can make them, so code that holds one
has asked. The seal is a guard against mistakes, not against malice inside the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn, Self

Scalar = str | int | float | bool | None
Compared = Mapping[str, Scalar]

_SEAL = object()
NOTHING: Compared = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asked:
    """One guard's answer. `reason` is the code it gave when it spoke, None when it let pass."""

    guard: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A value that only this package makes; anyone else's attempt raises TypeError.

    The seal is checked and not kept, so `dataclasses.replace` fails too. Pickling is refused:
    what comes out of a pickle was not asked. A copy is the value itself.
    """

    seal: InitVar[object] = None

    def __init_subclass__(cls) -> None:
        if cls.__module__.partition(".")[0] != "loop_guards":
            raise TypeError(f"{cls.__name__} can't extend a decision: ask loop_guards for one")

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError(
                f"{type(self).__name__} can only be made by loop_guards: ask loop_guards instead"
            )

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"{name} can't be pickled: store its record and ask loop_guards again")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Sealed):
    """One answered question. `reasons` are all codes that hold, the deciding one first.

    Empty `reasons` stand for `reason` alone. `trace` lists the guards in the order asked; where
    the first match wins, it ends with the one that spoke.
    """

    outcome: str
    reason: str
    compared: Compared = field(default_factory=lambda: NOTHING, hash=False)
    trace: tuple[Asked, ...] = ()
    reasons: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """The decision as plain JSON-able data, to be stored."""
        return {
            "outcome": str(self.outcome),
            "reason": str(self.reason),
            "reasons": [str(code) for code in self.reasons or (self.reason,)],
            "compared": {name: _plain(value) for name, value in self.compared.items()},
            "trace": [[str(asked.guard), _plain(asked.reason)] for asked in self.trace],
        }


def sealed() -> object:
    """The seal, for this package alone."""
    return _SEAL


def values(**compared: Scalar) -> Compared:
    """What a decision compared, frozen."""
    return MappingProxyType(compared)


def _plain(value: Scalar) -> Scalar:
    # Members of the string enums become plain strings.
    return str(value) if isinstance(value, str) else value
