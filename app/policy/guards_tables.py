"""The tables of the page of the guards: each is what the guards answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum

import loop_guards as guards
from app.policy.guards_meanings import MEANINGS, Meanings
from app.policy.guards_questions import LIMITS, Question, every, moves, review_starts
from app.policy.guards_text import listed, table
from loop_guards import TaskDecision, TaskEvent, TaskFacts, TaskReason, TaskState

_MANY = 6
"""From so many events on, a cell says how many there are."""


def meanings_of(reasons: type[StrEnum], words: Meanings = MEANINGS) -> Mapping[str, str]:
    """What each member means. Raises ValueError when one has no meaning, or a meaning no member."""
    said = words.get(reasons, {})
    odd = sorted({str(reason) for reason in reasons} ^ set(said))
    if odd:
        raise ValueError(f"app/policy/guards_meanings.py: {reasons.__name__} is wrong about {odd}")
    return said


def reasons_table(question: Question) -> str:
    """Guards in the order they are asked, with every reason, its outcomes and its meaning.

    Raises ValueError when no answer has one of the reasons: then facts are missing.
    """
    meanings = meanings_of(question.reasons)
    rows = reason_rows(question)
    places = {guard: place for place, guard in enumerate(dict.fromkeys(row[0] for row in rows), 1)}
    named = any(guard not in ("", reason) for guard, reason, _ in rows)
    heads = ("#", *(("guard",) if named else ()), "reason", "outcome", "meaning")
    lines = (
        (
            str(places[guard]) if guard else "else",
            *((f"`{guard}`" if guard else "",) if named else ()),
            f"`{reason}`",
            listed(outcomes) or "beside another",
            meanings[reason],
        )
        for guard, reason, outcomes in rows
    )
    return table(heads, lines)


def reason_rows(question: Question) -> list[tuple[str, str, tuple[str, ...]]]:
    """Guard, reason and outcomes; what no guard says (nothing held) comes last, without one."""
    decisions = tuple(question.decisions())
    outcomes: dict[str, set[str]] = defaultdict(set)
    spoken: dict[str, set[str]] = defaultdict(set)
    seen: set[str] = set()
    for said in decisions:
        outcomes[str(said.reason)].add(str(said.outcome))
        seen |= {str(said.reason), *map(str, said.reasons)}
        for asked in said.trace:
            spoken[str(asked.guard)] |= {str(asked.reason)} - {"None"}
    missing = [str(reason) for reason in question.reasons if reason not in seen]
    if missing:
        raise ValueError(f"app/policy/guards_questions.py: {question.ask.__name__}: {missing}")
    asked_in_order = max((said.trace for said in decisions), key=len)
    said_by = [
        (str(asked.guard), str(reason))
        for asked in asked_in_order
        for reason in question.reasons
        if reason in spoken[str(asked.guard)]
    ]
    by_guard = {reason for _, reason in said_by}
    rest = [("", str(reason)) for reason in question.reasons if reason not in by_guard]
    return [
        (guard, reason, tuple(str(one) for one in question.outcomes if one in outcomes[reason]))
        for guard, reason in (*said_by, *rest)
    ]


def starters_table() -> str:
    """For each reason not to review: whom it stops."""
    stopped: dict[str, list[bool]] = {}
    asks = [
        [
            guards.may_review(facts, LIMITS)
            for facts in review_starts(by_human=human, commanded=said)
        ]
        for human, said in ((False, False), (True, False), (True, True))
    ]
    for answers in zip(*asks, strict=True):
        if not answers[0].allowed:
            stopped[answers[0].reason] = [not answer.allowed for answer in answers]
    order = [reason for reason in guards.ReviewReason if reason in stopped]
    rows = (
        (f"`{reason}`", *("stops" if one else "" for one in stopped[reason])) for reason in order
    )
    return table(("reason", "a machine's act", "a person's act", "a person's command"), rows)


def acts_table() -> str:
    """What an order, an unqueue, a stop and a resume come to in each state."""
    merged = guards.OrderFacts(
        by_human=True,
        can_write=True,
        pull_request=guards.PullState.MERGED,
        status=guards.FindingStatus.OPEN,
    )
    states = {
        "pull request open": replace(merged, pull_request=guards.PullState.OPEN),
        "closed, not merged": replace(merged, pull_request=guards.PullState.CLOSED),
        "merged, never in a task": merged,
        **{f"task {state}": replace(merged, covered_by=state) for state in TaskState},
        "merged, finding fixed": replace(merged, status=guards.FindingStatus.FIXED),
        "merged, lineage stopped": replace(merged, stopped=True),
        "merged, kill switch on": replace(merged, kill_switch=True),
    }
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, facts in states.items():
        alike.setdefault(tuple(_acts_in(facts)), []).append(name)
    heads = (
        "state", "order", "order again", "unqueue", "unqueue its last", "unqueue a waiting order",
        "dismiss", "stop", "resume", "resume again",
    )  # fmt: skip
    return table(heads, ((", ".join(names), *cells) for cells, names in alike.items()))


def _acts_in(facts: guards.OrderFacts) -> Iterator[str]:
    unqueue = guards.UnqueueFacts(
        by_human=True, can_write=True, order_pending=False, covered_by=facts.covered_by
    )
    resume = guards.ResumeFacts(
        by_human=True,
        can_write=True,
        stopped=facts.stopped,
        kill_switch=facts.kill_switch,
        task=facts.covered_by,
    )
    answers = (
        guards.answer_order(facts),
        guards.answer_order(replace(facts, already_pending=True)),
        guards.answer_unqueue(unqueue),
        guards.answer_unqueue(replace(unqueue, last_of_task=True)),
        guards.answer_unqueue(replace(unqueue, order_pending=True)),
        guards.answer_dismissal(
            guards.DismissalFacts(
                by_human=True,
                can_write=True,
                status=facts.status,
                severity=guards.Severity.WARNING,
            )
        ),
        guards.answer_stop(guards.StopFacts(by_human=True, can_write=True, stopped=facts.stopped)),
        guards.answer_resume(resume, LIMITS),
        guards.answer_resume(replace(resume, is_current=False), LIMITS),
    )
    return (f"{answer.outcome} ({answer.reason})" for answer in answers)


def moves_table() -> str:
    """States that behave alike share a column."""
    columns = {
        state: tuple(_cell(_answers(event, state)) for event in TaskEvent) for state in TaskState
    }
    alike: dict[tuple[str, ...], list[TaskState]] = {}
    for state, column in columns.items():
        alike.setdefault(column, []).append(state)
    heads = ("event", *(", ".join(states) for states in alike.values()))
    rows = (
        (f"`{event}`", *(column[place] for column in alike))
        for place, event in enumerate(TaskEvent)
    )
    return table(heads, rows)


def _answers(event: TaskEvent, state: TaskState) -> dict[TaskFacts, TaskDecision]:
    return {facts: guards.move_task(facts, event) for facts in every(TaskFacts, state=(state,))}


def _cell(answers: Mapping[TaskFacts, TaskDecision]) -> str:
    after = {answer.state for answer in answers.values() if answer.moved}
    stays = any(not answer.moved for answer in answers.values())
    words = [str(state) for state in TaskState if state in after]
    return " / ".join([*words, *(["·"] if stays else [])])


def moves_when() -> str:
    """The pairs of event and state whose answer depends on more than the state."""
    alike = defaultdict(list)
    for event in TaskEvent:
        for state in TaskState:
            for path, answer in _leaves(_answers(event, state)):
                alike[event, path, _after(answer), answer.reason].append(state)
    rows = (
        (f"`{event}`", ", ".join(states), ", ".join(path), after, f"`{reason}`")
        for (event, path, after, reason), states in alike.items()
        if path
    )
    return table(("event", "state", "if", "then", "reason"), rows)


def _after(answer: TaskDecision) -> str:
    return str(answer.state) if answer.moved else "·"


def _leaves(
    answers: Mapping[TaskFacts, TaskDecision], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], TaskDecision]]:
    """A decision tree over the flags: at each fork the flag that settles most on one side."""
    said = {(answer.state, answer.reason) for answer in answers.values()}
    if len(said) == 1:
        yield path, next(iter(answers.values()))
        return
    forks = [_fork(answers, flag) for flag in _flags()]
    useful = [fork for fork in forks if fork[1] and fork[2]]
    flag, on, off = min(useful, key=lambda fork: _unsettled(fork[1:]))
    yield from _leaves(on, (*path, f"`{flag}`"))
    yield from _leaves(off, (*path, f"not `{flag}`"))


_Fork = tuple[str, dict[TaskFacts, TaskDecision], dict[TaskFacts, TaskDecision]]


def _flags() -> tuple[str, ...]:
    return tuple(item.name for item in fields(TaskFacts) if item.name != "state")


def _fork(answers: Mapping[TaskFacts, TaskDecision], flag: str) -> _Fork:
    on = {facts: said for facts, said in answers.items() if getattr(facts, flag)}
    off = {facts: said for facts, said in answers.items() if not getattr(facts, flag)}
    return flag, on, off


def _unsettled(sides: Sequence[Mapping[TaskFacts, TaskDecision]]) -> int:
    return sum(len({(said.state, said.reason) for said in side.values()}) - 1 for side in sides)


def moves_reasons() -> str:
    """Each reason of `move_task`: by which events, to which states. Raises like `reasons_table`."""
    meanings = meanings_of(TaskReason)
    events, states = defaultdict(set), defaultdict(set)
    for move in moves():
        events[move.reason].add(str(move.compared["event"]))
        states[move.reason].add(str(move.state) if move.moved else "as before")
    missing = [str(reason) for reason in TaskReason if reason not in events]
    if missing:
        raise ValueError(f"app/policy/guards_questions.py: move_task: {missing}")
    rows = (
        (
            f"`{reason}`",
            _events(events[reason]),
            ", ".join(sorted(states[reason])),
            meanings[reason],
        )
        for reason in TaskReason
    )
    return table(("reason", "events", "state after", "meaning"), rows)


def _events(names: set[str]) -> str:
    if len(names) > _MANY:
        return f"{len(names)} of {len(TaskEvent)}"
    return listed(str(event) for event in TaskEvent if event in names)
