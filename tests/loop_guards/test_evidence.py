"""Claims about earlier findings: fixed, returned, and what a thread gets. DESIGN §3.4, §3.6."""

from __future__ import annotations

import pytest

from loop_guards import (
    FixedFacts,
    FixedReason,
    ReturnFacts,
    ReturnOutcome,
    ReturnReason,
    ThreadAction,
    ThreadFacts,
    ThreadReason,
    decide_thread,
    judge_fixed,
    judge_return,
)
from tests.loop_guards.factories import LIMITS

A, B = frozenset({"a.py"}), frozenset({"b.py"})

FIXED = [
    pytest.param(FixedFacts(True, A, A), FixedReason.ON_EVIDENCE, id="word and change"),
    pytest.param(FixedFacts(True, A | B, B), FixedReason.ON_EVIDENCE, id="a file it needs besides"),
    pytest.param(FixedFacts(True, A, B, True), FixedReason.ON_EVIDENCE, id="a cited hunk"),
    pytest.param(FixedFacts(True, A, B), FixedReason.NO_CHANGE, id="another file changed"),
    pytest.param(FixedFacts(True, A, frozenset()), FixedReason.NO_CHANGE, id="nothing changed"),
    pytest.param(FixedFacts(True, frozenset(), A), FixedReason.NO_CHANGE, id="it names no file"),
    pytest.param(FixedFacts(False, A, A, True), FixedReason.NOT_CLAIMED, id="a change, no word"),
]


@pytest.mark.parametrize(("facts", "reason"), FIXED)
def test_fixed_needs_a_word_and_a_change(facts: FixedFacts, reason: FixedReason) -> None:
    """Neither the reviewer's word nor a change alone closes a finding."""
    decision = judge_fixed(facts)
    assert decision.reason == reason
    assert decision.fixed is (reason is FixedReason.ON_EVIDENCE)
    changed = facts.cited_hunk_changed or bool(facts.files & facts.changed_files)
    assert (decision.compared["changed"], decision.compared["files"]) == (changed, len(facts.files))
    assert [(asked.guard, asked.reason) for asked in decision.trace] == [
        ("claim", None if facts.claimed_fixed else FixedReason.NOT_CLAIMED),
        ("change", None if changed else FixedReason.NO_CHANGE),
    ]


RETURNS = [
    pytest.param(ReturnFacts(False, True, 5), ReturnReason.NOT_BLOCKING, False, id="not blocking"),
    pytest.param(ReturnFacts(True, True), ReturnReason.BOUNCE, False, id="a bot touched it"),
    pytest.param(ReturnFacts(True, True, 1), ReturnReason.BOUNCE, False, id="bounce before flip"),
    pytest.param(ReturnFacts(True, False), ReturnReason.FLIP, True, id="the first flip"),
    pytest.param(ReturnFacts(True, False, 1), ReturnReason.UNSTABLE_REVIEW, True, id="the second"),
]


@pytest.mark.parametrize(("facts", "reason", "flip"), RETURNS)
def test_what_a_return_means(facts: ReturnFacts, reason: ReturnReason, flip: bool) -> None:
    """A bot's change makes a bounce; without one the reviewer flipped, which is borne once."""
    decision = judge_return(facts, LIMITS)
    assert (decision.reason, decision.is_flip) == (reason, flip)
    escalates = reason in (ReturnReason.BOUNCE, ReturnReason.UNSTABLE_REVIEW)
    assert decision.outcome == (ReturnOutcome.ESCALATE if escalates else ReturnOutcome.REOPENED)


THREADS = [
    pytest.param(ThreadFacts(True, True, 2), ThreadAction.RESOLVE, ThreadReason.FIXED, id="fixed"),
    pytest.param(
        ThreadFacts(False, True, 1), ThreadAction.REPLY, ThreadReason.HUMAN_DISAGREES, id="argued"
    ),
    pytest.param(
        ThreadFacts(False, True, 2), ThreadAction.YIELD, ThreadReason.REPLIES_USED, id="said enough"
    ),
    pytest.param(
        ThreadFacts(False, False, 2), ThreadAction.KEEP, ThreadReason.STILL_THERE, id="still there"
    ),
]


@pytest.mark.parametrize(("facts", "action", "reason"), THREADS)
def test_a_thread_gets_one_action(
    facts: ThreadFacts, action: ThreadAction, reason: ThreadReason
) -> None:
    """Fixed resolves, a disagreement is answered at most twice, everything else stays."""
    decision = decide_thread(facts, LIMITS)
    assert (decision.action, decision.reason) == (action, reason)
