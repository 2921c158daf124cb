"""What a command is answered. Pure: values in, Markdown out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.agents.sanitise import outgoing
from loop_guards import OrderDecision, OrderOutcome, OrderReason


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """What became of the order for one finding. `decision` None: there is no such finding."""

    short_id: str
    title: str
    decision: OrderDecision | None


_ORDERS = {
    OrderReason.NOT_HUMAN: "only people can order a fix",
    OrderReason.NO_WRITE_ACCESS: "this needs write access to the repository",
    OrderReason.NOT_MERGED: "this pull request was closed without a merge",
    OrderReason.NOT_OPEN: "it is fixed or gone already",
    OrderReason.ALREADY_QUEUED: "it is queued already",
    OrderReason.LIVE_TASK: "a fix task covers it already",
    OrderReason.STOPPED: "kept, but the automation is stopped here; it is looked at on resume",
    OrderReason.TASK_ESCALATED: "its fix goes on with half the rounds of a new one",
    OrderReason.WAITS_FOR_MERGE: "queued; it is handed to the fixer when this is merged",
    OrderReason.MERGED: "handed to the fixer now",
}

HELP = (
    "I understand these, each on a line of its own:\n\n"
    "- `review`: review the present head\n"
    "- `fix F1 F3` or `fix all`: queue findings for the fixer\n\n"
    "Write the name of this App with a slash in front, then the command."
)


def orders_text(answers: Sequence[OrderAnswer]) -> str:
    """One line per finding: what became of the order, and why."""
    if not answers:
        return "There is no open finding to fix."
    return "\n".join(_order_line(answer) for answer in answers)


def _order_line(answer: OrderAnswer) -> str:
    if answer.decision is None:
        return f"- **{answer.short_id}**: refused, there is no such finding here."
    reason = str(answer.decision.reason)
    known = reason in frozenset(OrderReason)
    why = _ORDERS.get(OrderReason(reason), reason) if known else reason.replace("_", " ")
    refused = "refused, " if answer.decision.outcome == OrderOutcome.REFUSED else ""
    return f"- **{answer.short_id}** {outgoing(answer.title)}: {refused}{why}."


def review_text(head_sha: str) -> str:
    return f"Reviewing `{head_sha[:10]}`."


def refused_text(reason: str) -> str:
    """Why somebody's command is not carried out."""
    return f"Refused: {_ORDERS.get(OrderReason(reason), reason)}."


def unknown_text(text: str) -> str:
    """What is said to a command nobody knows."""
    shown = outgoing(text.replace("`", "'"))
    return f"I don't know `{shown}`.\n\n{HELP}" if text else HELP
