"""May a review run start? DESIGN §2.3, §3.5."""

from __future__ import annotations

from typing import Any

import pytest

from loop_guards import ReviewReason, may_review
from tests.loop_guards.factories import LIMITS, start

R = ReviewReason
MACHINE = {"by_human": False}
CASES: list[tuple[str, ReviewReason, dict[str, Any]]] = [
    ("a person's push", R.REQUESTED, {}),
    ("a machine's push", R.REQUESTED, MACHINE),
    ("our own act", R.OWN_ACT, {"own_act": True, "commanded": True}),
    ("closed", R.CLOSED, {"is_open": False, "commanded": True}),
    ("a newer head", R.SUPERSEDED, {"is_newest_head": False}),
    ("stopped", R.STOPPED, {"stopped": True, **MACHINE}),
    ("stopped, a person pushes", R.REQUESTED, {"stopped": True}),
    ("kill switch", R.KILL_SWITCH, {"kill_switch": True, "commanded": True}),
    ("escalated", R.ESCALATED, {"escalated": True, **MACHINE}),
    ("escalated, a person asks", R.REQUESTED, {"escalated": True, "commanded": True, **MACHINE}),
    ("draft", R.DRAFT, {"draft": True}),
    ("draft, asked for", R.REQUESTED, {"draft": True, "commanded": True}),
    ("draft of a fix", R.DRAFT, {"draft": True, "commanded": True, "is_fix_pr": True}),
    ("label", R.SKIP_LABEL, {"skip_label": True}),
    ("label, asked for", R.REQUESTED, {"skip_label": True, "commanded": True}),
    ("ignored by policy", R.IGNORED, {"ignored": True}),
    ("ignored, asked for", R.REQUESTED, {"ignored": True, "commanded": True}),
    ("reviewed", R.ALREADY_REVIEWED, {"already_reviewed": True}),
    ("reviewed, asked again", R.REQUESTED, {"already_reviewed": True, "commanded": True}),
    ("the base merged in", R.SAME_PATCH, {"same_patch": True}),
    ("the base merged in, asked", R.REQUESTED, {"same_patch": True, "commanded": True}),
    ("ping-pong", R.PING_PONG, {"machine_rounds": 3, **MACHINE}),
    ("ping-pong goes on", R.REQUESTED, {"machine_rounds": 2, **MACHINE}),
    ("ping-pong ended by a person", R.REQUESTED, {"machine_rounds": 3}),
    (
        "a fix has its task's rounds",
        R.REQUESTED,
        {"machine_rounds": 9, "is_fix_pr": True, **MACHINE},
    ),
    (
        "too many bots today",
        R.BOT_PULL_REQUESTS,
        {"is_outside_bot_pr": True, "bot_prs_of_day": 20, **MACHINE},
    ),
    (
        "too many bots at once",
        R.BOT_PULL_REQUESTS,
        {"is_outside_bot_pr": True, "bot_prs_of_window": 10, **MACHINE},
    ),
    (
        "one more bot",
        R.REQUESTED,
        {"is_outside_bot_pr": True, "bot_prs_of_day": 19, "bot_prs_of_window": 9, **MACHINE},
    ),
    (
        "admitted before",
        R.REQUESTED,
        {"is_outside_bot_pr": True, "bot_prs_of_day": 20, "admitted": True, **MACHINE},
    ),
    (
        "not a bot's, whatever bots do",
        R.REQUESTED,
        {"bot_prs_of_day": 20, "bot_prs_of_window": 10, **MACHINE},
    ),
    ("a bot's, asked for", R.REQUESTED, {"is_outside_bot_pr": True, "bot_prs_of_day": 20}),
]


@pytest.mark.parametrize(("name", "reason", "facts"), CASES, ids=[case[0] for case in CASES])
def test_whether_a_review_starts(name: str, reason: ReviewReason, facts: dict[str, Any]) -> None:
    """Skips are named; a person's command overrides what only saves work, never a safety rule."""
    decision = may_review(start(**facts), LIMITS)
    assert decision.reason == reason
    assert decision.allowed is (reason is R.REQUESTED)
    assert decision.reasons[0] == reason
    assert [asked.reason for asked in decision.trace if asked.reason] == [
        each for each in decision.reasons if each is not R.REQUESTED
    ]
    assert [asked.guard for asked in decision.trace] == [r for r in R if r is not R.REQUESTED]


def test_the_first_of_all_skips_is_the_reason() -> None:
    """With everything against it, the order of the policy is the order of the reasons."""
    decision = may_review(
        start(
            by_human=False,
            is_open=False,
            is_newest_head=False,
            draft=True,
            machine_rounds=9,
            already_reviewed=True,
            skip_label=True,
            stopped=True,
            kill_switch=True,
            escalated=True,
            own_act=True,
            ignored=True,
            same_patch=True,
            is_outside_bot_pr=True,
            bot_prs_of_day=99,
        ),
        LIMITS,
    )
    assert list(decision.reasons) == [each for each in ReviewReason if each is not R.REQUESTED]
