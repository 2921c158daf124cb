"""A fix's findings and returns as the guards are asked about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.review.returns import Returned, judge_returns
from app.review.verdict import RoundSigns, TaskView, fix_verdict, next_question
from loop_guards import NOTHING_SPENT, Limits, Origin, Severity
from tests.review.factories import finding

CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING


def task(**changes: Any) -> TaskView:
    base = TaskView(
        task_id=1,
        lineage_id=1,
        handed={},
        ordered=frozenset(),
        rounds_started=1,
        allowance=5,
        blocking_history=(),
        spent=NOTHING_SPENT,
        stopped=False,
        escalated=False,
    )
    return replace(base, **changes)


INTRODUCED = {"origin": Origin.INTRODUCED}


@pytest.mark.parametrize(
    ("item", "known", "expected"),
    [
        pytest.param({}, {"handed": {1: CRITICAL}}, True, id="of the task"),
        pytest.param({}, {}, False, id="of another task"),
        pytest.param({}, {"ever_blocked": frozenset({1})}, False, id="taken off the task"),
        pytest.param(INTRODUCED, {}, True, id="brought in by the fix"),
        pytest.param(
            INTRODUCED, {"mirrored": frozenset({1})}, False, id="brought in by an earlier fix"
        ),
        pytest.param({"origin": Origin.PRE_EXISTING}, {}, False, id="outside the fix's diff"),
        pytest.param({**INTRODUCED, "severity": WARNING}, {}, False, id="no critical"),
        pytest.param(
            {**INTRODUCED, "severity": WARNING},
            {"ever_blocked": frozenset({1})},
            True,
            id="blocked once",
        ),
        pytest.param(
            {"severity": CRITICAL},
            {"handed": {1: Severity.SUGGESTION}},
            False,
            id="frozen at handoff",
        ),
        pytest.param(
            {},
            {"handed": {1: Severity.SUGGESTION}, "ordered": frozenset({1})},
            True,
            id="ordered",
        ),
    ],
)
def test_what_blocks_a_fix(item: dict[str, Any], known: dict[str, Any], expected: bool) -> None:
    """Only the task's findings and what the fix itself brought in can stand in its way."""
    verdict = fix_verdict([finding(**item)], task(**known), full=True)
    assert bool(verdict.blocking) is expected


@pytest.mark.parametrize(
    ("bot_touched", "known", "reason", "flip"),
    [
        pytest.param(True, {}, "not_blocking", False, id="never blocked"),
        pytest.param(True, {"ever_blocked": {1}}, "bounce", False, id="a bot broke it"),
        pytest.param(False, {"ever_blocked": {1}}, "flip", True, id="first flip"),
        pytest.param(
            False,
            {"ever_blocked": {1}, "flips": {1: 1}},
            "unstable_review",
            True,
            id="second flip",
        ),
        pytest.param(
            False, {"ever_blocked": {1}, "flips": {2: 1}}, "flip", True, id="another's flip"
        ),
    ],
)
def test_what_a_return_means(
    bot_touched: bool, known: dict[str, Any], reason: str, flip: bool
) -> None:
    """The finding's own history decides, each finding for itself."""
    [(decision, number)] = judge_returns((Returned(1, bot_touched),), task(**known), Limits())
    assert (decision.reason, decision.is_flip, number) == (reason, flip, 1)


@pytest.mark.parametrize(
    ("signs", "outcome", "reason"),
    [
        pytest.param({}, "turn", "findings_block", id="none"),
        pytest.param({"touched": False}, "escalate", "stall", id="touched nothing"),
        pytest.param({"known_patch": True}, "escalate", "stall", id="known patch"),
        pytest.param({"bounced": True}, "escalate", "bounce", id="bounced"),
        pytest.param({"second_flip": True}, "escalate", "unstable_review", id="second flip"),
        pytest.param({"newest_head": False}, "round", "look_again", id="pushed meanwhile"),
    ],
)
def test_every_sign_reaches_the_guards(signs: dict[str, bool], outcome: str, reason: str) -> None:
    """What is known of a round besides its verdict decides what follows it."""
    view = task(handed={1: CRITICAL})
    verdict = fix_verdict([finding()], view, full=True)
    said = next_question(verdict, view, Limits(), RoundSigns(**signs), full=True).answer()
    assert (said.outcome, said.reason) == (outcome, reason)
