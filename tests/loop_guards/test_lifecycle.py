"""The life of a fix task: every state, every event. DESIGN §3.2, §3.4 and §3.9."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from loop_guards import (
    AfterRoundFacts,
    NextOutcome,
    NextReason,
    TaskEvent,
    TaskFacts,
    TaskReason,
    TaskState,
    after_round,
    event_after_round,
    move_task,
)
from tests.loop_guards.factories import LIMITS, PATIENT, after, anything, task

S, E, R = TaskState, TaskEvent, TaskReason

# A cell is the state after the event; "=" the event counts but the state stays, "." it means
# nothing now, "-" the task is over, "held" and "superseded" are refusals with their own reasons.
NOTHING_PROPOSED = """
event                     waiting   queued    fixing    reviewing approved  escalated
lease_free                queued    .         .         .         .         .
turn_begun                .         fixing    .         .         .         .
turn_done                 .         .         reviewing .         .         .
turn_empty                .         .         declined  .         .         .
turn_failed               .         failed    failed    .         .         .
silence                   .         failed    failed    .         .         .
emptied_by_base           obsolete  obsolete  obsolete  obsolete  obsolete  obsolete
emptied_by_human          withdrawn withdrawn withdrawn withdrawn withdrawn withdrawn
first_call                .         .         .         .         .         .
approve                   .         .         .         approved  .         .
turn                      .         .         .         queued    .         .
round                     .         .         .         =         .         .
escalate                  .         escalated .         escalated .         .
wait                      .         .         .         =         .         .
stop                      .         .         queued    .         .         .
pull_merged               merged    merged    merged    merged    merged    merged
pull_closed_by_human      closed    closed    closed    closed    closed    closed
pull_closed_by_machine    failed    failed    failed    failed    failed    failed
pull_reopened_by_human    .         .         .         .         .         .
pull_reopened_by_machine  .         .         .         .         .         .
resume                    .         .         .         .         .         queued

event                     merged    closed    declined  failed    obsolete  withdrawn
lease_free                -         -         -         -         -         -
turn_begun                -         -         -         -         -         -
turn_done                 -         -         -         -         -         -
turn_empty                -         -         -         -         -         -
turn_failed               -         -         -         -         -         -
silence                   -         -         -         -         -         -
emptied_by_base           -         -         -         -         -         -
emptied_by_human          -         -         -         -         -         -
first_call                -         -         -         -         -         -
approve                   -         -         -         -         -         -
turn                      -         -         -         -         -         -
round                     -         -         -         -         -         -
escalate                  -         -         -         -         -         -
wait                      -         -         -         -         -         -
stop                      -         -         -         -         -         -
pull_merged               -         -         -         -         -         -
pull_closed_by_human      -         -         -         -         -         -
pull_closed_by_machine    -         -         -         -         -         -
pull_reopened_by_human    -         queued    -         -         -         -
pull_reopened_by_machine  -         failed    -         -         -         -
resume                    -         -         -         -         -         -
"""

# Rows that are not as above, in each situation.
A_FIX_IS_PROPOSED = """
event                     waiting   queued    fixing    reviewing approved  escalated
turn_empty                .         .         reviewing .         .         .
emptied_by_base           .         reviewing reviewing .         .         .
emptied_by_human          .         reviewing reviewing .         .         .
first_call                .         reviewing .         =         reviewing .
"""
PROPOSED_AND_NOTHING_BLOCKS = f"""{A_FIX_IS_PROPOSED}
lease_free                reviewing .         .         .         .         .
resume                    .         .         .         .         .         reviewing

event                     merged    closed    declined  failed    obsolete  withdrawn
pull_reopened_by_human    -         reviewing -         -         -         -
"""
A_PATH_IS_TAKEN = """
event                     waiting   queued    fixing    reviewing approved  escalated
lease_free                held      .         .         .         .         .
resume                    .         .         .         .         .         waiting

event                     merged    closed    declined  failed    obsolete  withdrawn
pull_reopened_by_human    -         waiting   -         -         -         -
"""
SUPERSEDED = """
event                     merged    closed    declined  failed    obsolete  withdrawn
pull_reopened_by_human    -         superseded -        -         -         -
"""

Cells = dict[tuple[TaskState, TaskEvent], str]


def cells(text: str) -> Cells:
    """The cells of the tables in `text`, by state and event."""
    found: Cells = {}
    states: list[TaskState] = []
    for line in filter(None, text.splitlines()):
        name, *words = line.split()
        if name == "event":
            states = [TaskState(word) for word in words]
            continue
        found |= {(s, TaskEvent(name)): word for s, word in zip(states, words, strict=True)}
    return found


SITUATIONS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("nothing proposed", {}, ()),
    ("nothing proposed, nothing blocks", {"anything_blocks": False}, ()),
    ("a fix is proposed", {"has_fix_pr": True}, (A_FIX_IS_PROPOSED,)),
    (
        "proposed, nothing blocks",
        {"has_fix_pr": True, "anything_blocks": False},
        (PROPOSED_AND_NOTHING_BLOCKS,),
    ),
    ("a path is taken", {"paths_free": False}, (A_PATH_IS_TAKEN,)),
    (
        "proposed, nothing blocks, a path is taken",
        {"has_fix_pr": True, "anything_blocks": False, "paths_free": False},
        (PROPOSED_AND_NOTHING_BLOCKS, A_PATH_IS_TAKEN),
    ),
    ("superseded", {"superseded": True}, (SUPERSEDED,)),
    (
        "proposed, superseded, a path is taken",
        {"has_fix_pr": True, "superseded": True, "paths_free": False},
        (A_FIX_IS_PROPOSED, A_PATH_IS_TAKEN, SUPERSEDED),
    ),
]


def row(event: TaskEvent, changes: tuple[str, ...]) -> dict[TaskState, str]:
    """The cell of every state in an event's row; later tables overrule earlier ones."""
    tables = [cells(text) for text in (NOTHING_PROPOSED, *changes)]
    return {
        state: [each[state, event] for each in tables if (state, event) in each][-1] for state in S
    }


ROWS = [
    pytest.param(facts, event, row(event, changes), id=f"{name}: {event}")
    for name, facts, changes in SITUATIONS
    for event in E
]

# Why a task moves, by event; where that is not all, by event and state.
WHY: dict[TaskEvent, TaskReason] = {
    E.LEASE_FREE: R.LEASE_TAKEN,
    E.TURN_BEGUN: R.TURN_BEGUN,
    E.TURN_DONE: R.TURN_DONE,
    E.TURN_EMPTY: R.NOTHING_CHANGED,
    E.TURN_FAILED: R.TURN_FAILED,
    E.SILENCE: R.SILENT,
    E.EMPTIED_BY_BASE: R.NOTHING_LEFT,
    E.EMPTIED_BY_HUMAN: R.NOTHING_LEFT,
    E.FIRST_CALL: R.ROUND_BEGUN,
    E.APPROVE: R.APPROVED,
    E.TURN: R.TURN_WANTED,
    E.ROUND: R.ROUND_WANTED,
    E.ESCALATE: R.ESCALATED,
    E.WAIT: R.STOPPED,
    E.STOP: R.STOPPED,
    E.PULL_MERGED: R.FIX_MERGED,
    E.PULL_CLOSED_BY_HUMAN: R.CLOSED_BY_HUMAN,
    E.PULL_CLOSED_BY_MACHINE: R.CLOSED_BY_MACHINE,
    E.PULL_REOPENED_BY_HUMAN: R.RESUMED,
    E.PULL_REOPENED_BY_MACHINE: R.REOPENED_BY_MACHINE,
    E.RESUME: R.RESUMED,
}
WHY_BY_STATE: dict[tuple[TaskEvent, str], TaskReason] = {
    (E.EMPTIED_BY_HUMAN, "withdrawn"): R.WITHDRAWN,
}
REFUSALS = {
    ".": R.NOT_NOW,
    "-": R.TASK_OVER,
    "held": R.LEASE_HELD,
    "superseded": R.SUPERSEDED,
}


def meaning(state: TaskState, event: TaskEvent, cell: str) -> tuple[str, str, bool]:
    """State after the event, reason, and whether the task moved, as a cell says it."""
    if cell in REFUSALS:
        return state, REFUSALS[cell], False
    return (state if cell == "=" else cell), WHY_BY_STATE.get((event, cell), WHY[event]), True


@pytest.mark.parametrize(("facts", "event", "cells_of_row"), ROWS)
def test_every_event_in_every_state(
    facts: dict[str, Any], event: TaskEvent, cells_of_row: dict[TaskState, str]
) -> None:
    """The table is the life of a task: where each event leads from each state, and why."""
    answers = {state: move_task(task(state, **facts), event) for state in S}
    assert {state: (a.state, a.reason, a.moved) for state, a in answers.items()} == {
        state: meaning(state, event, cell) for state, cell in cells_of_row.items()
    }
    for state, answer in answers.items():
        assert (answer.outcome, answer.before) == (answer.state, state)
        # Words of both enums can be equal.
        assert (type(answer.state), type(answer.reason)) == (TaskState, TaskReason)


def test_the_table_has_every_pair() -> None:
    """12 states and 21 events: none is left out."""
    assert set(cells(NOTHING_PROPOSED)) == {(state, event) for state in S for event in E}
    assert len(cells(NOTHING_PROPOSED)) == 12 * 21


def test_every_reason_of_the_life_is_in_the_table() -> None:
    """No reason is left that no event gives."""
    assert {*WHY.values(), *WHY_BY_STATE.values(), *REFUSALS.values()} == set(TaskReason)


@PATIENT
@given(anything(TaskFacts), anything(TaskEvent))
def test_what_is_over_stays_over(facts: TaskFacts, event: TaskEvent) -> None:
    """Only a fix pull request that a person closed comes back, and only by a person's reopening;
    reopened by a machine it has failed for good."""
    if facts.state.is_live:
        return
    decision = move_task(facts, event)
    if decision.state is facts.state:
        return
    assert facts.state is S.CLOSED
    if event is E.PULL_REOPENED_BY_HUMAN:
        assert decision.state in (S.WAITING, S.QUEUED, S.REVIEWING)
        assert not facts.superseded
    else:
        assert (event, decision.state) == (E.PULL_REOPENED_BY_MACHINE, S.FAILED)


@PATIENT
@given(anything(TaskFacts), anything(TaskEvent))
def test_only_a_person_puts_an_escalated_task_back_to_work(
    facts: TaskFacts, event: TaskEvent
) -> None:
    """From escalated a task ends, or a human's resume brings it back: nothing else moves it."""
    decision = move_task(TaskFacts(S.ESCALATED, *_rest(facts)), event)
    if decision.state.is_live and decision.state is not S.ESCALATED:
        assert event is E.RESUME
        assert decision.counts_as_resume


def _rest(facts: TaskFacts) -> tuple[bool, bool, bool, bool]:
    return facts.has_fix_pr, facts.paths_free, facts.anything_blocks, facts.superseded


@PATIENT
@given(anything(TaskFacts), anything(TaskEvent))
def test_leases_are_taken_and_freed_as_the_state_says(facts: TaskFacts, event: TaskEvent) -> None:
    """A lease is held from the moment it is got until the task ends, waits or escalates."""
    decision = move_task(facts, event)
    before, after = facts.state.holds_lease, decision.state.holds_lease
    assert (decision.takes_lease, decision.frees_lease) == (
        after and not before,
        before and not after,
    )
    assert decision.state.is_live or not after
    if decision.takes_lease:
        assert facts.paths_free


LEASES = [
    pytest.param(task(S.WAITING), E.LEASE_FREE, (True, False), id="got"),
    pytest.param(task(S.WAITING, paths_free=False), E.LEASE_FREE, (False, False), id="not got"),
    pytest.param(task(S.REVIEWING), E.ESCALATE, (False, True), id="freed by an escalation"),
    pytest.param(task(S.ESCALATED), E.RESUME, (True, False), id="taken again by a resume"),
    pytest.param(task(S.ESCALATED), E.PULL_CLOSED_BY_HUMAN, (False, False), id="free already"),
    pytest.param(task(S.FIXING), E.TURN_DONE, (False, False), id="kept"),
    pytest.param(task(S.APPROVED), E.PULL_MERGED, (False, True), id="freed by the merge"),
    pytest.param(task(S.CLOSED), E.PULL_REOPENED_BY_HUMAN, (True, False), id="reopened"),
]


@pytest.mark.parametrize(("facts", "event", "lease"), LEASES)
def test_when_a_task_takes_and_frees_its_paths(
    facts: TaskFacts, event: TaskEvent, lease: tuple[bool, bool]
) -> None:
    """(takes, frees): whoever waits for a path may go on exactly when one is freed."""
    decision = move_task(facts, event)
    assert (decision.takes_lease, decision.frees_lease) == lease


@PATIENT
@given(anything(TaskFacts), anything(TaskEvent))
def test_rounds_are_added_by_people_alone(facts: TaskFacts, event: TaskEvent) -> None:
    """A task gets a resume's rounds when it is resumed or reopened by a person, never otherwise."""
    decision = move_task(facts, event)
    assert decision.counts_as_resume is (decision.reason == R.RESUMED)
    if decision.counts_as_resume:
        assert event in (E.RESUME, E.PULL_REOPENED_BY_HUMAN)
        assert facts.state in (S.ESCALATED, S.CLOSED)


@PATIENT
@given(anything(TaskFacts))
def test_a_repeated_event_changes_nothing_more(facts: TaskFacts) -> None:
    """A delivery that comes twice leads where it led the first time, resumes are counted once."""
    for event in (E.TURN_DONE, E.RESUME, E.PULL_MERGED, E.PULL_CLOSED_BY_HUMAN, E.STOP, E.ESCALATE):
        once = move_task(facts, event)
        twice = move_task(TaskFacts(once.state, *_rest(facts)), event)
        assert twice.state is once.state
        assert not twice.counts_as_resume


EMPTY_TURN = [
    pytest.param(
        after({1}, {1}, touched=False), S.ESCALATED, NextReason.STALL, id="it still blocks"
    ),
    pytest.param(
        after({1}, set(), touched=False), S.APPROVED, NextReason.NOTHING_BLOCKS, id="done"
    ),
]


@pytest.mark.parametrize(("facts", "state", "reason"), EMPTY_TURN)
def test_an_empty_turn_on_a_proposed_fix_gets_one_more_look(
    facts: AfterRoundFacts, state: TaskState, reason: NextReason
) -> None:
    """ "There is nothing to do" may be true: the look after it approves, or it was a stall."""
    looked_at = move_task(task(S.FIXING, has_fix_pr=True), E.TURN_EMPTY)
    assert looked_at.state is S.REVIEWING
    said = after_round(facts, LIMITS)
    assert said.reason == reason
    assert (
        move_task(task(S.REVIEWING, has_fix_pr=True), event_after_round(said.outcome)).state
        is state
    )


def test_a_round_that_a_person_asks_for_does_not_end_a_turn() -> None:
    """The target goes on: its turn ends by its own word or by silence."""
    asked = move_task(task(S.FIXING, has_fix_pr=True), E.FIRST_CALL)
    assert (asked.state, asked.moved) == (S.FIXING, False)


@pytest.mark.parametrize("outcome", NextOutcome)
def test_what_follows_a_round_is_an_event_of_the_task(outcome: NextOutcome) -> None:
    """Each outcome of a round moves a task under review, or says that it waits."""
    event = event_after_round(outcome)
    assert event.value == outcome.value
    assert move_task(task(S.REVIEWING, has_fix_pr=True), event).moved


def test_the_trace_names_event_and_reason() -> None:
    """One question is asked: what does this event mean? The record holds all it depended on."""
    decision = move_task(task(S.QUEUED, has_fix_pr=True, superseded=True), E.TURN_BEGUN)
    assert [(asked.guard, asked.reason) for asked in decision.trace] == [
        (E.TURN_BEGUN, R.TURN_BEGUN)
    ]
    assert decision.compared == {
        "state": S.QUEUED,
        "event": E.TURN_BEGUN,
        "has_fix_pr": True,
        "paths_free": True,
        "anything_blocks": True,
        "superseded": True,
    }
