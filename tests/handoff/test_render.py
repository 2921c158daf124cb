"""What a merge's plan says on the page (handoff/render): every reason, and hostile texts inert."""

from __future__ import annotations

import pytest

from app.domain.findings import Finding
from app.handoff.render import HandedTask, plan_comment, reason_text
from loop_guards import (
    FindingStatus,
    HandoffFinding,
    HandoffMode,
    HandoffReason,
    Limits,
    MergeFacts,
    Origin,
    Severity,
    decide_handoff,
)
from tests.review.factories import finding
from tests.store.rows import NOW

REFUSED = decide_handoff(
    HandoffFinding(
        id=1,
        path="app/a.py",
        severity=Severity.SUGGESTION,
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
    ),
    MergeFacts(
        now=NOW,
        repository=1,
        merge_commit="a" * 40,
        base="main",
        default_branch="main",
        mode=HandoffMode.AUTO,
        author_is_bot=False,
        is_fix_pr=False,
        merged=True,
    ),
    Limits(),
)
TASK = HandedTask(("app/a.py", "app/b.py"), ("F1", "F2"), "builtin", waiting=False)


@pytest.mark.parametrize("reason", list(HandoffReason))
def test_every_reason_has_its_own_words(reason: HandoffReason) -> None:
    """A code is for machines; no two reasons read the same."""
    words = reason_text(reason)
    others = [reason_text(other) for other in HandoffReason if other is not reason]
    assert words not in others
    assert "_" not in words


def test_tasks_name_their_findings_and_files() -> None:
    """Which findings went where is on one line."""
    assert "- F1, F2 in `app/a.py`, `app/b.py`" in plan_comment([TASK], (), {})


def test_what_was_not_handed_off_is_folded_away_with_its_reason() -> None:
    """It is there for who looks for it, and in nobody's way."""
    said = plan_comment([], (REFUSED,), {1: finding(1)})
    assert "<summary>Not handed off: 1</summary>" in said
    assert "F1" in said
    assert reason_text(HandoffReason.BELOW_SEVERITY) in said


@pytest.mark.parametrize(
    "title",
    ["@everyone look", "closes #1", "</details>", "```\nopen", "<!-- mergeward:comment:x -->"],
)
def test_a_hostile_title_does_nothing(title: str) -> None:
    """Titles are a model's words about a stranger's code: no mention, no reference, no markup."""
    hostile: Finding = finding(1, title=title)
    said = plan_comment([], (REFUSED,), {1: hostile})
    inner = said.partition("</summary>")[2].rpartition("</details>")[0]
    for harmful in ("@everyone", " #1", "</details>", "\n```", "<!-- mergeward"):
        assert harmful not in inner


def test_a_hostile_path_stays_in_its_code_span() -> None:
    """A file may be named to break out of the list."""
    task = HandedTask(("a`b\n@x",), ("F1",), "builtin", waiting=True)
    line = plan_comment([task], (), {}).splitlines()[1]
    assert line.count("`") == 2
    assert "waits" in line
