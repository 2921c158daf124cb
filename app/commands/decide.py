"""What becomes of each command. Pure: the guards answer what people may do, the rest is plain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.commands.facts import Asked, KnownFinding, KnownTask, Ledger, Person
from app.commands.grammar import (
    Command,
    Dismiss,
    Explain,
    Fix,
    GlassNotAlone,
    Help,
    Resume,
    Review,
    Status,
    Stop,
    TooMany,
    Unfix,
    Why,
)
from loop_guards import (
    DismissalDecision,
    DismissalFacts,
    FindingStatus,
    OrderDecision,
    OrderFacts,
    PullState,
    ResumeDecision,
    ResumeFacts,
    StopDecision,
    StopFacts,
    TaskState,
    UnqueueDecision,
    UnqueueFacts,
    answer_dismissal,
    answer_order,
    answer_resume,
    answer_stop,
    answer_unqueue,
)

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """A review was asked for. `refused` is a reason code, None if it starts."""

    refused: str | None


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """One finding was ordered."""

    finding: KnownFinding
    decision: OrderDecision


@dataclass(frozen=True, slots=True)
class FixAnswer:
    """A fix was ordered. `unknown` are ids that this pull request does not have."""

    orders: tuple[OrderAnswer, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnqueueAnswer:
    """One finding was taken out of the queue, or not."""

    finding: KnownFinding
    decision: UnqueueDecision


@dataclass(frozen=True, slots=True)
class UnfixAnswer:
    """Findings were to leave the queue. `unknown` as in `FixAnswer`."""

    taken: tuple[UnqueueAnswer, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DismissAnswer:
    """A finding was dismissed, or not."""

    finding: KnownFinding
    decision: DismissalDecision
    why: str


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The lineage was stopped, or not."""

    decision: StopDecision


@dataclass(frozen=True, slots=True)
class ResumeAnswer:
    """The lineage or one task goes on, or not. `task` is the one whose escalation is named;
    `others` are escalated too and wait for a resume of their own."""

    decision: ResumeDecision
    task: KnownTask | None = None
    others: tuple[KnownTask, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainAnswer:
    """Findings are to be explained."""

    findings: tuple[KnownFinding, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """The latest decisions are to be told."""


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """It is to be told how things stand."""


@dataclass(frozen=True, slots=True)
class HelpAnswer:
    """All commands are to be told. `understood`: somebody asked for that."""

    understood: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """The command does nothing. `reason` is a code, `names` what it is about."""

    reason: str
    names: tuple[str, ...] = ()


Answer = (
    ReviewAnswer
    | FixAnswer
    | UnfixAnswer
    | DismissAnswer
    | StopAnswer
    | ResumeAnswer
    | ExplainAnswer
    | WhyAnswer
    | StatusAnswer
    | HelpAnswer
    | Refusal
)


def decide(command: Command, asked: Asked, ledger: Ledger, ordered: Collection[int] = ()) -> Answer:
    """What becomes of one command. A finding that this comment has `ordered` already is passed."""
    person = asked.person
    match command:
        case Review():
            return ReviewAnswer(review_refused(person, ledger.state))
        case Fix(short_ids):
            return _fix(short_ids, asked, ledger, ordered)
        case Unfix(short_ids):
            found, unknown = _named(short_ids, ledger)
            return UnfixAnswer(tuple(_unqueue(item, person) for item in found), unknown)
        case Dismiss():
            return _dismiss(command, asked, ledger)
        case Stop():
            return StopAnswer(
                answer_stop(StopFacts(person.by_human, person.can_write, ledger.stopped))
            )
        case Resume():
            return _resume(asked, ledger)
        case _:
            return _told(command, person, ledger)


def _told(command: Command, person: Person, ledger: Ledger) -> Answer:
    """What only asks for words is answered to those who may command: each answer is a comment."""
    if not person.can_write:
        return Refusal("no_write_access" if person.by_human else "not_human")
    match command:
        case Explain(short_ids):
            return ExplainAnswer(*_named(short_ids, ledger))
        case Why():
            return WhyAnswer()
        case Status():
            return StatusAnswer()
        case Help():
            return HelpAnswer(understood=True)
        case TooMany(count):
            return Refusal("too_many", (str(count),))
        case GlassNotAlone():
            return Refusal("glass_not_alone")
        case _:
            return HelpAnswer()


def review_refused(person: Person, state: PullState) -> str | None:
    """Why a review that somebody asks for does not start; None: it does."""
    if not person.by_human:
        return "not_human"
    if not person.can_write:
        return "no_write_access"
    return None if state is PullState.OPEN else "closed"


def _named(
    short_ids: Sequence[str], ledger: Ledger
) -> tuple[tuple[KnownFinding, ...], tuple[str, ...]]:
    """The findings of these names, and the names that this pull request does not have."""
    known = {finding.short_id: finding for finding in ledger.findings}
    found = tuple(known[name] for name in short_ids if name in known)
    return found, tuple(name for name in short_ids if name not in known)


def _fix(
    short_ids: tuple[str, ...], asked: Asked, ledger: Ledger, ordered: Collection[int]
) -> FixAnswer:
    wanted, unknown = _named(short_ids, ledger)
    if not short_ids:
        wanted = tuple(item for item in ledger.findings if item.status is FindingStatus.OPEN)
    return FixAnswer(
        orders=tuple(
            OrderAnswer(item, _order(item, asked, ledger))
            for item in wanted
            if item.id not in ordered
        ),
        unknown=unknown,
    )


def _order(finding: KnownFinding, asked: Asked, ledger: Ledger) -> OrderDecision:
    return answer_order(
        OrderFacts(
            by_human=asked.person.by_human,
            can_write=asked.person.can_write,
            pull_request=ledger.state,
            status=finding.status,
            covered_by=finding.covered_by,
            already_pending=finding.queued_by is not None,
            stopped=ledger.stopped,
        )
    )


def _unqueue(finding: KnownFinding, person: Person) -> UnqueueAnswer:
    return UnqueueAnswer(
        finding,
        answer_unqueue(
            UnqueueFacts(
                by_human=person.by_human,
                can_write=person.can_write,
                order_pending=finding.queued_by is not None,
                covered_by=finding.covered_by,
                last_of_task=finding.last_of_task,
            )
        ),
    )


def _dismiss(command: Dismiss, asked: Asked, ledger: Ledger) -> Answer:
    """A reason is asked of those who may dismiss; others learn that they may not."""
    found, unknown = _named((command.short_id,), ledger)
    if asked.person.can_write and unknown:
        return Refusal("no_such_finding", unknown)
    if asked.person.can_write and not command.why:
        return Refusal("no_reason", (command.short_id,))
    if not found:
        return Refusal("no_write_access")
    (finding,) = found
    return DismissAnswer(finding, _dismissal(finding, asked, ledger), command.why)


def _dismissal(finding: KnownFinding, asked: Asked, ledger: Ledger) -> DismissalDecision:
    return answer_dismissal(
        DismissalFacts(
            by_human=asked.person.by_human,
            can_write=asked.person.can_write,
            status=finding.status,
            severity=finding.severity,
            gated=asked.gated or ledger.own_task_id is not None,
            is_author=asked.person.account.id == asked.pull_request.author.id,
            order_pending=finding.queued_by is not None,
            last_of_task=finding.last_of_task,
        )
    )


def _resume(asked: Asked, ledger: Ledger) -> ResumeAnswer:
    """On a fix pull request its own task is meant; elsewhere the only escalated one, if it is."""
    escalated = [task for task in ledger.tasks if task.state is TaskState.ESCALATED]
    if ledger.own_task_id is not None:
        task = next((task for task in ledger.tasks if task.id == ledger.own_task_id), None)
    else:
        task = escalated[0] if len(escalated) == 1 else None
    facts = ResumeFacts(
        by_human=asked.person.by_human,
        can_write=asked.person.can_write,
        stopped=ledger.stopped,
        task=task.state if task else None,
        anything_deferred=ledger.deferred,
    )
    return ResumeAnswer(
        answer_resume(facts, asked.limits),
        task,
        tuple(other for other in escalated if other != task),
    )
