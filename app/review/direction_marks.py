"""Marks that make code read otherwise than it runs, found by code and not by a model. Pure.

An editor that obeys U+202E shows the characters after it backwards, so a comment can look like the
condition above it. Reviewers see the marks written out, but a finding must not depend on what a
model makes of them: this one enters the judge pass beside theirs, and no answer can drop it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

from app.agents.invisible import show_hidden
from app.domain.diff import FileChange, FileStatus, HunkLine, LineKind
from app.domain.findings import JudgedFinding, Location, ReportedFinding
from loop_guards import Severity

REVIEWER = "direction_marks"
MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
"""All characters whose only effect is the direction of the text around them (Unicode UAX #9)."""

_PIECES = tuple(mark.encode() for mark in MARKS)
_PROSE = (".md", ".markdown", ".rst", ".adoc", ".txt", ".po", ".pot", ".arb", ".xlf", ".xliff")
"""Files that people read and nothing runs: there such a mark may be wanted."""

_NEW_NAMES = (FileStatus.ADDED, FileStatus.RENAMED, FileStatus.COPIED)
_MOST_LINES = 10
_EVIDENCE_CHARS = 200


def direction_marks(files: Iterable[FileChange]) -> tuple[JudgedFinding, ...]:
    """One finding for each file that gets such marks by this change, in its path or in its lines.

    It stands at the first of the lines and names at most ten of them.
    """
    found = (_in_file(file) for file in files)
    return tuple(JudgedFinding(finding) for finding in found if finding is not None)


def _in_file(file: FileChange) -> ReportedFinding | None:
    lines = list(islice(_added(file), _MOST_LINES + 1))
    in_path = file.status in _NEW_NAMES and any(mark in file.path for mark in MARKS)
    if not lines and not in_path:
        return None
    first = lines[0].new if lines else None
    return ReportedFinding(
        ref=f"{REVIEWER}:{file.path}",
        reviewer=REVIEWER,
        location=Location(file.path, first, first),
        severity=Severity.WARNING if file.path.lower().endswith(_PROSE) else Severity.CRITICAL,
        category="security",
        title="Hidden direction marks",
        body=_body(lines, in_path=in_path),
        evidence=_evidence(file.path, lines),
    )


def _added(file: FileChange) -> Iterable[HunkLine]:
    held = chain.from_iterable(hunk.holding(_PIECES) for hunk in file.hunks)
    return (line for line in held if line.kind is LineKind.ADDED)


def _body(lines: list[HunkLine], *, in_path: bool) -> str:
    where = "The path of this file holds" if in_path and not lines else "These lines hold"
    named = ", ".join(str(line.new) for line in lines[:_MOST_LINES])
    more = ", …" if len(lines) > _MOST_LINES else ""
    at = f" (line {named}{more})" if lines else ""
    return (
        f"{where} invisible characters that change the direction of the text{at}, so it is shown in"
        " another order than it is read by the machine. Remove them; where one is needed in a text,"
        " write it as an escape."
    )


def _evidence(path: str, lines: list[HunkLine]) -> str:
    if not lines:
        return show_hidden(path)
    return "\n".join(f"`{show_hidden(line.text)[:_EVIDENCE_CHARS]}`" for line in lines[:3])
