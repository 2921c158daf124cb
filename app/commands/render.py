"""Every sentence that answers a command. Pure: values in, Markdown out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from app.agents.sanitise import outgoing_failure, outgoing_line
from app.commands.decide import (
    Answer,
    DismissAnswer,
    ExplainAnswer,
    FixAnswer,
    HelpAnswer,
    OrderAnswer,
    Refusal,
    ResumeAnswer,
    ReviewAnswer,
    StatusAnswer,
    StopAnswer,
    UnfixAnswer,
    UnqueueAnswer,
    WhyAnswer,
)
from app.commands.facts import Asked, Ledger, Person, Standing, Story
from app.commands.render_told import HELP, explain, status, why
from loop_guards import (
    DismissalReason,
    GlassDecision,
    GlassReason,
    OrderReason,
    ResumeReason,
    StopReason,
    UnqueueReason,
)

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
_UNQUEUES = {
    UnqueueReason.NOT_HUMAN: "refused: only a person can take it out of the queue",
    UnqueueReason.NO_WRITE_ACCESS: "refused: this needs write access to the repository",
    UnqueueReason.ORDER_PENDING: "is no longer queued",
    UnqueueReason.LAST_OF_TASK: "was the last finding of its fix, which is over with it",
    UnqueueReason.OF_LIVE_TASK: "leaves its fix, which goes on without it",
    UnqueueReason.NOT_QUEUED: "refused: it is neither queued nor in a fix that goes on",
}
_DISMISSALS = {
    DismissalReason.NOT_HUMAN: "is not dismissed: only a person can do that",
    DismissalReason.NO_WRITE_ACCESS: "is not dismissed: this needs write access to the repository",
    DismissalReason.NOT_OPEN: "is not dismissed: it is fixed or gone already",
    DismissalReason.ALREADY_DISMISSED: "is dismissed already",
    DismissalReason.OWN_CRITICAL: (
        "is not dismissed: where reviews gate the merge, authors can't waive a critical finding of "
        "their own. Somebody else with write access can"
    ),
    DismissalReason.BY_HUMAN: "is dismissed",
}
_STOPS = {
    StopReason.NOT_HUMAN: "Not stopped: only a person can do that.",
    StopReason.NO_WRITE_ACCESS: "Not stopped: this needs write access to the repository.",
    StopReason.ALREADY_STOPPED: "Automation is stopped here already.",
    StopReason.BY_HUMAN: (
        "Automation is stopped: no fixer's turn and no review that a machine asks for starts here. "
        "Orders are kept. `/mergeward resume` goes on."
    ),
}
_RESUMES = {
    ResumeReason.NOT_HUMAN: "Not resumed: only a person can do that.",
    ResumeReason.NO_WRITE_ACCESS: "Not resumed: this needs write access to the repository.",
    ResumeReason.KILL_SWITCH: "Not resumed: all automation is switched off.",
    ResumeReason.TASK_ESCALATED: "The fix that waited for a person goes on",
    ResumeReason.STOPPED: "Automation goes on here.",
    ResumeReason.DEFERRED: "What waited here is asked about again.",
    ResumeReason.ALREADY_RESUMED: "Not resumed: the fix waits for nobody.",
    ResumeReason.NOT_STOPPED: "Not resumed: nothing is stopped here, and nothing waits.",
}
_REFUSALS = {
    "not_human": "Refused: only a person can command.",
    "no_write_access": "Refused: commands need write access to the repository.",
    "no_such_finding": "There is no such finding here: {}.",
    "no_reason": "{0} is not dismissed: say why, as in `/mergeward dismiss {0} it is a test file`.",
    "too_many": "{} more commands of this comment were not carried out: they are too many for one.",
    "glass_not_alone": (
        "Nothing was approved by force: breaking the glass is a comment that holds nothing else. "
        "The commands below it are answered here."
    ),
}
_GLASS = {
    GlassReason.NOT_HUMAN: "Not approved by force: only a person can do that.",
    GlassReason.NO_WRITE_ACCESS: (
        "Not approved by force: this needs write access to the repository."
    ),
    GlassReason.NOT_OPEN: "Not approved by force: the pull request is not open.",
    GlassReason.BY_HUMAN: (
        "**Approved by force** by {}, for `{}` alone: a later push needs a new one. A review of "
        "this head still says what it finds. This is on record."
    ),
}
_NOT_UNDERSTOOD = "That was not understood."


@dataclass(frozen=True, slots=True)
class Told:
    """What the ledger has to tell for an answer."""

    stories: tuple[Story, ...] = ()
    standing: Standing | None = None


def with_note(rendered: str, person: Person) -> str:
    """The whole answer, with what kept us from knowing whether the person may command."""
    if not person.unknown:
        return rendered
    note = "GitHub refuses to say what you may do here, so nothing was carried out. Ask again, or "
    return f"{note}ask whoever installed Mergeward to look at its log.\n\n{rendered}"


def failed(why: str) -> str:
    """What is said of a comment whose commands could not be carried out."""
    return f"Nothing was carried out; say it again later. {outgoing_failure(why)}"


def reply(answer: Answer, asked: Asked, ledger: Ledger, told: Told) -> str:
    """What became of one command, and why."""
    author = asked.person.account.login
    match answer:
        case ReviewAnswer(refused):
            return _REVIEWS[refused] if refused else _review_starts(author)
        case ExplainAnswer(_, unknown):
            parts = [explain(story, ledger) for story in told.stories]
            return "\n\n---\n\n".join([*parts, *_no_such(unknown)])
        case StatusAnswer():
            return status(asked, ledger, told.standing or Standing())
        case WhyAnswer():
            return why(told.standing or Standing())
        case HelpAnswer(understood):
            return HELP if understood else f"{_NOT_UNDERSTOOD} {HELP}"
        case Refusal(reason, names):
            return _REFUSALS[reason].format(*names)
        case _:
            return _acted(answer, author)


def glass_answer(decision: GlassDecision, person: Person, head_sha: str) -> str:
    """What became of breaking the glass."""
    text = _GLASS[GlassReason(decision.reason)]
    said = text.format(outgoing_line(person.account.login), head_sha[:10])
    return with_note(said, person)


def forced_title(login: str) -> str:
    """The title of a check that somebody made green."""
    return f"Approved by force by {outgoing_line(login)}"


def forced_review(login: str, why: str) -> str:
    """Who approved the head by force, and why."""
    reason = f" The reason: {outgoing_line(why)}" if why else " No reason was given."
    return f"{forced_title(login)}, whatever a review says of this head.{reason}"


def _acted(
    answer: FixAnswer | UnfixAnswer | DismissAnswer | StopAnswer | ResumeAnswer, author: str
) -> str:
    match answer:
        case FixAnswer(orders, unknown):
            lines = [*map(_order, orders), *_no_such(unknown)]
            return "\n".join(lines) or "There are no open findings here to fix."
        case UnfixAnswer(taken, unknown):
            return "\n".join([*map(_unqueue, taken), *_no_such(unknown)])
        case DismissAnswer():
            return _dismissed(answer, author)
        case StopAnswer(decision):
            return _STOPS[StopReason(decision.reason)]
        case ResumeAnswer():
            return _resumed(answer)
        case never:
            assert_never(never)


def _review_starts(author: str) -> str:
    return f"A review of the present head starts, asked for by {outgoing_line(author)}."


def _no_such(names: tuple[str, ...]) -> list[str]:
    """Ids that do not exist, as a line of a list."""
    if not names:
        return []
    more = len(names) - _MOST_NAMED
    named = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return [f"- There is no such finding here: {named}."]


def _unqueue(item: UnqueueAnswer) -> str:
    text = _UNQUEUES[UnqueueReason(item.decision.reason)]
    return f"- **{item.finding.short_id}** {text}."


def _dismissed(answer: DismissAnswer, author: str) -> str:
    text = f"**{answer.finding.short_id}** {_DISMISSALS[DismissalReason(answer.decision.reason)]}"
    if not answer.decision.accepted:
        return f"{text}."
    return (
        f"{text} by {outgoing_line(author)}: {outgoing_line(answer.why)}\n\n"
        "It is not raised again in this repository until its code changes. The next review says "
        "what that means for the verdict; `/mergeward review` asks for one."
    )


def _resumed(answer: ResumeAnswer) -> str:
    reason = ResumeReason(answer.decision.reason)
    text = _RESUMES[reason]
    if reason is ResumeReason.TASK_ESCALATED:
        where = f" in #{answer.task.fix_number}" if answer.task and answer.task.fix_number else ""
        text = f"{text}{where}, with {answer.decision.rounds} more rounds."
    wait = [f"#{task.fix_number}" for task in answer.others if task.fix_number is not None]
    if wait:
        text = f"{text} Each of these waits for a resume of its own: {', '.join(wait)}."
    return text


def _order(item: OrderAnswer) -> str:
    reason = OrderReason(item.decision.reason)
    text = _ORDERS[reason]
    if reason is OrderReason.ALREADY_QUEUED and item.finding.queued_by:
        text = f"{text} by {outgoing_line(item.finding.queued_by)}"
    if item.finding.fix_number is not None and reason is OrderReason.LIVE_TASK:
        text = f"{text} in #{item.finding.fix_number}"
    return f"- **{item.finding.short_id}** {text}."
