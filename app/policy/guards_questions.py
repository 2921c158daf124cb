"""The questions that the guards answer, and facts enough to get every answer once.

What is asked here is asked for real: `app.policy.guards_doc` writes down what comes back.
"""

from __future__ import annotations

import itertools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

import loop_guards as guards
from loop_guards import Decision

LIMITS = guards.Limits()
"""The shipped limits; what the page says of numbers is said of these."""

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_EMPTY_PURSE = guards.Spent(input_tokens=LIMITS.budget_input_tokens)
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `kind`: how the ledger names its decisions, "" where none are stored.

    `decisions` are answers to facts among which every reason is reached. `facts` says what the
    facts mean.
    """

    ask: Callable[..., Decision]
    facts: tuple[type, ...]
    outcomes: type[StrEnum]
    reasons: type[StrEnum]
    decisions: Callable[[], Iterable[Decision]]
    kind: str = ""


def every(facts: type[F], **given: Sequence[Any]) -> Iterator[F]:
    """Facts with every combination of values: of flags and enumerations all, else those given."""
    hints = typing.get_type_hints(facts)
    names = list(hints)
    domains = [given[name] if name in given else _domain(hints[name]) for name in names]
    for values in itertools.product(*domains):
        yield facts(**dict(zip(names, values, strict=True)))


def one_by_one(base: F, /, **given: Sequence[Any]) -> Iterator[F]:
    """The base, and it with one fact changed at a time: flags to the other side, else as given."""
    yield base
    for item in fields(base):  # type: ignore[arg-type]  # facts are dataclasses
        value = getattr(base, item.name)
        others = given.get(item.name, (not value,) if isinstance(value, bool) else ())
        for other in others:
            yield replace(base, **{item.name: other})  # type: ignore[type-var]  # the same


def _domain(hint: Any) -> Sequence[Any]:
    if isinstance(hint, types.UnionType):
        return (None, *(value for arm in hint.__args__[:1] for value in _domain(arm)))
    if hint is bool:
        return (False, True)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return tuple(hint)
    raise TypeError(f"say which values of {hint} to ask about")


def _handoffs() -> Iterator[Decision]:
    finding = guards.HandoffFinding(
        id=1,
        path="a.py",
        severity=guards.Severity.WARNING,
        origin=guards.Origin.ORIGINAL,
        status=guards.FindingStatus.OPEN,
    )
    merge = guards.MergeFacts(
        now=_NOW,
        repository=1,
        merge_commit="c0ffee",
        base="main",
        default_branch="main",
        mode=guards.HandoffMode.AUTO,
        author_is_bot=False,
        is_fix_pr=False,
        merged=True,
    )
    order = guards.HumanOrder(id=1, at=_NOW)
    ordered = replace(finding, order=order)
    findings = one_by_one(
        finding,
        path=(None,),
        severity=tuple(guards.Severity),
        origin=tuple(guards.Origin),
        status=tuple(guards.FindingStatus),
        covered_by=tuple(guards.TaskState),
        path_tasks=(LIMITS.path_tasks,),
    )
    yield from (
        guards.decide_handoff(asked, merge, LIMITS)
        for asked in (*findings, *one_by_one(ordered, covered_by=tuple(guards.TaskState)))
    )
    merges = one_by_one(
        merge,
        mode=tuple(guards.HandoffMode),
        base=("next",),
        tasks_of_merge=(LIMITS.max_fix_tasks,),
    )
    yield from (guards.decide_handoff(finding, facts, LIMITS) for facts in merges)


HANDOFF = Question(
    guards.decide_handoff,
    (guards.HandoffFinding, guards.MergeFacts),
    guards.HandoffOutcome,
    guards.HandoffReason,
    _handoffs,
    "handoff",
)


def _fix_verdicts() -> Iterator[Decision]:
    blocking = guards.FixFinding(
        1, guards.FindingStatus.OPEN, guards.Origin.ORIGINAL, of_task=True, ordered=True
    )
    for findings, full in itertools.product(((), (blocking,)), (True, False)):
        yield guards.decide_fix_verdict(findings, coverage_full=full)


FIX_VERDICT = Question(
    guards.decide_fix_verdict,
    (guards.FixFinding,),
    guards.Verdict,
    guards.ConvergenceReason,
    _fix_verdicts,
    "verdict",
)

FIXED = Question(
    guards.judge_fixed,
    (guards.FixedFacts,),
    guards.FixedOutcome,
    guards.FixedReason,
    lambda: (
        guards.judge_fixed(facts)
        for facts in every(
            guards.FixedFacts,
            files=(frozenset({"a.py"}),),
            changed_files=(frozenset(), frozenset({"a.py"})),
        )
    ),
    "fixed",
)

RETURN = Question(
    guards.judge_return,
    (guards.ReturnFacts,),
    guards.ReturnOutcome,
    guards.ReturnReason,
    lambda: (
        guards.judge_return(facts, LIMITS)
        for facts in every(guards.ReturnFacts, flips=range(LIMITS.max_flips + 1))
    ),
)


def _round_facts() -> Iterator[guards.RoundFacts]:
    return every(
        guards.RoundFacts,
        rounds_started=(0, LIMITS.max_review_iterations),
        allowance=(LIMITS.max_review_iterations,),
        spent=(guards.NOTHING_SPENT, _EMPTY_PURSE),
        reserved=(guards.NOTHING_SPENT,),
        worst_case=(guards.NOTHING_SPENT,),
        lineage_resumes=(0,),
        turns_begun=(0, LIMITS.max_review_iterations),
    )


MAY_START_ROUND = Question(
    guards.may_start_round,
    (guards.RoundFacts,),
    guards.StartOutcome,
    guards.StartReason,
    lambda: (guards.may_start_round(facts, LIMITS) for facts in _round_facts()),
    "review_start",
)

MAY_START_TURN = Question(
    guards.may_start_turn,
    (guards.RoundFacts,),
    guards.StartOutcome,
    guards.StartReason,
    lambda: (guards.may_start_turn(facts, LIMITS) for facts in _round_facts()),
    "turn_start",
)

AFTER_ROUND = Question(
    guards.after_round,
    (guards.AfterRoundFacts,),
    guards.NextOutcome,
    guards.NextReason,
    lambda: (
        guards.after_round(facts, LIMITS)
        for facts in every(
            guards.AfterRoundFacts,
            rounds_started=(1, LIMITS.max_review_iterations),
            allowance=(LIMITS.max_review_iterations,),
            blocking_history=((frozenset({1}),), (frozenset(),)),
            spent=(guards.NOTHING_SPENT, _EMPTY_PURSE),
            coverage_attempts=(0, LIMITS.coverage_attempts),
            lineage_resumes=(0,),
        )
    ),
    "after_round",
)

MAY_VERIFY = Question(
    guards.may_verify,
    (guards.VerifyFacts,),
    guards.VerifyOutcome,
    guards.VerifyReason,
    lambda: (
        guards.may_verify(facts, LIMITS)
        for facts in every(guards.VerifyFacts, cycles=range(LIMITS.verify_cycles + 1))
    ),
)


def review_starts(*, by_human: bool, commanded: bool) -> Iterator[guards.ReviewStart]:
    """A machine's or a person's ask for a review, with one thing wrong at a time."""
    base = guards.ReviewStart(
        is_open=True,
        is_newest_head=True,
        draft=False,
        by_human=by_human,
        commanded=commanded,
        machine_rounds=0,
        already_reviewed=False,
    )
    yield from one_by_one(base, machine_rounds=(LIMITS.pingpong_cap,))
    crowd = LIMITS.max_bot_prs_per_day
    yield replace(base, is_outside_bot_pr=True, bot_prs_of_day=crowd)


MAY_REVIEW = Question(
    guards.may_review,
    (guards.ReviewStart,),
    guards.ReviewOutcome,
    guards.ReviewReason,
    lambda: (
        guards.may_review(facts, LIMITS) for facts in review_starts(by_human=False, commanded=False)
    ),
    "review_start",
)

THREAD = Question(
    guards.decide_thread,
    (guards.ThreadFacts,),
    guards.ThreadAction,
    guards.ThreadReason,
    lambda: (
        guards.decide_thread(facts, LIMITS)
        for facts in every(guards.ThreadFacts, our_replies=range(LIMITS.thread_replies + 1))
    ),
)


def _rubrics() -> Iterator[Decision]:
    seen = every(
        guards.RubricFinding,
        category=("security",),
        path=("a.py",),
        production_risk=(False, True),
        id=(1,),
    )
    alone = [(finding,) for finding in seen]
    warning = guards.RubricFinding(guards.Severity.WARNING, "security", "a.py")
    for findings in ((), *alone, (warning,) * LIMITS.risk_pattern_warnings):
        for full in (True, False):
            yield guards.decide_rubric(findings, coverage_full=full, limits=LIMITS)


RUBRIC = Question(
    guards.decide_rubric,
    (guards.RubricFinding,),
    guards.Verdict,
    guards.RubricReason,
    _rubrics,
    "verdict",
)

ACTOR = Question(
    guards.judge_actor,
    (guards.ActorFacts,),
    guards.ActorOutcome,
    guards.ActorReason,
    lambda: (guards.judge_actor(facts) for facts in every(guards.ActorFacts)),
)

ORDER = Question(
    guards.answer_order,
    (guards.OrderFacts,),
    guards.OrderOutcome,
    guards.OrderReason,
    lambda: (guards.answer_order(facts) for facts in every(guards.OrderFacts)),
    "order",
)

UNQUEUE = Question(
    guards.answer_unqueue,
    (guards.UnqueueFacts,),
    guards.UnqueueOutcome,
    guards.UnqueueReason,
    lambda: (guards.answer_unqueue(facts) for facts in every(guards.UnqueueFacts)),
    "unqueue",
)

DISMISSAL = Question(
    guards.answer_dismissal,
    (guards.DismissalFacts,),
    guards.DismissalOutcome,
    guards.DismissalReason,
    lambda: (guards.answer_dismissal(facts) for facts in every(guards.DismissalFacts)),
    "dismissal",
)

STOP = Question(
    guards.answer_stop,
    (guards.StopFacts,),
    guards.StopOutcome,
    guards.StopReason,
    lambda: (guards.answer_stop(facts) for facts in every(guards.StopFacts)),
    "stop",
)

RESUME = Question(
    guards.answer_resume,
    (guards.ResumeFacts,),
    guards.ResumeOutcome,
    guards.ResumeReason,
    lambda: (guards.answer_resume(facts, LIMITS) for facts in every(guards.ResumeFacts)),
    "resume",
)

GLASS = Question(
    guards.answer_glass,
    (guards.GlassFacts,),
    guards.GlassOutcome,
    guards.GlassReason,
    lambda: (guards.answer_glass(facts) for facts in every(guards.GlassFacts)),
    "break_glass",
)

QUESTIONS = (
    HANDOFF, FIX_VERDICT, FIXED, RETURN, MAY_START_ROUND, MAY_START_TURN, AFTER_ROUND, MAY_VERIFY,
    MAY_REVIEW, THREAD, RUBRIC, ACTOR, ORDER, UNQUEUE, DISMISSAL, STOP, RESUME, GLASS,
)  # fmt: skip
"""All of them, in the order of the page."""


def unmerged() -> tuple[Decision, ...]:
    """The answers of `plan_unmerged`: closed, and open again by now."""
    plans = (
        guards.plan_unmerged((), closed_at=_NOW, still_closed=closed) for closed in (True, False)
    )
    return tuple(decision for plan in plans for decision in plan.decisions)


def moves() -> tuple[guards.TaskDecision, ...]:
    """The answer of `move_task` to every event in every state, whatever the facts."""
    return tuple(
        guards.move_task(facts, event)
        for event in guards.TaskEvent
        for facts in every(guards.TaskFacts)
    )
