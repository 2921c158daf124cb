"""Rounds of a fix task: may one start, and what follows it. DESIGN §3.4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.budget import NOTHING_SPENT, UNITS, Spent, purse
from loop_guards.decisions import Decision, sealed, values
from loop_guards.findings import Verdict
from loop_guards.limits import Limits
from loop_guards.tables import all_that_hold


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
class RoundFacts:
    """A fix task before a round or a turn. `rounds_started` counts charged rounds.

    `turns_begun` counts turns, also those that a stop cut short. `spent` is what the whole lineage
    used, `reserved` what its runs in flight may still use, `worst_case` what this run may use.
    `lineage_resumes` counts humans' resumes of its tasks.
    """

    rounds_started: int
    allowance: int
    spent: Spent = NOTHING_SPENT
    stopped: bool = False
    kill_switch: bool = False
    escalated: bool = False
    reserved: Spent = NOTHING_SPENT
    worst_case: Spent = NOTHING_SPENT
    lineage_resumes: int = 0
    turns_begun: int = 0

    def over_budget(self, limits: Limits) -> bool:
        """Whether the purse is empty, or the worst case does not fit beside what is reserved."""
        taken = self.spent + self.reserved
        return taken.exceeds(limits, self.lineage_resumes) or (taken + self.worst_case).overdraws(
            limits, self.lineage_resumes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDecision(Decision):
    """May a machine-caused run start? `reservation` is to be set aside from the purse if so."""

    reservation: Spent = NOTHING_SPENT

    @property
    def allowed(self) -> bool:
        """Whether the run may start."""
        return self.outcome == StartOutcome.START


def allowance(limits: Limits, resumes: int) -> int:
    """Rounds a task may start: the cap, and half of it for each human's resume."""
    return limits.max_review_iterations + max(0, resumes) * limits.resume_rounds


def may_start_round(facts: RoundFacts, limits: Limits) -> StartDecision:
    """Asked before every machine-caused run of a fix task; the first that holds refuses."""
    return _may_start(facts, limits, used=facts.rounds_started)


def may_start_turn(facts: RoundFacts, limits: Limits) -> StartDecision:
    """Asked before every turn. One whose round could not start would be waste.

    Turns have the allowance too: humans who stop and resume would else buy turns without end.
    """
    return _may_start(facts, limits, used=max(facts.rounds_started, facts.turns_begun))


def _may_start(facts: RoundFacts, limits: Limits, *, used: int) -> StartDecision:
    questions = (
        (StartReason.STOPPED, facts.stopped),
        (StartReason.KILL_SWITCH, facts.kill_switch),
        (StartReason.ESCALATED, facts.escalated),
        (StartReason.CAP, used >= facts.allowance),
        (StartReason.BUDGET, facts.over_budget(limits)),
    )
    held, trace = all_that_hold(questions)
    return StartDecision(
        outcome=StartOutcome.REFUSE if held else StartOutcome.START,
        reason=held[0] if held else StartReason.ALLOWED,
        reasons=held or (StartReason.ALLOWED,),
        reservation=NOTHING_SPENT if held else facts.worst_case,
        compared=values(
            rounds_started=facts.rounds_started,
            turns_begun=facts.turns_begun,
            allowance=facts.allowance,
            stopped=facts.stopped,
            kill_switch=facts.kill_switch,
            escalated=facts.escalated,
            lineage_resumes=facts.lineage_resumes,
            **_amounts(facts, limits),
        ),
        trace=trace,
        seal=sealed(),
    )


def _amounts(facts: RoundFacts, limits: Limits) -> dict[str, int]:
    budget = purse(limits, facts.lineage_resumes)
    return {
        f"{name}_{unit}": getattr(amount, unit)
        for name, amount in (
            ("spent", facts.spent),
            ("reserved", facts.reserved),
            ("worst_case", facts.worst_case),
            ("budget", budget),
        )
        for unit in UNITS
    }


class NextOutcome(StrEnum):
    """What follows a round. ROUND: the same head is reviewed again, since not all of it was.
    WAIT: a human stopped the lineage; nothing until a resume."""

    APPROVE = "approve"
    TURN = "turn"
    ROUND = "round"
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
    LOOK_AGAIN = "look_again"


@dataclass(frozen=True, slots=True)
class AfterRoundFacts:
    """A fix task after a round, which counts already. Histories reach back to the last resume.

    `blocking_history`: the blocking set after each round, in order. `touched`: whether the turn
    before this round changed a file of the findings that blocked it; True if no turn was between.
    `coverage_attempts` counts rounds in a row, this one included, that could not cover everything.
    `unavailable`: no model could be asked, so this round says nothing. `newest_head`: nothing was
    pushed since this round began; else what it saw is neither approved nor worked on. `bounced` and
    `second_flip` are what `judge_return` said. `known_patch`: a bot pushed a patch id that was
    judged before.
    """

    rounds_started: int
    allowance: int
    blocking_history: tuple[frozenset[int], ...]
    coverage_full: bool
    spent: Spent = NOTHING_SPENT
    stopped: bool = False
    coverage_attempts: int = 0
    unavailable: bool = False
    bounced: bool = False
    second_flip: bool = False
    touched: bool = True
    known_patch: bool = False
    newest_head: bool = True
    lineage_resumes: int = 0

    @property
    def blocking(self) -> frozenset[int]:
        """What blocks now."""
        return self.blocking_history[-1] if self.blocking_history else frozenset()

    @property
    def approvable(self) -> bool:
        """Whether a whole look at all there is now found nothing that blocks."""
        looked = bool(self.blocking_history) and not self.unavailable and self.newest_head
        return looked and self.coverage_full and not self.blocking


_VERDICTS = {
    NextOutcome.APPROVE: Verdict.APPROVED,
    NextOutcome.TURN: Verdict.CHANGES_REQUESTED,
    NextOutcome.ROUND: Verdict.CHANGES_REQUESTED,
    NextOutcome.ESCALATE: Verdict.ESCALATED,
    NextOutcome.WAIT: Verdict.CHANGES_REQUESTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextDecision(Decision):
    """What follows a round; `reasons` are all that hold, the first decides."""

    @property
    def verdict(self) -> Verdict:
        """What the round says of the fix pull request."""
        return _VERDICTS[NextOutcome(self.outcome)]


def after_round(facts: AfterRoundFacts, limits: Limits) -> NextDecision:
    """What follows this round: human stop › approve › coverage › budget › bounce › stall › cap.

    "Nothing blocks" means that everything was looked at: below full coverage, or with no answer at
    all, nothing is approved.
    """
    questions = _questions(facts, limits)
    held, trace = all_that_hold(questions)
    outcome, fallback = _outcome(facts, held)
    reasons = held or (fallback,)
    return NextDecision(
        outcome=outcome,
        reason=reasons[0],
        reasons=reasons,
        compared=values(
            rounds_started=facts.rounds_started,
            allowance=facts.allowance,
            blocking=len(facts.blocking),
            coverage_full=facts.coverage_full,
            coverage_attempts=facts.coverage_attempts,
            lineage_resumes=facts.lineage_resumes,
            stopped=facts.stopped,
            unavailable=facts.unavailable,
            bounced=facts.bounced,
            second_flip=facts.second_flip,
            touched=facts.touched,
            known_patch=facts.known_patch,
            newest_head=facts.newest_head,
            **{f"spent_{unit}": getattr(facts.spent, unit) for unit in UNITS},
        ),
        trace=trace,
        seal=sealed(),
    )


def _questions(facts: AfterRoundFacts, limits: Limits) -> tuple[tuple[NextReason, bool], ...]:
    """The order of precedence. All are answered, since all that hold are stored."""
    short = not facts.coverage_full and facts.coverage_attempts >= limits.coverage_attempts
    return (
        (NextReason.STOPPED, facts.stopped),
        (NextReason.NOTHING_BLOCKS, facts.approvable),
        (NextReason.COVERAGE, short),
        (NextReason.UNAVAILABLE, facts.unavailable),
        (NextReason.BUDGET, facts.spent.exceeds(limits, facts.lineage_resumes)),
        (NextReason.BOUNCE, facts.bounced),
        (NextReason.UNSTABLE_REVIEW, facts.second_flip),
        (NextReason.STALL, _stalled(facts, limits)),
        (NextReason.CAP, facts.rounds_started >= facts.allowance),
    )


def _outcome(
    facts: AfterRoundFacts, held: tuple[NextReason, ...]
) -> tuple[NextOutcome, NextReason]:
    """The outcome, and the reason for it if no question holds."""
    match held[:1]:
        case (NextReason.STOPPED,):
            return NextOutcome.WAIT, NextReason.STOPPED
        case (NextReason.NOTHING_BLOCKS,):
            return NextOutcome.APPROVE, NextReason.NOTHING_BLOCKS
        case ():
            # A target has nothing to do when nothing blocks: only the look was incomplete. What was
            # pushed meanwhile is looked at before anybody works on.
            if facts.blocking and facts.newest_head:
                return NextOutcome.TURN, NextReason.FINDINGS_BLOCK
            return NextOutcome.ROUND, NextReason.LOOK_AGAIN
        case _:
            return NextOutcome.ESCALATE, held[0]


def _stalled(facts: AfterRoundFacts, limits: Limits) -> bool:
    """The same set after two turns in a row, a turn that touched nothing, or a known patch."""
    last = facts.blocking_history[-(limits.stall_turns + 1) :]
    same = len(last) > limits.stall_turns and len(set(last)) == 1 and bool(last[0])
    return same or not facts.touched or facts.known_patch
