"""Is one finding handed off? DESIGN §3.1, row by row."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from loop_guards import (
    FindingStatus,
    HandoffFinding,
    HandoffMode,
    HandoffOutcome,
    HandoffReason,
    Limits,
    MergeFacts,
    Origin,
    Severity,
    TaskState,
    decide_handoff,
)
from tests.loop_guards.factories import (
    ANY_LIMITS,
    LIMITS,
    PATIENT,
    anything,
    at,
    finding,
    merge,
    order,
)

NO, DEFERRED, YES = HandoffOutcome.NO, HandoffOutcome.DEFERRED, HandoffOutcome.YES


class Row(NamedTuple):
    """A clause of the table: what differs from a finding that is handed off, and the answer."""

    name: str
    of_finding: dict[str, Any]
    of_merge: dict[str, Any]
    outcome: HandoffOutcome
    reason: HandoffReason


def clause(
    name: str,
    outcome: HandoffOutcome,
    reason: HandoffReason,
    of_merge: dict[str, Any] | None = None,
    **of_finding: Any,
) -> Row:
    return Row(name, of_finding, of_merge or {}, outcome, reason)


R = HandoffReason
ROWS = (
    clause("0 not merged", NO, R.NOT_MERGED, {"merged": False}),
    clause("1 a live task", NO, R.ALREADY_HANDED_OFF, covered_by=TaskState.FIXING),
    clause("2 gone from the tree", NO, R.NOT_OPEN, in_merged_tree=False),
    clause("3 stopped", DEFERRED, R.STOPPED, {"stopped": True}),
    clause("4 ordered", YES, R.HUMAN_QUEUE, order=order()),
    clause("5 escalated", DEFERRED, R.ESCALATED, covered_by=TaskState.ESCALATED),
    clause("6 after the merge", NO, R.POST_MERGE, first_seen_after_merge=True),
    clause("7 manual", NO, R.MODE_MANUAL, {"mode": HandoffMode.MANUAL}),
    clause("8 verify run", NO, R.VERIFY_RUN, origin=Origin.VERIFY),
    clause("9 a bot's", NO, R.BOT_PULL_REQUEST, {"author_is_bot": True}),
    clause("10 acknowledged", NO, R.ACKNOWLEDGED, acknowledged=True),
    clause("11 other base", NO, R.OTHER_BASE, {"base": "legacy"}),
    clause("12 below severity", NO, R.BELOW_SEVERITY, severity=Severity.SUGGESTION),
    clause("13 budget", NO, R.BUDGET, {"budget_spent": True}),
)
MORE = (
    *(
        clause(f"1 covered by a {state} task", NO, R.ALREADY_HANDED_OFF, covered_by=state)
        for state in TaskState
        if state is not TaskState.ESCALATED
    ),
    *(
        clause(
            f"1 a {state} task is over, and it is ordered again",
            YES,
            R.HUMAN_QUEUE,
            covered_by=state,
            order=order(),
        )
        for state in TaskState
        if not state.is_live and state is not TaskState.MERGED
    ),
    clause(
        "1 an order that has ended asks for nothing",
        NO,
        R.ALREADY_HANDED_OFF,
        covered_by=TaskState.FAILED,
        order=replace(order(), ended=True),
    ),
    clause(
        "1 a merged task left it open and it is ordered again",
        YES,
        R.HUMAN_QUEUE,
        covered_by=TaskState.MERGED,
        order=order(),
    ),
    clause("2 fixed", NO, R.NOT_OPEN, status=FindingStatus.FIXED),
    clause("2 gone", NO, R.NOT_OPEN, status=FindingStatus.GONE),
    clause("2 dismissed", NO, R.NOT_OPEN, status=FindingStatus.DISMISSED, dismissed_at=at(0)),
    clause(
        "2 dismissed after the order",
        NO,
        R.NOT_OPEN,
        status=FindingStatus.DISMISSED,
        dismissed_at=at(5),
        order=order(minutes=1),
    ),
    clause(
        "2 dismissed in the moment of the order",
        NO,
        R.NOT_OPEN,
        status=FindingStatus.DISMISSED,
        dismissed_at=at(1),
        order=order(minutes=1),
    ),
    clause(
        "2 dismissed at an unknown time",
        NO,
        R.NOT_OPEN,
        status=FindingStatus.DISMISSED,
        order=order(),
    ),
    clause(
        "4 an order after the dismissal reopens it",
        YES,
        R.HUMAN_QUEUE,
        status=FindingStatus.DISMISSED,
        dismissed_at=at(1).replace(tzinfo=None),
        order=order(minutes=5),
    ),
    clause(
        "4 an order reopens what was acknowledged",
        YES,
        R.HUMAN_QUEUE,
        status=FindingStatus.ACKNOWLEDGED,
        order=order(),
    ),
    clause("3 kill switch", DEFERRED, R.STOPPED, {"kill_switch": True}),
    clause("6 origin", NO, R.POST_MERGE, origin=Origin.POST_MERGE),
    clause("7 off", NO, R.MODE_OFF, {"mode": HandoffMode.OFF}),
    clause("9 a fix pull request", NO, R.BOT_PULL_REQUEST, {"is_fix_pr": True}),
    clause("10 acknowledged status", NO, R.ACKNOWLEDGED, status=FindingStatus.ACKNOWLEDGED),
    clause("10 pre-existing", NO, R.PRE_EXISTING, origin=Origin.PRE_EXISTING),
    clause("10 no path", NO, R.NO_PATH, path=None),
    clause("11 a base of the policy", YES, R.AUTO, {"base": "v1", "handoff_bases": ("v1",)}),
    clause("12 at the minimum", YES, R.AUTO, severity=Severity.WARNING),
    clause(
        "12 the policy's minimum",
        NO,
        R.BELOW_SEVERITY,
        {"minimum_severity": Severity.CRITICAL},
    ),
    clause("13 tasks of the merge", NO, R.BUDGET, {"tasks_of_merge": 10}),
    clause("13 one task is left", YES, R.AUTO, {"tasks_of_merge": 9}),
    clause("13 tasks of the path", NO, R.BUDGET, path_tasks=3),
    clause("13 one of the path is left", YES, R.AUTO, path_tasks=2),
    clause("14 otherwise", YES, R.AUTO),
)


@pytest.mark.parametrize("row", [*ROWS, *MORE], ids=lambda row: row.name)
def test_each_clause_answers_alone(row: Row) -> None:
    """One difference from a finding that would be handed off gives its row's answer."""
    decision = decide_handoff(finding(**row.of_finding), merge(**row.of_merge), LIMITS)
    assert (decision.outcome, decision.reason) == (row.outcome, row.reason)


PAIRS = [
    pytest.param(first, second, id=f"{first.name} before {second.name}")
    for first, second in combinations(ROWS, 2)
    if not set(first.of_finding) & set(second.of_finding)
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_first_match_wins(first: Row, second: Row) -> None:
    """With two rows true, the earlier one gives the reason."""
    asked = finding(**first.of_finding, **second.of_finding)
    decision = decide_handoff(asked, merge(**first.of_merge, **second.of_merge), LIMITS)
    assert decision.reason == first.reason


def test_an_order_on_an_escalated_task_makes_no_second_task() -> None:
    """Row 4 wins over row 5, but as a resume: two live tasks never cover one finding."""
    asked = finding(order=order(), covered_by=TaskState.ESCALATED)
    decision = decide_handoff(asked, merge(), LIMITS)
    assert (decision.outcome, decision.yes) == (HandoffOutcome.RESUME, False)
    assert decision.reason == HandoffReason.HUMAN_QUEUE


ASKED = [
    *("merged", "covered", "not_open", "stopped", "human_queue", "escalated", "post_merge", "mode"),
    *("verify_run", "bot_pull_request", "acknowledged", "other_base", "below_severity", "budget"),
]


@pytest.mark.parametrize(("place", "row"), list(enumerate(ROWS)), ids=[row.name for row in ROWS])
def test_the_trace_ends_with_the_guard_that_spoke(place: int, row: Row) -> None:
    """Guards after the answer were not asked; those before it let pass."""
    trace = decide_handoff(finding(**row.of_finding), merge(**row.of_merge), LIMITS).trace
    assert [(asked.guard, asked.reason) for asked in trace] == [
        *((name, None) for name in ASKED[:place]),
        (ASKED[place], row.reason),
    ]


def test_a_yes_asked_every_guard() -> None:
    """The automatic yes is what is left when no guard speaks."""
    decision = decide_handoff(finding(), merge(), LIMITS)
    assert decision.reason == HandoffReason.AUTO
    assert [(asked.guard, asked.reason) for asked in decision.trace] == [(n, None) for n in ASKED]


@PATIENT
@given(anything(HandoffFinding), anything(MergeFacts), ANY_LIMITS)
def test_what_a_task_covered_once_needs_a_new_order(
    asked: HandoffFinding, facts: MergeFacts, limits: Limits
) -> None:
    """At most one automatic task per finding, ever; every further one holds an order of its own."""
    decision = decide_handoff(asked, facts, limits)
    if asked.covered_by is not None:
        assert decision.reason != HandoffReason.AUTO
        assert not decision.yes or asked.pending is not None
    if not facts.merged:
        assert decision.reason == HandoffReason.NOT_MERGED


@PATIENT
@given(anything(HandoffFinding), anything(MergeFacts), ANY_LIMITS)
def test_machines_hand_nothing_of_their_own_off(
    asked: HandoffFinding, facts: MergeFacts, limits: Limits
) -> None:
    """Without a person's order nothing of a bot's, a fix, a verify run or after the merge goes."""
    decision = decide_handoff(asked, facts, limits)
    if not decision.yes:
        return
    ordered = asked.pending is not None
    assert decision.reason == (HandoffReason.HUMAN_QUEUE if ordered else HandoffReason.AUTO)
    if not ordered:
        assert not any((facts.author_is_bot, facts.is_fix_pr, asked.first_seen_after_merge))
        assert asked.origin in (Origin.ORIGINAL, Origin.INTRODUCED)
        assert asked.covered_by is None
    assert not any((facts.stopped, facts.kill_switch))
    assert asked.covered_by is None or not asked.covered_by.is_live
