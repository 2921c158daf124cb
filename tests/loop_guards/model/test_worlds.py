"""The proof: worlds of adversaries, explored with the real guards until nothing new is found."""

from __future__ import annotations

from enum import StrEnum

import pytest

import loop_guards
from tests.loop_guards.model import asked
from tests.loop_guards.model.check import Violated
from tests.loop_guards.model.explore import row, settings_of
from tests.loop_guards.model.field import Kind
from tests.loop_guards.model.fixing import fixing_world
from tests.loop_guards.model.graph import World, explore, longest
from tests.loop_guards.model.humans import HUMAN_ACTS
from tests.loop_guards.model.liveness import all_merged
from tests.loop_guards.model.moves import FIX_ROUND, NOTHING
from tests.loop_guards.model.worlds import CAP3, RARE, arrangement, the_bound_reached

PARTS = {
    "a": (300_000, 600_000),
    "b": (None, 300_000),
    "c": (120_000, 240_000),
    "d": (None, 100_000),
    "e": (None, 150_000),
    "f": (30_000, 90_000),
    "g": (None, 150_000),
}
"""Of each world: where an arrangement is cut, and how many pairs there are at least. `make prove`
cuts nothing."""


REASONS: tuple[tuple[str, type[StrEnum]], ...] = (
    ("HandoffDecision", loop_guards.HandoffReason),
    ("StartDecision", loop_guards.StartReason),
    ("NextDecision", loop_guards.NextReason),
    ("TaskDecision", loop_guards.TaskReason),
    ("FixedDecision", loop_guards.FixedReason),
    ("ReturnDecision", loop_guards.ReturnReason),
    ("VerifyDecision", loop_guards.VerifyReason),
    ("ReviewDecision", loop_guards.ReviewReason),
    ("ThreadDecision", loop_guards.ThreadReason),
    ("ActorDecision", loop_guards.ActorReason),
    ("OrderDecision", loop_guards.OrderReason),
    ("UnqueueDecision", loop_guards.UnqueueReason),
    ("DismissalDecision", loop_guards.DismissalReason),
    ("StopDecision", loop_guards.StopReason),
    ("ResumeDecision", loop_guards.ResumeReason),
)
UNREACHABLE = {
    # Nobody asks for a verify run of a task that is not at work; the tables cover these.
    "VerifyDecision no_live_task",
    "VerifyDecision escalated",
    "VerifyDecision stopped",
}
OCCUR_WORDS = """
a FixedDecision no_change not_claimed on_evidence
a HandoffDecision auto budget
a NextDecision bounce cap findings_block nothing_blocks stall
a ReturnDecision bounce flip not_blocking
a ReviewDecision already_reviewed escalated requested same_patch
a StartDecision allowed
a TaskDecision approved escalated fix_merged lease_held lease_taken
a TaskDecision nothing_changed round_begun silent turn_begun turn_done
a TaskDecision turn_failed turn_wanted
b ActorDecision machine_account not_a_user person posted_by_us through_app
b DismissalDecision already_dismissed by_human no_write_access not_human
b DismissalDecision not_open own_critical
b HandoffDecision already_handed_off escalated human_queue not_merged not_open
b HandoffDecision stopped
b NextDecision look_again stopped
b OrderDecision already_queued live_task merged no_write_access not_human
b OrderDecision not_open stopped task_escalated waits_for_merge
b ResumeDecision already_resumed deferred no_write_access not_human not_stopped
b ResumeDecision stopped task_escalated
b ReviewDecision stopped
b StartDecision cap stopped
b StopDecision already_stopped by_human no_write_access not_human
b TaskDecision closed_by_human not_now nothing_left resumed round_wanted
b TaskDecision stopped superseded task_over withdrawn
b UnqueueDecision last_of_task no_write_access not_human not_queued
b UnqueueDecision order_pending
b VerifyDecision allowed cycles
c HandoffDecision below_severity
c NextDecision coverage unavailable
c OrderDecision not_merged
c ResumeDecision kill_switch
c ReviewDecision kill_switch
c StartDecision escalated kill_switch
c TaskDecision closed_by_machine reopened_by_machine
e ReviewDecision bot_pull_requests closed draft ignored own_act ping_pong
e ReviewDecision skip_label superseded
e ThreadDecision fixed human_disagrees replies_used still_there
f HandoffDecision acknowledged bot_pull_request mode_manual mode_off no_path
f HandoffDecision other_base post_merge pre_existing verify_run
f NextDecision unstable_review
f ReturnDecision unstable_review
f UnqueueDecision of_live_task
f VerifyDecision kill_switch
g NextDecision budget
g StartDecision budget
"""
"""World, decision, reasons that must occur there."""


def _occur() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {letter: set() for letter in PARTS}
    for words in filter(None, OCCUR_WORDS.splitlines()):
        letter, kind, *reasons = words.split()
        found[letter] |= {f"{kind} {reason}" for reason in reasons}
    return found


OCCUR = _occur()


def test_a_million_pairs_are_explored_with_every_run_of_the_tests() -> None:
    """The sum of what the tests below are held to."""
    assert sum(least for _, least in PARTS.values()) >= 1_000_000


ACTS: dict[str, frozenset[str]] = {
    "b": frozenset({*HUMAN_ACTS, "bots_command", "verify", "resume_again"}),
    "c": RARE - {"verify"},
    "d": frozenset({"superseded", "resume_task"}),
    "f": frozenset({"verify", "order", "stop", "kill_switch"}),
    "g": frozenset({"resume_task"}),
}
"""Rare acts that must fire in each world; together they are all."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("letter", sorted(PARTS))
def test_every_invariant_holds_in_every_state(letter: str) -> None:
    """No schedule of these adversaries breaks an invariant, costs without end, or more than the
    bound: the explorer raises with the acts that would. Every act happens, every reason occurs."""
    most, least = PARTS[letter]
    asked.forget()
    rows = [row(setting, most=most) for setting in settings_of(letter, thorough=False)]
    assert sum(item.pairs for item in rows) >= least
    if most is None:
        assert all(item.complete for item in rows)
    fired = {act for item in rows for act, count in item.fired.items() if count}
    assert ACTS.get(letter, frozenset()) - {"short", "upgrades"} <= fired
    missing = {name for name in OCCUR[letter] if name not in _given()}
    assert not missing


def _given() -> set[str]:
    return {f"{kind} {reason}" for kind, reason in asked.GIVEN}


def test_every_act_and_every_reason_is_looked_for_in_some_world() -> None:
    """An act that no world lets happen, or a reason that none gives, would prove nothing."""
    assert frozenset().union(*ACTS.values()) >= RARE
    everywhere = set().union(*OCCUR.values())
    known = {f"{kind} {reason}" for kind, reasons in REASONS for reason in reasons}
    assert known - everywhere == UNREACHABLE


def test_the_bound_is_reached() -> None:
    """The bound is no guess: one schedule spends each task, round, turn and verify run of it."""
    item = row(the_bound_reached())
    most, allowed = item.most, item.allowed
    assert (most.tasks, most.fix_rounds, most.turns, most.verify_runs) == (
        allowed.fix_tasks,
        allowed.fix_rounds,
        allowed.turns,
        allowed.verify_runs,
    )


def test_the_bound_of_source_rounds_is_reached() -> None:
    """Outside bots can spend all that the ping-pong cap leaves them, and nothing beyond."""
    item = row(next(iter(settings_of("e", thorough=False))))
    assert item.most.source_rounds == item.allowed.source_rounds


def _costly_cycle() -> World[int]:
    """Two states that lead to each other, and one of the ways costs a round."""
    return World(
        name="a cycle",
        initial=0,
        acts=lambda state: [("there and back", state, 1 - state, (NOTHING, FIX_ROUND)[state])],
        canonical=lambda state: state,
        check=lambda state: None,
    )


def test_a_cycle_that_costs_is_shown_with_its_way() -> None:
    """That the proof halts is no accident of the search: a cycle with a cost is found and told."""
    with pytest.raises(Violated, match="halts") as error:
        longest(explore(_costly_cycle()))
    assert "there and back" in str(error.value)


SIX_FILES = arrangement(
    "six files",
    [Kind(0, path, target=("red", "purple")[path % 2]) for path in range(6)],
    loop_guards.Limits(),
)
HANGING_TOGETHER = arrangement(
    "six files that hang together",
    [Kind(0, path, also=1 << path + 1) for path in range(5)],
    loop_guards.Limits(max_task_files=5),
)
TWO_MERGES = arrangement(
    "two merges on the same files",
    [Kind(pull, path, also=0b11 ^ (1 << path)) for pull in range(2) for path in range(2)],
    CAP3,
)


@pytest.mark.parametrize(
    "setting", [SIX_FILES, HANGING_TOGETHER, TWO_MERGES], ids=lambda setting: setting.name
)
def test_fair_fixers_bring_everything_home(setting: object) -> None:
    """No dead-lock: siblings in many files, in files that hang together, of several merges: each
    is approved within its allowance and merged, the others kept up to date with the base, and who
    waits for it goes on."""
    assert isinstance(setting, type(SIX_FILES))
    state = setting.initial()
    acts = fixing_world(setting).acts
    for place in range(setting.pulls):
        for wanted in ("merge", "delivery_merged"):
            state = next(
                after for act, about, after, _ in acts(state) if (act, about) == (wanted, place)
            )
    assert state.tasks
    state = all_merged(state, setting)
    assert not state.tasks
    assert {str(item.covered) for item in state.findings} == {"merged"}
    assert {str(item.status) for item in state.findings} == {"fixed"}
