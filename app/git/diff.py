"""Raw `git diff` bytes to values.

The rules that keep it right: while a hunk still owes lines, nothing is looked at but the first
byte of each line, so changed lines that look like headers are lines; after a file's first hunk no
header is read until the next file begins. Lines end at LF alone; CR and every other separator
belongs to the text. What keeps it fast: single lines are walked only where a hunk's counts do not
add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from app.domain.diff import (
    Diff,
    FileChange,
    FileStatus,
    Hunk,
    LineKind,
    count_lines,
    split_lines,
)

DIFF_ARGUMENTS = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--full-index",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--submodule=short",
    "--ignore-submodules=none",
    "--no-relative",
    "-O/dev/null",
)
"""Every choice that a machine's configuration could make otherwise."""

_N = rb"(\d{1,9})"  # more digits is no line of any file
_HUNK = re.compile(rb"@@ -%s(?:,%s)? \+%s(?:,%s)? @@" % (_N, _N, _N, _N))
_COMBINED = re.compile(rb"(@{3,})((?: -\d{1,9}(?:,\d{1,9})?)+) \+%s(?:,%s)? \1" % (_N, _N))
_FILE = (b"diff --git ", b"diff --cc ", b"diff --combined ")
_BODY_END = re.compile(rb"\n(?![ +\-\\]|\r?(?:\n|\Z))")
"""Before a line that can't be a hunk's: its first byte is no sign, and it is not blank."""

_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r",
}  # fmt: skip


@dataclass(slots=True)
class _Open:
    """A file whose headers and hunks are being read."""

    start: int
    old: str | None = None
    new: str | None = None
    status: FileStatus = FileStatus.MODIFIED
    old_mode: str | None = None
    new_mode: str | None = None
    binary: bool = False
    hunks: list[Hunk] = field(default_factory=list)
    additions: int = 0
    deletions: int = 0
    no_newline: list[bool] = field(default_factory=lambda: [False, False])


def parse_diff(raw: bytes) -> Diff:
    """All files of a `git diff`. Never raises: what is not understood is passed over."""
    reader = _Reader(raw)
    return Diff(tuple(reader.files()))


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._size = len(raw)
        self._at = 0

    def files(self) -> Iterator[FileChange]:
        current: _Open | None = None
        while self._at < self._size:
            start = self._at
            line = self._line()
            if line.startswith(b"diff --") and line.startswith(_FILE):
                if current is not None:
                    yield self._close(current, start)
                current = _Open(start)
                current.old, current.new = _names(line)
            elif current is not None and not current.binary:
                self._inside(current, line)
        if current is not None:
            yield self._close(current, self._size)

    def _inside(self, current: _Open, line: bytes) -> None:
        if line.startswith(b"@@"):
            if hunk := _HUNK.match(line):
                self._hunk(current, hunk)
            elif combined := _COMBINED.match(line):
                self._combined_hunk(current, combined)
        elif not current.hunks:
            _header(current, line)

    def _line(self) -> bytes:
        end = self._raw.find(b"\n", self._at)
        if end < 0:
            end = self._size
        line = self._raw[self._at : end]
        self._at = end + 1
        return line

    def _hunk(self, current: _Open, head: re.Match[bytes]) -> None:
        old_due, new_due = _due(head[2]), _due(head[4])
        body = self._raw[self._at : self._body_end()]
        counts = count_lines(body)
        if counts.old != old_due or counts.new != new_due:  # cut off, or words follow the hunk
            body = body[: _owed(body, old_due, new_due)]
            counts = count_lines(body)
        self._at += len(body)
        current.additions += counts.added
        current.deletions += counts.removed
        current.hunks.append(Hunk(int(head[1]), int(head[3]), body))
        if b"\\" in body:
            _mark_no_newline(current, body)

    def _body_end(self) -> int:
        """Where the lines end that could be a hunk's."""
        found = _BODY_END.search(self._raw, self._at - 1)
        return found.start() + 1 if found else self._size

    def _combined_hunk(self, current: _Open, head: re.Match[bytes]) -> None:
        """A hunk of a merge. Lines that only parents have are passed over; the first one counts."""
        ranges = [_range(text) for text in head[2].split()]
        body = self._raw[self._at : self._body_end()]
        body = body[: _owed_by_merge(body, [count for _, count in ranges], _due(head[4]))]
        self._at += len(body)
        hunk = Hunk(ranges[0][0], int(head[3]), body, len(ranges))
        current.additions += sum(line.kind is LineKind.ADDED for line in hunk.lines)
        current.hunks.append(hunk)

    def _close(self, current: _Open, end: int) -> FileChange:
        deleted = current.status is FileStatus.DELETED
        path = (current.old if deleted else current.new) or current.old or current.new or ""
        moved = current.status in (FileStatus.RENAMED, FileStatus.COPIED)
        status = current.status
        types = {_type(current.old_mode), _type(current.new_mode)} - {None}
        if status is FileStatus.MODIFIED and len(types) > 1:
            status = FileStatus.TYPE_CHANGED
        return FileChange(
            path=path,
            old_path=current.old if moved else None,
            status=status,
            additions=current.additions,
            deletions=current.deletions,
            hunks=tuple(current.hunks),
            binary=current.binary,
            old_mode=current.old_mode,
            new_mode=current.new_mode,
            no_newline_at_end=(current.no_newline[0], current.no_newline[1]),
            patch=self._raw[current.start : end],
        )


def _due(count: bytes | None) -> int:
    """A hunk's number of lines; left out, it is 1."""
    return 1 if count is None else int(count)


def _range(text: bytes) -> tuple[int, int]:
    """Start and count of `-12,3`."""
    start, comma, count = text[1:].partition(b",")
    return int(start), _due(count if comma else None)


def _owed(body: bytes, old_due: int, new_due: int) -> int:
    """How many bytes of what could be a hunk are its own, by its counts."""
    size = 0
    for line in split_lines(body):
        sign = line[:1]
        if old_due <= 0 and new_due <= 0 and not line.startswith(b"\\ "):
            break
        size += len(line) + 1
        old_due -= sign not in (b"+", b"\\")
        new_due -= sign not in (b"-", b"\\")
    return size


def _owed_by_merge(body: bytes, due: list[int], new_due: int) -> int:
    """The same for a hunk that has a sign for each parent."""
    size = 0
    for line in split_lines(body):
        signs = line[: len(due)]
        if (new_due <= 0 and max(due) <= 0) or signs.strip(b" +-\\"):
            break
        size += len(line) + 1
        if signs[:1] == b"\\":
            continue
        mark = b"-" if b"-" in signs else b" "
        due = [left - (signs[n : n + 1] == mark) for n, left in enumerate(due)]
        new_due -= mark == b" "
    return size


def _type(mode: str | None) -> str | None:
    return mode[:3] if mode else None


def _mark_no_newline(current: _Open, body: bytes) -> None:
    """Each remark speaks of the line before it."""
    if b"\n\\" not in body:
        return
    for before, line in pairwise(split_lines(body)):
        if line.startswith(b"\\") and not before.startswith(b"\\"):
            current.no_newline[0] |= not before.startswith(b"+")
            current.no_newline[1] |= not before.startswith(b"-")


def _header(current: _Open, line: bytes) -> None:
    key, _, value = line.partition(b" ")
    if key in (b"---", b"+++"):
        _side(current, key, value)
    elif key in (b"rename", b"copy"):
        _move(current, key, value)
    elif line.startswith((b"GIT binary patch", b"Binary files ")):
        current.binary = True
    else:
        _mode(current, line)


def _move(current: _Open, key: bytes, value: bytes) -> None:
    if value.startswith(b"from "):
        current.old = _unquote(value.removeprefix(b"from "))
    elif value.startswith(b"to "):
        current.new = _unquote(value.removeprefix(b"to "))
    else:
        return
    current.status = FileStatus.RENAMED if key == b"rename" else FileStatus.COPIED


def _mode(current: _Open, line: bytes) -> None:
    words, _, mode = line.rpartition(b" ")
    if words == b"new file mode":
        current.status, current.new_mode = FileStatus.ADDED, _ascii(mode)
    elif words == b"deleted file mode":
        current.status, current.old_mode = FileStatus.DELETED, _ascii(mode)
    elif words == b"old mode":
        current.old_mode = _ascii(mode)
    elif words == b"new mode":
        current.new_mode = _ascii(mode)
    elif words.startswith(b"index ") and words.count(b" ") == 1:
        current.old_mode = current.new_mode = _ascii(mode)


def _side(current: _Open, key: bytes, value: bytes) -> None:
    name = _unquote(value.removesuffix(b"\t"))
    if name == "/dev/null" or current.status in (FileStatus.RENAMED, FileStatus.COPIED):
        return
    if key == b"---":
        current.old = name.removeprefix("a/")
    else:
        current.new = name.removeprefix("b/")


def _ascii(value: bytes) -> str:
    return value.decode("ascii", "replace").strip()


def _names(line: bytes) -> tuple[str | None, str | None]:
    """The two names of a `diff --git` line. Without quotes only equal names can be told apart."""
    if not line.startswith(b"diff --git "):
        name = _unquote(line.partition(b" ")[2].partition(b" ")[2])
        return name, name
    rest = line.removeprefix(b"diff --git ")
    if rest.startswith(b'"'):
        end = _quote_end(rest)
        old, new = _unquote(rest[:end]), _unquote(rest[end + 1 :])
    elif rest.endswith(b'"') and b' "' in rest:
        first, _, second = rest.partition(b' "')
        old, new = _unquote(first), _unquote(b'"' + second)
    else:
        half = len(rest) // 2
        old, new = _unquote(rest[:half]), _unquote(rest[half + 1 :])
    return old.removeprefix("a/"), new.removeprefix("b/")


def _quote_end(text: bytes) -> int:
    at = 1
    while at < len(text) and text[at : at + 1] != b'"':
        at += 2 if text[at : at + 1] == b"\\" else 1
    return at + 1


def _unquote(name: bytes) -> str:
    """A path as git prints it: plain, or C-quoted with octal bytes."""
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        name = _ESCAPE.sub(_unescape, name[1:-1])
    return name.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)
