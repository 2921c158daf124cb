"""Reading diffs: hunks, positions, anchors and where lines go."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sandbox.github import rules
from app.sandbox.github.diffs import Diff, FileDiff, parse_diff, parse_hunks, shift_line
from app.sandbox.github.state import Anchor, Side

PATCH = (
    "@@ -1,4 +1,5 @@ top\n one\n-two\n+TWO\n+and\n three\n four\n"
    "@@ -20,2 +21,2 @@\n twenty\n-old\n+new\n\\ No newline at end of file"
)
FILE = FileDiff("a.py", None, "modified", "0" * 40, PATCH, parse_hunks(PATCH))
DIFF = Diff((FILE,), "")
L, R = Side.LEFT, Side.RIGHT

BAD_LINE = [rules.BAD_LINE, "Pull request review thread diff hunk can't be blank"]
BAD_PATH = [rules.BAD_PATH, "Pull request review thread diff hunk can't be blank"]
HUNK, ORDER = [rules.BAD_START_HUNK], [rules.BAD_START_ORDER]

ANCHORS: list[tuple[str, Anchor, list[str]]] = [
    ("added line", Anchor("a.py", 2), []),
    ("context line, right", Anchor("a.py", 4), []),
    ("context line, left", Anchor("a.py", 3, L), []),
    ("deleted line", Anchor("a.py", 2, L), []),
    ("second hunk", Anchor("a.py", 22), []),
    ("between hunks", Anchor("a.py", 10), BAD_LINE),
    ("below the end", Anchor("a.py", 99), BAD_LINE),
    ("line zero", Anchor("a.py", 0), BAD_LINE),
    ("right number beyond the left side", Anchor("a.py", 22, L), BAD_LINE),
    ("file outside the diff", Anchor("b.py", 1), BAD_PATH),
    ("whole file", Anchor("a.py"), []),
    ("range", Anchor("a.py", 4, R, 2), []),
    ("range from deleted to added", Anchor("a.py", 3, R, 2, L), []),
    ("range over two hunks", Anchor("a.py", 22, R, 2), HUNK),
    ("range start outside", Anchor("a.py", 22, R, 15), HUNK),
    ("range of one line", Anchor("a.py", 3, R, 3), ORDER),
    ("range backwards", Anchor("a.py", 2, R, 4), ORDER),
    ("backwards across sides", Anchor("a.py", 2, L, 3, R), ORDER),
    ("range with a bad end", Anchor("a.py", 12, R, 2), [*BAD_LINE, *HUNK]),
]


@pytest.mark.parametrize(
    ("anchor", "errors"), [a[1:] for a in ANCHORS], ids=[a[0] for a in ANCHORS]
)
def test_anchor(anchor: Anchor, errors: list[str]) -> None:
    """An anchor holds on a line of a hunk; a range in one hunk, downwards."""
    assert rules.anchor_errors(DIFF, anchor) == errors


def test_joined_says_each_once() -> None:
    """A refused review names each kind of error once and not which comment."""
    assert rules.joined([*BAD_LINE, *BAD_LINE]) == (
        "Pull request review thread line must be part of the diff and "
        "Pull request review thread diff hunk can't be blank"
    )


POSITIONS = [
    ("first line", Anchor("a.py", 1), 1),
    ("deleted", Anchor("a.py", 2, L), 2),
    ("added", Anchor("a.py", 2), 3),
    ("the second @@ counts", Anchor("a.py", 21), 8),
    ("outside", Anchor("a.py", 12), None),
]


@pytest.mark.parametrize(
    ("anchor", "position"), [p[1:] for p in POSITIONS], ids=[p[0] for p in POSITIONS]
)
def test_position(anchor: Anchor, position: int | None) -> None:
    """A position counts lines below the file's first `@@`."""
    assert FILE.position(anchor) == position


def test_counts_and_hunk_of_a_comment() -> None:
    """Additions and deletions come from the hunks; a comment's hunk ends at its line."""
    assert (FILE.additions, FILE.deletions) == (3, 2)
    assert FILE.hunk_until(Anchor("a.py", 2)) == "@@ -1,4 +1,5 @@ top\n one\n-two\n+TWO"


def test_parse_diff_names_and_kinds() -> None:
    """Names come from the raw records, so quoting, spaces and renames do no harm."""
    raw = (
        b":100644 100644 " + b"1" * 40 + b" " + b"2" * 40 + b" R090\0old name\0new name\0"
        b":000000 100644 " + b"0" * 40 + b" " + b"3" * 40 + b' A\0q"\xc3\xa9\0\0'
        b"diff --git a/old name b/new name\nsimilarity index 90%\n@@ -1 +1 @@\n-a\n+diff --git b\n"
        b'diff --git "a/q" "b/q"\nBinary files /dev/null and b/q differ\n'
    )
    diff = parse_diff(raw)
    shown = [(f.path, f.previous, f.status, f.blob[:1], f.patch) for f in diff.files]
    assert shown == [
        ("new name", "old name", "renamed", "2", "@@ -1 +1 @@\n-a\n+diff --git b"),
        ('q"é', None, "added", "3", None),
    ]


def test_no_changes() -> None:
    """An empty diff has no files."""
    assert parse_diff(b"").files == ()


LINES = st.lists(st.sampled_from("abcd"), max_size=12)


def _changes(old: list[str], new: list[str]) -> str:
    """What `git diff -U0` would print."""
    hunks = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start_old = i + 1 if j > i else i
            start_new = k + 1 if m > k else k
            hunks.append(f"@@ -{start_old},{j - i} +{start_new},{m - k} @@")
            hunks += [f"-{line}" for line in old[i:j]] + [f"+{line}" for line in new[k:m]]
    return "\n".join(hunks)


@given(LINES, LINES)
def test_lines_move_with_their_text(old: list[str], new: list[str]) -> None:
    """An unchanged line is found again, in order, with the same text; a changed one is not."""
    hunks = parse_hunks(_changes(old, new))
    moved = [shift_line(hunks, number) for number in range(1, len(old) + 1)]
    kept = [number for number in moved if number is not None]
    assert kept == sorted(set(kept))
    assert [old[i] for i, n in enumerate(moved) if n] == [new[n - 1] for n in kept]
    assert len(kept) == len(old) - sum(
        line.old is not None for hunk in hunks for line in hunk.lines
    )


@given(LINES, LINES)
def test_every_line_of_a_hunk_is_found_by_its_number(old: list[str], new: list[str]) -> None:
    """Numbers on both sides count without gaps inside a hunk, and lead back to the line."""
    file = FileDiff("f", None, "modified", "", None, parse_hunks(_changes(old, new)))
    for hunk in file.hunks:
        for line in hunk.lines:
            for side, text in ((Side.LEFT, old), (Side.RIGHT, new)):
                number = line.number(side)
                if number is not None:
                    assert file.locate(side, number) == (hunk, line)
                    assert text[number - 1] == line.text[1:]
