"""A human breaks the glass: a forced approval of one head. DESIGN §4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.findings import Verdict
from loop_guards.tables import first_row


class GlassOutcome(StrEnum):
    FORCED = "forced"
    REFUSED = "refused"


class GlassReason(StrEnum):
    """Why breaking the glass ends as it does, in the order asked."""

    NOT_HUMAN = "not_human"
    NO_WRITE_ACCESS = "no_write_access"
    NOT_OPEN = "not_open"
    BY_HUMAN = "by_human"


@dataclass(frozen=True, slots=True)
class GlassFacts:
    """A pull request and the person who approves its present head by force."""

    by_human: bool
    can_write: bool
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GlassDecision(Decision):
    """The answer to breaking the glass. It holds for the head that the person saw, and no other."""

    @property
    def accepted(self) -> bool:
        """Whether the head is approved by this act, whatever a review of it says."""
        return self.outcome == GlassOutcome.FORCED

    @property
    def verdict(self) -> Verdict:
        """What is said of the head by it; meant only where it is accepted."""
        return Verdict.APPROVED


def answer_glass(facts: GlassFacts) -> GlassDecision:
    """Whether the head is approved by force. No review, no model and no budget is asked."""
    refused = GlassOutcome.REFUSED
    outcome, reason, trace = first_row(
        (
            (not facts.by_human, refused, GlassReason.NOT_HUMAN),
            (not facts.can_write, refused, GlassReason.NO_WRITE_ACCESS),
            (not facts.is_open, refused, GlassReason.NOT_OPEN),
            (True, GlassOutcome.FORCED, GlassReason.BY_HUMAN),
        )
    )
    return GlassDecision(
        outcome=outcome,
        reason=reason,
        trace=trace,
        compared=values(by_human=facts.by_human, can_write=facts.can_write, is_open=facts.is_open),
        seal=sealed(),
    )
