"""A change as values (app/domain/diff.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.diff import (
    Diff,
    FileChange,
    FileStatus,
    Hunk,
    LineKind,
    blocks_of,
    count_lines,
)

HUNK = Hunk(4, 3, 6, 3, b" same\n-gone\n+new \xff\n \n")


def file(path: str = "a.py", status: FileStatus = FileStatus.MODIFIED) -> FileChange:
    return FileChange(path, None, status, 1, 1, (HUNK,))


def test_a_hunk_says_which_lines_it_shows() -> None:
    """Everything that stands on either side, and what it removed."""
    assert list(HUNK.right) == [6, 7, 8]
    assert list(HUNK.left) == [4, 5, 6]
    assert [line.old for line in HUNK.removed(1, 99)] == [5]


BODY_LINES = (b" a", b"+a", b"-a", b"+", b"-", b"+\\", b"", b"\r", b"\\ No newline")


@given(st.lists(st.sampled_from(BODY_LINES)), st.booleans())
def test_lines_are_counted_as_they_are_read(lines: list[bytes], ends: bool) -> None:
    """Counting without reading gives what reading gives; a remark is no line of any side."""
    body = b"".join(line + b"\n" for line in lines)
    hunk = Hunk(3, 0, 5, 0, body if ends else body[:-1])
    kinds = [line.kind for line in hunk.lines]
    assert count_lines(hunk.body) == (
        kinds.count(LineKind.ADDED), kinds.count(LineKind.REMOVED), kinds.count(LineKind.CONTEXT)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "text"),
    [(5, None), (6, "same"), (7, "new \udcff"), (8, ""), (9, None), (0, None), (-1, None)],
)
def test_a_line_is_shown_or_is_not(line: int, text: str | None) -> None:
    """A comment can stand exactly where a text can be quoted."""
    assert file().text_at(line) == text
    assert file().shows(line) is (text is not None)


@pytest.mark.parametrize(
    ("old", "new", "submodule", "symlink"),
    [
        pytest.param("100644", "100755", False, False, id="executable"),
        pytest.param(None, "160000", True, False, id="new-submodule"),
        pytest.param("160000", None, True, False, id="gone-submodule"),
        pytest.param("120000", "100644", False, True, id="was-a-link"),
    ],
)
def test_modes_tell_what_a_file_is(
    old: str | None, new: str | None, submodule: bool, symlink: bool
) -> None:
    """On either side of the change."""
    change = FileChange("a", None, FileStatus.MODIFIED, 0, 0, old_mode=old, new_mode=new)
    assert (change.submodule, change.symlink) == (submodule, symlink)


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_entries_the_one_that_is_there_answers(turned: bool) -> None:
    """A file that became a link is deleted and added under the same name."""
    entries = (file("x", FileStatus.DELETED), file("x", FileStatus.ADDED))
    found = Diff(entries[::-1] if turned else entries).file("x")
    assert found is not None
    assert found.status is FileStatus.ADDED


def test_a_deleted_file_is_found_and_a_stranger_is_not() -> None:
    """By its name before the change."""
    diff = Diff((file("gone", FileStatus.DELETED), file("b")))
    assert diff.file("gone") is diff.files[0]
    assert diff.file("c") is None
    assert diff.paths == {"gone", "b"}


@given(st.lists(st.sampled_from(BODY_LINES), min_size=1), st.integers(-1, 30), st.integers(-1, 30))
def test_lines_are_found_by_their_numbers(lines: list[bytes], first: int, last: int) -> None:
    """Asking for a few lines gives what reading all of them gives, however they are looked up."""
    body = b"".join(line + b"\n" for line in lines)
    counts = count_lines(body)
    hunk = Hunk(3, counts.old, 5, counts.new, body)
    whole = hunk.lines
    for block in (1, 3, 1 << 16):
        parts = Hunk(*hunk)
        parts.__dict__["_blocks"] = blocks_of(parts, block)
        assert parts.shown(first, last) == tuple(
            line for line in whole if line.new is not None and first <= line.new <= last
        )
        assert parts.removed(first, last) == tuple(
            line
            for line in whole
            if line.kind is LineKind.REMOVED and line.old is not None and first <= line.old <= last
        )


@given(st.lists(st.sampled_from((*BODY_LINES, b"+-a", b"-+a", b" a+", b"+x a")), min_size=1))
def test_lines_are_found_by_their_text(lines: list[bytes]) -> None:
    """The sign before a line is no part of its text."""
    hunk = Hunk(3, 0, 5, 0, b"".join(line + b"\n" for line in lines))
    for pieces in ([b"a"], [b"-a", b"x"], [b"+"], [b"a+", b"\\"]):
        wanted = [line for line in hunk.lines if any(piece in line.content for piece in pieces)]
        assert list(hunk.holding(pieces)) == wanted
