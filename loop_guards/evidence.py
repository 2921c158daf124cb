"""What a round's claims about an earlier finding are worth. DESIGN §3.4: words and changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Asked, Decision, sealed, values
from loop_guards.limits import Limits
from loop_guards.tables import first_row


class FixedOutcome(StrEnum):
    FIXED = "fixed"
    OPEN = "open"


class FixedReason(StrEnum):
    """Why a finding counts as fixed, or does not."""

    ON_EVIDENCE = "on_evidence"
    NOT_CLAIMED = "not_claimed"
    NO_CHANGE = "no_change"


@dataclass(frozen=True, slots=True)
class FixedFacts:
    """A finding after a round. `files` are those it names; `changed_files` changed since last seen.

    `cited_hunk_changed`: the reviewer cites a hunk, and it is part of what changed in those files
    since the finding was handed off (or raised): so a reviewer that kept open what was fixed
    before can take that back, by pointing at the fix.
    """

    claimed_fixed: bool
    files: frozenset[str]
    changed_files: frozenset[str]
    cited_hunk_changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDecision(Decision):
    """Is the finding fixed?"""

    @property
    def fixed(self) -> bool:
        return self.outcome == FixedOutcome.FIXED


def judge_fixed(facts: FixedFacts) -> FixedDecision:
    """Fixed needs the reviewer's word and a change, never one alone; without either it stays open.

    A finding that names no file needs a cited hunk.
    """
    changed = facts.cited_hunk_changed or not facts.files.isdisjoint(facts.changed_files)
    if not facts.claimed_fixed:
        outcome, reason = FixedOutcome.OPEN, FixedReason.NOT_CLAIMED
    elif not changed:
        outcome, reason = FixedOutcome.OPEN, FixedReason.NO_CHANGE
    else:
        outcome, reason = FixedOutcome.FIXED, FixedReason.ON_EVIDENCE
    return FixedDecision(
        outcome=outcome,
        reason=reason,
        compared=values(
            claimed_fixed=facts.claimed_fixed,
            changed=changed,
            cited_hunk_changed=facts.cited_hunk_changed,
            files=len(facts.files),
        ),
        trace=(
            Asked("claim", None if facts.claimed_fixed else FixedReason.NOT_CLAIMED),
            Asked("change", None if changed else FixedReason.NO_CHANGE),
        ),
        seal=sealed(),
    )


class ReturnOutcome(StrEnum):
    """REOPENED: it blocks again, nothing more. ESCALATE: it blocks again and a human is asked."""

    REOPENED = "reopened"
    ESCALATE = "escalate"


class ReturnReason(StrEnum):
    """Why a finding that was fixed is there again."""

    NOT_BLOCKING = "not_blocking"
    BOUNCE = "bounce"
    UNSTABLE_REVIEW = "unstable_review"
    FLIP = "flip"


@dataclass(frozen=True, slots=True)
class ReturnFacts:
    """A finding that was marked fixed and is reported again.

    `bot_touched`: a bot's change since it was marked fixed touched its anchor or the cited hunk.
    `flips` counts its earlier returns without such a change, since the last resume.
    """

    was_blocking: bool
    bot_touched: bool
    flips: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnDecision(Decision):
    """What a return means. It fills `bounced` and `second_flip` of `AfterRoundFacts`."""

    @property
    def is_flip(self) -> bool:
        """Whether this return counts towards the finding's `flips`."""
        return self.reason in (ReturnReason.FLIP, ReturnReason.UNSTABLE_REVIEW)


def judge_return(facts: ReturnFacts, limits: Limits) -> ReturnDecision:
    """Bounce: a bot broke it again. Flip: the reviewer changed its mind; twice is noise."""
    unstable = facts.flips + 1 >= limits.max_flips
    rows = (
        (not facts.was_blocking, ReturnOutcome.REOPENED, ReturnReason.NOT_BLOCKING),
        (facts.bot_touched, ReturnOutcome.ESCALATE, ReturnReason.BOUNCE),
        (unstable, ReturnOutcome.ESCALATE, ReturnReason.UNSTABLE_REVIEW),
        (True, ReturnOutcome.REOPENED, ReturnReason.FLIP),
    )
    outcome, reason, trace = first_row(rows)
    return ReturnDecision(
        outcome=outcome,
        reason=reason,
        compared=values(
            was_blocking=facts.was_blocking,
            bot_touched=facts.bot_touched,
            flips=facts.flips,
            max_flips=limits.max_flips,
        ),
        trace=trace,
        seal=sealed(),
    )
