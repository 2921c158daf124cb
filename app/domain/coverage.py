"""The coverage ledger: for each file of a change whether it was read, and if not, why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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

    def failed(self, reason: str, paths: Collection[str] | None = None) -> Coverage:
        """The same ledger after a run in which nobody could read these files (None: any file) of
        those that were to be read."""
        return self._instead(
            CoverageState.FAILED, lambda path: reason if paths is None or path in paths else ""
        )

    def too_large(self, reasons: Mapping[str, str]) -> Coverage:
        """The same ledger where there is no room for some of the files; the reason for each."""
        return self._instead(CoverageState.TOO_LARGE, lambda path: reasons.get(path, ""))

    def _instead(self, state: CoverageState, reason_of: Callable[[str], str]) -> Coverage:
        def after(entry: CoverageEntry) -> CoverageEntry:
            reason = reason_of(entry.path) if entry.state is CoverageState.REVIEWED else ""
            return replace(entry, state=state, reason=reason) if reason else entry

        return Coverage(tuple(map(after, self.entries)))

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
