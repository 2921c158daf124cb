"""Raw `git diff` bytes to values.

The rules that keep it right: while a hunk still owes lines, nothing is looked at but the first
byte of each line, so changed lines that look like headers are lines; after a file's first hunk no
header is read until the next file begins. Lines end at LF alone; CR and every other separator
belongs to the text. What keeps it fast: single lines are walked only where a hunk's counts do not
add up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

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
_HUNK = re.compile(rb"\n@@ -%s(?:,%s)? \+%s(?:,%s)? @@[^\n]*(?:\n|\Z)" % (_N, _N, _N, _N))
_COMBINED = re.compile(
    rb"\n(@{3,})((?: -\d{1,9}(?:,\d{1,9})?)+) \+%s(?:,%s)? \1[^\n]*(?:\n|\Z)" % (_N, _N)
)
_FILE = (b"diff --git ", b"diff --cc ", b"diff --combined ")
_NEXT_FILE = re.compile(rb"\ndiff --(?:git|cc|combined) ")
_BODY_END = re.compile(rb"\n(?![ +\-\\]|\r?(?:\n|\Z))")
"""Before a line that can't be a hunk's: its first byte is no sign, and it is not blank."""

_FIRST = itemgetter(0)
_PIECE = 1 << 18
"""Bytes that are split into lines at a time, so that a huge file needs no huge list."""

_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r",
}  # fmt: skip


@dataclass(slots=True)
class _Open:
    """A file whose headers and hunks are being read."""

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
    starts = list(_file_starts(raw))
    ends = (*starts[1:], len(raw))
    return Diff(tuple(_file(raw, *span) for span in zip(starts, ends, strict=False)))


def _file_starts(raw: bytes) -> Iterator[int]:
    """Where lines stand that begin a file. A hunk's line can't be one: it has a sign."""
    if raw.startswith(_FILE):
        yield 0
    for found in _NEXT_FILE.finditer(raw):
        yield found.start() + 1


def _file(raw: bytes, start: int, end: int) -> FileChange:
    """One file: its headers stand before its first hunk, and nothing after that is one."""
    plain = raw.startswith(_FILE[0], start)
    head, read_hunks = (_HUNK, _read_hunks) if plain else (_COMBINED, _read_combined)
    found = head.search(raw, start, end)
    head_end = found.start() if found else end
    # A file name's own CR is written as an escape: this one came on the way.
    first, *headers = raw[start:head_end].replace(b"\r", b"").split(b"\n")
    current = _Open()
    for line in headers:
        key, _, value = line.partition(b" ")
        read = _HEADERS.get(key)
        if read is not None:
            read(current, key, value)
    if current.old is None or current.new is None:
        old, new = _names(first)
        current.old, current.new = current.old or old, current.new or new
    if found and not current.binary:
        read_hunks(current, raw, found.start(), end)
    return _close(current, raw, start, end)


def _read_hunks(current: _Open, raw: bytes, start: int, end: int) -> None:
    """The lines of a hunk stand between its head and the next one, perhaps with other words after
    them. All is well where the numbers of signs are those of the head, and every line has one."""
    heads = list(_HUNK.finditer(raw, start, end))
    signs = _signs(raw, start + 1, end)
    signed = signs.translate(None, b" +-") == b"@" * len(heads)
    owns = signs.split(b"@")[1:] if signed else [b""] * len(heads)
    untils = [head.start() + 1 for head in heads[1:]]
    hunks = current.hunks
    for head, own, until in zip(heads, owns, (*untils, end), strict=True):
        old_start, old_count, new_start, new_count = map(int, head.groups(b"1"))
        begin, stop = head.end(), until
        added, removed = own.count(b"+"), own.count(b"-")
        if not signed or len(own) != old_count + added or len(own) != new_count + removed:
            stop = _own_end(raw, begin, until, old_count, new_count)
            added, removed, context = count_lines(raw, begin, stop)
            old_count, new_count = removed + context, added + context
            _mark_no_newline(current, raw, begin, stop)
        current.additions += added
        current.deletions += removed
        hunks.append(Hunk(old_start, old_count, new_start, new_count, raw[begin:stop]))


def _signs(raw: bytes, start: int, end: int) -> bytes:
    """The first byte of each line; an empty line, which lost its blank on the way, gives one."""
    found = []
    while start < end:
        stop = raw.find(b"\n", start + _PIECE, end) + 1 or end
        lines = raw[start:stop].removesuffix(b"\n").split(b"\n")
        try:
            found.append(bytes(map(_FIRST, lines)))
        except IndexError:
            found.append(b"".join(line[:1] or b" " for line in lines))
        start = stop
    return b"".join(found)


def _own_end(raw: bytes, start: int, end: int, old_due: int, new_due: int) -> int:
    """Where the hunk's lines end that begin at `start` and may go on to `end`."""
    found = _BODY_END.search(raw, start - 1, end)
    end = found.start() + 1 if found else end
    counts = count_lines(raw, start, end)
    if counts.old == old_due and counts.new == new_due:
        return end
    return _owed(raw, start, end, old_due, new_due)  # cut off, or words follow the hunk


def _read_combined(current: _Open, raw: bytes, start: int, end: int) -> None:
    """The hunks of a merge. Lines that only parents have are passed over; the first one counts."""
    heads = list(_COMBINED.finditer(raw, start, end))
    untils = [head.start() + 1 for head in heads[1:]]
    for head, until in zip(heads, (*untils, end), strict=True):
        ranges = [_range(text) for text in head[2].split()]
        body = raw[head.end() : until]
        body = body[: _owed_by_merge(body, [count for _, count in ranges], int(head[4] or b"1"))]
        whole = Hunk(ranges[0][0], 0, int(head[3]), 0, body, len(ranges))
        lines = whole.lines
        old_count = sum(line.old is not None for line in lines)
        current.additions += sum(line.kind is LineKind.ADDED for line in lines)
        current.hunks.append(whole._replace(old_count=old_count, new_count=len(lines)))


def _close(current: _Open, raw: bytes, start: int, end: int) -> FileChange:
    deleted = current.status is FileStatus.DELETED
    path = (current.old if deleted else current.new) or current.old or current.new or ""
    moved = current.status in (FileStatus.RENAMED, FileStatus.COPIED)
    status = current.status
    before, after = current.old_mode, current.new_mode
    if status is FileStatus.MODIFIED and before and after and before[:3] != after[:3]:
        status = FileStatus.TYPE_CHANGED
    return FileChange(
        path=path,
        old_path=current.old if moved else None,
        status=status,
        additions=current.additions,
        deletions=current.deletions,
        hunks=tuple(current.hunks),
        binary=current.binary,
        old_mode=before,
        new_mode=after,
        no_newline_at_end=(current.no_newline[0], current.no_newline[1]),
        raw=raw,
        begins=start,
        ends=end,
    )


def _range(text: bytes) -> tuple[int, int]:
    """Start and count of `-12,3`."""
    start, comma, count = text[1:].partition(b",")
    return int(start), int(count) if comma else 1


def _owed(raw: bytes, start: int, end: int, old_due: int, new_due: int) -> int:
    """Where the lines end that a hunk owes by its counts."""
    while start < end:
        sign = raw[start : start + 1]
        if old_due <= 0 and new_due <= 0 and not raw.startswith(b"\\ ", start):
            break
        start = raw.find(b"\n", start, end) + 1 or end
        old_due -= sign not in (b"+", b"\\")
        new_due -= sign not in (b"-", b"\\")
    return start


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


def _mark_no_newline(current: _Open, raw: bytes, start: int, end: int) -> None:
    """Each remark speaks of the line before it."""
    at = raw.find(b"\n\\", start, end)
    while at >= 0:
        line = raw.rfind(b"\n", start, at) + 1 or start
        before = raw[line : line + 1]
        current.no_newline[0] |= before not in (b"+", b"\\")
        current.no_newline[1] |= before not in (b"-", b"\\")
        at = raw.find(b"\n\\", at + 1, end)


def _side(current: _Open, key: bytes, value: bytes) -> None:
    name = _unquote(value.partition(b"\t")[0])
    if name == "/dev/null" or current.status in (FileStatus.RENAMED, FileStatus.COPIED):
        return
    if key == b"---":
        current.old = name.removeprefix("a/")
    else:
        current.new = name.removeprefix("b/")


def _move(current: _Open, key: bytes, value: bytes) -> None:
    if value.startswith(b"from "):
        current.old = _unquote(value.removeprefix(b"from "))
    elif value.startswith(b"to "):
        current.new = _unquote(value.removeprefix(b"to "))
    else:
        return
    current.status = FileStatus.RENAMED if key == b"rename" else FileStatus.COPIED


def _mode(current: _Open, key: bytes, value: bytes) -> None:
    words, _, mode = value.rpartition(b" ")
    if words == b"file mode" and key == b"new":
        current.status, current.new_mode = FileStatus.ADDED, _ascii(mode)
    elif words == b"file mode" and key == b"deleted":
        current.status, current.old_mode = FileStatus.DELETED, _ascii(mode)
    elif words == b"mode" and key == b"old":
        current.old_mode = _ascii(mode)
    elif words == b"mode" and key == b"new":
        current.new_mode = _ascii(mode)


def _index(current: _Open, _: bytes, value: bytes) -> None:
    mode = value.partition(b" ")[2]
    if mode and b" " not in mode:
        current.old_mode = current.new_mode = _ascii(mode)


def _binary(current: _Open, key: bytes, value: bytes) -> None:
    current.binary |= value.startswith(b"binary patch" if key == b"GIT" else b"files ")


_HEADERS: dict[bytes, Callable[[_Open, bytes, bytes], None]] = {
    b"---": _side,
    b"+++": _side,
    b"rename": _move,
    b"copy": _move,
    b"new": _mode,
    b"old": _mode,
    b"deleted": _mode,
    b"index": _index,
    b"GIT": _binary,
    b"Binary": _binary,
}
"""What a header is read by, by its first word."""


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
    if name[:1] == b'"' and len(name) > 1 and name.endswith(b'"'):
        name = _ESCAPE.sub(_unescape, name[1:-1])
    return name.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)
