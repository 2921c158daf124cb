"""The coverage ledger: for each file of a change whether it was read, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class CoverageState(StrEnum):
    """SKIPPED files are noise and count as covered. TOO_LARGE and FAILED ones are missing, and so
    are WITHHELD ones: what no model may see, nobody has read."""

    REVIEWED = "reviewed"
    SKIPPED = "skipped"
    WITHHELD = "withheld"
    TOO_LARGE = "too_large"
    FAILED = "failed"


MISSING = (CoverageState.TOO_LARGE, CoverageState.FAILED, CoverageState.WITHHELD)
"""States of files that should have been read and were not."""


@dataclass(frozen=True, slots=True)
class CoverageEntry:
    """One file. `reason` is a code, "" for a file that was simply read."""

    path: str
    state: CoverageState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """All files of a change, in the order of the diff."""

    entries: tuple[CoverageEntry, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether nothing that should have been read is missing."""
        return not any(entry.state in MISSING for entry in self.entries)

    def of(self, state: CoverageState) -> tuple[CoverageEntry, ...]:
        return tuple(entry for entry in self.entries if entry.state is state)

    def failed(self, reason: str) -> Coverage:
        """The same ledger after a run in which nobody could read what was to be read."""
        return Coverage(
            tuple(
                replace(entry, state=CoverageState.FAILED, reason=reason)
                if entry.state is CoverageState.REVIEWED
                else entry
                for entry in self.entries
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that any database takes; names that are not UTF-8 go as `{"hex": …}`."""
        return {
            "entries": [
                [_path_to_json(entry.path), entry.state.value, entry.reason]
                for entry in self.entries
            ]
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Coverage:
        """Reads what `to_json` wrote; {} is an empty ledger."""
        return cls(
            tuple(
                CoverageEntry(_path_from_json(path), CoverageState(state), reason)
                for path, state, reason in data.get("entries", [])
            )
        )


def _path_to_json(path: str) -> str | dict[str, str]:
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"hex": path.encode("utf-8", "surrogateescape").hex()}
    return path


def _path_from_json(value: str | Mapping[str, str]) -> str:
    if isinstance(value, str):
        return value
    return bytes.fromhex(value["hex"]).decode("utf-8", "surrogateescape")
