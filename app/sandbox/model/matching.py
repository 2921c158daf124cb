"""Which planted findings a conversation has shown, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from app.sandbox.model.scenario import Planted
from app.sandbox.model.seen import SeenLine


@dataclass(frozen=True, slots=True)
class Sighting:
    """A planted finding with the line that shows it."""

    entry: Planted
    line: SeenLine

    def fields(self) -> dict[str, str]:
        """The finding's elements, by name."""
        entry, line = self.entry, self.line
        return {
            "path": line.path,
            "line": str(line.number),
            "severity": entry.severity,
            "category": entry.category,
            "title": entry.title,
            "body": entry.body,
            "evidence": entry.evidence or f"{line.path}:{line.number}: {line.text.strip()}",
            "suggestion": entry.suggestion or "",
        }


def shows(entry: Planted, line: SeenLine) -> bool:
    """Is that line the planted one?"""
    return (
        entry.needle in line.text
        and fnmatchcase(line.path, entry.path)
        and (line.added or not entry.added_only)
    )


def sightings(entries: Iterable[Planted], lines: tuple[SeenLine, ...]) -> tuple[Sighting, ...]:
    """One sighting per entry and path that `lines` show: at an added line if there is one."""
    return tuple(
        Sighting(entry, line) for entry in entries for line in _first_per_path(entry, lines)
    )


def _first_per_path(entry: Planted, lines: tuple[SeenLine, ...]) -> tuple[SeenLine, ...]:
    hits = sorted((line for line in lines if shows(entry, line)), key=lambda line: not line.added)
    first: dict[str, SeenLine] = {}
    for line in hits:
        first.setdefault(line.path, line)
    return tuple(first.values())
