"""Is this finding handed off? DESIGN §3.1: the ordered tuple of guards is the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.facts import HandoffFinding, HandoffMode, MergeFacts, TaskState, instant
from loop_guards.findings import FindingStatus, Origin
from loop_guards.limits import Limits


class HandoffOutcome(StrEnum):
    """YES: it becomes part of a new task. RESUME: a human's order resumes the escalated task that
    covers it. DEFERRED: asked again at resume. NO: not by this event."""

    YES = "yes"
    RESUME = "resume"
    DEFERRED = "deferred"
    NO = "no"


class HandoffReason(StrEnum):
    """Why, in the order asked: NOT_MERGED, then one code per row of the table in DESIGN §3.1."""

    NOT_MERGED = "not_merged"
    ALREADY_HANDED_OFF = "already_handed_off"
    NOT_OPEN = "not_open"
    STOPPED = "stopped"
    HUMAN_QUEUE = "human_queue"
    ESCALATED = "escalated"
    POST_MERGE = "post_merge"
    MODE_OFF = "mode_off"
    MODE_MANUAL = "mode_manual"
    VERIFY_RUN = "verify_run"
    BOT_PULL_REQUEST = "bot_pull_request"
    ACKNOWLEDGED = "acknowledged"
    PRE_EXISTING = "pre_existing"
    NO_PATH = "no_path"
    OTHER_BASE = "other_base"
    BELOW_SEVERITY = "below_severity"
    BUDGET = "budget"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffDecision(Decision):
    """The answer for one finding."""

    finding_id: int

    @property
    def yes(self) -> bool:
        """Whether the finding becomes part of a new task."""
        return self.outcome == HandoffOutcome.YES

    @property
    def asks_again(self) -> bool:
        """Whether a human's resume asks this question again."""
        return self.outcome == HandoffOutcome.DEFERRED


Answer = tuple[HandoffOutcome, HandoffReason] | None
Guard = Callable[[HandoffFinding, MergeFacts, Limits], Answer]


def _not_merged(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    return None if facts.merged else (HandoffOutcome.NO, HandoffReason.NOT_MERGED)


def _covered(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    state = finding.covered_by
    # An escalated task is live, but an order for its finding is a resume: rows 4 and 5 say so.
    if state is None or state is TaskState.ESCALATED:
        return None
    # What a task covered once is handed off again by a new order alone, whatever became of the
    # task: a deferred answer that is asked again at a resume would else make a second task.
    if state.is_live or finding.pending is None:
        return HandoffOutcome.NO, HandoffReason.ALREADY_HANDED_OFF
    return None


def _not_open(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    fixed = finding.status in (FindingStatus.FIXED, FindingStatus.GONE)
    if fixed or not finding.in_merged_tree or _dismissed(finding):
        return HandoffOutcome.NO, HandoffReason.NOT_OPEN
    return None


def _dismissed(finding: HandoffFinding) -> bool:
    """The latest human act wins: an order after the dismissal reopens the finding."""
    if finding.status is not FindingStatus.DISMISSED:
        return False
    if finding.pending is None or finding.dismissed_at is None:
        return True
    return instant(finding.dismissed_at) >= instant(finding.pending.at)


def _stopped(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if facts.stopped or facts.kill_switch:
        return HandoffOutcome.DEFERRED, HandoffReason.STOPPED
    return None


def _human_queue(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if finding.pending is None:
        return None
    # A second task beside an escalated one would cover the finding twice once that is resumed.
    escalated = finding.covered_by is TaskState.ESCALATED
    outcome = HandoffOutcome.RESUME if escalated else HandoffOutcome.YES
    return outcome, HandoffReason.HUMAN_QUEUE


def _escalated(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if finding.covered_by is TaskState.ESCALATED:
        return HandoffOutcome.DEFERRED, HandoffReason.ESCALATED
    return None


def _post_merge(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if finding.first_seen_after_merge or finding.origin is Origin.POST_MERGE:
        return HandoffOutcome.NO, HandoffReason.POST_MERGE
    return None


def _mode(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    match facts.mode:
        case HandoffMode.AUTO:
            return None
        case HandoffMode.MANUAL:
            return HandoffOutcome.NO, HandoffReason.MODE_MANUAL
        case HandoffMode.OFF:
            return HandoffOutcome.NO, HandoffReason.MODE_OFF


def _verify_run(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    verify = finding.origin is Origin.VERIFY
    return (HandoffOutcome.NO, HandoffReason.VERIFY_RUN) if verify else None


def _bot_pull_request(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if facts.author_is_bot or facts.is_fix_pr:
        return HandoffOutcome.NO, HandoffReason.BOT_PULL_REQUEST
    return None


def _acknowledged(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if finding.acknowledged or finding.status is FindingStatus.ACKNOWLEDGED:
        return HandoffOutcome.NO, HandoffReason.ACKNOWLEDGED
    if finding.origin is Origin.PRE_EXISTING:
        return HandoffOutcome.NO, HandoffReason.PRE_EXISTING
    return (HandoffOutcome.NO, HandoffReason.NO_PATH) if finding.path is None else None


def _other_base(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if facts.base != facts.default_branch and facts.base not in facts.handoff_bases:
        return HandoffOutcome.NO, HandoffReason.OTHER_BASE
    return None


def _below_severity(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    if not finding.severity.at_least(facts.minimum_severity):
        return HandoffOutcome.NO, HandoffReason.BELOW_SEVERITY
    return None


def _budget(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> Answer:
    spent = (
        facts.budget_spent
        or facts.tasks_of_merge >= limits.max_fix_tasks
        or finding.path_tasks >= limits.path_tasks
    )
    return (HandoffOutcome.NO, HandoffReason.BUDGET) if spent else None


GUARDS: tuple[tuple[str, Guard], ...] = (
    ("merged", _not_merged),
    ("covered", _covered),
    ("not_open", _not_open),
    ("stopped", _stopped),
    # A human's order stands here: after what makes fixing pointless or forbidden, before every
    # guard of the automatic plan.
    ("human_queue", _human_queue),
    ("escalated", _escalated),
    ("post_merge", _post_merge),
    ("mode", _mode),
    ("verify_run", _verify_run),
    ("bot_pull_request", _bot_pull_request),
    ("acknowledged", _acknowledged),
    ("other_base", _other_base),
    ("below_severity", _below_severity),
    ("budget", _budget),
)
"""First match wins. Everything after `human_queue` belongs to the automatic plan alone."""


_NAMES = tuple(name for name, _ in GUARDS)


def decide_handoff(finding: HandoffFinding, facts: MergeFacts, limits: Limits) -> HandoffDecision:
    """Hand this finding off? Total: every input gets an answer."""
    for place, (_, guard) in enumerate(GUARDS):
        answer = guard(finding, facts, limits)
        if answer is not None:
            return _decision(finding, facts, limits, answer, _trace(place, answer[1]))
    answer = (HandoffOutcome.YES, HandoffReason.AUTO)
    return _decision(finding, facts, limits, answer, _passed(len(GUARDS)))


@cache
def _passed(count: int) -> tuple[Asked, ...]:
    return tuple(Asked(name, None) for name in _NAMES[:count])


@cache
def _trace(place: int, reason: HandoffReason) -> tuple[Asked, ...]:
    """All guards before `place` let pass; the one there spoke. Shared: findings repeat traces."""
    return (*_passed(place), Asked(_NAMES[place], reason))


def _decision(
    finding: HandoffFinding,
    facts: MergeFacts,
    limits: Limits,
    answer: tuple[HandoffOutcome, HandoffReason],
    trace: tuple[Asked, ...],
) -> HandoffDecision:
    order, dismissed = finding.pending, finding.dismissed_at
    return HandoffDecision(
        outcome=answer[0],
        reason=answer[1],
        trace=trace,
        finding_id=finding.id,
        compared=values(
            merged=facts.merged,
            severity=finding.severity,
            minimum_severity=facts.minimum_severity,
            origin=finding.origin,
            status=finding.status,
            in_merged_tree=finding.in_merged_tree,
            path=finding.path,
            first_seen_after_merge=finding.first_seen_after_merge,
            acknowledged=finding.acknowledged,
            covered_by=finding.covered_by,
            dismissed_at=None if dismissed is None else dismissed.isoformat(),
            order=None if order is None else order.id,
            stopped=facts.stopped,
            kill_switch=facts.kill_switch,
            mode=facts.mode,
            author_is_bot=facts.author_is_bot,
            is_fix_pr=facts.is_fix_pr,
            base=facts.base,
            default_branch=facts.default_branch,
            tasks_of_merge=facts.tasks_of_merge,
            max_fix_tasks=limits.max_fix_tasks,
            path_tasks=finding.path_tasks,
            max_path_tasks=limits.path_tasks,
            budget_spent=facts.budget_spent,
        ),
        seal=sealed(),
    )


def over_task_cap(decision: HandoffDecision, limits: Limits) -> HandoffDecision:
    """The answer after grouping found that the merge has no room left for this finding's task."""
    return HandoffDecision(
        outcome=HandoffOutcome.NO,
        reason=HandoffReason.BUDGET,
        trace=(*decision.trace, Asked("task_cap", HandoffReason.BUDGET)),
        finding_id=decision.finding_id,
        compared=values(**decision.compared, tasks_allowed=limits.max_fix_tasks),
        seal=sealed(),
    )
