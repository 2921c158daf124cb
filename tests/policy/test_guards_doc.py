"""The page that explains the guards says what they do, and forgets none of their reasons."""

from __future__ import annotations

import sqlite3
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path

import pytest

import loop_guards as guards
from app.policy.guards_doc import PAGE_FILE, with_guards
from app.policy.guards_meanings import MEANINGS
from app.policy.guards_numbers import policy_keys
from app.policy.guards_questions import HANDOFF, QUESTIONS, Question, moves
from app.policy.guards_tables import acts_table, meanings_of, moves_table, reason_rows
from app.store.migrate import upgrade
from loop_guards.handoff import GUARDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / PAGE_FILE).read_text(encoding="utf-8")
REASONS = [
    member
    for name in guards.__all__
    if name.endswith("Reason") and issubclass(member := getattr(guards, name), StrEnum)
]


def test_the_page_is_fresh() -> None:
    """`make docs` has been run since the guards last changed."""
    assert with_guards(PAGE) == PAGE
    assert "guards_doc docs" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("reasons", REASONS, ids=lambda reasons: reasons.__name__)
def test_every_reason_is_explained(reasons: type[StrEnum]) -> None:
    """Whoever holds a code finds it on the page with its meaning."""
    assert set(meanings_of(reasons)) == set(reasons)
    for reason, meaning in meanings_of(reasons).items():
        assert any(
            f"`{reason}`" in line and line.endswith(f"| {meaning} |") for line in PAGE.splitlines()
        )


def test_there_are_no_other_reasons() -> None:
    """Every enumeration of reasons is on the page, and none that is gone."""
    assert set(MEANINGS) == set(REASONS)
    asked = {question.reasons for question in QUESTIONS} | {guards.TaskReason}
    assert asked == set(REASONS)


class Stray(StrEnum):
    KNOWN = "known"
    NEW = "new"


@pytest.mark.parametrize(
    ("words", "odd"),
    [
        pytest.param({}, "known.*new", id="an enumeration without words"),
        pytest.param({Stray: {"known": "It is."}}, r"\['new'\]", id="a member without words"),
        pytest.param(
            {Stray: {"known": "It is.", "new": "It is.", "old": "It was."}},
            r"\['old'\]",
            id="words without a member",
        ),
    ],
)
def test_a_forgotten_meaning_is_an_error(
    words: dict[type[StrEnum], dict[str, str]], odd: str
) -> None:
    """The page can't be made until words and reasons agree; the message names the odd ones."""
    with pytest.raises(ValueError, match=odd):
        meanings_of(Stray, words)


def test_a_reason_that_no_answer_had_is_an_error() -> None:
    """A new reason needs facts that lead to it: nothing is put on the page unasked."""
    some = replace(HANDOFF, decisions=lambda: list(HANDOFF.decisions())[:1])
    with pytest.raises(ValueError, match="not_merged"):
        reason_rows(some)


def test_the_order_is_the_guards_own() -> None:
    """The order on the page, which comes from traces, is that of the tuple of guards."""
    order = list(dict.fromkeys(guard for guard, _, _ in reason_rows(HANDOFF) if guard))
    assert order == [name for name, _ in GUARDS]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.ask.__name__)
def test_every_outcome_is_reached(question: Question) -> None:
    """The facts that are asked about are enough: each outcome of the question is on the page."""
    seen = {outcome for _, _, outcomes in reason_rows(question) for outcome in outcomes}
    if question.outcomes is not guards.Verdict:
        assert seen == set(question.outcomes)


@pytest.mark.parametrize("kind", sorted({question.kind for question in QUESTIONS if question.kind}))
def test_kinds_are_those_of_the_ledger(kind: str) -> None:
    """A kind that the page names is one that decisions are stored under."""
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("review", "fixer", "handoff", "commands")
        for path in (ROOT / "app" / folder).glob("*.py")
    ]
    assert any(f'"{kind}"' in source for source in sources)


def test_the_query_of_the_page_runs(tmp_path: Path) -> None:
    """What people copy at three in the morning works on the tables of this version."""
    query = PAGE.split("```sql\n")[1].split("```")[0]
    upgrade(f"sqlite:///{tmp_path / 'x.db'}")
    connection = sqlite3.connect(tmp_path / "x.db")
    assert connection.execute(query).fetchall() == []
    connection.close()


def test_every_pair_of_event_and_state_is_asked() -> None:
    """Nothing of the life of a task is left out."""
    asked = {(move.compared["event"], move.before) for move in moves()}
    assert asked == {(event, state) for event in guards.TaskEvent for state in guards.TaskState}


def test_cells_of_the_life_of_a_task() -> None:
    """A few cells by hand, so that the table can't be wrong as a whole."""
    rows = {line.split("|")[1].strip(): line for line in moves_table().splitlines()}
    heads = [cell.strip() for cell in rows["event"].split("|")]
    at = {head: place for place, head in enumerate(heads)}

    def cell(event: str, state: str) -> str:
        return rows[f"`{event}`"].split("|")[at[state]].strip()

    assert cell("turn_begun", "queued") == "fixing"
    assert cell("emptied_by_base", "fixing") == "reviewing / obsolete"
    assert cell("pull_closed_by_human", "approved") == "closed"
    assert cell("resume", "closed") == "·"
    assert cell("pull_reopened_by_human", "closed") == "waiting / queued / reviewing / ·"


@pytest.mark.parametrize(
    ("state", "cells"),
    [
        pytest.param(
            "closed, not merged", ["refused (not_merged)", "refused (not_merged)"], id="closed"
        ),
        pytest.param(
            "merged, never in a task", ["task (merged)", "refused (already_queued)"], id="free"
        ),
        pytest.param(
            "task escalated", ["resume (task_escalated)", "refused (already_queued)"], id="stuck"
        ),
    ],
)
def test_cells_of_the_acts(state: str, cells: list[str]) -> None:
    """An order, and the same again, in three states."""
    (row,) = (line for line in acts_table().splitlines() if line.startswith(f"| {state} |"))
    assert [cell.strip() for cell in row.split("|")][2:4] == cells


def test_the_keys_of_the_constants() -> None:
    """Which key sets which constant is found by trying: a key that is not passed on shows."""
    keys = policy_keys()
    assert keys["max_review_iterations"] == "max_review_iterations"
    assert keys["budget_micro_dollars"] == "budget.usd"
    assert keys["max_model_runs"] == "max_model_runs"
    assert "sessions_per_agent" not in keys
    for item in fields(guards.Limits):
        assert f"| `{item.name}` |" in PAGE


def test_the_page_is_about_the_product() -> None:
    """It refers to nothing that its reader does not have."""
    assert "DESIGN" not in PAGE
