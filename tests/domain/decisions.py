"""What the guards say, asked for by tests: nobody else can make a decision."""

from __future__ import annotations

from app.domain.permits import SaidVerdict
from loop_guards import (
    AfterRoundFacts,
    FindingStatus,
    Limits,
    NextDecision,
    OrderDecision,
    OrderFacts,
    PullState,
    ReviewDecision,
    ReviewStart,
    RoundFacts,
    RubricFinding,
    Severity,
    StartDecision,
    TaskState,
    Verdict,
    VerdictDecision,
    after_round,
    answer_order,
    decide_rubric,
    may_review,
    may_start_round,
)

LIMITS = Limits()

_OPEN: dict[Verdict, tuple[Severity, ...]] = {
    Verdict.APPROVED: (),
    Verdict.APPROVED_WITH_COMMENTS: (Severity.WARNING,),
    Verdict.MINOR_ISSUES: (Severity.WARNING, Severity.WARNING),
    Verdict.SIGNIFICANT_CONCERNS: (Severity.CRITICAL,),
}
"""Open findings for which the rubric says this."""

_BLOCKING = {Verdict.APPROVED: 0, Verdict.CHANGES_REQUESTED: 1, Verdict.ESCALATED: 1}


def rubric(verdict: Verdict, *, full: bool = True) -> VerdictDecision:
    findings = [RubricFinding(severity, "security", "a.py") for severity in _OPEN[verdict]]
    return decide_rubric(findings, coverage_full=full, limits=LIMITS)


def after(verdict: Verdict, *, full: bool = True) -> NextDecision:
    """After a round of a fix task; an escalation is that of the last round it may have."""
    escalated = verdict is Verdict.ESCALATED
    blocking = frozenset(range(_BLOCKING[verdict]))
    facts = AfterRoundFacts(
        rounds_started=5 if escalated else 1,
        allowance=5,
        blocking_history=(blocking,),
        coverage_full=full,
    )
    return after_round(facts, LIMITS)


def said(verdict: Verdict, *, full: bool = True, fix: bool = False) -> SaidVerdict:
    """The decision behind a published verdict."""
    if fix or verdict not in _OPEN:
        return after(verdict, full=full)
    return rubric(verdict, full=full)


APPROVED = said(Verdict.APPROVED)
CONCERNS = said(Verdict.SIGNIFICANT_CONCERNS)


def review_start(*, allowed: bool = True) -> ReviewDecision:
    facts = ReviewStart(
        is_open=allowed,
        is_newest_head=True,
        draft=False,
        by_human=True,
        commanded=False,
        machine_rounds=0,
        already_reviewed=False,
    )
    return may_review(facts, LIMITS)


def round_start(*, allowed: bool = True) -> StartDecision:
    return may_start_round(RoundFacts(rounds_started=0, allowance=5, stopped=not allowed), LIMITS)


def resume_order(*, resumes: bool = True) -> OrderDecision:
    """A person's order for a finding of an escalated task, or of none."""
    facts = OrderFacts(
        by_human=True,
        can_write=True,
        pull_request=PullState.MERGED,
        status=FindingStatus.OPEN,
        covered_by=TaskState.ESCALATED if resumes else None,
    )
    return answer_order(facts)
