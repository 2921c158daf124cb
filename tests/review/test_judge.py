"""The code's half of the judge pass (app/review/judge.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.findings import (
    CarriedClaim,
    CarriedState,
    DroppedFinding,
    DropReason,
    Finding,
    JudgedFinding,
    Location,
    ReportedFinding,
)
from app.review.judge import JudgeInput, Judgement, fingerprint, judge
from loop_guards import FindingStatus, FixedOutcome, Origin, Severity

CODE = "cursor.execute(f'select {name}')"


def reported(
    ref: str = "security-1", *, line: int | None = 4, **changes: object
) -> ReportedFinding:
    base = ReportedFinding(
        ref=ref,
        reviewer="security",
        location=Location("app/a.py", line, line),
        severity=Severity.CRITICAL,
        category="security",
        title="SQL injection",
        body="The name reaches the query.",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def earlier(short_id: str = "F1", **changes: object) -> Finding:
    base = Finding(
        id=1,
        short_id=short_id,
        location=Location("app/a.py", 4, 4),
        severity=Severity.CRITICAL,
        category="security",
        title="SQL injection",
        body="The name reaches the query.",
        suggestion=None,
        also=(),
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
        first_seen_sha="a1",
        last_seen_sha="a1",
        code=CODE,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def facts(**changes: object) -> JudgeInput:
    base = JudgeInput(
        existing=(),
        reported=(),
        judged=(),
        carried=(),
        dropped=(),
        known_paths=frozenset({"app/a.py"}),
        changed_since={},
        code_at={("app/a.py", 4): CODE},
        touched=frozenset({("app/a.py", 4)}),
        is_fix_pr=False,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def refs_of(result: Judgement) -> list[str]:
    return [item.reported.ref for item in result.new]


def test_a_finding_nobody_mentioned_is_kept() -> None:
    """A reviewer's finding the judge forgets is not lost, and the omission is named."""
    result = judge(facts(reported=(reported(),)))
    assert refs_of(result) == ["security-1"]
    assert "security-1" in result.problems[0]


def test_a_dropped_finding_stays_out_with_its_reason() -> None:
    """Dropping needs a named reason and is remembered."""
    dropped = DroppedFinding(("security-1",), DropReason.SPECULATIVE, "no caller passes it")
    result = judge(facts(reported=(reported(),), dropped=(dropped,)))
    assert (result.new, result.dropped, result.problems) == ((), (dropped,), ())


def test_a_kept_finding_keeps_the_prompt_it_came_from() -> None:
    """Which prompt found something stays known: the judge's own version is not that."""
    report = reported(prompt_version="security@1+reviewer_shared@2")
    kept = JudgedFinding(replace(report, prompt_version="coordinator@4"), ("security-1",))
    (new,) = judge(facts(reported=(report,), judged=(kept,))).new
    assert new.reported.prompt_version == "security@1+reviewer_shared@2"


def test_an_invented_file_is_refused() -> None:
    """The judge can't place a finding in a file the change does not hold."""
    ghost = JudgedFinding(reported("x", location=Location("ghost.py", 1, 1)), refs=("x",))
    result = judge(facts(judged=(ghost,)))
    assert result.new == ()
    assert "ghost.py" in result.problems[0]


def test_two_claims_on_one_line_are_two_findings() -> None:
    """The same place with another claim is another finding."""
    judged = (
        JudgedFinding(reported("security-1"), refs=("security-1",)),
        JudgedFinding(reported("security-2", title="Path traversal"), refs=("security-2",)),
    )
    said = tuple(item.finding for item in judged)
    assert refs_of(judge(facts(judged=judged, reported=said))) == ["security-1", "security-2"]


def test_the_same_claim_twice_is_one_finding() -> None:
    """Two sections reporting one defect give one finding."""
    judged = (
        JudgedFinding(reported("security-1"), refs=("security-1",)),
        JudgedFinding(reported("general-1", title="SQL  Injection!"), refs=("general-1",)),
    )
    said = tuple(item.finding for item in judged)
    result = judge(facts(judged=judged, reported=said))
    assert [item.refs for item in result.new] == [("security-1", "general-1")]


@pytest.mark.parametrize(
    ("claim", "changed", "raised", "outcome"),
    [
        pytest.param(CarriedState.FIXED, True, False, FixedOutcome.FIXED, id="word-and-change"),
        pytest.param(CarriedState.FIXED, False, False, FixedOutcome.OPEN, id="word-alone"),
        pytest.param(CarriedState.OPEN, True, False, FixedOutcome.OPEN, id="change-alone"),
        pytest.param(None, True, False, FixedOutcome.OPEN, id="silence"),
        pytest.param(CarriedState.FIXED, True, True, FixedOutcome.OPEN, id="fixed-yet-raised"),
        pytest.param(CarriedState.ACKNOWLEDGED, True, False, FixedOutcome.OPEN, id="no-waiver"),
    ],
)
def test_an_earlier_finding(
    claim: CarriedState | None, changed: bool, raised: bool, outcome: FixedOutcome
) -> None:
    """Fixed needs the reviewer's word and a change; everything else stays open."""
    judged = (JudgedFinding(reported(), refs=("security-1",), short_id="F1"),) if raised else ()
    result = judge(
        facts(
            existing=(earlier(),),
            judged=judged,
            carried=(CarriedClaim("F1", claim, "line 4"),) if claim else (),
            changed_since={"F1": frozenset({"app/a.py"} if changed else {"app/b.py"})},
        )
    )
    assert [item.decision.outcome for item in result.carried] == [outcome]
    assert result.new == ()


def test_an_open_finding_raised_as_new_is_folded() -> None:
    """Raising an open finding again as new opens no second one."""
    result = judge(
        facts(existing=(earlier(),), judged=(JudgedFinding(reported(), refs=("security-1",)),))
    )
    assert result.new == ()
    assert [item.decision.outcome for item in result.carried] == [FixedOutcome.OPEN]


@pytest.mark.parametrize(
    ("line", "is_fix_pr", "origin"),
    [
        pytest.param(4, False, Origin.ORIGINAL, id="in-the-diff"),
        pytest.param(4, True, Origin.INTRODUCED, id="in-a-fix-diff"),
        pytest.param(90, False, Origin.PRE_EXISTING, id="outside-the-diff"),
        pytest.param(90, True, Origin.PRE_EXISTING, id="outside-a-fix-diff"),
        pytest.param(None, False, Origin.ORIGINAL, id="no-line"),
    ],
)
def test_origin_is_decided_at_first_sight(
    line: int | None, is_fix_pr: bool, origin: Origin
) -> None:
    """Where a finding stands relative to the change's own diff decides its origin."""
    result = judge(facts(reported=(reported(line=line),), is_fix_pr=is_fix_pr))
    assert [item.origin for item in result.new] == [origin]


def test_fingerprint_forgets_line_numbers() -> None:
    """Moving the code does not make a new finding; another line of code does."""
    assert fingerprint("a.py", "SQL injection", f"  {CODE}") == fingerprint(
        "a.py", "sql injection.", CODE
    )
    assert fingerprint("a.py", "SQL injection", CODE) != fingerprint("a.py", "SQL injection", "x")
