"""A change as values (app/domain/diff.py)."""

from __future__ import annotations

import pytest

from app.domain.diff import Diff, FileChange, FileStatus, Hunk, HunkLine, LineKind

HUNK = Hunk(
    4,
    6,
    (
        HunkLine(LineKind.CONTEXT, 4, 6, b"same"),
        HunkLine(LineKind.REMOVED, 5, None, b"gone"),
        HunkLine(LineKind.ADDED, None, 7, b"new \xff"),
        HunkLine(LineKind.CONTEXT, 6, 8, b""),
    ),
)


def file(path: str = "a.py", status: FileStatus = FileStatus.MODIFIED) -> FileChange:
    return FileChange(path, None, status, 1, 1, (HUNK,))


def test_a_hunk_says_which_lines_it_shows() -> None:
    """Right: everything that stands after the change; left: only what it removed."""
    assert list(HUNK.right) == [6, 7, 8]
    assert HUNK.left == {5}


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
