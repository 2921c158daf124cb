"""What a change shows of an earlier finding: places that are cited, lines that were touched. Pure.

Words are a model's: a place counts only where git itself shows a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.domain.diff import Diff, FileChange, FileStatus, LineKind
from app.domain.findings import Location


def cites(text: str, files: Iterable[str], diff: Diff) -> bool:
    """Whether the text names a line (`file:line`) that a hunk of the diff shows, in one of `files`;
    in any file of the diff if there are none. A deleted file is all hunk."""
    names = frozenset(files) or diff.paths
    return any(
        change is not None and any(_in_hunk(change, line) for line in _lines_of(text, name))
        for name in names
        if f"{name}:" in text
        for change in (diff.file(name),)
    )


def _lines_of(text: str, name: str) -> Iterable[int]:
    """The numbers that stand after a file's whole name and a colon."""
    place = re.compile(rf"(?<![\w/.-]){re.escape(name)}:(\d{{1,9}})(?!\d)")
    return (int(found[1]) for found in place.finditer(text))


def _in_hunk(change: FileChange, line: int) -> bool:
    return change.status is FileStatus.DELETED or change.shows(line)


def touches(diff: Diff, before: Location, now: Location) -> bool:
    """Whether the diff changed the lines a finding points at: those it had `before` the diff, or
    those it has `now`. One without a line is touched by any change of its file, one without a file
    by any change at all."""
    if now.path is None:
        return bool(diff.files)
    change = diff.file(now.path)
    if change is None:
        return False
    if now.start_line is None or change.binary:
        return True
    return _gains(change, now) or (
        before.path in (change.path, change.old_path) and _loses(change, before)
    )


def _gains(change: FileChange, at: Location) -> bool:
    first, last = _span(at)
    return any(
        line.kind is LineKind.ADDED for hunk in change.hunks for line in hunk.shown(first, last)
    )


def _loses(change: FileChange, at: Location) -> bool:
    first, last = _span(at)
    return any(hunk.removed(first, last) for hunk in change.hunks)


def _span(at: Location) -> tuple[int, int]:
    first = at.start_line or 0
    return first, max(first, at.end_line or first)
