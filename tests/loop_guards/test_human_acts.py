"""What people do to findings, tasks and lineages. DESIGN §3.9: the table, row by row."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from loop_guards import (
    FindingStatus,
    HandoffOutcome,
    HandoffReason,
    OrderOutcome,
    OrderReason,
    PullState,
    ResumeOutcome,
    ResumeReason,
    TaskEvent,
    TaskState,
    UnqueueOutcome,
    UnqueueReason,
    answer_order,
    answer_resume,
    answer_stop,
    answer_unqueue,
    decide_handoff,
    may_start_turn,
    move_task,
)
from tests.loop_guards.factories import (
    LIMITS,
    at,
    before_round,
    finding,
    merge,
    order,
    ordering,
    resuming,
    stopping,
    task,
    unqueuing,
)

Out, Q, U, S = OrderOutcome, OrderReason, UnqueueReason, TaskState
Order = tuple[OrderOutcome, OrderReason]
ALREADY: Order = (Out.REFUSED, Q.ALREADY_QUEUED)
LIVE: Order = (Out.REFUSED, Q.LIVE_TASK)
NOT_OPEN: Order = (Out.REFUSED, Q.NOT_OPEN)
NOT_MERGED: Order = (Out.REFUSED, Q.NOT_MERGED)
TASK: Order = (Out.TASK, Q.MERGED)


class Row(NamedTuple):
    """A row of the table: the finding's state, a first order, a second, and an unqueue then."""

    name: str
    state: dict[str, Any]
    queue: Order
    again: Order
    unqueue: UnqueueReason


OPEN, CLOSED = {"pull_request": PullState.OPEN}, {"pull_request": PullState.CLOSED}
NONE: dict[str, Any] = {}
TABLE = [
    Row("open", OPEN, (Out.MARKED, Q.WAITS_FOR_MERGE), ALREADY, U.ORDER_PENDING),
    Row("closed unmerged", CLOSED, NOT_MERGED, NOT_MERGED, U.NOT_QUEUED),
    Row("merged, free", NONE, TASK, LIVE, U.OF_LIVE_TASK),
    *(
        Row(f"a {state} task", {"covered_by": state}, LIVE, LIVE, U.OF_LIVE_TASK)
        for state in (S.WAITING, S.QUEUED, S.FIXING, S.REVIEWING, S.APPROVED)
    ),
    Row(
        "an escalated task",
        {"covered_by": S.ESCALATED},
        (Out.RESUME, Q.TASK_ESCALATED),
        LIVE,
        U.OF_LIVE_TASK,
    ),
    *(
        Row(f"a {state} task", {"covered_by": state}, TASK, LIVE, U.OF_LIVE_TASK)
        for state in (S.MERGED, S.CLOSED, S.DECLINED, S.FAILED, S.OBSOLETE, S.WITHDRAWN)
    ),
    *(
        Row(
            f"{name}, {where}",
            {name: True, **more},
            (Out.PENDING, Q.STOPPED),
            ALREADY,
            unqueue,
        )
        for name in ("stopped", "kill_switch")
        for where, more, unqueue in (
            ("merged", {}, U.ORDER_PENDING),
            ("open", OPEN, U.ORDER_PENDING),
            ("an escalated task", {"covered_by": S.ESCALATED}, U.ORDER_PENDING),
        )
    ),
    Row("fixed", {"status": FindingStatus.FIXED}, NOT_OPEN, NOT_OPEN, U.NOT_QUEUED),
    Row("gone", {"status": FindingStatus.GONE}, NOT_OPEN, NOT_OPEN, U.NOT_QUEUED),
    *(
        Row(status, {"status": status}, TASK, LIVE, U.OF_LIVE_TASK)
        for status in (FindingStatus.DISMISSED, FindingStatus.ACKNOWLEDGED)
    ),
]


def since(state: dict[str, Any], outcome: OrderOutcome) -> dict[str, Any]:
    """The finding's state after an order that came to this."""
    match outcome:
        case Out.MARKED | Out.PENDING:
            return state | {"already_pending": True}
        case Out.TASK:
            return state | {"covered_by": S.WAITING}
        case Out.RESUME:
            resumed = move_task(task(state["covered_by"]), TaskEvent.RESUME)
            return state | {"covered_by": resumed.state}
        case Out.REFUSED:
            return state


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_queue_queue_again_and_unqueue(row: Row) -> None:
    """Every order gets one answer in every state; a second one never makes a second task."""
    first = answer_order(ordering(**row.state))
    assert (first.outcome, first.reason) == row.queue
    after = since(row.state, OrderOutcome(first.outcome))
    second = answer_order(ordering(**after))
    assert (second.outcome, second.reason) == row.again
    taken_out = answer_unqueue(
        unqueuing(
            order_pending=after.get("already_pending", False), covered_by=after.get("covered_by")
        )
    )
    assert taken_out.reason == row.unqueue
    assert taken_out.accepted is (row.unqueue is not U.NOT_QUEUED)


def test_every_state_of_a_task_and_a_finding_is_in_the_table() -> None:
    """A new state needs its row."""
    assert {row.state.get("covered_by") for row in TABLE} == {None, *TaskState}
    assert {row.state.get("status", FindingStatus.OPEN) for row in TABLE} == set(FindingStatus)
    assert {row.state.get("pull_request", PullState.MERGED) for row in TABLE} == set(PullState)


H = HandoffReason
LATE: dict[str, Any] = {"order": order(minutes=1)}
DISMISSED = {"status": FindingStatus.DISMISSED, "dismissed_at": at(0)}
Said = tuple[HandoffOutcome, HandoffReason]
DEFERRED: Said = (HandoffOutcome.DEFERRED, H.STOPPED)
ORDERED: Said = (HandoffOutcome.YES, H.HUMAN_QUEUE)
COVERED: Said = (HandoffOutcome.NO, H.ALREADY_HANDED_OFF)
CLOSED_FOR_GOOD: Said = (HandoffOutcome.NO, H.NOT_OPEN)
# What is said of a merged finding while its lineage is stopped, and at the resume.
STOP_AND_RESUME: list[tuple[str, dict[str, Any], Said, Said]] = [
    ("free", NONE, DEFERRED, (HandoffOutcome.YES, H.AUTO)),
    ("ordered before the merge", {"order": order(minutes=-5)}, DEFERRED, ORDERED),
    ("ordered while stopped", LATE, DEFERRED, ORDERED),
    *(
        (f"a {state} task", {"covered_by": state}, COVERED, COVERED)
        for state in TaskState
        if state is not S.ESCALATED
    ),
    *(
        (f"a {state} task, ordered", {"covered_by": state, **LATE}, DEFERRED, ORDERED)
        for state in TaskState
        if not state.is_live
    ),
    (
        "an escalated task",
        {"covered_by": S.ESCALATED},
        DEFERRED,
        (HandoffOutcome.DEFERRED, H.ESCALATED),
    ),
    (
        "an escalated task, ordered",
        {"covered_by": S.ESCALATED, **LATE},
        DEFERRED,
        (HandoffOutcome.RESUME, H.HUMAN_QUEUE),
    ),
    ("fixed", {"status": FindingStatus.FIXED, **LATE}, CLOSED_FOR_GOOD, CLOSED_FOR_GOOD),
    ("gone", {"status": FindingStatus.GONE, **LATE}, CLOSED_FOR_GOOD, CLOSED_FOR_GOOD),
    ("dismissed", DISMISSED, CLOSED_FOR_GOOD, CLOSED_FOR_GOOD),
    ("dismissed, ordered since", {**DISMISSED, **LATE}, DEFERRED, ORDERED),
    (
        "acknowledged",
        {"status": FindingStatus.ACKNOWLEDGED},
        DEFERRED,
        (HandoffOutcome.NO, H.ACKNOWLEDGED),
    ),
    (
        "acknowledged, ordered since",
        {"status": FindingStatus.ACKNOWLEDGED, **LATE},
        DEFERRED,
        ORDERED,
    ),
]


@pytest.mark.parametrize(
    ("name", "state", "while_stopped", "at_resume"),
    STOP_AND_RESUME,
    ids=[each[0] for each in STOP_AND_RESUME],
)
def test_stop_defers_and_resume_asks_again(
    name: str, state: dict[str, Any], while_stopped: Said, at_resume: Said
) -> None:
    """Marks and orders are kept through a stop, and nothing is handed off twice after it."""
    stopped = decide_handoff(finding(**state), merge(stopped=True), LIMITS)
    assert (stopped.outcome, stopped.reason) == while_stopped
    switched_off = decide_handoff(finding(**state), merge(kill_switch=True), LIMITS)
    assert (switched_off.outcome, switched_off.reason) == while_stopped
    resumed = decide_handoff(finding(**state), merge(), LIMITS)
    assert (resumed.outcome, resumed.reason) == at_resume


def test_a_resume_asks_about_what_was_deferred() -> None:
    """The answer of the resume says that the stop is over and that the question is open again."""
    assert decide_handoff(finding(), merge(stopped=True), LIMITS).asks_again
    resumed = answer_resume(resuming(stopped=True, task=None), LIMITS)
    assert (resumed.lifts_stop, resumed.asks_again) == (True, True)


LIVE_STATES = [state for state in TaskState if state.is_live]


@pytest.mark.parametrize("state", LIVE_STATES)
def test_the_last_finding_taken_off_withdraws_the_task(state: TaskState) -> None:
    """Without a proposal nothing is left to do, and whoever waits for its paths may go on."""
    answer = answer_unqueue(unqueuing(order_pending=False, covered_by=state, last_of_task=True))
    assert (answer.outcome, answer.reason) == (UnqueueOutcome.EMPTIED, U.LAST_OF_TASK)
    decision = move_task(task(state), TaskEvent.EMPTIED_BY_HUMAN)
    assert decision.state is S.WITHDRAWN
    assert decision.frees_lease is state.holds_lease


@pytest.mark.parametrize("state", LIVE_STATES)
def test_a_finding_taken_off_leaves_the_others_to_the_task(state: TaskState) -> None:
    """The task goes on without it."""
    answer = answer_unqueue(unqueuing(order_pending=False, covered_by=state))
    assert (answer.outcome, answer.reason) == (UnqueueOutcome.RELEASED, U.OF_LIVE_TASK)


def test_a_stop_cancels_the_turn_and_no_turn_starts_until_a_resume() -> None:
    """The task keeps its place; the resume lifts the stop and costs no rounds."""
    assert answer_stop(stopping()).accepted
    cancelled = move_task(task(S.FIXING), TaskEvent.STOP)
    assert (cancelled.state, cancelled.frees_lease) == (S.QUEUED, False)
    assert not may_start_turn(before_round(stopped=True), LIMITS).allowed
    lifted = answer_resume(resuming(stopped=True, task=None), LIMITS)
    assert (lifted.outcome, lifted.lifts_stop, lifted.rounds) == (ResumeOutcome.LIFTED, True, 0)


def test_a_resume_of_an_escalated_task_starts_with_a_turn() -> None:
    """Allowance M, the lease taken again; the same resume a second time is refused."""
    answer = answer_resume(resuming(), LIMITS)
    assert (answer.outcome, answer.rounds) == (ResumeOutcome.RESUMED, 2)
    decision = move_task(task(S.ESCALATED, has_fix_pr=True), TaskEvent.RESUME)
    assert (decision.state, decision.counts_as_resume, decision.takes_lease) == (
        S.QUEUED,
        True,
        True,
    )
    again = answer_resume(resuming(task=decision.state), LIMITS)
    assert (again.reason, again.accepted, again.rounds) == (ResumeReason.ALREADY_RESUMED, False, 0)


def test_the_latest_human_act_wins() -> None:
    """Dismissed, ordered: it is handed off. Ordered, dismissed: it is not, and no order is left."""
    dismissed: dict[str, Any] = {"status": FindingStatus.DISMISSED, "dismissed_at": at(1)}
    assert answer_order(ordering(status=FindingStatus.DISMISSED)).outcome == Out.TASK
    assert decide_handoff(finding(**dismissed, order=order(minutes=2)), merge(), LIMITS).yes
    late = decide_handoff(finding(**dismissed, order=order(minutes=0)), merge(), LIMITS)
    assert late.reason == HandoffReason.NOT_OPEN
