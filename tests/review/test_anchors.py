"""Where findings stand (app/review/anchors.py), held to the rules of GitHub's API."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.diff import Diff, FileChange, Hunk, LineKind
from app.domain.effects import Side
from app.domain.findings import Location
from app.git.diff import parse_diff
from app.review.anchors import Anchor, anchor, is_exact, settle, suggestion_block

DIFF = parse_diff(
    b"""diff --git a/m.py b/m.py
index 1..2 100644
--- a/m.py
+++ b/m.py
@@ -2,7 +2,8 @@ line 1
 line 2
 line 3
 line 4
-old_call()
+new_call(1)
+new_call(2)
 line 6
 line 7
 line 8
@@ -28,6 +29,7 @@ line 27
 line 28
 line 29
 line 30
+unique_needle = 1
 line 31
 line 32
 line 33
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 1..0
--- a/gone.py
+++ /dev/null
@@ -1,3 +0,0 @@
-a = 1
-b = 2
-c = 3
diff --git a/emptied.py b/emptied.py
index 1..2 100644
--- a/emptied.py
+++ b/emptied.py
@@ -1,2 +0,0 @@
-x
-y
diff --git a/moved.py b/to.py
similarity index 100%
rename from moved.py
rename to to.py
"""
)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        pytest.param(Location("m.py", 5), Anchor("m.py", 5), id="added-line"),
        pytest.param(Location("m.py", 2), Anchor("m.py", 2), id="first-of-hunk"),
        pytest.param(Location("m.py", 9), Anchor("m.py", 9), id="last-of-hunk"),
        pytest.param(Location("m.py", 1), None, id="before-the-hunk"),
        pytest.param(Location("m.py", 10), None, id="after-the-hunk"),
        pytest.param(Location("m.py", 999), None, id="beyond-the-file"),
        pytest.param(Location("m.py", 5, 5), Anchor("m.py", 5), id="one-line-twice"),
        pytest.param(Location("m.py", 5, 6), Anchor("m.py", 6, start_line=5), id="several-lines"),
        pytest.param(Location("m.py", 6, 5), Anchor("m.py", 6, start_line=5), id="reversed"),
        pytest.param(Location("m.py", 0, 4), Anchor("m.py", 4), id="zero"),
        pytest.param(Location("m.py", -3, 4), Anchor("m.py", 4), id="negative"),
        pytest.param(Location("m.py", -3), None, id="only-negative"),
        pytest.param(Location("m.py", 8, 30), Anchor("m.py", 9, start_line=8), id="over-two-hunks"),
        pytest.param(Location("m.py", 9, 20), Anchor("m.py", 9), id="cut-to-one-line"),
        pytest.param(
            Location("m.py", 15, 31), Anchor("m.py", 31, start_line=29), id="begins-before"
        ),
        pytest.param(Location("gone.py", 2), Anchor("gone.py", 2, Side.LEFT), id="deleted-file"),
        pytest.param(
            Location("gone.py", 1, 9), Anchor("gone.py", 3, Side.LEFT, 1), id="deleted-file-range"
        ),
        pytest.param(
            Location("emptied.py", 1), Anchor("emptied.py", 1, Side.LEFT), id="emptied-file"
        ),
        pytest.param(Location("to.py", 1), None, id="pure-rename"),
        pytest.param(Location("other.py", 1), None, id="not-in-the-change"),
        pytest.param(Location("m.py"), None, id="whole-file"),
        pytest.param(Location(None), None, id="whole-change"),
    ],
)
def test_a_place_in_a_hunk_or_none(location: Location, expected: Anchor | None) -> None:
    """Only lines that the diff shows, one hunk, start before end."""
    assert anchor(location, DIFF) == expected


@pytest.mark.parametrize(
    ("location", "quote", "expected"),
    [
        pytest.param(
            Location("m.py", 5), "old_call()", Anchor("m.py", 5, Side.LEFT), id="old-number"
        ),
        pytest.param(Location("m.py", 5), "new_call(1)", Anchor("m.py", 5), id="new-number"),
        pytest.param(Location("m.py", 5), "somewhere else", Anchor("m.py", 5), id="no-such-line"),
        pytest.param(Location("m.py", 5), "", Anchor("m.py", 5), id="no-quote"),
        pytest.param(
            Location("m.py", 9120), "it says `unique_needle = 1` there",
            Anchor("m.py", 32), id="found-by-quote",
        ),
        pytest.param(
            Location("m.py", 9120), "prose\n\n    old_call()\n", Anchor("m.py", 5, Side.LEFT),
            id="found-on-the-left",
        ),
        pytest.param(Location("m.py", 9120), "new_call", None, id="not-unique"),
        pytest.param(Location("m.py", 9120), "x", None, id="too-short"),
        pytest.param(Location("m.py", 9120), "line 3", None, id="prefix-of-many"),
        pytest.param(Location("other.py", 1), "old_call()", None, id="not-in-the-change"),
    ],
)  # fmt: skip
def test_a_quote_helps_a_number(location: Location, quote: str, expected: Anchor | None) -> None:
    """It tells old from new numbers and finds the line where the number leads nowhere; a number
    that is good needs none."""
    assert anchor(location, DIFF, quote) == expected


@pytest.mark.parametrize(
    ("location", "count", "quote", "expected"),
    [
        (Location("m.py", 5), 40, "", Location("m.py", 5, 5)),
        (Location("m.py", 40), 40, "", Location("m.py", 40, 40)),
        (Location("m.py", 41), 40, "", Location("m.py")),
        (Location("m.py", 38, 99), 40, "", Location("m.py", 38, 40)),
        (Location("m.py", 9120), 40, "unique_needle = 1", Location("m.py", 32, 32)),
        (Location("m.py", 9120), 40, "old_call()", Location("m.py")),
        (Location("m.py", 9120), None, "", Location("m.py", 9120, 9120)),
        (Location("m.py", 9, 7), 40, "", Location("m.py", 7, 9)),
        (Location("m.py", 0), 40, "", Location("m.py")),
        (Location(None), 40, "", Location(None)),
    ],
)
def test_lines_that_do_not_exist_are_not_kept(
    location: Location, count: int | None, quote: str, expected: Location
) -> None:
    """A number beyond the file looks exact and points nowhere."""
    assert settle(location, DIFF, line_count=count, quote=quote) == expected


@st.composite
def hunks(draw: st.DrawFn) -> bytes:
    """A file's hunks with numbers that only grow, as git writes them."""
    old = new = 1
    parts = [b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"]
    for _ in range(draw(st.integers(1, 3))):
        gap = draw(st.integers(0, 9))
        old, new = old + gap, new + gap
        signs = draw(st.lists(st.sampled_from(" +-"), min_size=1, max_size=8))
        olds, news = len(signs) - signs.count("+"), len(signs) - signs.count("-")
        parts.append(
            b"@@ -%d,%d +%d,%d @@\n"
            % (old if olds else old - 1, olds, new if news else new - 1, news)
        )
        parts += [
            f"{sign}{draw(st.sampled_from(['a', 'call()', 'x = 1', '']))}\n".encode()
            for sign in signs
        ]
        old, new = old + olds + 1, new + news + 1
    return b"".join(parts)


numbers = st.none() | st.integers(-2, 40)


@given(hunks(), numbers, numbers, st.sampled_from(["", "call()", "x = 1", "`call()` and x = 1"]))
def test_every_anchor_is_one_that_github_takes(
    raw: bytes, start: int | None, end: int | None, quote: str
) -> None:
    """One wrong comment refuses the whole review, so none may be wrong: the line is in a hunk of
    its side, a start is before it in the same hunk."""
    diff = parse_diff(raw)
    place = anchor(Location("f", start, end), diff, quote)
    if place is None:
        return
    assert _is_commentable(place, diff.files[0])
    if start is not None and end is not None and 0 < start <= end and place.side is Side.RIGHT:
        assert place.line <= end or quote


def _is_commentable(place: Anchor, file: FileChange) -> bool:
    if place.start_line is not None and place.start_line >= place.line:
        return False
    wanted = {place.line, place.start_line or place.line}
    return any(wanted <= _numbers(hunk, place.side) for hunk in file.hunks)


def _numbers(hunk: Hunk, side: Side) -> set[int]:
    if side is Side.RIGHT:
        return {line.new for line in hunk.lines if line.new is not None}
    return {
        line.old for line in hunk.lines if line.kind is LineKind.REMOVED and line.old is not None
    }


@given(hunks(), st.integers(1, 40), st.integers(1, 40))
def test_a_line_of_the_diff_always_gets_its_comment(raw: bytes, line: int, end: int) -> None:
    """What can be anchored is: the body is for the rest."""
    diff = parse_diff(raw)
    place = anchor(Location("f", line), diff)
    if diff.files[0].shows(line):
        assert place == Anchor("f", line)
    else:
        assert place is None or place.side is Side.LEFT


@pytest.mark.parametrize(
    ("place", "location", "exact"),
    [
        (Anchor("m.py", 5), Location("m.py", 5), True),
        (Anchor("m.py", 6, start_line=5), Location("m.py", 5, 6), True),
        (Anchor("m.py", 6, start_line=5), Location("m.py", 6, 5), True),
        (Anchor("m.py", 9, start_line=8), Location("m.py", 8, 30), False),
        (Anchor("m.py", 5, Side.LEFT), Location("m.py", 5), False),
        (Anchor("m.py", 5), Location("m.py"), False),
    ],
)
def test_only_the_exact_range_takes_a_suggestion(
    place: Anchor, location: Location, exact: bool
) -> None:
    """A cut range would leave the other lines in place, and nothing can be put on the left."""
    assert is_exact(place, location) is exact


@pytest.mark.parametrize(
    ("code", "block"),
    [
        pytest.param(None, "", id="none"),
        pytest.param("", "```suggestion\n```", id="delete-the-lines"),
        pytest.param("\n", "```suggestion\n\n```", id="one-blank-line"),
        pytest.param("x = 1", "```suggestion\nx = 1\n```", id="no-line-end"),
        pytest.param("x = 1\r\ny\r\n", "```suggestion\nx = 1\ny\n```", id="crlf"),
        pytest.param("```\nx\n```", "````suggestion\n```\nx\n```\n````", id="fence"),
        pytest.param("a ````` b\n", "``````suggestion\na ````` b\n``````", id="run-inside"),
        pytest.param("~~~\nx\n~~~", "```suggestion\n~~~\nx\n~~~\n```", id="tildes"),
        pytest.param("  indented\n", "```suggestion\n  indented\n```", id="indented"),
        pytest.param('token = "ghp_' + "a" * 36 + '"', "", id="credential"),
        pytest.param("a\u202eb", "", id="invisible"),
        pytest.param("<!-- mergeward:review:run-1 -->", "", id="our-marker"),
        pytest.param("@team # mention", "```suggestion\n@team # mention\n```", id="mention"),
        pytest.param("x" * 100_000, "", id="too-long"),
    ],
)
def test_a_block_is_applied_letter_by_letter(code: str | None, block: str) -> None:
    """The fence outlasts the code; what may not be posted as it is gets no block at all."""
    assert suggestion_block(code) == block


@given(st.text(st.sampled_from("`~ \nab"), max_size=30))
def test_no_code_ends_its_block(code: str) -> None:
    """Read as Markdown, the block holds exactly the code."""
    first, *rest = suggestion_block(code).split("\n")
    fence = first.removesuffix("suggestion")
    closing = [n for n, line in enumerate(rest) if _closes(line, fence)]
    assert closing == [len(rest) - 1]
    assert "\n".join(rest[:-1]) == code.removesuffix("\n")


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" ")
    return len(bare) >= len(fence) and set(bare) == {"`"}


def test_a_change_without_files_has_no_place() -> None:
    """Nothing to stand on is not an error."""
    assert anchor(Location("m.py", 1), Diff(())) is None
