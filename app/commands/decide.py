"""What becomes of each command. Pure: the guards answer orders, the rest is plain."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import assert_never

from app.commands.facts import Asked, KnownFinding, Ledger, Person
from app.commands.grammar import Command, Fix, Review, Unknown
from loop_guards import FindingStatus, OrderDecision, OrderFacts, PullState, answer_order


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
class HelpAnswer:
    """The command was not understood."""


Answer = ReviewAnswer | FixAnswer | HelpAnswer


def decide(asked: Asked, ledger: Ledger) -> tuple[Answer, ...]:
    """One answer per command, in order. A finding that is ordered twice is answered once."""
    answers: list[Answer] = []
    ordered: set[int] = set()
    for command in asked.commands:
        answer = _answer(command, asked, ledger, ordered)
        if isinstance(answer, FixAnswer):
            ordered.update(item.finding.id for item in answer.orders)
        answers.append(answer)
    return tuple(answers)


def _answer(command: Command, asked: Asked, ledger: Ledger, ordered: Collection[int]) -> Answer:
    match command:
        case Review():
            return ReviewAnswer(review_refused(asked.person, ledger.state))
        case Fix(short_ids):
            return _fix(short_ids, asked, ledger, ordered)
        case Unknown():
            return HelpAnswer()
        case never:
            assert_never(never)


def review_refused(person: Person, state: PullState) -> str | None:
    """Why a review that somebody asks for does not start; None: it does."""
    if not person.by_human:
        return "not_human"
    if not person.can_write:
        return "no_write_access"
    return None if state is PullState.OPEN else "closed"


def _fix(
    short_ids: tuple[str, ...], asked: Asked, ledger: Ledger, ordered: Collection[int]
) -> FixAnswer:
    known = {finding.short_id: finding for finding in ledger.findings}
    if short_ids:
        wanted = [known[name] for name in short_ids if name in known]
    else:
        wanted = [item for item in ledger.findings if item.status is FindingStatus.OPEN]
    return FixAnswer(
        orders=tuple(
            OrderAnswer(item, _order(item, asked, ledger))
            for item in wanted
            if item.id not in ordered
        ),
        unknown=tuple(name for name in short_ids if name not in known),
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
