"""May the fixer ask for a review of its own diff? DESIGN §3.5, the verify call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.facts import TaskState
from loop_guards.limits import Limits
from loop_guards.tables import all_that_hold


class VerifyOutcome(StrEnum):
    VERIFY = "verify"
    REFUSE = "refuse"


class VerifyReason(StrEnum):
    """Why a verify call is refused, in the order asked."""

    STOPPED = "stopped"
    KILL_SWITCH = "kill_switch"
    NO_LIVE_TASK = "no_live_task"
    ESCALATED = "escalated"
    CYCLES = "cycles"
    ALLOWED = "allowed"


@dataclass(frozen=True, slots=True)
class VerifyFacts:
    """A verify call: the task it names (None: no such task) and the cycles that one has used."""

    task: TaskState | None
    cycles: int
    stopped: bool = False
    kill_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDecision(Decision):
    """May the verify run start?"""

    @property
    def allowed(self) -> bool:
        """Whether it may."""
        return self.outcome == VerifyOutcome.VERIFY


def may_verify(facts: VerifyFacts, limits: Limits) -> VerifyDecision:
    """A verify run needs a live task that still has verify cycles; the first that holds refuses."""
    live = facts.task is not None and facts.task.is_live
    questions = (
        (VerifyReason.STOPPED, facts.stopped),
        (VerifyReason.KILL_SWITCH, facts.kill_switch),
        (VerifyReason.NO_LIVE_TASK, not live),
        (VerifyReason.ESCALATED, facts.task is TaskState.ESCALATED),
        (VerifyReason.CYCLES, facts.cycles >= limits.verify_cycles),
    )
    held, trace = all_that_hold(questions)
    return VerifyDecision(
        outcome=VerifyOutcome.REFUSE if held else VerifyOutcome.VERIFY,
        reason=held[0] if held else VerifyReason.ALLOWED,
        reasons=held or (VerifyReason.ALLOWED,),
        compared=values(
            stopped=facts.stopped,
            kill_switch=facts.kill_switch,
            task=facts.task,
            cycles=facts.cycles,
            verify_cycles=limits.verify_cycles,
        ),
        trace=trace,
        seal=sealed(),
    )
