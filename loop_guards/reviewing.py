"""May a review run start at all? DESIGN §2.3, §3.5."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.limits import Limits
from loop_guards.tables import all_that_hold


class ReviewOutcome(StrEnum):
    REVIEW = "review"
    SKIP = "skip"


class ReviewReason(StrEnum):
    """Why a run does not start; REQUESTED when it does."""

    OWN_ACT = "own_act"
    CLOSED = "closed"
    SUPERSEDED = "superseded"
    STOPPED = "stopped"
    KILL_SWITCH = "kill_switch"
    ESCALATED = "escalated"
    DRAFT = "draft"
    SKIP_LABEL = "skip_label"
    IGNORED = "ignored"
    ALREADY_REVIEWED = "already_reviewed"
    SAME_PATCH = "same_patch"
    PING_PONG = "ping_pong"
    BOT_PULL_REQUESTS = "bot_pull_requests"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True)
class ReviewStart:
    """A pull request at the moment somebody or something asks for a review.

    `by_human`: a person's push, open, command or resume caused it. `machine_rounds` counts
    machine-caused rounds since the last of those. `commanded`: a person asked in words.
    `already_reviewed`: this head, base and policy were. `same_patch`: the head differs from a
    reviewed one by a merge of the base alone, whose verdict it carries. `own_act`: we did ourselves
    what asks for it, other than the fixer's push. `ignored`: the policy leaves it out.
    `is_outside_bot_pr`: a bot that is not ours opened it; then the two counts are those bots' pull
    requests admitted in this repository in the last day and in the last `bot_pr_window`, and
    `admitted` says that this one is among them.
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
    own_act: bool = False
    ignored: bool = False
    same_patch: bool = False
    is_outside_bot_pr: bool = False
    admitted: bool = False
    bot_prs_of_day: int = 0
    bot_prs_of_window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDecision(Decision):
    """Review or skip, and why."""

    @property
    def allowed(self) -> bool:
        return self.outcome == ReviewOutcome.REVIEW


def may_review(facts: ReviewStart, limits: Limits) -> ReviewDecision:
    """The first that holds skips the review. A person's command overrides what only saves work."""
    questions = _questions(facts, limits)
    held, trace = all_that_hold(questions)
    return ReviewDecision(
        outcome=ReviewOutcome.SKIP if held else ReviewOutcome.REVIEW,
        reason=held[0] if held else ReviewReason.REQUESTED,
        reasons=held or (ReviewReason.REQUESTED,),
        compared=values(
            is_open=facts.is_open,
            is_newest_head=facts.is_newest_head,
            draft=facts.draft,
            by_human=facts.by_human,
            commanded=facts.commanded,
            machine_rounds=facts.machine_rounds,
            already_reviewed=facts.already_reviewed,
            is_fix_pr=facts.is_fix_pr,
            skip_label=facts.skip_label,
            stopped=facts.stopped,
            kill_switch=facts.kill_switch,
            escalated=facts.escalated,
            own_act=facts.own_act,
            ignored=facts.ignored,
            same_patch=facts.same_patch,
            is_outside_bot_pr=facts.is_outside_bot_pr,
            admitted=facts.admitted,
            bot_prs_of_day=facts.bot_prs_of_day,
            bot_prs_of_window=facts.bot_prs_of_window,
            pingpong_cap=limits.pingpong_cap,
            max_bot_prs_per_day=limits.max_bot_prs_per_day,
            bot_prs_per_window=limits.bot_prs_per_window,
        ),
        trace=trace,
        seal=sealed(),
    )


def _questions(facts: ReviewStart, limits: Limits) -> tuple[tuple[ReviewReason, bool], ...]:
    machine = not (facts.by_human or facts.commanded)
    unasked = not facts.commanded
    # The rounds of a fix pull request are counted by its task instead.
    counted = machine and not facts.is_fix_pr
    too_many = (
        facts.bot_prs_of_day >= limits.max_bot_prs_per_day
        or facts.bot_prs_of_window >= limits.bot_prs_per_window
    )
    return (
        (ReviewReason.OWN_ACT, facts.own_act),
        (ReviewReason.CLOSED, not facts.is_open),
        (ReviewReason.SUPERSEDED, not facts.is_newest_head),
        (ReviewReason.STOPPED, facts.stopped and machine),
        (ReviewReason.KILL_SWITCH, facts.kill_switch),
        (ReviewReason.ESCALATED, facts.escalated and machine),
        (ReviewReason.DRAFT, facts.draft and (facts.is_fix_pr or unasked)),
        (ReviewReason.SKIP_LABEL, facts.skip_label and unasked),
        (ReviewReason.IGNORED, facts.ignored and unasked),
        (ReviewReason.ALREADY_REVIEWED, facts.already_reviewed and unasked),
        (ReviewReason.SAME_PATCH, facts.same_patch and unasked),
        (ReviewReason.PING_PONG, counted and facts.machine_rounds >= limits.pingpong_cap),
        (
            ReviewReason.BOT_PULL_REQUESTS,
            counted and facts.is_outside_bot_pr and not facts.admitted and too_many,
        ),
    )
