"""What processes share beside the database: small values with a life span, changed atomically.

Nothing here is the truth of anything. Whoever uses it goes on when it cannot be reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class StateUnavailable(Exception):
    """The shared state cannot be reached now. The message never holds an address or a password."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as it was read (None: there is none), and the time of reading.

    `now` is in seconds of a clock that all who share the cell read alike; its zero means nothing.
    """

    value: str | None
    now: float


class Cells(Protocol):
    """Values by key. Safe to use from many tasks, processes and machines at once."""

    async def read(self, key: str) -> Cell:
        """Raises StateUnavailable."""
        ...

    async def swap(self, key: str, old: str | None, new: str, *, life_s: float) -> bool:
        """Write `new` for `life_s` seconds if the value is still `old`; False if it is not.

        Raises StateUnavailable; it is then unknown whether `new` was written.
        """
        ...
