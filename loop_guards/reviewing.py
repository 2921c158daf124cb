"""May a review run start at all? DESIGN §2.3, §3.5."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.limits import Limits


class ReviewOutcome(StrEnum):
    REVIEW = "review"
    SKIP = "skip"


class ReviewReason(StrEnum):
    """Why a run does not start; REQUESTED when it does."""

    CLOSED = "closed"
    SUPERSEDED = "superseded"
    STOPPED = "stopped"
    KILL_SWITCH = "kill_switch"
    ESCALATED = "escalated"
    DRAFT = "draft"
    SKIP_LABEL = "skip_label"
    ALREADY_REVIEWED = "already_reviewed"
    PING_PONG = "ping_pong"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True)
class ReviewStart:
    """A pull request at the moment somebody or something asks for a review.

    `by_human`: a person's push, open, command or resume caused it. `machine_rounds` counts
    machine-caused rounds since the last of those. `commanded`: a person asked in words.
    """

    is_open: bool
    is_newest_head: bool
    draft: bool
    by_human: bool
    commanded: bool
    machine_rounds: int
    already_reviewed: bool
    is_fix_pr: bool = False
    skip_label: bool = False
    stopped: bool = False
    kill_switch: bool = False
    escalated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDecision(Decision):
    """Review or skip, and why."""

    @property
    def allowed(self) -> bool:
        return self.outcome == ReviewOutcome.REVIEW


def may_review(facts: ReviewStart, limits: Limits) -> ReviewDecision:
    """The first that holds skips the review. A person's command overrides what only saves work."""
    machine = not (facts.by_human or facts.commanded)
    questions = (
        (ReviewReason.CLOSED, not facts.is_open),
        (ReviewReason.SUPERSEDED, not facts.is_newest_head),
        (ReviewReason.STOPPED, facts.stopped and machine),
        (ReviewReason.KILL_SWITCH, facts.kill_switch),
        (ReviewReason.ESCALATED, facts.escalated and machine),
        (ReviewReason.DRAFT, facts.draft and (facts.is_fix_pr or not facts.commanded)),
        (ReviewReason.SKIP_LABEL, facts.skip_label and not facts.commanded),
        (ReviewReason.ALREADY_REVIEWED, facts.already_reviewed and not facts.commanded),
        # The rounds of a fix pull request are counted by its task instead.
        (
            ReviewReason.PING_PONG,
            machine and not facts.is_fix_pr and facts.machine_rounds >= limits.pingpong_cap,
        ),
    )
    held = tuple(reason for reason, holds in questions if holds)
    return ReviewDecision(
        outcome=ReviewOutcome.SKIP if held else ReviewOutcome.REVIEW,
        reason=held[0] if held else ReviewReason.REQUESTED,
        reasons=held or (ReviewReason.REQUESTED,),
        compared=values(
            by_human=facts.by_human,
            commanded=facts.commanded,
            machine_rounds=facts.machine_rounds,
            pingpong_cap=limits.pingpong_cap,
            draft=facts.draft,
        ),
        trace=tuple(Asked(reason, reason if holds else None) for reason, holds in questions),
        seal=sealed(),
    )
