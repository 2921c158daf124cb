"""Permissions: values that hold the guards' decision which allows an effect.

`loop_guards` seals its decisions, so whoever holds a permission has asked. Types say so to the
checker; the checks here say so to callers that no checker reads. A permission is never stored:
a later try asks again.
"""

from __future__ import annotations

from dataclasses import dataclass

from loop_guards import (
    Decision,
    GlassDecision,
    HandoffDecision,
    HandoffOutcome,
    NextDecision,
    NextOutcome,
    OrderDecision,
    OrderOutcome,
    ResumeDecision,
    ResumeOutcome,
    ReviewDecision,
    StartDecision,
    VerdictDecision,
)

SaidVerdict = VerdictDecision | NextDecision | GlassDecision
"""What a published verdict rests on: the rubric's word, on a fix what follows its round, or a
person who broke the glass."""


def must_be(value: object, *kinds: type[object]) -> None:
    """TypeError unless the value is exactly of one of these sealed types, which loop_guards makes.

    What only looks like one, whatever it says of its own class, is refused.
    """
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{type(value).__name__} is no {wanted}: ask loop_guards for one")


def approves(said: SaidVerdict) -> bool:
    """Whether the guards approve. TypeError for anything that they did not say."""
    must_be(said, VerdictDecision, NextDecision, GlassDecision)
    if isinstance(said, GlassDecision):
        return said.accepted
    if isinstance(said, VerdictDecision):
        return said.approves
    return said.outcome == NextOutcome.APPROVE


@dataclass(frozen=True, slots=True)
class ReviewPermit:
    """A review run may start: the guards were asked, about a fix task's round besides if it is one,
    and every one of them allows it. ValueError otherwise."""

    decisions: tuple[ReviewDecision | StartDecision, ...]

    def __post_init__(self) -> None:
        for decision in self.decisions:
            must_be(decision, ReviewDecision, StartDecision)
            if not decision.allowed:
                raise _refused("review run", decision)
        if not any(isinstance(decision, ReviewDecision) for decision in self.decisions):
            raise ValueError("a review run may not start: loop_guards.may_review was not asked")

    @property
    def allows_round(self) -> bool:
        """Whether the run may be a round of a fix task."""
        return any(isinstance(decision, StartDecision) for decision in self.decisions)


@dataclass(frozen=True, slots=True)
class TurnPermit:
    """A turn of the fixer may begin, or go on after a restart. ValueError if it may not."""

    decision: StartDecision

    def __post_init__(self) -> None:
        must_be(self.decision, StartDecision)
        if not self.decision.allowed:
            raise _refused("turn", self.decision)


@dataclass(frozen=True, slots=True)
class ResumePermit:
    """An escalated task may go on: a person resumes it, or orders a finding of it, which means the
    same. ValueError if not."""

    decision: OrderDecision | HandoffDecision | ResumeDecision

    def __post_init__(self) -> None:
        must_be(self.decision, OrderDecision, HandoffDecision, ResumeDecision)
        resumes = (OrderOutcome.RESUME, HandoffOutcome.RESUME, ResumeOutcome.RESUMED)
        if self.decision.outcome not in resumes:
            raise _refused("resume", self.decision)


def _refused(what: str, decision: Decision) -> ValueError:
    said = f"{decision.outcome} ({decision.reason})"
    return ValueError(f"a {what} may not start: {type(decision).__name__} says {said}")
