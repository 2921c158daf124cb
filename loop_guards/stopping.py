"""A human stops a lineage, or resumes it or one of its escalated tasks. DESIGN §3.4 and §3.9."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.facts import TaskState
from loop_guards.limits import Limits
from loop_guards.tables import first_row


class StopOutcome(StrEnum):
    STOPPED = "stopped"
    REFUSED = "refused"


class StopReason(StrEnum):
    """Why a stop ends as it does, in the order asked."""

    NOT_HUMAN = "not_human"
    NO_WRITE_ACCESS = "no_write_access"
    ALREADY_STOPPED = "already_stopped"
    BY_HUMAN = "by_human"


@dataclass(frozen=True, slots=True)
class StopFacts:
    """A lineage and the person who stops it."""

    by_human: bool
    can_write: bool
    stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecision(Decision):
    """The answer to a stop."""

    @property
    def accepted(self) -> bool:
        """Whether the lineage is stopped by this act: every task of it gets `TaskEvent.STOP`."""
        return self.outcome == StopOutcome.STOPPED


def answer_stop(facts: StopFacts) -> StopDecision:
    """A stop holds until a human resumes. Orders are kept, and wait."""
    refused = StopOutcome.REFUSED
    outcome, reason, trace = first_row(
        (
            (not facts.by_human, refused, StopReason.NOT_HUMAN),
            (not facts.can_write, refused, StopReason.NO_WRITE_ACCESS),
            (facts.stopped, refused, StopReason.ALREADY_STOPPED),
            (True, StopOutcome.STOPPED, StopReason.BY_HUMAN),
        )
    )
    return StopDecision(
        outcome=outcome,
        reason=reason,
        trace=trace,
        compared=values(by_human=facts.by_human, can_write=facts.can_write, stopped=facts.stopped),
        seal=sealed(),
    )


class ResumeOutcome(StrEnum):
    """RESUMED: the named escalation is over and the task has rounds again. LIFTED: only the stop of
    the lineage is. ASKED: neither was there, but what the kill switch deferred is asked again."""

    RESUMED = "resumed"
    LIFTED = "lifted"
    ASKED = "asked"
    REFUSED = "refused"


class ResumeReason(StrEnum):
    """Why a resume ends as it does, in the order asked."""

    NOT_HUMAN = "not_human"
    NO_WRITE_ACCESS = "no_write_access"
    KILL_SWITCH = "kill_switch"
    TASK_ESCALATED = "task_escalated"
    STOPPED = "stopped"
    DEFERRED = "deferred"
    ALREADY_RESUMED = "already_resumed"
    NOT_STOPPED = "not_stopped"


@dataclass(frozen=True, slots=True)
class ResumeFacts:
    """A resume. `task` is the state of the task whose escalation it names, None if it names none;
    `is_current`: that escalation has not been resumed before. `anything_deferred`: a finding of the
    lineage was deferred, or an order for it waits."""

    by_human: bool
    can_write: bool
    stopped: bool
    kill_switch: bool = False
    task: TaskState | None = None
    is_current: bool = True
    anything_deferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeDecision(Decision):
    """The answer to a resume. `rounds` are opened for the named task (`TaskEvent.RESUME`).

    `lifts_stop`: the lineage runs again. `asks_again`: every deferred finding of the lineage is
    asked about again, with the orders that waited.
    """

    rounds: int = 0
    lifts_stop: bool = False

    @property
    def accepted(self) -> bool:
        """Whether anything goes on by this act."""
        return self.outcome != ResumeOutcome.REFUSED

    @property
    def asks_again(self) -> bool:
        """Whether deferred findings are asked about again."""
        return self.accepted


def answer_resume(facts: ResumeFacts, limits: Limits) -> ResumeDecision:
    """What this resume comes to. It names one escalation, and counts once for it.

    A resume also lifts a stop of the lineage: a task that may go on in a stopped lineage may not.
    """
    current = facts.task is TaskState.ESCALATED and facts.is_current
    refused = ResumeOutcome.REFUSED
    outcome, reason, trace = first_row(
        (
            (not facts.by_human, refused, ResumeReason.NOT_HUMAN),
            (not facts.can_write, refused, ResumeReason.NO_WRITE_ACCESS),
            (facts.kill_switch, refused, ResumeReason.KILL_SWITCH),
            (current, ResumeOutcome.RESUMED, ResumeReason.TASK_ESCALATED),
            (facts.stopped, ResumeOutcome.LIFTED, ResumeReason.STOPPED),
            # A kill switch that is off again leaves no stop behind, and orders that waited for it.
            (facts.anything_deferred, ResumeOutcome.ASKED, ResumeReason.DEFERRED),
            (facts.task is not None, refused, ResumeReason.ALREADY_RESUMED),
            (True, refused, ResumeReason.NOT_STOPPED),
        )
    )
    accepted = outcome is not refused
    return ResumeDecision(
        outcome=outcome,
        reason=reason,
        trace=trace,
        rounds=limits.resume_rounds if outcome is ResumeOutcome.RESUMED else 0,
        lifts_stop=accepted and facts.stopped,
        compared=values(
            by_human=facts.by_human,
            can_write=facts.can_write,
            stopped=facts.stopped,
            kill_switch=facts.kill_switch,
            task=facts.task,
            is_current=facts.is_current,
            anything_deferred=facts.anything_deferred,
            resume_rounds=limits.resume_rounds,
        ),
        seal=sealed(),
    )
