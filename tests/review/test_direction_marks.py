"""Code that reads otherwise than it runs is found without a model."""

from __future__ import annotations

import pytest

from app.domain.runs import AgentName
from app.git.diff import parse_diff
from app.review.direction_marks import MARKS, direction_marks
from loop_guards import Severity, Verdict
from tests.review.story import BASE, NOTHING, SEARCH, Story

TROJAN = 'if level != "user\u202e \u2066// admin only\u2069 \u2066":\n'
HEAD = {**BASE, SEARCH: b"def search(q):\n    return []\n" + TROJAN.encode()}


def diff(path: str = "app/a.py", body: str = f"+{TROJAN}", header: str = "") -> bytes:
    lines = body.splitlines(keepends=True)
    added = sum(1 for line in lines if line[0] in "+ ")
    gone = sum(1 for line in lines if line[0] in "- ")
    return (
        f"diff --git a/{path} b/{path}\n{header}--- a/{path}\n+++ b/{path}\n"
        f"@@ -1,{gone} +1,{added} @@\n{body}"
    ).encode()


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: f"U+{ord(mark):04X}")
def test_each_mark_in_an_added_line_is_found(mark: str) -> None:
    """The finding stands at the line, and shows where the mark is without being it."""
    [item] = direction_marks(parse_diff(diff(body=f" x\n+a{mark}b\n+c\n")).files)
    finding = item.finding
    assert (finding.location.path, finding.location.start_line) == ("app/a.py", 2)
    assert finding.severity is Severity.CRITICAL
    assert f"a<U+{ord(mark):04X}>b" in finding.evidence
    assert not any(sign in f"{finding.title}{finding.body}{finding.evidence}" for sign in MARKS)


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        pytest.param(f" {TROJAN}+x\n", "app/a.py", [], id="not-by-this-change"),
        pytest.param(f"-{TROJAN}+x\n", "app/a.py", [], id="taken-out"),
        pytest.param("+caf\u00e9 \u05e9\u05dc\u05d5\u05dd\n", "app/a.py", [], id="other-scripts"),
        pytest.param(f"+{TROJAN}", "README.md", [Severity.WARNING], id="prose"),
        pytest.param(f"+{TROJAN}", "app/a.c", [Severity.CRITICAL], id="code"),
    ],
)
def test_what_counts(body: str, path: str, expected: list[Severity]) -> None:
    """Only what this change brings in; in prose a mark may be wanted, in code it is not."""
    found = direction_marks(parse_diff(diff(path, body)).files)
    assert [item.finding.severity for item in found] == expected


def test_one_finding_a_file_however_many_lines() -> None:
    """A file full of marks is one defect, named by its first lines."""
    [item] = direction_marks(parse_diff(diff(body="+\u202e\n" * 500)).files)
    assert item.finding.location.start_line == 1
    assert "line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …" in item.finding.body


def test_a_name_may_hide_its_ending() -> None:
    """`invoice<U+202E>fdp.exe` is shown as a picture of a document."""
    path = "docs/invoice\u202efdp.exe"
    raw = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000..e69de29\n"
    [item] = direction_marks(parse_diff(raw.encode()).files)
    assert item.finding.location.path == path
    assert "The path" in item.finding.body


async def test_the_review_says_it_whatever_the_model_says(story: Story) -> None:
    """No reviewer mentions it: it is on the page, at its line, and nothing is approved."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [NOTHING]}
    await story.review()
    assert f"review COMMENT [{SEARCH}:3]" in story.page()
    [row] = await story.findings()
    assert (row.title, row.severity) == ("Hidden direction marks", Severity.CRITICAL)
    assert (await story.last_run()).verdict is Verdict.SIGNIFICANT_CONCERNS


async def test_it_stays_while_the_marks_stay(story: Story) -> None:
    """Called fixed after a push that leaves them in, it is the same finding, still open."""
    story.open_pull(HEAD)
    await story.review()
    story.push({**HEAD, "README.md": b"# Shop\nMore.\n"})
    story.model.carried = {"F1": "fixed"}
    await story.review(action="synchronize")
    [row] = await story.findings()
    assert (row.short_id, row.status.value) == ("F1", "open")
