"""Suggestions that one click may apply (app/review/suggestions.py)."""

from __future__ import annotations

import pytest

from app.domain.diff import FileChange
from app.domain.effects import Side
from app.domain.findings import Location
from app.git.diff import parse_diff
from app.review.anchors import Anchor
from app.review.suggestions import suggestion_at

FILE = "def f():\n    a = 1\n\n    b = 2\n    if a:\n        return b\n    return a\n}\n}\n"


def change(text: str = FILE) -> FileChange:
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    head = "diff --git a/a.py b/a.py\nnew file mode 100644\n--- /dev/null\n+++ b/a.py\n"
    return parse_diff(f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}".encode()).files[0]


def applied(first: int, last: int, code: str) -> str | None:
    """The file after one click, None when there is nothing to click."""
    place = Anchor("a.py", last, Side.RIGHT, first if first < last else None)
    block = suggestion_at(place, Location("a.py", first, last), change(), code)
    if not block:
        return None
    lines = FILE.splitlines()
    return "\n".join([*lines[: first - 1], *block.split("\n")[1:-1], *lines[last:]]) + "\n"


@pytest.mark.parametrize(
    ("first", "last", "code", "old", "new"),
    [
        pytest.param(2, 2, "    a = 10", "    a = 1\n", "    a = 10\n", id="one-line"),
        pytest.param(2, 2, "a = 10", "    a = 1\n", "    a = 10\n", id="indentation-lost"),
        pytest.param(
            3, 4, "\nb = 3\n", "\n    b = 2\n", "\n    b = 3\n", id="range-begins-with-a-blank-line"
        ),
        pytest.param(2, 4, "", "    a = 1\n\n    b = 2\n", "", id="deletes"),
        pytest.param(4, 4, "\n", "    b = 2\n", "\n", id="one-blank-line"),
        pytest.param(1, 1, "def g():", "def f():\n", "def g():\n", id="at-the-edge-before"),
        pytest.param(
            6, 6, "        return a\n        # }", "        return b\n",
            "        return a\n        # }\n", id="bracket-alone-is-no-repetition",
        ),
        pytest.param(4, 4, "x = 1\ny", "    b = 2\n", "    x = 1\n    y\n", id="more-lines"),
    ],
)  # fmt: skip
def test_one_click_changes_what_was_meant(
    first: int, last: int, code: str, old: str, new: str
) -> None:
    """The rest of the file stays, and the indentation is that of the lines that go."""
    assert applied(first, last, code) == FILE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("first", "last", "code"),
    [
        pytest.param(2, 2, "    a = 10\n\n    b = 2\n", id="repeats-what-follows"),
        pytest.param(4, 4, "    a = 1\n\n    b = 3", id="repeats-what-stands-before"),
        pytest.param(4, 4, "if a:\n    b = 3", id="indentation-in-doubt"),
        pytest.param(4, 4, "    b = 2\n", id="changes-nothing"),
        pytest.param(4, 4, "-    b = 2\n+    b = 3\n", id="a-patch"),
        pytest.param(4, 4, "     4\t    b = 3\n", id="numbers-of-lines"),
    ],
)
def test_no_block_rather_than_a_wrong_one(first: int, last: int, code: str) -> None:
    """The finding's words stay; only the button is missing."""
    assert applied(first, last, code) is None


def test_a_closing_bracket_may_stand_twice() -> None:
    """Lines without a letter or digit repeat everywhere."""
    text = "fn a() {\n  x();\n}\n}\n"
    block = suggestion_at(
        Anchor("a.py", 2), Location("a.py", 2, 2), change(text), "  if y {\n    x();\n  }"
    )
    assert block == "```suggestion\n  if y {\n    x();\n  }\n```"


@pytest.mark.parametrize(
    ("place", "location"),
    [
        (Anchor("a.py", 2, Side.LEFT), Location("a.py", 2, 2)),
        (Anchor("a.py", 3, start_line=2), Location("a.py", 2, 9)),
    ],
)
def test_a_place_that_is_not_the_range_takes_none(place: Anchor, location: Location) -> None:
    """On deleted lines and on a range that was cut to its hunk."""
    assert suggestion_at(place, location, change(), "x") == ""
    assert suggestion_at(Anchor("a.py", 2), Location("a.py", 2, 2), change(), None) == ""
