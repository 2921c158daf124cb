"""Each human act by itself: who may, what it comes to, what is refused first. DESIGN §3.9."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given

from loop_guards import (
    Decision,
    DismissalFacts,
    DismissalOutcome,
    DismissalReason,
    FindingStatus,
    Limits,
    OrderFacts,
    PullState,
    ResumeFacts,
    ResumeOutcome,
    ResumeReason,
    Severity,
    StopFacts,
    StopOutcome,
    StopReason,
    TaskState,
    UnqueueFacts,
    UnqueueOutcome,
    UnqueueReason,
    answer_dismissal,
    answer_order,
    answer_resume,
    answer_stop,
    answer_unqueue,
)
from tests.loop_guards.factories import (
    ANY_LIMITS,
    LIMITS,
    PATIENT,
    anything,
    dismissing,
    ordering,
    resuming,
    stopping,
    unqueuing,
)

U, S = UnqueueReason, TaskState
HUMAN: dict[str, Any] = {"by_human": False}
STRANGER: dict[str, Any] = {"can_write": False}
UNQUEUE: list[tuple[str, UnqueueOutcome, UnqueueReason, dict[str, Any]]] = [
    ("a bot", UnqueueOutcome.REFUSED, U.NOT_HUMAN, HUMAN),
    ("a stranger", UnqueueOutcome.REFUSED, U.NO_WRITE_ACCESS, STRANGER),
    ("an order waits", UnqueueOutcome.REMOVED, U.ORDER_PENDING, {}),
    (
        "an order waits before the task's last",
        UnqueueOutcome.REMOVED,
        U.ORDER_PENDING,
        {"covered_by": S.ESCALATED, "last_of_task": True},
    ),
    ("nothing", UnqueueOutcome.REFUSED, U.NOT_QUEUED, {"order_pending": False}),
    (
        "the last of a task of old",
        UnqueueOutcome.REFUSED,
        U.NOT_QUEUED,
        {"order_pending": False, "covered_by": S.MERGED, "last_of_task": True},
    ),
    *(
        (f"a {state} task of old", UnqueueOutcome.REFUSED, U.NOT_QUEUED, more)
        for state in TaskState
        if not state.is_live
        for more in ({"order_pending": False, "covered_by": state},)
    ),
]


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "facts"), UNQUEUE, ids=[case[0] for case in UNQUEUE]
)
def test_what_unqueue_takes_out(
    name: str, outcome: UnqueueOutcome, reason: UnqueueReason, facts: dict[str, Any]
) -> None:
    """The order that waits, else what the live task holds; a task that is over holds nothing."""
    answer = answer_unqueue(unqueuing(**facts))
    assert (answer.outcome, answer.reason) == (outcome, reason)
    assert answer.accepted is (outcome is not UnqueueOutcome.REFUSED)


D = DismissalReason
OWN = {"gated": True, "is_author": True, "severity": Severity.CRITICAL}
DISMISSED = {"status": FindingStatus.DISMISSED}
DISMISSALS: list[tuple[str, DismissalReason, dict[str, Any]]] = [
    ("an open finding", D.BY_HUMAN, {}),
    ("an acknowledged one", D.BY_HUMAN, {"status": FindingStatus.ACKNOWLEDGED}),
    ("a bot", D.NOT_HUMAN, HUMAN),
    ("a stranger", D.NO_WRITE_ACCESS, STRANGER),
    ("fixed", D.NOT_OPEN, {"status": FindingStatus.FIXED}),
    ("gone", D.NOT_OPEN, {"status": FindingStatus.GONE}),
    ("a second time", D.ALREADY_DISMISSED, DISMISSED),
    ("ordered since", D.BY_HUMAN, {**DISMISSED, "order_pending": True}),
    ("one's own critical behind a gate", D.OWN_CRITICAL, OWN),
    ("another's critical behind a gate", D.BY_HUMAN, {**OWN, "is_author": False}),
    ("one's own critical where reviews advise", D.BY_HUMAN, {**OWN, "gated": False}),
    ("one's own warning behind a gate", D.BY_HUMAN, {**OWN, "severity": Severity.WARNING}),
]


@pytest.mark.parametrize(
    ("name", "reason", "facts"), DISMISSALS, ids=[case[0] for case in DISMISSALS]
)
def test_who_dismisses_what(name: str, reason: DismissalReason, facts: dict[str, Any]) -> None:
    """A person with write access dismisses what is open; nobody waives their own critical."""
    answer = answer_dismissal(dismissing(**facts))
    accepted = reason is D.BY_HUMAN
    assert (answer.reason, answer.accepted) == (reason, accepted)
    assert answer.outcome == (DismissalOutcome.DISMISSED if accepted else DismissalOutcome.REFUSED)


def test_a_dismissal_withdraws_the_order_and_empties_the_task() -> None:
    """The latest human act wins: no order outlives it, and a task without findings has no work."""
    answer = answer_dismissal(dismissing(order_pending=True, last_of_task=True))
    assert (answer.withdraws_order, answer.empties_task) == (True, True)
    answer = answer_dismissal(dismissing())
    assert (answer.withdraws_order, answer.empties_task) == (False, False)
    refused = answer_dismissal(dismissing(order_pending=True, last_of_task=True, can_write=False))
    assert (refused.withdraws_order, refused.empties_task) == (False, False)


STOPS: list[tuple[StopReason, dict[str, Any]]] = [
    (StopReason.NOT_HUMAN, HUMAN),
    (StopReason.NO_WRITE_ACCESS, STRANGER),
    (StopReason.ALREADY_STOPPED, {"stopped": True}),
    (StopReason.BY_HUMAN, {}),
]


@pytest.mark.parametrize(("reason", "facts"), STOPS, ids=[reason for reason, _ in STOPS])
def test_who_stops_a_lineage(reason: StopReason, facts: dict[str, Any]) -> None:
    """A person with write access, once."""
    answer = answer_stop(stopping(**facts))
    accepted = reason is StopReason.BY_HUMAN
    assert (answer.reason, answer.accepted) == (reason, accepted)
    assert answer.outcome == (StopOutcome.STOPPED if accepted else StopOutcome.REFUSED)


Z, RR = ResumeOutcome, ResumeReason
LIFTS = {"stopped": True}
WAITING = {"anything_deferred": True}
RESUMES: list[tuple[str, ResumeOutcome, ResumeReason, dict[str, Any]]] = [
    ("an escalated task", Z.RESUMED, RR.TASK_ESCALATED, {}),
    ("an escalated task of a stopped lineage", Z.RESUMED, RR.TASK_ESCALATED, LIFTS),
    ("a stopped lineage", Z.LIFTED, RR.STOPPED, {**LIFTS, "task": None}),
    ("an old escalation, stopped since", Z.LIFTED, RR.STOPPED, {**LIFTS, "is_current": False}),
    ("an old escalation", Z.REFUSED, RR.ALREADY_RESUMED, {"is_current": False}),
    ("what the kill switch deferred", Z.ASKED, RR.DEFERRED, {**WAITING, "task": None}),
    ("deferred, an old escalation", Z.ASKED, RR.DEFERRED, {**WAITING, "is_current": False}),
    ("deferred, an escalated task", Z.RESUMED, RR.TASK_ESCALATED, WAITING),
    ("deferred, a stopped lineage", Z.LIFTED, RR.STOPPED, {**WAITING, **LIFTS, "task": None}),
    ("deferred, the switch still on", Z.REFUSED, RR.KILL_SWITCH, {**WAITING, "kill_switch": True}),
    ("a lineage that runs", Z.REFUSED, RR.NOT_STOPPED, {"task": None}),
    ("a bot", Z.REFUSED, RR.NOT_HUMAN, {**HUMAN, **LIFTS}),
    ("a stranger", Z.REFUSED, RR.NO_WRITE_ACCESS, {**STRANGER, **LIFTS}),
    ("the kill switch is on", Z.REFUSED, RR.KILL_SWITCH, {**LIFTS, "kill_switch": True}),
    *(
        (f"a {state} task", Z.REFUSED, RR.ALREADY_RESUMED, {"task": state})
        for state in TaskState
        if state is not S.ESCALATED
    ),
    *(
        (f"a {state} task of a stopped lineage", Z.LIFTED, RR.STOPPED, {"task": state, **LIFTS})
        for state in TaskState
        if state is not S.ESCALATED
    ),
]


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "facts"), RESUMES, ids=[case[0] for case in RESUMES]
)
def test_what_a_resume_comes_to(
    name: str, outcome: ResumeOutcome, reason: ResumeReason, facts: dict[str, Any]
) -> None:
    """One escalation, once; it lifts a stop too. Nothing goes on while the kill switch is on."""
    answer = answer_resume(resuming(**facts), LIMITS)
    assert (answer.outcome, answer.reason) == (outcome, reason)
    accepted = outcome is not Z.REFUSED
    assert (answer.accepted, answer.asks_again) == (accepted, accepted)
    assert answer.lifts_stop is (accepted and facts.get("stopped", False))
    assert answer.rounds == (LIMITS.resume_rounds if outcome is Z.RESUMED else 0)


Signs = list[tuple[str, dict[str, Any]]]
REFUSED_FIRST: list[tuple[str, Any, Any, Signs]] = [
    (
        "order",
        answer_order,
        ordering,
        [
            ("not_human", HUMAN),
            ("no_write_access", STRANGER),
            ("not_merged", {"pull_request": PullState.CLOSED}),
            ("not_open", {"status": FindingStatus.FIXED}),
            ("live_task", {"covered_by": S.FIXING}),
            ("already_queued", {"already_pending": True}),
            ("stopped", {"stopped": True}),
        ],
    ),
    (
        "dismissal",
        answer_dismissal,
        dismissing,
        [
            ("not_human", HUMAN),
            ("no_write_access", STRANGER),
            ("not_open", {"status": FindingStatus.GONE}),
            ("already_dismissed", DISMISSED),
            ("own_critical", OWN),
        ],
    ),
    (
        "unqueue",
        answer_unqueue,
        unqueuing,
        [("not_human", HUMAN), ("no_write_access", STRANGER), ("order_pending", {})],
    ),
    (
        "stop",
        answer_stop,
        stopping,
        [("not_human", HUMAN), ("no_write_access", STRANGER), ("already_stopped", LIFTS)],
    ),
    (
        "resume",
        lambda facts: answer_resume(facts, LIMITS),
        resuming,
        [
            ("not_human", HUMAN),
            ("no_write_access", STRANGER),
            ("kill_switch", {"kill_switch": True}),
            ("task_escalated", {}),
        ],
    ),
]
ORDERED = [
    pytest.param(ask, facts, signs, first, second, id=f"{name}: {first[0]} before {second[0]}")
    for name, ask, facts, signs in REFUSED_FIRST
    for first, second in combinations(signs, 2)
    if not set(first[1]) & set(second[1])
]


@pytest.mark.parametrize(("ask", "facts", "signs", "first", "second"), ORDERED)
def test_the_first_refusal_is_the_answer(
    ask: Any,
    facts: Any,
    signs: Signs,
    first: tuple[str, dict[str, Any]],
    second: tuple[str, dict[str, Any]],
) -> None:
    """Who asks comes before what is asked for; the trace lists all rows up to what spoke."""
    decision: Decision = ask(facts(**first[1], **second[1]))
    assert decision.reason == first[0]
    names = [name for name, _ in signs]
    asked = [(each.guard, each.reason) for each in decision.trace]
    passed = [(name, None) for name in names[: names.index(first[0])]]
    assert asked == [*passed, (first[0], first[0])]


@PATIENT
@given(
    anything(OrderFacts),
    anything(UnqueueFacts),
    anything(DismissalFacts),
    anything(StopFacts),
    anything(ResumeFacts),
    ANY_LIMITS,
)
def test_neither_bots_nor_strangers_act(
    ordered: OrderFacts,
    unqueued: UnqueueFacts,
    dismissed: DismissalFacts,
    stopped: StopFacts,
    resumed: ResumeFacts,
    limits: Limits,
) -> None:
    """A bot can't queue, unqueue, stop, resume or dismiss; nor can who may not write."""
    answers: list[tuple[Any, Decision]] = [
        (ordered, answer_order(ordered)),
        (unqueued, answer_unqueue(unqueued)),
        (dismissed, answer_dismissal(dismissed)),
        (stopped, answer_stop(stopped)),
        (resumed, answer_resume(resumed, limits)),
    ]
    for facts, answer in answers:
        if not (facts.by_human and facts.can_write):
            assert answer.outcome == "refused"
            assert answer.reason == ("no_write_access" if facts.by_human else "not_human")
