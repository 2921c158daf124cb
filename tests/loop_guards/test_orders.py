"""What a human's order becomes. DESIGN §3.9, the column "queue" and "queue again"."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from loop_guards import (
    FindingStatus,
    HandoffFinding,
    HandoffOutcome,
    MergeFacts,
    OrderFacts,
    OrderOutcome,
    OrderReason,
    PullState,
    TaskState,
    answer_order,
    decide_handoff,
)
from tests.loop_guards.factories import LIMITS, PATIENT, anything, finding, merge, order, ordering

Out, R = OrderOutcome, OrderReason
OPEN, CLOSED = {"pull_request": PullState.OPEN}, {"pull_request": PullState.CLOSED}
CASES: list[tuple[str, OrderOutcome, OrderReason, dict[str, Any]]] = [
    ("a bot orders", Out.REFUSED, R.NOT_HUMAN, {"by_human": False}),
    ("a stranger orders", Out.REFUSED, R.NO_WRITE_ACCESS, {"can_write": False}),
    ("open", Out.MARKED, R.WAITS_FOR_MERGE, OPEN),
    ("open, again", Out.REFUSED, R.ALREADY_QUEUED, {**OPEN, "already_pending": True}),
    ("closed unmerged", Out.REFUSED, R.NOT_MERGED, CLOSED),
    ("closed unmerged, again", Out.REFUSED, R.NOT_MERGED, {**CLOSED, "already_pending": True}),
    ("merged, free", Out.TASK, R.MERGED, {}),
    ("merged, again", Out.REFUSED, R.ALREADY_QUEUED, {"already_pending": True}),
    ("escalated", Out.RESUME, R.TASK_ESCALATED, {"covered_by": TaskState.ESCALATED}),
    (
        "escalated, of an open fix",
        Out.RESUME,
        R.TASK_ESCALATED,
        {**OPEN, "covered_by": TaskState.ESCALATED},
    ),
    (
        "escalated and stopped",
        Out.PENDING,
        R.STOPPED,
        {"covered_by": TaskState.ESCALATED, "stopped": True},
    ),
    ("left open by its merged task", Out.TASK, R.MERGED, {"covered_by": TaskState.MERGED}),
    ("stopped", Out.PENDING, R.STOPPED, {"stopped": True}),
    ("kill switch", Out.PENDING, R.STOPPED, {"kill_switch": True}),
    ("stopped, again", Out.REFUSED, R.ALREADY_QUEUED, {"stopped": True, "already_pending": True}),
    ("fixed", Out.REFUSED, R.NOT_OPEN, {"status": FindingStatus.FIXED}),
    (
        "gone",
        Out.REFUSED,
        R.NOT_OPEN,
        {"status": FindingStatus.GONE, "covered_by": TaskState.FIXING},
    ),
    ("dismissed", Out.TASK, R.MERGED, {"status": FindingStatus.DISMISSED}),
    ("acknowledged", Out.TASK, R.MERGED, {"status": FindingStatus.ACKNOWLEDGED}),
    *(
        (f"a {state} task works on it", Out.REFUSED, R.LIVE_TASK, {"covered_by": state})
        for state in TaskState
        if state.is_live and state is not TaskState.ESCALATED
    ),
    *(
        (f"its task is {state}", Out.TASK, R.MERGED, {"covered_by": state})
        for state in TaskState
        if not state.is_live
    ),
]


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "facts"), CASES, ids=[case[0] for case in CASES]
)
def test_every_order_gets_one_answer(
    name: str, outcome: OrderOutcome, reason: OrderReason, facts: dict[str, Any]
) -> None:
    """Each state of the table, for a first and a second order."""
    decision = answer_order(ordering(**facts))
    assert (decision.outcome, decision.reason) == (outcome, reason)
    assert decision.accepted is (outcome is not Out.REFUSED)


SAME = {
    Out.TASK: HandoffOutcome.YES,
    Out.RESUME: HandoffOutcome.RESUME,
    Out.PENDING: HandoffOutcome.DEFERRED,
}


@PATIENT
@given(anything(OrderFacts), anything(HandoffFinding), anything(MergeFacts))
def test_the_hand_off_keeps_what_the_answer_promised(
    facts: OrderFacts, other: HandoffFinding, around: MergeFacts
) -> None:
    """An order that is answered "task now" becomes a task: no order ends in nothing."""
    answer = answer_order(facts)
    outcome = OrderOutcome(answer.outcome)
    if outcome not in SAME or facts.pull_request is not PullState.MERGED:
        return
    asked = finding(
        other.id,
        other.path,
        severity=other.severity,
        origin=other.origin,
        status=facts.status,
        covered_by=facts.covered_by,
        order=order(minutes=1),
        dismissed_at=order(minutes=0).at,
        acknowledged=other.acknowledged,
        path_tasks=other.path_tasks,
        first_seen_after_merge=other.first_seen_after_merge,
    )
    merged = merge(
        mode=around.mode,
        author_is_bot=around.author_is_bot,
        is_fix_pr=around.is_fix_pr,
        base=around.base,
        budget_spent=around.budget_spent,
        stopped=facts.stopped,
        kill_switch=facts.kill_switch,
    )
    assert decide_handoff(asked, merged, LIMITS).outcome == SAME[outcome]


@PATIENT
@given(anything(OrderFacts))
def test_a_bot_never_orders(facts: OrderFacts) -> None:
    """A machine's order is refused in every state."""
    if not facts.by_human:
        assert answer_order(facts).reason == OrderReason.NOT_HUMAN
