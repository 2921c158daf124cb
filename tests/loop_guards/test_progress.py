"""Rounds of a fix task: which may start, what follows one, what they may spend. DESIGN §3.4."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given

from loop_guards import (
    AfterRoundFacts,
    Limits,
    NextOutcome,
    NextReason,
    RoundFacts,
    Spent,
    StartDecision,
    StartOutcome,
    StartReason,
    TaskState,
    Verdict,
    VerifyFacts,
    VerifyReason,
    after_round,
    allowance,
    may_start_round,
    may_start_turn,
    may_verify,
    purse,
)
from tests.loop_guards.factories import ANY_LIMITS, LIMITS, PATIENT, after, anything, before_round

EMPTY = Spent(input_tokens=2_000_000)

REFUSALS: list[tuple[StartReason, dict[str, Any]]] = [
    (StartReason.STOPPED, {"stopped": True}),
    (StartReason.KILL_SWITCH, {"kill_switch": True}),
    (StartReason.ESCALATED, {"escalated": True}),
    (StartReason.CAP, {"rounds_started": 5}),
    (StartReason.BUDGET, {"spent": EMPTY}),
]


@pytest.mark.parametrize(("reason", "fact"), REFUSALS, ids=[each for each, _ in REFUSALS])
@pytest.mark.parametrize("ask", [may_start_round, may_start_turn])
def test_each_refusal_of_a_round_or_turn(
    ask: Callable[[RoundFacts, Limits], StartDecision], reason: StartReason, fact: dict[str, Any]
) -> None:
    """One of these alone keeps a machine-caused run from starting; nothing is reserved for it."""
    decision = ask(before_round(worst_case=Spent(1), **fact), LIMITS)
    assert (decision.allowed, decision.reason, decision.reasons) == (False, reason, (reason,))
    assert (decision.outcome, decision.reservation) == (StartOutcome.REFUSE, Spent())
    assert [asked.reason for asked in decision.trace if asked.reason] == [reason]
    assert [asked.guard for asked in decision.trace] == [each for each, _ in REFUSALS]


# (rounds started, turns begun) of an allowance of 5; may a round start, may a turn?
USED = [
    pytest.param(4, 4, True, True, id="one is left"),
    pytest.param(4, 5, True, False, id="turns that a stop cut short are used up"),
    pytest.param(5, 4, False, False, id="a turn whose round could not start"),
    pytest.param(0, 5, True, False, id="only stopped turns"),
    pytest.param(0, 0, True, True, id="none used"),
]


@pytest.mark.parametrize(("rounds", "turns", "round_starts", "turn_starts"), USED)
def test_turns_have_the_allowance_too(
    rounds: int, turns: int, round_starts: bool, turn_starts: bool
) -> None:
    """Stopping and resuming buys no turns: one is charged when it begins, as a round is."""
    facts = before_round(rounds_started=rounds, turns_begun=turns)
    assert may_start_round(facts, LIMITS).allowed is round_starts
    assert may_start_turn(facts, LIMITS).allowed is turn_starts


@pytest.mark.parametrize(
    ("first", "second"),
    list(combinations(REFUSALS, 2)),
    ids=[f"{a[0]} before {b[0]}" for a, b in combinations(REFUSALS, 2)],
)
def test_refusals_are_asked_in_order(first: Any, second: Any) -> None:
    """Stop, kill switch, escalated, allowance, budget: the first is the reason, all are kept."""
    decision = may_start_round(before_round(**first[1], **second[1]), LIMITS)
    assert decision.reasons == (first[0], second[0])


def test_a_round_below_the_allowance_starts_and_reserves() -> None:
    """The fifth round of five starts; its worst case is what is to be set aside."""
    worst = Spent(1_000, 20, 3)
    decision = may_start_round(before_round(rounds_started=4, worst_case=worst), LIMITS)
    assert (decision.allowed, decision.reason) == (True, StartReason.ALLOWED)
    assert decision.reasons == (StartReason.ALLOWED,)
    assert decision.reservation == worst


PURSES = [
    pytest.param({"worst_case": EMPTY}, True, id="the worst case just fits"),
    pytest.param({"worst_case": EMPTY, "spent": Spent(1)}, False, id="it does not fit any more"),
    pytest.param({"worst_case": EMPTY, "reserved": Spent(1)}, False, id="a parallel task took it"),
    pytest.param({"reserved": EMPTY}, False, id="all is reserved"),
    pytest.param({"spent": Spent(0, 10_000_000)}, False, id="dollars"),
    pytest.param({"spent": Spent(0, 9_999_999)}, True, id="a fraction of a dollar is left"),
    pytest.param({"spent": Spent(0, 0, 3_600)}, False, id="model time"),
    pytest.param({"spent": EMPTY, "lineage_resumes": 1}, True, id="a resume fills the purse"),
    pytest.param({"spent": Spent(2_800_000), "lineage_resumes": 1}, False, id="by its share alone"),
]


RUNS = Limits(max_model_runs=100)
MODEL_RUNS = [
    pytest.param(LIMITS, {"spent": Spent(model_runs=10_000)}, True, id="no cut: the bound limits"),
    pytest.param(RUNS, {"spent": Spent(model_runs=99)}, True, id="one is left"),
    pytest.param(RUNS, {"spent": Spent(model_runs=100)}, False, id="none is left"),
    pytest.param(
        Limits(max_model_runs=1), {"spent": Spent(model_runs=1)}, False, id="the smallest cut"
    ),
    pytest.param(
        RUNS,
        {"spent": Spent(model_runs=90), "worst_case": Spent(model_runs=11)},
        False,
        id="the worst case does not fit",
    ),
    pytest.param(
        RUNS,
        {"spent": Spent(model_runs=90), "worst_case": Spent(model_runs=10)},
        True,
        id="the worst case just fits",
    ),
    pytest.param(
        RUNS,
        {"spent": Spent(model_runs=90), "reserved": Spent(model_runs=10)},
        False,
        id="a parallel task took the rest",
    ),
    pytest.param(
        RUNS, {"spent": Spent(model_runs=139), "lineage_resumes": 1}, True, id="a resume's share"
    ),
    pytest.param(
        RUNS, {"spent": Spent(model_runs=140), "lineage_resumes": 1}, False, id="and not more"
    ),
]


@pytest.mark.parametrize(("limits", "facts", "starts"), MODEL_RUNS)
def test_max_model_runs_cuts_a_lineage(limits: Limits, facts: dict[str, Any], starts: bool) -> None:
    """The policy's cut below the bound; 0 cuts nothing. A resume adds its share, as to budgets."""
    decision = may_start_round(before_round(**facts), limits)
    assert decision.allowed is starts
    assert decision.reason == (StartReason.ALLOWED if starts else StartReason.BUDGET)


@pytest.mark.parametrize(("facts", "starts"), PURSES)
def test_the_worst_case_must_fit(facts: dict[str, Any], starts: bool) -> None:
    """One purse for the lineage: what is spent, what runs in flight may use, and this run."""
    decision = may_start_round(before_round(**facts), LIMITS)
    assert decision.allowed is starts
    assert decision.reservation == (facts.get("worst_case", Spent()) if starts else Spent())


@pytest.mark.parametrize(
    ("cap", "resumes", "rounds"),
    [(5, 0, 5), (5, 1, 7), (5, 2, 9), (1, 1, 2), (2, 1, 3), (5, -4, 5)],
)
def test_a_resume_adds_half_the_rounds_and_at_least_one(
    cap: int, resumes: int, rounds: int
) -> None:
    """allowance = N + resumes · max(1, ⌊N/2⌋)."""
    assert allowance(Limits(max_review_iterations=cap), resumes) == rounds


def test_a_resume_adds_its_share_of_the_budget() -> None:
    """Two rounds of five bring two fifths of each budget, rounded down."""
    assert purse(LIMITS) == Spent(2_000_000, 10_000_000, 3_600, 0)
    assert purse(LIMITS, 1) == Spent(2_800_000, 14_000_000, 5_040, 0)
    odd = Limits(budget_input_tokens=3, budget_micro_dollars=4, max_model_runs=7)
    assert purse(odd, 1) == Spent(4, 5, 5_040, 9)
    assert purse(odd, -1) == purse(odd)


def test_a_decision_tells_what_is_in_the_purse() -> None:
    """Spent, reserved, the worst case and the budget, each in its four units."""
    facts = before_round(
        spent=Spent(1, 2, 3, 4),
        reserved=Spent(5, 6, 7, 8),
        worst_case=Spent(9, 10, 11, 12),
        lineage_resumes=1,
    )
    compared = may_start_round(facts, Limits(max_model_runs=10)).compared
    units = ("input_tokens", "micro_dollars", "model_seconds", "model_runs")
    for name, amounts in (
        ("spent", (1, 2, 3, 4)),
        ("reserved", (5, 6, 7, 8)),
        ("worst_case", (9, 10, 11, 12)),
        ("budget", (2_800_000, 14_000_000, 5_040, 14)),
    ):
        assert tuple(compared[f"{name}_{unit}"] for unit in units) == amounts


NEXT: list[Any] = [
    pytest.param(after({1}), NextOutcome.TURN, ["findings_block"], id="a turn"),
    pytest.param(after({1}, set()), NextOutcome.APPROVE, ["nothing_blocks"], id="approve"),
    pytest.param(
        after(*[{1}, {2}, {1}, {2}], set()),
        NextOutcome.APPROVE,
        ["nothing_blocks", "cap"],
        id="approved in the last round",
    ),
    pytest.param(
        after(set(), stopped=True), NextOutcome.WAIT, ["stopped", "nothing_blocks"], id="human stop"
    ),
    pytest.param(
        after(set(), coverage_full=False, coverage_attempts=1),
        NextOutcome.ROUND,
        ["look_again"],
        id="a short look is repeated",
    ),
    pytest.param(
        after({1}, coverage_full=False, coverage_attempts=1),
        NextOutcome.TURN,
        ["findings_block"],
        id="a short look that found something",
    ),
    pytest.param(
        after(set(), set(), coverage_full=False, coverage_attempts=2),
        NextOutcome.ESCALATE,
        ["coverage"],
        id="two short looks",
    ),
    pytest.param(
        after({1}, coverage_attempts=2),
        NextOutcome.TURN,
        ["findings_block"],
        id="short looks that are over",
    ),
    pytest.param(
        after(*[set()] * 3, coverage_full=False, coverage_attempts=1),
        NextOutcome.ROUND,
        ["look_again"],
        id="nothing that blocks is no stall",
    ),
    pytest.param(
        after(set(), unavailable=True), NextOutcome.ESCALATE, ["unavailable"], id="no model"
    ),
    pytest.param(after(), NextOutcome.ROUND, ["look_again"], id="no round yet approves nothing"),
    pytest.param(
        after(set(), newest_head=False),
        NextOutcome.ROUND,
        ["look_again"],
        id="what was pushed meanwhile is not approved unseen",
    ),
    pytest.param(
        after({1}, newest_head=False),
        NextOutcome.ROUND,
        ["look_again"],
        id="nor is it worked on",
    ),
    pytest.param(
        after({1}, bounced=True, newest_head=False),
        NextOutcome.ESCALATE,
        ["bounce"],
        id="a push hides no bounce",
    ),
    pytest.param(after({1}, spent=EMPTY), NextOutcome.ESCALATE, ["budget"], id="budget"),
    pytest.param(
        after({1}, spent=EMPTY, lineage_resumes=1), NextOutcome.TURN, ["findings_block"], id="more"
    ),
    pytest.param(after({1}, bounced=True), NextOutcome.ESCALATE, ["bounce"], id="bounce"),
    pytest.param(
        after({1}, second_flip=True), NextOutcome.ESCALATE, ["unstable_review"], id="second flip"
    ),
    pytest.param(after({1}, {1}), NextOutcome.TURN, ["findings_block"], id="the same set once"),
    pytest.param(after({1}, {1}, {1}), NextOutcome.ESCALATE, ["stall"], id="the same set twice"),
    pytest.param(after({1}, {1}, {2}), NextOutcome.TURN, ["findings_block"], id="another set"),
    pytest.param(after({2}, {1}, {1}, {1}), NextOutcome.ESCALATE, ["stall"], id="a late stall"),
    pytest.param(after({1}, touched=False), NextOutcome.ESCALATE, ["stall"], id="touched nothing"),
    pytest.param(after({1}, {2}, known_patch=True), NextOutcome.ESCALATE, ["stall"], id="patch"),
    pytest.param(
        after(set(), known_patch=True, touched=False),
        NextOutcome.APPROVE,
        ["nothing_blocks", "stall"],
        id="approval before stall",
    ),
    pytest.param(
        after({1}, {2}, {3}, {4}, {5}), NextOutcome.ESCALATE, ["cap"], id="the cap of five"
    ),
    pytest.param(
        after({1}, {2}, rounds_started=6, allowance=7),
        NextOutcome.TURN,
        ["findings_block"],
        id="resumed",
    ),
    pytest.param(
        after(
            *[{1}] * 5,
            coverage_full=False,
            coverage_attempts=2,
            unavailable=True,
            spent=EMPTY,
            bounced=True,
            second_flip=True,
        ),
        NextOutcome.ESCALATE,
        ["coverage", "unavailable", "budget", "bounce", "unstable_review", "stall", "cap"],
        id="all at once in order",
    ),
]


LOOK_AGAIN = NextReason.LOOK_AGAIN
VERDICTS = {
    NextOutcome.APPROVE: Verdict.APPROVED,
    NextOutcome.TURN: Verdict.CHANGES_REQUESTED,
    NextOutcome.ROUND: Verdict.CHANGES_REQUESTED,
    NextOutcome.WAIT: Verdict.CHANGES_REQUESTED,
    NextOutcome.ESCALATE: Verdict.ESCALATED,
}


@pytest.mark.parametrize(("facts", "outcome", "reasons"), NEXT)
def test_what_follows_a_round(
    facts: AfterRoundFacts, outcome: NextOutcome, reasons: list[str]
) -> None:
    """Stop, approve, coverage, budget, bounce, stall, cap; the first decides, all are stored."""
    decision = after_round(facts, LIMITS)
    assert decision.outcome == outcome
    assert list(decision.reasons) == reasons
    assert decision.reason == reasons[0]
    assert decision.verdict is VERDICTS[outcome]
    asked = [code for code in NextReason if code not in (NextReason.FINDINGS_BLOCK, LOOK_AGAIN)]
    assert [(each.guard, each.reason) for each in decision.trace] == [
        (code, code if code in reasons else None) for code in asked
    ]


@PATIENT
@given(anything(AfterRoundFacts), ANY_LIMITS)
def test_a_task_goes_on_only_while_rounds_are_left(facts: AfterRoundFacts, limits: Limits) -> None:
    """At the allowance nothing but approval, escalation or a stop follows: no task runs on."""
    decision = after_round(facts, limits)
    if facts.rounds_started >= facts.allowance:
        assert decision.outcome not in (NextOutcome.TURN, NextOutcome.ROUND)
    if decision.outcome == NextOutcome.APPROVE:
        assert facts.coverage_full
        assert facts.blocking_history[-1] == frozenset()
    assert (decision.verdict is Verdict.APPROVED) is (decision.outcome == NextOutcome.APPROVE)


@PATIENT
@given(anything(RoundFacts), ANY_LIMITS)
def test_no_round_starts_against_a_human_or_a_limit(facts: RoundFacts, limits: Limits) -> None:
    """Rounds started never exceed the allowance; nothing starts after a stop or escalation."""
    if may_start_round(facts, limits).allowed:
        assert facts.rounds_started < facts.allowance
        assert not any((facts.stopped, facts.kill_switch, facts.escalated))


V = VerifyReason
VERIFY: list[Any] = [
    pytest.param(VerifyFacts(TaskState.FIXING, 1), [], id="a cycle is left"),
    pytest.param(VerifyFacts(TaskState.FIXING, 2), [V.CYCLES], id="both are used"),
    pytest.param(VerifyFacts(None, 0), [V.NO_LIVE_TASK], id="no task"),
    pytest.param(VerifyFacts(TaskState.MERGED, 0), [V.NO_LIVE_TASK], id="a task of old"),
    pytest.param(VerifyFacts(TaskState.ESCALATED, 0), [V.ESCALATED], id="escalated"),
    pytest.param(VerifyFacts(TaskState.FIXING, 0, True), [V.STOPPED], id="stopped"),
    pytest.param(
        VerifyFacts(TaskState.FIXING, 0, kill_switch=True), [V.KILL_SWITCH], id="kill switch"
    ),
    pytest.param(
        VerifyFacts(TaskState.ESCALATED, 2, True, True),
        [V.STOPPED, V.KILL_SWITCH, V.ESCALATED, V.CYCLES],
        id="all at once in order",
    ),
    pytest.param(
        VerifyFacts(None, 2, True, True),
        [V.STOPPED, V.KILL_SWITCH, V.NO_LIVE_TASK, V.CYCLES],
        id="all of no task",
    ),
]


@pytest.mark.parametrize(("facts", "reasons"), VERIFY)
def test_a_verify_call_needs_a_live_task(facts: VerifyFacts, reasons: list[VerifyReason]) -> None:
    """A machine can't have reviews made for it by calling verify again and again."""
    decision = may_verify(facts, LIMITS)
    assert list(decision.reasons) == (reasons or [V.ALLOWED])
    assert (decision.reason, decision.allowed) == (decision.reasons[0], not reasons)
    assert [(asked.guard, asked.reason) for asked in decision.trace] == [
        (code, code if code in reasons else None)
        for code in (V.STOPPED, V.KILL_SWITCH, V.NO_LIVE_TASK, V.ESCALATED, V.CYCLES)
    ]
