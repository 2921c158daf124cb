"""What a change shows of an earlier finding (app/review/traces.py), on diffs as git prints them."""

from __future__ import annotations

import pytest

from app.domain.diff import Diff
from app.domain.findings import Location
from app.git.diff import parse_diff
from app.review.traces import cites, touches

CHANGE = parse_diff(
    b"diff --git a/app/a.py b/app/a.py\n--- a/app/a.py\n+++ b/app/a.py\n"
    b"@@ -10,4 +10,5 @@\n keep\n-old\n+new\n+more\n keep\n keep\n"
    b"diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n"
    b"@@ -1 +0,0 @@\n-x\n"
    b"diff --git a/was.py b/now.py\nsimilarity index 90%\nrename from was.py\nrename to now.py\n"
    b"--- a/was.py\n+++ b/now.py\n@@ -5,3 +5,2 @@\n keep\n-lost\n keep\n"
    b"diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n"
)
NONE = Diff(())


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        pytest.param("see app/a.py:11", ["app/a.py"], True, id="a changed line"),
        pytest.param("(`app/a.py:10`)", ["app/a.py"], True, id="in the hunk, in quotes"),
        pytest.param("app/a.py:11-12", ["app/a.py"], True, id="a range"),
        pytest.param("app/a.py:15", ["app/a.py"], False, id="after the hunk"),
        pytest.param("app/a.py:90 app/a.py:12", ["app/a.py"], True, id="one of two"),
        pytest.param("app/a.py:110", ["app/a.py"], False, id="a longer number"),
        pytest.param("app/a.py line 11", ["app/a.py"], False, id="no place"),
        pytest.param("my/app/a.py:11", ["app/a.py"], False, id="another file's end"),
        pytest.param("app/a.py:11", ["app/b.py"], False, id="not a file of the finding"),
        pytest.param("app/a.py:11", [], True, id="a finding without a file"),
        pytest.param("other.py:11", [], False, id="a file that did not change"),
        pytest.param("gone.py:1", ["gone.py"], True, id="a deleted file"),
        pytest.param("app/a.py:" + "9" * 5000, ["app/a.py"], False, id="a number without end"),
        pytest.param("", ["app/a.py"], False, id="nothing"),
    ],
)
def test_a_cited_place(text: str, files: list[str], expected: bool) -> None:
    """A word counts only if it names a line that the diff shows, in a file of the finding."""
    assert cites(text, files, CHANGE) is expected
    assert not cites(text, files, NONE)


def at(path: str | None, first: int | None = None, last: int | None = None) -> Location:
    return Location(path, first, last)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(at("app/a.py", 1), at("app/a.py", 11), True, id="a new line"),
        pytest.param(at("app/a.py", 1), at("app/a.py", 9, 12), True, id="a range with new lines"),
        pytest.param(at("app/a.py", 1), at("app/a.py", 10), False, id="beside them"),
        pytest.param(at("app/a.py", 11), at("app/a.py", 60), True, id="its old line is gone"),
        pytest.param(at("app/a.py", 12), at("app/a.py", 60), False, id="its old line is kept"),
        pytest.param(at("b.py", 11), at("app/a.py", 60), False, id="another file's old line"),
        pytest.param(at("was.py", 6), at("now.py", 90), True, id="under its old name"),
        pytest.param(at("app/a.py"), at("app/a.py"), True, id="the whole file"),
        pytest.param(at("logo.png", 1), at("logo.png", 1), True, id="no text"),
        pytest.param(at("b.py", 11), at("b.py", 11), False, id="an unchanged file"),
        pytest.param(at(None), at(None), True, id="no file"),
    ],
)
def test_a_touched_anchor(before: Location, now: Location, expected: bool) -> None:
    """A change touches a finding where it takes or gives one of its lines."""
    assert touches(CHANGE, before, now) is expected
    assert not touches(NONE, before, now)
