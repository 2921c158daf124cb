"""What both reviews make of an answer's places (app/review/brief.py)."""

from __future__ import annotations

import pytest

from app.control.routing import shipped_routing
from app.domain.findings import Location, ReportedFinding
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
from app.git.diff import parse_diff
from app.review.brief import models_of, settled
from loop_guards import Severity
from tests.review.story import BASE, Story, finding, findings

TEXT = b"one\ntwo\nthree = 3\n"
DIFF = parse_diff(
    b"diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n"
    b"@@ -1,2 +1,3 @@\n one\n two\n+three = 3\n"
)


def said(location: Location, evidence: str = "") -> ReportedFinding:
    return ReportedFinding(
        ref="general-1",
        reviewer="general",
        location=location,
        severity=Severity.WARNING,
        category="bug",
        title="t",
        body="b",
        evidence=evidence,
        suggestion="x",
    )


@pytest.mark.parametrize(
    ("location", "evidence", "expected", "suggestion"),
    [
        pytest.param(Location("a.py", 2, 3), "", Location("a.py", 2, 3), "x", id="good"),
        pytest.param(Location("a.py", 3, 2), "", Location("a.py", 2, 3), "x", id="reversed"),
        pytest.param(Location("a.py", 3, 9), "", Location("a.py", 3, 3), None, id="too-long"),
        pytest.param(Location("a.py", 90), "", Location("a.py"), None, id="nowhere"),
        pytest.param(
            Location("a.py", 90), "`three = 3`", Location("a.py", 3, 3), None, id="found-by-quote"
        ),
        pytest.param(Location("b.py", 90), "", Location("b.py", 90, 90), "x", id="no-such-file"),
        pytest.param(Location(None), "", Location(None), "x", id="whole-change"),
    ],
)
def test_a_place_is_brought_to_lines_that_exist(
    location: Location, evidence: str, expected: Location, suggestion: str | None
) -> None:
    """A suggestion is for the lines it was made for: it goes with them."""
    found = settled(said(location, evidence), DIFF, {"a.py": TEXT})
    assert (found.location, found.suggestion) == (expected, suggestion)


async def test_a_number_of_the_patch_text_reaches_no_page(story: Story) -> None:
    """The model counted lines of what it read: the quote finds the line, or the number goes."""
    story.open_pull({**BASE, "app/new.py": b"first = 1\nsecond = 2\n"})
    story.model.answers = {
        AgentName.GENERAL: [
            findings(
                finding(path="app/new.py", line=9120, title="A", evidence="second = 2"),
                finding(path="app/new.py", line=9120, title="B", evidence="not there"),
            )
        ]
    }
    await story.review()
    assert story.open_threads == [("app/new.py", 2)]
    assert "9120" not in story.bodies[-1]
    assert [(row.start_line, row.severity) for row in await story.findings()] == [
        (2, Severity.CRITICAL),
        (None, Severity.CRITICAL),
    ]


def test_a_policy_names_one_model_for_an_agent() -> None:
    """Else the chain counts, of the provider that is configured."""
    routing = shipped_routing("anthropic")
    named = Policy.model_validate({"models": {"security": "my-model"}})
    [model] = models_of(AgentName.SECURITY, Tier.FULL, named, routing)
    assert str(model) == "anthropic/my-model"
    chain = models_of(AgentName.SECURITY, Tier.FULL, Policy(), routing)
    assert [model.name for model in chain] == list(routing.chains["standard"].models)
