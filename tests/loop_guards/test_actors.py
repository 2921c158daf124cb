"""Who acted, and what an act does to the count of machine-caused rounds. DESIGN §3.0, §3.5."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_guards import (
    ActKind,
    ActorFacts,
    ActorOutcome,
    ActorReason,
    asks_for_review,
    judge_actor,
    machine_rounds_after_act,
    machine_rounds_after_call,
    may_review,
)
from tests.loop_guards.factories import LIMITS, PATIENT, anything, start

R, K = ActorReason, ActKind
MACHINE_SIGNS: list[tuple[ActorReason, dict[str, Any]]] = [
    (R.POSTED_BY_US, {"posted_by_us": True}),
    (R.NOT_A_USER, {"is_user": False}),
    (R.MACHINE_ACCOUNT, {"machine_account": True}),
    (R.THROUGH_APP, {"through_app": True}),
]


def actor(**different: Any) -> ActorFacts:
    """An account of type User, and nothing that speaks for a machine."""
    return ActorFacts(**({"is_user": True} | different))


@pytest.mark.parametrize(("reason", "sign"), MACHINE_SIGNS, ids=[each for each, _ in MACHINE_SIGNS])
def test_one_sign_of_a_machine_is_enough(reason: ActorReason, sign: dict[str, Any]) -> None:
    """A bot that uses a person's account, or a person's act through an App, is no human act."""
    decision = judge_actor(actor(**sign))
    assert (decision.outcome, decision.reason) == (ActorOutcome.MACHINE, reason)
    assert (decision.is_human, decision.reasons) == (False, (reason,))
    asked = [(each.guard, each.reason) for each in decision.trace]
    assert asked == [(code, code if code == reason else None) for code, _ in MACHINE_SIGNS]


def test_without_any_sign_it_is_a_person() -> None:
    """All four are asked, and none speaks."""
    decision = judge_actor(actor())
    assert (decision.is_human, decision.outcome) == (True, ActorOutcome.HUMAN)
    assert (decision.reason, decision.reasons) == (R.PERSON, (R.PERSON,))
    assert [each.reason for each in decision.trace] == [None] * 4


@pytest.mark.parametrize(
    ("first", "second"),
    list(combinations(MACHINE_SIGNS, 2)),
    ids=[f"{a[0]} before {b[0]}" for a, b in combinations(MACHINE_SIGNS, 2)],
)
def test_all_signs_are_kept_in_order(first: Any, second: Any) -> None:
    """The first is the reason, the others are stored."""
    decision = judge_actor(actor(**first[1], **second[1]))
    assert decision.reasons == (first[0], second[0])
    assert decision.reason == first[0]


# Whether the kind may start a review, and whether a person's act of it sets the count to zero.
ACTS: list[tuple[ActKind, bool, bool]] = [
    (K.OPEN, True, True),
    (K.PUSH, True, True),
    (K.REOPEN, True, False),
    (K.READY, True, False),
    (K.BASE_CHANGE, True, False),
    (K.COMMAND, True, True),
    (K.RESUME, False, True),
    (K.COMMENT, False, False),
    (K.LABEL, False, False),
    (K.REVIEW, False, False),
]


@pytest.mark.parametrize(("kind", "starts", "resets"), ACTS, ids=[each[0] for each in ACTS])
def test_what_each_act_does(kind: ActKind, starts: bool, resets: bool) -> None:
    """Reviews start on six kinds of act; a person's push, open, command or resume ends a ping-pong.

    Comments, labels and reviews change nothing, and a machine's act never resets the count.
    """
    assert asks_for_review(kind) is starts
    assert machine_rounds_after_act(3, kind, by_human=True) == (0 if resets else 3)
    assert machine_rounds_after_act(3, kind, by_human=False) == 3


def test_the_table_of_acts_has_every_kind() -> None:
    """A new kind of act needs its row here."""
    assert [kind for kind, _, _ in ACTS] == list(ActKind)


def test_only_a_machines_round_is_counted() -> None:
    """A run that a person caused takes nothing from what machines may cause."""
    assert machine_rounds_after_call(2, machine_caused=True) == 3
    assert machine_rounds_after_call(2, machine_caused=False) == 2


Step = tuple[ActKind, bool]


@PATIENT
@given(st.lists(st.tuples(anything(ActKind), st.booleans()), max_size=30))
def test_between_two_acts_of_people_there_are_at_most_three_machine_rounds(
    steps: list[Step],
) -> None:
    """Whatever happens to a pull request, machines alone cause no fourth round."""
    count, in_a_row = 0, 0
    for kind, by_human in steps:
        count = machine_rounds_after_act(count, kind, by_human=by_human)
        in_a_row = 0 if by_human else in_a_row
        asked = asks_for_review(kind)
        if asked and may_review(start(by_human=by_human, machine_rounds=count), LIMITS).allowed:
            count = machine_rounds_after_call(count, machine_caused=not by_human)
            in_a_row += not by_human
        assert in_a_row <= LIMITS.pingpong_cap
