"""Verdicts: convergence on fix pull requests (DESIGN §3.3), the rubric elsewhere (§3.7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_guards import (
    ConvergenceReason,
    FindingStatus,
    FixFinding,
    Limits,
    Origin,
    RubricFinding,
    RubricReason,
    Severity,
    Verdict,
    blocks,
    decide_fix_verdict,
    decide_rubric,
)
from tests.loop_guards.factories import LIMITS, PATIENT, anything, introduced, of_task, remark

C, W, S = Severity.CRITICAL, Severity.WARNING, Severity.SUGGESTION

BLOCKING = [
    pytest.param(of_task(), True, id="a warning of the task"),
    pytest.param(of_task(severity_at_handoff=C), True, id="a critical of the task"),
    pytest.param(of_task(severity_at_handoff=S), False, id="a suggestion of the task"),
    pytest.param(of_task(severity_at_handoff=S, ordered=True), True, id="an ordered suggestion"),
    pytest.param(of_task(severity_at_handoff=None), True, id="severity not written down"),
    pytest.param(of_task(status=FindingStatus.FIXED), False, id="fixed"),
    pytest.param(of_task(status=FindingStatus.DISMISSED), False, id="dismissed by a human"),
    pytest.param(of_task(status=FindingStatus.GONE), True, id="called gone is not fixed"),
    pytest.param(of_task(status=FindingStatus.ACKNOWLEDGED), True, id="acknowledged"),
    pytest.param(of_task(severity_now=S), True, id="a downgrade is a remark"),
    pytest.param(
        of_task(severity_now=S, anchor_changed=True), True, id="a downgrade with a changed anchor"
    ),
    pytest.param(
        of_task(severity_at_handoff=S, severity_now=C), False, id="an upgrade of the same code"
    ),
    pytest.param(
        of_task(severity_at_handoff=S, severity_now=C, anchor_changed=True),
        True,
        id="an upgrade of changed code",
    ),
    pytest.param(
        of_task(severity_at_handoff=S, was_blocking=True), True, id="once blocking, always"
    ),
    pytest.param(
        of_task(of_task=False, was_blocking=True), False, id="taken off the task by a human"
    ),
    pytest.param(introduced(), True, id="a critical that the fix brought in"),
    pytest.param(introduced(severity_when_raised=W), False, id="a warning that the fix brought in"),
    pytest.param(
        introduced(severity_when_raised=W, severity_now=C),
        False,
        id="one that became critical later",
    ),
    pytest.param(introduced(severity_now=S), True, id="one that was critical when raised"),
    pytest.param(introduced(in_own_diff=False), False, id="outside the fix's own diff"),
    pytest.param(introduced(origin=Origin.PRE_EXISTING), False, id="pre-existing"),
    pytest.param(introduced(origin=Origin.ORIGINAL), False, id="of another task in that file"),
]


@pytest.mark.parametrize(("finding", "expected"), BLOCKING)
def test_what_blocks_a_fix(finding: FixFinding, expected: bool) -> None:
    """Frozen severities of the task's findings, orders, and criticals brought in: nothing else."""
    assert blocks(finding) is expected


FIXES: list[Any] = [
    pytest.param([], True, Verdict.APPROVED, "nothing_blocks", set(), id="nothing"),
    pytest.param(
        [of_task(1), introduced(2), introduced(3, severity_when_raised=W)],
        True,
        Verdict.CHANGES_REQUESTED,
        "findings_block",
        {1, 2},
        id="two block",
    ),
    pytest.param(
        [introduced(3, severity_when_raised=W)],
        True,
        Verdict.APPROVED,
        "nothing_blocks",
        set(),
        id="fresh warnings are recorded",
    ),
    pytest.param([], False, Verdict.CHANGES_REQUESTED, "coverage", set(), id="coverage"),
    pytest.param(
        [of_task(1)],
        False,
        Verdict.CHANGES_REQUESTED,
        "findings_block",
        {1},
        id="findings before coverage",
    ),
]


@pytest.mark.parametrize(("findings", "full", "verdict", "reason", "blocking"), FIXES)
def test_the_verdict_on_a_fix(
    findings: list[FixFinding], full: bool, verdict: Verdict, reason: str, blocking: set[int]
) -> None:
    """Any blocking: changes requested; none, everything looked at: approved."""
    decision = decide_fix_verdict(findings, coverage_full=full)
    assert (decision.verdict, decision.reason) == (verdict, reason)
    assert decision.blocking == blocking
    assert decision.approves is (verdict is Verdict.APPROVED)
    assert decision.compared == {
        "blocking": len(blocking),
        "findings": len(findings),
        "coverage_full": full,
    }
    assert [(asked.guard, asked.reason) for asked in decision.trace] == [
        ("blocking", ConvergenceReason.FINDINGS_BLOCK if blocking else None),
        ("coverage", None if full else ConvergenceReason.COVERAGE),
    ]


@PATIENT
@given(st.lists(anything(FixFinding)), st.booleans())
def test_a_fix_is_approved_only_when_nothing_blocks(findings: list[FixFinding], full: bool) -> None:
    """Approval means: everything was looked at and nothing blocks."""
    decision = decide_fix_verdict(findings, coverage_full=full)
    assert decision.approves is (full and not any(blocks(each) for each in findings))


def test_four_rounds_of_fresh_high_remarks_approve_in_the_first() -> None:
    """The field's incident: each round new warnings on the fix, escalated at five. Not here."""
    fixed = of_task(1, status=FindingStatus.FIXED)
    fresh = [introduced(number, severity_when_raised=W) for number in range(2, 6)]
    assert decide_fix_verdict([fixed, *fresh], coverage_full=True).verdict is Verdict.APPROVED


def test_findings_of_sibling_tasks_in_the_file_do_not_block() -> None:
    """The field's other incident: three fixes of one file waited for each other."""
    mine = of_task(1, status=FindingStatus.FIXED)
    others = [
        FixFinding(id=n, status=FindingStatus.OPEN, origin=Origin.ORIGINAL, of_task=False)
        for n in (2, 3)
    ]
    decision = decide_fix_verdict([mine, *others], coverage_full=True)
    assert decision.reason == ConvergenceReason.NOTHING_BLOCKS


A, AWC = Verdict.APPROVED, Verdict.APPROVED_WITH_COMMENTS
MI, SC = Verdict.MINOR_ISSUES, Verdict.SIGNIFICANT_CONCERNS
RUBRIC: list[Any] = [
    pytest.param([], A, "nothing", id="nothing"),
    pytest.param([remark(S, trivial=True)], A, "nothing", id="a trivial suggestion"),
    pytest.param([remark(S, trivial=True), remark(S)], AWC, "suggestions", id="suggestions"),
    pytest.param([remark(W)], AWC, "some_warnings", id="one warning"),
    pytest.param([remark(W, trivial=True)], AWC, "some_warnings", id="no warning is trivial"),
    pytest.param(
        [remark(W), remark(W, category="speed", path="b.py")],
        AWC,
        "some_warnings",
        id="two apart",
    ),
    pytest.param([remark(W), remark(W, path="b.py")], MI, "risk_pattern", id="two of one category"),
    pytest.param([remark(W), remark(W, category="speed")], MI, "risk_pattern", id="two of a file"),
    pytest.param(
        [remark(W, path=None, category=name) for name in ("x", "y")],
        AWC,
        "some_warnings",
        id="no file is not one file",
    ),
    pytest.param(
        [remark(W, path=None, category=name) for name in ("x", "y", "z")],
        MI,
        "risk_pattern",
        id="three anywhere",
    ),
    pytest.param([remark(S, production_risk=True)], SC, "production_risk", id="a risk"),
    pytest.param([remark(C)], SC, "critical", id="a critical"),
    pytest.param([remark(C, production_risk=True), remark(W)], SC, "critical", id="all at once"),
]


@pytest.mark.parametrize(("findings", "verdict", "reason"), RUBRIC)
@pytest.mark.parametrize("full", [True, False], ids=["full", "short"])
def test_the_rubric(
    findings: list[RubricFinding], verdict: Verdict, reason: str, full: bool
) -> None:
    """The rows of DESIGN §3.7; below full coverage none of them approves, and it says why."""
    decision = decide_rubric(findings, coverage_full=full, limits=LIMITS)
    assert (decision.verdict, decision.reason) == (verdict, reason)
    assert decision.approves is (full and verdict in (A, AWC))
    short = () if full else (RubricReason.COVERAGE,)
    assert decision.reasons == (reason, *short)
    assert [(asked.guard, asked.reason) for asked in decision.trace] == [
        ("rubric", reason),
        ("coverage", None if full else RubricReason.COVERAGE),
    ]


def test_the_rubric_tells_what_it_counted() -> None:
    """How many of each severity, how many risks, and what makes a pattern."""
    findings = [remark(C), remark(W), remark(W, production_risk=True), *[remark(S)] * 3]
    assert decide_rubric(findings, coverage_full=True, limits=LIMITS).compared == {
        "critical": 1,
        "warning": 2,
        "suggestion": 3,
        "production_risk": 1,
        "coverage_full": True,
        "risk_pattern_warnings": 3,
        "risk_pattern_same_place": 2,
    }


def test_the_rubric_names_what_stands_in_the_way() -> None:
    """Criticals and risks, or the warnings of a pattern; nothing under an approving verdict."""
    critical, risk, warning = (
        remark(C, id=1),
        remark(S, id=2, production_risk=True),
        remark(W, id=3),
    )

    def blocking(*findings: RubricFinding) -> frozenset[int]:
        return decide_rubric(findings, coverage_full=True, limits=LIMITS).blocking

    assert blocking(critical, risk, warning) == {1, 2}
    assert blocking(warning, remark(W, id=4)) == {3, 4}
    assert blocking(warning) == frozenset()
    assert blocking(remark(C, id=None)) == frozenset()


def test_the_constants_of_the_pattern_are_limits() -> None:
    """A policy that raises the numbers sees fewer patterns."""
    limits = Limits(risk_pattern_warnings=4, risk_pattern_same_place=4)
    findings = [remark(W)] * 3
    assert decide_rubric(findings, coverage_full=True, limits=limits).verdict is AWC
    assert decide_rubric([*findings, remark(W)], coverage_full=True, limits=limits).verdict is MI
    strict = Limits(risk_pattern_same_place=1)
    assert decide_rubric([remark(W)], coverage_full=True, limits=strict).verdict is MI
    assert decide_rubric([remark(S)], coverage_full=True, limits=strict).verdict is AWC
