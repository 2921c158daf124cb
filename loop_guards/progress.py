"""Rounds of a fix task: may one start, and what follows it. DESIGN §3.4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.limits import Limits


class StartOutcome(StrEnum):
    START = "start"
    REFUSE = "refuse"


class StartReason(StrEnum):
    """Why a machine-caused round may not start, in the order they are asked."""

    STOPPED = "stopped"
    KILL_SWITCH = "kill_switch"
    ESCALATED = "escalated"
    CAP = "cap"
    BUDGET = "budget"
    ALLOWED = "allowed"


@dataclass(frozen=True, slots=True)
class Spent:
    """What a lineage has used and reserved so far, in the units of `Limits.budget_*`."""

    input_tokens: int = 0
    micro_dollars: int = 0
    model_seconds: int = 0

    def exceeds(self, limits: Limits) -> bool:
        """Whether any of the three budgets is used up."""
        return (
            self.input_tokens >= limits.budget_input_tokens
            or self.micro_dollars >= limits.budget_micro_dollars
            or self.model_seconds >= limits.budget_model_seconds
        )


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """A fix task before a round or a turn. `rounds_started` counts charged rounds."""

    rounds_started: int
    allowance: int
    spent: Spent = Spent()
    stopped: bool = False
    kill_switch: bool = False
    escalated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDecision(Decision):
    """May a machine-caused run start?"""

    @property
    def allowed(self) -> bool:
        return self.outcome == StartOutcome.START


def allowance(limits: Limits, resumes: int) -> int:
    """Rounds a task may start: the cap, and half of it for each human's resume."""
    return limits.max_review_iterations + resumes * limits.resume_rounds


def may_start_round(facts: RoundFacts, limits: Limits) -> StartDecision:
    """Asked before every machine-caused run of a fix task; the first that holds refuses.

    The same is asked before a turn: one whose round could not start would be waste.
    """
    questions = (
        (StartReason.STOPPED, facts.stopped),
        (StartReason.KILL_SWITCH, facts.kill_switch),
        (StartReason.ESCALATED, facts.escalated),
        (StartReason.CAP, facts.rounds_started >= facts.allowance),
        (StartReason.BUDGET, facts.spent.exceeds(limits)),
    )
    held = tuple(reason for reason, holds in questions if holds)
    return StartDecision(
        outcome=StartOutcome.REFUSE if held else StartOutcome.START,
        reason=held[0] if held else StartReason.ALLOWED,
        reasons=held or (StartReason.ALLOWED,),
        compared=values(
            rounds_started=facts.rounds_started,
            allowance=facts.allowance,
            input_tokens=facts.spent.input_tokens,
            micro_dollars=facts.spent.micro_dollars,
            model_seconds=facts.spent.model_seconds,
        ),
        trace=tuple(Asked(reason, reason if holds else None) for reason, holds in questions),
        seal=sealed(),
    )


class NextOutcome(StrEnum):
    """What follows a round. WAIT: a human stopped the lineage; nothing until a resume."""

    APPROVE = "approve"
    TURN = "turn"
    ESCALATE = "escalate"
    WAIT = "wait"


class NextReason(StrEnum):
    """Why, in the order of precedence of DESIGN §3.4."""

    STOPPED = "stopped"
    NOTHING_BLOCKS = "nothing_blocks"
    COVERAGE = "coverage"
    UNAVAILABLE = "unavailable"
    BUDGET = "budget"
    BOUNCE = "bounce"
    UNSTABLE_REVIEW = "unstable_review"
    STALL = "stall"
    CAP = "cap"
    FINDINGS_BLOCK = "findings_block"


@dataclass(frozen=True, slots=True)
class AfterRoundFacts:
    """A fix task after a round. `blocking_history`: the blocking set after each round, in order.

    `touched`: whether the turn before this round changed a file of the findings that blocked it.
    `coverage_attempts` counts rounds in a row that could not cover everything.
    """

    rounds_started: int
    allowance: int
    blocking_history: tuple[frozenset[int], ...]
    coverage_full: bool
    spent: Spent = Spent()
    stopped: bool = False
    coverage_attempts: int = 0
    unavailable: bool = False
    bounced: bool = False
    second_flip: bool = False
    touched: bool = True
    known_patch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NextDecision(Decision):
    """What follows a round; `reasons` are all that hold, the first decides."""


MAX_COVERAGE_ATTEMPTS = 2


def after_round(facts: AfterRoundFacts, limits: Limits) -> NextDecision:
    """What follows this round: human stop › approve › coverage › budget › bounce › stall › cap."""
    blocking = facts.blocking_history[-1] if facts.blocking_history else frozenset[int]()
    escalations = (
        (NextReason.COVERAGE, facts.coverage_attempts >= MAX_COVERAGE_ATTEMPTS),
        (NextReason.UNAVAILABLE, facts.unavailable),
        (NextReason.BUDGET, facts.spent.exceeds(limits)),
        (NextReason.BOUNCE, facts.bounced),
        (NextReason.UNSTABLE_REVIEW, facts.second_flip),
        (NextReason.STALL, _stalled(facts, limits)),
        (NextReason.CAP, facts.rounds_started >= facts.allowance),
    )
    held = [reason for reason, holds in escalations if holds]
    approves = not blocking and facts.coverage_full
    if facts.stopped:
        outcome, held = NextOutcome.WAIT, [NextReason.STOPPED, *held]
    elif approves:
        outcome, held = NextOutcome.APPROVE, [NextReason.NOTHING_BLOCKS]
    elif held:
        outcome = NextOutcome.ESCALATE
    else:
        outcome, held = NextOutcome.TURN, [NextReason.FINDINGS_BLOCK]
    return NextDecision(
        outcome=outcome,
        reason=held[0],
        reasons=tuple(held),
        compared=values(
            rounds_started=facts.rounds_started,
            allowance=facts.allowance,
            blocking=len(blocking),
            coverage_full=facts.coverage_full,
        ),
        trace=(
            Asked("stopped", NextReason.STOPPED if facts.stopped else None),
            Asked("approve", NextReason.NOTHING_BLOCKS if approves else None),
            *(Asked(reason, reason if holds else None) for reason, holds in escalations),
        ),
        seal=sealed(),
    )


def _stalled(facts: AfterRoundFacts, limits: Limits) -> bool:
    """The same set after two turns in a row, a turn that touched nothing, or a known patch."""
    last = facts.blocking_history[-(limits.stall_turns + 1) :]
    same = len(last) > limits.stall_turns and len(set(last)) == 1 and bool(last[0])
    later_round = len(facts.blocking_history) > 1
    return same or (later_round and (not facts.touched or facts.known_patch))
