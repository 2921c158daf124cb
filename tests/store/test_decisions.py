"""Decisions are kept whole, many in one insert (store/decisions.py)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event
from sqlmodel import col, select

from app.store.decisions import note_decisions
from app.store.session import Store
from app.store.tables import DecisionRow
from loop_guards import FixedFacts, judge_fixed
from tests.store.rows import NOW

FACTS = FixedFacts(claimed_fixed=True, files=frozenset({"a.py"}), changed_files=frozenset({"a.py"}))
FIXED, OPEN = judge_fixed(FACTS), judge_fixed(FixedFacts(False, frozenset(), frozenset()))


async def test_many_answers_are_one_insert(store: Store) -> None:
    """Two hundred findings cost one statement; each answer keeps its finding, reasons and trace."""
    inserts: list[str] = []

    def notice(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if statement.startswith("INSERT INTO decisions"):
            inserts.append(statement)

    event.listen(store.engine.sync_engine, "before_cursor_execute", notice)
    answers = [(FIXED if number % 2 else OPEN, number) for number in range(1, 201)]
    async with store.write() as session:
        await note_decisions(session, "fixed", answers, now=NOW, run_id=4)
    async with store.read() as session:
        rows = (await session.exec(select(DecisionRow).order_by(col(DecisionRow.finding_id)))).all()
    event.remove(store.engine.sync_engine, "before_cursor_execute", notice)
    assert len(inserts) == 1
    assert [row.record for row in rows] == [decision.as_record() for decision, _ in answers]
    assert {(row.kind, row.run_id, tuple(row.reasons)) for row in rows} == {
        ("fixed", 4, ("on_evidence",)),
        ("fixed", 4, ("not_claimed",)),
    }


async def test_no_answers_are_no_insert(store: Store) -> None:
    """A round without earlier findings keeps nothing about them."""
    async with store.write() as session:
        await note_decisions(session, "fixed", [], now=NOW)
    async with store.read() as session:
        assert (await session.exec(select(DecisionRow))).all() == []
