"""What happens to an open review thread in one round: exactly one action. DESIGN §3.6."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.limits import Limits
from loop_guards.tables import first_row


class ThreadAction(StrEnum):
    """RESOLVE: fixed on evidence. REPLY: answer a human. YIELD: leave it to the human. KEEP."""

    RESOLVE = "resolve"
    REPLY = "reply"
    YIELD = "yield"
    KEEP = "keep"


class ThreadReason(StrEnum):
    """Why a thread gets its action."""

    FIXED = "fixed"
    HUMAN_DISAGREES = "human_disagrees"
    REPLIES_USED = "replies_used"
    STILL_THERE = "still_there"


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    """An open thread after a round. `fixed` is what `judge_fixed` said of its finding.

    `disagreement`: a human's last word in it disagrees and is not answered yet. A bot's comment is
    never one. `our_replies` counts our answers in it, the opening comment left out.
    """

    fixed: bool
    disagreement: bool
    our_replies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDecision(Decision):
    """The one action."""

    @property
    def action(self) -> ThreadAction:
        """What to do with the thread."""
        return ThreadAction(self.outcome)


def decide_thread(facts: ThreadFacts, limits: Limits) -> ThreadDecision:
    """Exactly one action for every thread and round."""
    used_up = facts.our_replies >= limits.thread_replies
    rows = (
        (facts.fixed, ThreadAction.RESOLVE, ThreadReason.FIXED),
        (facts.disagreement and used_up, ThreadAction.YIELD, ThreadReason.REPLIES_USED),
        (facts.disagreement, ThreadAction.REPLY, ThreadReason.HUMAN_DISAGREES),
        (True, ThreadAction.KEEP, ThreadReason.STILL_THERE),
    )
    action, reason, trace = first_row(rows)
    return ThreadDecision(
        outcome=action,
        reason=reason,
        compared=values(
            fixed=facts.fixed,
            disagreement=facts.disagreement,
            our_replies=facts.our_replies,
            thread_replies=limits.thread_replies,
        ),
        trace=trace,
        seal=sealed(),
    )
