"""The verdict on a pull request that is not a fix. DESIGN §3.7: biased towards approval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.findings import Severity, Verdict
from loop_guards.limits import Limits


class RubricReason(StrEnum):
    """Which row of the rubric decided. COVERAGE only joins another: why it does not approve."""

    NOTHING = "nothing"
    SUGGESTIONS = "suggestions"
    SOME_WARNINGS = "some_warnings"
    RISK_PATTERN = "risk_pattern"
    CRITICAL = "critical"
    PRODUCTION_RISK = "production_risk"
    COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class RubricFinding:
    """An open finding as the rubric sees it. `production_risk`: the judge named a failure."""

    severity: Severity
    category: str
    path: str | None
    trivial: bool = False
    production_risk: bool = False
    id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictDecision(Decision):
    """A verdict. `approves`: nothing stands in the way; never so below full coverage, whatever the
    word of `verdict`. `blocking`: ids of the findings for which it is not an approving one."""

    verdict: Verdict
    approves: bool
    blocking: frozenset[int] = frozenset()


def decide_rubric(
    findings: Iterable[RubricFinding], *, coverage_full: bool, limits: Limits
) -> VerdictDecision:
    """The verdict from the open findings. Below full coverage nothing is approved outright."""
    open_findings = tuple(findings)
    verdict, reason, because = _row(open_findings, limits)
    return VerdictDecision(
        outcome=verdict,
        reason=reason,
        reasons=(reason,) if coverage_full else (reason, RubricReason.COVERAGE),
        verdict=verdict,
        approves=coverage_full and verdict in _APPROVING,
        blocking=frozenset(item.id for item in because if item.id is not None),
        compared=values(
            critical=_count(open_findings, Severity.CRITICAL),
            warning=_count(open_findings, Severity.WARNING),
            suggestion=_count(open_findings, Severity.SUGGESTION),
            production_risk=sum(item.production_risk for item in open_findings),
            coverage_full=coverage_full,
            risk_pattern_warnings=limits.risk_pattern_warnings,
            risk_pattern_same_place=limits.risk_pattern_same_place,
        ),
        trace=(
            Asked("rubric", reason),
            Asked("coverage", None if coverage_full else RubricReason.COVERAGE),
        ),
        seal=sealed(),
    )


_APPROVING = frozenset({Verdict.APPROVED, Verdict.APPROVED_WITH_COMMENTS})

_Row = tuple[Verdict, RubricReason, list[RubricFinding]]


def _row(findings: tuple[RubricFinding, ...], limits: Limits) -> _Row:
    """The row that holds, with the findings that stand in the way of an approval."""
    critical = [item for item in findings if item.severity is Severity.CRITICAL]
    risky = [item for item in findings if item.production_risk]
    if critical or risky:
        reason = RubricReason.CRITICAL if critical else RubricReason.PRODUCTION_RISK
        return Verdict.SIGNIFICANT_CONCERNS, reason, critical + risky
    warnings = [item for item in findings if item.severity is Severity.WARNING]
    if _is_pattern(warnings, limits):
        return Verdict.MINOR_ISSUES, RubricReason.RISK_PATTERN, warnings
    if warnings:
        return Verdict.APPROVED_WITH_COMMENTS, RubricReason.SOME_WARNINGS, []
    if any(not item.trivial for item in findings):
        return Verdict.APPROVED_WITH_COMMENTS, RubricReason.SUGGESTIONS, []
    return Verdict.APPROVED, RubricReason.NOTHING, []


def _is_pattern(warnings: list[RubricFinding], limits: Limits) -> bool:
    """Enough warnings, or some in one category or one file."""
    if len(warnings) >= limits.risk_pattern_warnings:
        return True
    categories = Counter(item.category for item in warnings)
    paths = Counter(item.path for item in warnings if item.path is not None)
    together = max([0, *categories.values(), *paths.values()])
    return together >= limits.risk_pattern_same_place


def _count(findings: tuple[RubricFinding, ...], severity: Severity) -> int:
    return sum(1 for item in findings if item.severity is severity)
