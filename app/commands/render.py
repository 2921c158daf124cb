"""Every sentence that answers a command. Pure: values in, Markdown out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from app.agents.sanitise import outgoing_line
from app.commands.decide import Answer, FixAnswer, HelpAnswer, OrderAnswer, ReviewAnswer
from loop_guards import OrderReason

_MOST_NAMED = 20
"""Ids that are repeated to somebody who named ones that do not exist."""

_ORDERS = {
    OrderReason.NOT_HUMAN: "refused: only a person can order a fix",
    OrderReason.NO_WRITE_ACCESS: "refused: this needs write access to the repository",
    OrderReason.NOT_MERGED: "refused: the pull request was closed without a merge",
    OrderReason.NOT_OPEN: "refused: it is fixed, or gone from the merged files",
    OrderReason.ALREADY_QUEUED: "refused: it is queued already",
    OrderReason.LIVE_TASK: "refused: a fix for it is under way",
    OrderReason.STOPPED: "kept, but automation is stopped here; it goes on at a resume",
    OrderReason.TASK_ESCALATED: "its fix was waiting for a person and goes on now",
    OrderReason.WAITS_FOR_MERGE: "queued; it goes to the fixer when this pull request is merged",
    OrderReason.MERGED: "goes to the fixer now",
}
_REVIEWS = {
    "not_human": "No review: only a person can ask for one.",
    "no_write_access": "No review: asking for one needs write access to the repository.",
    "closed": "No review: the pull request is closed.",
}
_HELP = (
    "That was not understood. A line of its own may say `/mergeward review`, "
    "`/mergeward fix F1 F2` or `/mergeward fix all`."
)


def reply(answers: Sequence[Answer], author: str) -> str:
    """The one answer to a comment: what became of each command, and why."""
    return "\n\n".join(_said(answer, author) for answer in answers)


def _said(answer: Answer, author: str) -> str:
    match answer:
        case ReviewAnswer(refused):
            return _REVIEWS[refused] if refused else _review_starts(author)
        case FixAnswer():
            return _fix(answer)
        case HelpAnswer():
            return _HELP
        case never:
            assert_never(never)


def _review_starts(author: str) -> str:
    return f"A review of the present head starts, asked for by {outgoing_line(author)}."


def _fix(answer: FixAnswer) -> str:
    lines = [_order(item) for item in answer.orders]
    if answer.unknown:
        more = len(answer.unknown) - _MOST_NAMED
        named = ", ".join(answer.unknown[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"- There is no such finding here: {named}.")
    return "\n".join(lines) or "There are no open findings here to fix."


def _order(item: OrderAnswer) -> str:
    reason = OrderReason(item.decision.reason)
    text = _ORDERS[reason]
    if reason is OrderReason.ALREADY_QUEUED and item.finding.queued_by:
        text = f"{text} by {outgoing_line(item.finding.queued_by)}"
    if item.finding.fix_number is not None and reason is OrderReason.LIVE_TASK:
        text = f"{text} in #{item.finding.fix_number}"
    return f"- **{item.finding.short_id}** {text}."
