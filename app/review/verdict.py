"""From a judged round to its verdict and what follows: facts are built, `loop_guards` decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from app.domain.findings import Finding, Location
from app.domain.permits import SaidVerdict
from app.review.history import Look
from loop_guards import (
    AfterRoundFacts,
    FindingStatus,
    FixFinding,
    Limits,
    NextDecision,
    Origin,
    RubricFinding,
    Severity,
    Spent,
    VerdictDecision,
    after_round,
    decide_fix_verdict,
    decide_rubric,
)


@dataclass(frozen=True, slots=True)
class FixedBefore:
    """A finding that was marked fixed, at which commit, and where it was until then."""

    id: int
    sha: str
    location: Location


@dataclass(frozen=True, slots=True)
class TaskView:
    """The fix task that a fix pull request answers, as a round needs it.

    `handed` maps ids of this pull request's findings to the severity frozen at handoff;
    `ordered` are those of them that a person ordered, `mirrored` all that came with the task, also
    those that were taken off it. `blocking_history` holds the blocking sets of the rounds since the
    last resume, oldest first, and `looks` those rounds; `coverage_attempts` are the latest of them
    in a row that could not cover everything. `ever_blocked` reaches back to the task's first round.
    `flips` counts returns without a bot's change since the last resume. `fixed` are the findings
    that were marked fixed, by fingerprint. `idle_turn`: the latest turn ended without any change.
    `spent` is what the whole lineage used so far.
    """

    task_id: int
    lineage_id: int
    handed: Mapping[int, Severity]
    ordered: frozenset[int]
    rounds_started: int
    allowance: int
    blocking_history: tuple[frozenset[int], ...]
    spent: Spent
    stopped: bool
    escalated: bool
    coverage_attempts: int = 0
    lineage_resumes: int = 0
    resumes: int = 0
    mirrored: frozenset[int] = frozenset()
    ever_blocked: frozenset[int] = frozenset()
    looks: tuple[Look, ...] = ()
    flips: Mapping[int, int] = field(default_factory=dict)
    fixed: Mapping[str, FixedBefore] = field(default_factory=dict)
    idle_turn: bool = False


@dataclass(frozen=True, slots=True)
class RoundSigns:
    """What is known of a round besides its verdict, as `AfterRoundFacts` names it."""

    touched: bool = True
    known_patch: bool = False
    bounced: bool = False
    second_flip: bool = False
    newest_head: bool = True


@dataclass(frozen=True, slots=True)
class RubricQuestion:
    """What the guards are asked about a pull request that is no fix, after a round."""

    findings: tuple[RubricFinding, ...]
    coverage_full: bool
    limits: Limits

    def answer(self) -> VerdictDecision:
        return decide_rubric(self.findings, coverage_full=self.coverage_full, limits=self.limits)


@dataclass(frozen=True, slots=True)
class NextQuestion:
    """What the guards are asked after a round of a fix task."""

    after: AfterRoundFacts
    limits: Limits

    def answer(self) -> NextDecision:
        return after_round(self.after, self.limits)


Question = RubricQuestion | NextQuestion
_QUESTION: TypeAdapter[Question] = TypeAdapter(Question)


def as_json(question: Question) -> Any:
    """The question as JSON, kept with its round: its verdict can be asked for again."""
    return _QUESTION.dump_python(question, mode="json")


def ask_again(kept: Any) -> SaidVerdict:
    """The guards' answer to a question that was kept. A decision itself is never restored."""
    return _QUESTION.validate_python(kept).answer()


def fix_verdict(findings: Iterable[Finding], task: TaskView, *, full: bool) -> VerdictDecision:
    """Convergence first: what of the task is left, and criticals that the fix brought in."""
    return decide_fix_verdict(
        (_fix_finding(finding, task) for finding in findings), coverage_full=full
    )


def human_verdict(findings: Iterable[Finding], limits: Limits, *, full: bool) -> VerdictDecision:
    """The rubric over what is open."""
    return human_question(findings, limits, full=full).answer()


def human_question(findings: Iterable[Finding], limits: Limits, *, full: bool) -> RubricQuestion:
    """What the rubric is asked: what is open."""
    still_open = (item for item in findings if item.status is FindingStatus.OPEN)
    return RubricQuestion(
        findings=tuple(
            RubricFinding(
                severity=item.severity,
                category=item.category,
                path=item.location.path,
                trivial=item.trivial,
                production_risk=bool(item.production_risk),
                id=item.id,
            )
            for item in still_open
        ),
        coverage_full=full,
        limits=limits,
    )


def next_question(
    verdict: VerdictDecision, task: TaskView, limits: Limits, signs: RoundSigns, *, full: bool
) -> NextQuestion:
    """What follows this round, which counts in `task.rounds_started` and `task.spent` already."""
    return NextQuestion(
        AfterRoundFacts(
            rounds_started=task.rounds_started,
            allowance=task.allowance,
            blocking_history=(*task.blocking_history, verdict.blocking),
            coverage_full=full,
            spent=task.spent,
            stopped=task.stopped,
            coverage_attempts=0 if full else task.coverage_attempts + 1,
            bounced=signs.bounced,
            second_flip=signs.second_flip,
            touched=signs.touched,
            known_patch=signs.known_patch,
            newest_head=signs.newest_head,
            lineage_resumes=task.lineage_resumes,
        ),
        limits,
    )


def unavailable(task: TaskView, limits: Limits) -> NextDecision:
    """What follows a round of the task that came to nothing."""
    return after_round(_without_answer(task, unavailable=True), limits)


def refused(task: TaskView, limits: Limits) -> NextDecision:
    """What follows when the guards let no further round of the task start."""
    return after_round(_without_answer(task, unavailable=False), limits)


def _without_answer(task: TaskView, *, unavailable: bool) -> AfterRoundFacts:
    return AfterRoundFacts(
        rounds_started=task.rounds_started,
        allowance=task.allowance,
        blocking_history=task.blocking_history,
        coverage_full=False,
        spent=task.spent,
        stopped=task.stopped,
        unavailable=unavailable,
        lineage_resumes=task.lineage_resumes,
    )


def _fix_finding(finding: Finding, task: TaskView) -> FixFinding:
    """A finding's severity is written once, at first sight: it is the one it was raised at."""
    of_task = finding.id in task.handed
    raised_here = finding.origin is Origin.INTRODUCED and finding.id not in task.mirrored
    return FixFinding(
        id=finding.id,
        status=finding.status,
        origin=finding.origin,
        of_task=of_task,
        severity_at_handoff=task.handed.get(finding.id),
        severity_when_raised=finding.severity,
        ordered=finding.id in task.ordered,
        in_own_diff=raised_here,
        was_blocking=finding.id in task.ever_blocked,
    )
