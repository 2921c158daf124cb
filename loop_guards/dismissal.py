"""A human dismisses a finding. DESIGN §3.3, §3.9 and §4: the latest human act wins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.findings import FindingStatus, Severity
from loop_guards.tables import first_row


class DismissalOutcome(StrEnum):
    DISMISSED = "dismissed"
    REFUSED = "refused"


class DismissalReason(StrEnum):
    """Why a dismissal ends as it does, in the order asked."""

    NOT_HUMAN = "not_human"
    NO_WRITE_ACCESS = "no_write_access"
    NOT_OPEN = "not_open"
    ALREADY_DISMISSED = "already_dismissed"
    OWN_CRITICAL = "own_critical"
    BY_HUMAN = "by_human"


@dataclass(frozen=True, slots=True)
class DismissalFacts:
    """A finding and the person who dismisses it. `gated`: reviews of this pull request gate its
    merge. `is_author`: the person wrote the pull request. `order_pending`: an order for it waits.
    `last_of_task`: it is all that is left of its live task."""

    by_human: bool
    can_write: bool
    status: FindingStatus
    severity: Severity
    gated: bool = False
    is_author: bool = False
    order_pending: bool = False
    last_of_task: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DismissalDecision(Decision):
    """The answer to a dismissal. `withdraws_order`: the pending order ends as withdrawn.
    `empties_task`: nothing of its task is left to fix (`TaskEvent.EMPTIED_BY_HUMAN`)."""

    withdraws_order: bool = False
    empties_task: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the finding is dismissed by this act."""
        return self.outcome == DismissalOutcome.DISMISSED


def answer_dismissal(facts: DismissalFacts) -> DismissalDecision:
    """What this dismissal comes to. Behind a gate nobody waives a critical of their own."""
    own_critical = facts.gated and facts.is_author and facts.severity is Severity.CRITICAL
    done = facts.status in (FindingStatus.FIXED, FindingStatus.GONE)
    refused = DismissalOutcome.REFUSED
    outcome, reason, trace = first_row(
        (
            (not facts.by_human, refused, DismissalReason.NOT_HUMAN),
            (not facts.can_write, refused, DismissalReason.NO_WRITE_ACCESS),
            (done, refused, DismissalReason.NOT_OPEN),
            (
                facts.status is FindingStatus.DISMISSED and not facts.order_pending,
                refused,
                DismissalReason.ALREADY_DISMISSED,
            ),
            (own_critical, refused, DismissalReason.OWN_CRITICAL),
            (True, DismissalOutcome.DISMISSED, DismissalReason.BY_HUMAN),
        )
    )
    accepted = outcome is DismissalOutcome.DISMISSED
    return DismissalDecision(
        outcome=outcome,
        reason=reason,
        trace=trace,
        withdraws_order=accepted and facts.order_pending,
        empties_task=accepted and facts.last_of_task,
        compared=values(
            by_human=facts.by_human,
            can_write=facts.can_write,
            status=facts.status,
            severity=facts.severity,
            gated=facts.gated,
            is_author=facts.is_author,
            order_pending=facts.order_pending,
            last_of_task=facts.last_of_task,
        ),
        seal=sealed(),
    )
