"""The real guards, asked once per set of facts, with a note of every reason they ever gave.

The explorer meets the same facts in very many states; the guards are pure, so their answer is too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import loop_guards
from loop_guards import ClosePlan, Decision

P = ParamSpec("P")
D = TypeVar("D")

GIVEN: Counter[tuple[str, str]] = Counter()
"""How many different facts got each (decision, reason)."""


_MEMORIES: list[dict[Hashable, Any]] = []


def forget() -> None:
    """Start again with no memory and no reason given."""
    GIVEN.clear()
    for memory in _MEMORIES:
        memory.clear()


def remembered(question: Callable[P, D]) -> Callable[P, D]:
    """The guard with a memory; all its arguments must be hashable."""
    memory: dict[Hashable, Any] = {}
    _MEMORIES.append(memory)

    def ask(*args: P.args, **kwargs: P.kwargs) -> D:
        key: Hashable = (args, tuple(kwargs.items())) if kwargs else args
        try:
            found: D = memory[key]
        except KeyError:
            found = memory[key] = question(*args, **kwargs)
            _note(found)
        return found

    return ask


def _note(said: object) -> None:
    if isinstance(said, ClosePlan):
        for decision in said.decisions:
            _note(decision)
    elif isinstance(said, Decision):
        for code in said.reasons or (said.reason,):
            GIVEN[type(said).__name__, str(code)] += 1


plan_merged = remembered(loop_guards.plan_merged)
plan_unmerged = remembered(loop_guards.plan_unmerged)
may_start_turn = remembered(loop_guards.may_start_turn)
may_start_round = remembered(loop_guards.may_start_round)
may_verify = remembered(loop_guards.may_verify)
may_review = remembered(loop_guards.may_review)
after_round = remembered(loop_guards.after_round)
move_task = remembered(loop_guards.move_task)
judge_fixed = remembered(loop_guards.judge_fixed)
judge_return = remembered(loop_guards.judge_return)
decide_fix_verdict = remembered(loop_guards.decide_fix_verdict)
decide_rubric = remembered(loop_guards.decide_rubric)
decide_thread = remembered(loop_guards.decide_thread)
answer_order = remembered(loop_guards.answer_order)
answer_unqueue = remembered(loop_guards.answer_unqueue)
answer_dismissal = remembered(loop_guards.answer_dismissal)
answer_stop = remembered(loop_guards.answer_stop)
answer_resume = remembered(loop_guards.answer_resume)
judge_actor = remembered(loop_guards.judge_actor)
