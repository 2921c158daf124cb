"""Compliance findings are held against the codex by code (app/review/codex.py)."""

from __future__ import annotations

import pytest

from app.agents.findings_xml import ParsedReview, ParseOutcome
from app.agents.reviewer_results import ReviewerOutcome
from app.domain.findings import (
    DroppedFinding,
    DropReason,
    JudgedFinding,
    Location,
    ReportedFinding,
)
from app.domain.runs import AgentName, Usage
from app.plugins.codex import Codex, parse_codex
from app.review.codex import by_the_codex
from app.review.conduct import Conducted
from loop_guards import Severity

CODEX = parse_codex(b"rules: [{id: ENG-001, title: Handlers are thin}]")


def said(ref: str, title: str, body: str = "A handler calls the database.") -> ReportedFinding:
    return ReportedFinding(
        ref=ref,
        reviewer=ref.rpartition("-")[0],
        location=Location("app/api/search.py", 3, 3),
        severity=Severity.WARNING,
        category="compliance",
        title=title,
        body=body,
    )


LAWFUL = said("compliance-1", "ENG-001: a database call")
IN_BODY = said("compliance-2", "A database call", "It breaks rule (eng-001).")
INVENTED = said("compliance-3", "ENG-777: invented")
NAMELESS = said("compliance-4", "Handlers should be thin")
OTHER = said("security-1", "Injection")


def conducted(
    judged: tuple[JudgedFinding, ...], dropped: tuple[DroppedFinding, ...] = ()
) -> Conducted:
    outcomes = (
        ReviewerOutcome(
            AgentName.COMPLIANCE, ParseOutcome.OK, (LAWFUL, IN_BODY, INVENTED, NAMELESS)
        ),
        ReviewerOutcome(AgentName.SECURITY, ParseOutcome.OK, (OTHER,)),
    )
    review = ParsedReview(ParseOutcome.OK, "Read.", judged, dropped=dropped)
    return Conducted(outcomes, review, Usage(), (), (), {})


def kept(*findings: ReportedFinding) -> tuple[JudgedFinding, ...]:
    return tuple(JudgedFinding(finding, (finding.ref,)) for finding in findings)


@pytest.mark.parametrize(
    ("codex", "left", "refused"),
    [
        pytest.param(
            CODEX,
            ["compliance-1", "compliance-2", "security-1"],
            ("compliance-3", "compliance-4"),
            id="a-codex",
        ),
        pytest.param(
            Codex(),
            ["security-1"],
            ("compliance-1", "compliance-2", "compliance-3", "compliance-4"),
            id="no-codex",
        ),
    ],
)
def test_what_names_no_rule_is_dropped_with_its_reason(
    codex: Codex, left: list[str], refused: tuple[str, ...]
) -> None:
    """However the coordinator kept it; nobody else is touched, and the run can show it."""
    checked = by_the_codex(conducted(kept(LAWFUL, IN_BODY, INVENTED, NAMELESS, OTHER)), codex)
    assert [item.refs[0] for item in checked.review.judged] == left
    [dropped] = checked.review.dropped
    assert (dropped.refs, dropped.reason) == (refused, DropReason.FALSE_POSITIVE)
    assert "no rule of the codex" in dropped.why


def test_a_merged_finding_stays_as_the_other_s() -> None:
    """It loses the reference alone."""
    merged = JudgedFinding(OTHER, ("security-1", "compliance-3", "compliance-4"))
    checked = by_the_codex(conducted((merged, *kept(LAWFUL, IN_BODY))), CODEX)
    assert checked.review.judged[0] == JudgedFinding(OTHER, ("security-1",))


def test_an_earlier_finding_is_carried_on() -> None:
    """What the coordinator says of one that is known does not depend on a reviewer's new words."""
    carried = JudgedFinding(INVENTED, ("compliance-3",), "F1")
    checked = by_the_codex(conducted((carried, *kept(LAWFUL, IN_BODY))), CODEX)
    assert checked.review.judged[0] == JudgedFinding(INVENTED, (), "F1")


def test_each_reference_is_dropped_once() -> None:
    """What the coordinator dropped itself is not said twice; its reasons for others stay."""
    dropped = (
        DroppedFinding(("compliance-3",), DropReason.HEDGED, "unsure"),
        DroppedFinding(("compliance-4", "security-1"), DropReason.NITPICK, "small"),
    )
    checked = by_the_codex(conducted(kept(LAWFUL, IN_BODY), dropped), CODEX)
    refs = [ref for item in checked.review.dropped for ref in item.refs]
    assert sorted(refs) == ["compliance-3", "compliance-4", "security-1"]


def test_an_answer_by_the_codex_is_left_as_it_is() -> None:
    """Nothing to drop: the very same answer."""
    only = ReviewerOutcome(AgentName.COMPLIANCE, ParseOutcome.OK, (LAWFUL, IN_BODY))
    answer = Conducted(
        (only,), ParsedReview(ParseOutcome.OK, "", kept(LAWFUL)), Usage(), (), (), {}
    )
    assert by_the_codex(answer, CODEX) is answer
