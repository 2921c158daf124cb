"""Raw `git diff` bytes to values.

The rules that keep it right: while a hunk still owes lines, nothing is looked at but the first
byte of each line, so changed lines that look like headers are lines; after a file's first hunk no
header is read until the next file begins. Lines end at LF alone; CR and every other separator
belongs to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.domain.diff import Diff, FileChange, FileStatus, Hunk, HunkLine, LineKind

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

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_COMBINED = re.compile(rb"(@{3,})((?: -\d+(?:,\d+)?)+) \+(\d+)(?:,(\d+))? \1")
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
        self._at = 0

    def files(self) -> Iterator[FileChange]:
        current: _Open | None = None
        while self._at < len(self._raw):
            start = self._at
            line = self._line()
            if line.startswith((b"diff --git ", b"diff --cc ", b"diff --combined ")):
                if current is not None:
                    yield self._close(current, start)
                current = _Open(start)
                current.old, current.new = _names(line)
            elif current is not None and not current.binary:
                self._inside(current, line)
        if current is not None:
            yield self._close(current, len(self._raw))

    def _inside(self, current: _Open, line: bytes) -> None:
        if hunk := _HUNK.match(line):
            self._hunk(current, hunk)
        elif combined := _COMBINED.match(line):
            self._combined_hunk(current, combined)
        elif not current.hunks:
            _header(current, line)

    def _line(self) -> bytes:
        end = self._raw.find(b"\n", self._at)
        end = len(self._raw) if end < 0 else end
        line = self._raw[self._at : end]
        self._at = end + 1
        return line

    def _hunk(self, current: _Open, head: re.Match[bytes]) -> None:
        old, new = int(head[1]), int(head[3])
        old_due = int(head[2]) if head[2] is not None else 1
        new_due = int(head[4]) if head[4] is not None else 1
        old_start, new_start = old, new
        lines: list[HunkLine] = []
        while (old_due > 0 or new_due > 0) and self._at < len(self._raw):
            line = self._line()
            sign = line[:1]
            if sign == b"+":
                lines.append(HunkLine(LineKind.ADDED, None, new, line[1:]))
                new, new_due = new + 1, new_due - 1
                current.additions += 1
            elif sign == b"-":
                lines.append(HunkLine(LineKind.REMOVED, old, None, line[1:]))
                old, old_due = old + 1, old_due - 1
                current.deletions += 1
            elif sign == b" " or line in (b"", b"\r"):
                # A blank context line may have lost its leading blank on the way.
                content = line[1:] if sign == b" " else line
                lines.append(HunkLine(LineKind.CONTEXT, old, new, content))
                old, new, old_due, new_due = old + 1, new + 1, old_due - 1, new_due - 1
            elif sign == b"\\":
                _mark_no_newline(current, lines)
            else:  # the hunk was cut off, this line is not its own
                self._at -= len(line) + 1
                break
        if self._raw[self._at : self._at + 2] == b"\\ ":
            self._line()
            _mark_no_newline(current, lines)
        current.hunks.append(Hunk(old_start, new_start, tuple(lines)))

    def _combined_hunk(self, current: _Open, head: re.Match[bytes]) -> None:
        """A hunk of a merge. Lines that only parents have are passed over; the first one counts."""
        ranges = [_range(text) for text in head[2].split()]
        parents = len(ranges)
        due = [count for _, count in ranges]
        old, new, new_due = ranges[0][0], int(head[3]), int(head[4] or 1)
        lines: list[HunkLine] = []
        start = (old, new)
        while (new_due > 0 or max(due) > 0) and self._at < len(self._raw):
            line = self._line()
            signs, content = line[:parents], line[parents:]
            if signs.strip(b" +-\\"):
                self._at -= len(line) + 1
                break
            if signs[:1] == b"\\":
                continue
            mark = b"-" if b"-" in signs else b" "
            owners = [signs[n : n + 1] == mark for n in range(parents)]
            due = [left - has for left, has in zip(due, owners, strict=True)]
            if mark == b" ":
                kind = LineKind.ADDED if b"+" in signs else LineKind.CONTEXT
                number = old if owners[0] and kind is LineKind.CONTEXT else None
                lines.append(HunkLine(kind, number, new, content))
                new, new_due = new + 1, new_due - 1
                current.additions += kind is LineKind.ADDED
            old += owners[0]
        current.hunks.append(Hunk(*start, tuple(lines)))

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


def _range(text: bytes) -> tuple[int, int]:
    """Start and count of `-12,3` (a count that is left out is 1)."""
    start, _, count = text[1:].partition(b",")
    return int(start), int(count or 1)


def _type(mode: str | None) -> str | None:
    return mode[:3] if mode else None


def _mark_no_newline(current: _Open, lines: list[HunkLine]) -> None:
    kind = lines[-1].kind if lines else LineKind.CONTEXT
    if kind is not LineKind.ADDED:
        current.no_newline[0] = True
    if kind is not LineKind.REMOVED:
        current.no_newline[1] = True


def _header(current: _Open, line: bytes) -> None:
    key, _, value = line.partition(b" ")
    if line.startswith((b"GIT binary patch", b"Binary files ")):
        current.binary = True
    elif key in (b"rename", b"copy"):
        _move(current, key, value)
    elif key in (b"---", b"+++"):
        _side(current, key, value)
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
    if len(name) > 1 and name.startswith(b'"') and name.endswith(b'"'):
        name = _ESCAPE.sub(_unescape, name[1:-1])
    return name.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)
