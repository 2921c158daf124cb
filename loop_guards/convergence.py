"""The verdict on a fix pull request. DESIGN §3.3: convergence first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, sealed, values
from loop_guards.findings import FindingStatus, Origin, Severity, Verdict
from loop_guards.rubric import VerdictDecision


class ConvergenceReason(StrEnum):
    """Why a fix is approved or not."""

    NOTHING_BLOCKS = "nothing_blocks"
    FINDINGS_BLOCK = "findings_block"
    COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class FixFinding:
    """A finding on a fix pull request.

    `of_task`: the task holds it (one that a human took off it is no longer held); then
    `severity_at_handoff` and `ordered` are of the hand-off. `in_own_diff`: it was first raised on
    this pull request inside its own diff, at `severity_when_raised`. Later changes of severity do
    not count, except upwards with a changed anchor: `severity_now` with `anchor_changed`.
    `was_blocking`: it blocked in an earlier round of this task.
    """

    id: int
    status: FindingStatus
    origin: Origin
    of_task: bool
    severity_at_handoff: Severity | None = None
    severity_when_raised: Severity = Severity.SUGGESTION
    ordered: bool = False
    in_own_diff: bool = False
    severity_now: Severity | None = None
    anchor_changed: bool = False
    was_blocking: bool = False


def blocks(finding: FixFinding) -> bool:
    """Whether this finding stands between the fix and its approval.

    Once blocking, it blocks until it is fixed on evidence or a human dismisses it.
    """
    if finding.status in (FindingStatus.FIXED, FindingStatus.DISMISSED):
        return False
    raised_here = finding.in_own_diff and finding.origin is Origin.INTRODUCED
    if not (finding.of_task or raised_here):
        return False
    if finding.was_blocking:
        return True
    if finding.of_task:
        return finding.ordered or _frozen(finding).at_least(Severity.WARNING)
    return finding.severity_when_raised is Severity.CRITICAL


def _frozen(finding: FixFinding) -> Severity:
    """The severity at handoff; one that was not written down counts as the worst."""
    frozen = finding.severity_at_handoff or Severity.CRITICAL
    now = finding.severity_now
    if now is not None and finding.anchor_changed and now.at_least(frozen):
        return now
    return frozen


def decide_fix_verdict(findings: Iterable[FixFinding], *, coverage_full: bool) -> VerdictDecision:
    """Changes are requested while anything blocks; otherwise approved, the rest is recorded.

    Below full coverage a fix is not approved even if nothing blocks.
    """
    everything = tuple(findings)
    blocking = frozenset(item.id for item in everything if blocks(item))
    if blocking:
        reason, verdict = ConvergenceReason.FINDINGS_BLOCK, Verdict.CHANGES_REQUESTED
    elif not coverage_full:
        reason, verdict = ConvergenceReason.COVERAGE, Verdict.CHANGES_REQUESTED
    else:
        reason, verdict = ConvergenceReason.NOTHING_BLOCKS, Verdict.APPROVED
    return VerdictDecision(
        outcome=verdict,
        reason=reason,
        verdict=verdict,
        approves=verdict is Verdict.APPROVED,
        blocking=blocking,
        compared=values(
            blocking=len(blocking), findings=len(everything), coverage_full=coverage_full
        ),
        trace=(
            Asked("blocking", ConvergenceReason.FINDINGS_BLOCK if blocking else None),
            Asked("coverage", None if coverage_full else ConvergenceReason.COVERAGE),
        ),
        seal=sealed(),
    )
