"""Every decision that the product takes is kept, with the guards that were asked.

Two things together show it: the places where the guards are asked are all listed here, each with
the kind under which its answers are kept; and stories in which all of them are asked leave exactly
as many decisions of each kind as there were questions.
"""

from __future__ import annotations

import ast
import inspect
import shutil
import typing
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlmodel import select

import loop_guards
from app.domain.runs import AgentName
from app.store.session import Store, open_store
from app.store.tables import DecisionRow
from loop_guards import ClosePlan, Decision, Severity
from tests.handoff.fixtures import stage_templates
from tests.handoff.stage import open_stage
from tests.review.story import (
    BASE,
    BEFORE,
    PLANTED,
    SEARCH,
    finding,
    findings,
    open_fix,
    open_story,
)
from tests.store.databases import sqlite_template

__all__ = ["sqlite_template", "stage_templates"]

ROOT = Path(__file__).parents[2]
KEPT = {
    ("app.commands.decide", "answer_dismissal"): "dismissal",
    ("app.commands.glass", "answer_glass"): "break_glass",
    ("app.store.glass", "answer_glass"): "break_glass",
    ("app.commands.decide", "answer_order"): "order",
    ("app.commands.decide", "answer_resume"): "resume",
    ("app.commands.decide", "answer_stop"): "stop",
    ("app.commands.decide", "answer_unqueue"): "unqueue",
    ("app.fixer.flow", "may_start_turn"): "turn_start",
    ("app.handoff.flow", "plan_unmerged"): "handoff",
    ("app.handoff.services", "plan_merged"): "handoff",
    ("app.wiring", "plan_merged"): "handoff",
    ("app.review.admit", "may_review"): "review_start",
    ("app.review.admit", "may_start_round"): "review_start",
    ("app.review.heard", "answer_dismissal"): "dismissal",
    ("app.review.judge", "judge_fixed"): "fixed",
    ("app.review.returns", "judge_return"): "return",
    ("app.review.verdict", "after_round"): "after_round",
    ("app.review.verdict", "decide_fix_verdict"): "verdict",
    ("app.review.verdict", "decide_rubric"): "verdict",
    ("app.store.fixtasks", "move_task"): "task",
}
"""Who asks what, and the kind under which `note_decision` keeps the answer.

`mergeward review` asks through the same functions and has no ledger: it prints what it was told. A
verdict is asked for again when it is published; that is the question of the kept decision, whose
answer is the same.
"""


PART_OF_OTHERS = {("app.domain.bots", "judge_actor")}
"""Answers that are one fact of the next question: who acted stands, as `by_human`, among what that
one compared."""


def deciding() -> set[str]:
    """The questions that can be put to the guards: whatever they answer with a sealed decision."""
    return {
        name
        for name in loop_guards.__all__
        if inspect.isfunction(question := getattr(loop_guards, name))
        and _is_decision(typing.get_type_hints(question)["return"])
    }


def _is_decision(answer: object) -> bool:
    return isinstance(answer, type) and issubclass(answer, Decision | ClosePlan)


def asked_in(source: str) -> set[str]:
    """The questions that a module puts, or gives to somebody to put."""
    used = {
        node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return used & deciding()


def test_every_question_is_listed_with_its_kind() -> None:
    """Whoever asks the guards something new says here under which kind the answer is kept."""
    paths = [path for path in (ROOT / "app").rglob("*.py") if "sandbox" not in path.parts]
    asked = {
        (".".join(path.relative_to(ROOT).with_suffix("").parts), question)
        for path in paths
        for question in asked_in(path.read_text(encoding="utf-8"))
    }
    assert asked == set(KEPT) | PART_OF_OTHERS


def test_a_question_is_noticed() -> None:
    """A call and a function that is passed on; not an import or a name like it."""
    source = "from loop_guards import may_verify\nx = may_review(f, l)\ny: Plan = plan_merged\n"
    assert asked_in(source) == {"may_review", "plan_merged"}


@pytest.fixture
async def ledger(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Store]:
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    opened = open_store(f"sqlite+aiosqlite:///{tmp_path / 'ledger.db'}")
    yield opened
    await opened.close()


async def kinds(ledger: Store) -> Counter[str]:
    """How many decisions of each kind are kept. Each says why, and who was asked."""
    async with ledger.read() as session:
        rows = (await session.exec(select(DecisionRow))).all()
    for row in rows:
        assert row.record["trace"], row
        assert (row.record["outcome"], row.record["reason"]) == (row.outcome, row.reason)
        assert row.record["reasons"] == row.reasons
    return Counter(row.kind for row in rows)


FIX = Counter({"review_start": 2, "fixed": 3, "verdict": 1, "after_round": 1, "task": 2})
"""A round of a fix with three findings: may it be reviewed, may a round start, each finding, the
verdict, what follows; and what the round's beginning and its outcome make of the task."""

BACK = Counter({"review_start": 2, "return": 1, "verdict": 1, "after_round": 1, "task": 2})
"""A round in which the only finding, fixed by then, is reported again."""

RESOLVED = Counter({"review_start": 1, "fixed": 1, "dismissal": 1, "verdict": 1})
"""A round after somebody resolved the thread of the only finding."""

COMMANDED = Counter(
    {"order": 1, "unqueue": 1, "dismissal": 1, "stop": 1, "resume": 1, "break_glass": 1}
)
"""A comment that gives each of these commands, and one that breaks the glass."""

HAND_OFF = Counter({"order": 1, "handoff": 3, "turn_start": 1, "task": 2})
"""An order, a merge that leaves three findings, and the turn of the one task they become: it begins
and is done."""


async def test_a_round_keeps_what_was_asked_about_it(ledger: Store, tmp_path: Path) -> None:
    """One decision for each question, whether the finding it is about was fixed or not."""
    story = await open_story(ledger, tmp_path)
    found = (Severity.CRITICAL, Severity.WARNING, Severity.SUGGESTION)
    await open_fix(story, *found, tree={**BASE, SEARCH: PLANTED + b"\n# looked at\n"})
    story.model.carried = {"F1": "fixed"}
    await story.review(actor=None)
    assert await kinds(ledger) == FIX


async def test_a_resolved_thread_keeps_what_was_asked_about_it(
    ledger: Store, tmp_path: Path
) -> None:
    """One decision for each thread in which somebody decided."""
    story = await open_story(ledger, tmp_path)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    story.open_pull({**BASE, SEARCH: PLANTED})
    await story.review()
    before = await kinds(ledger)
    story.world.pull(*story.place).threads[0].resolved_by = "mara"
    story.push({**BASE, SEARCH: PLANTED, "more.py": b"y = 1\n"})
    await story.review()
    assert await kinds(ledger) - before == RESOLVED


async def test_a_return_keeps_what_was_asked_about_it(ledger: Store, tmp_path: Path) -> None:
    """One decision for each finding that was fixed and is back."""
    story = await open_story(ledger, tmp_path)
    await open_fix(story, Severity.WARNING, tree={**BASE, SEARCH: BEFORE + b"# tidy\n"})
    story.model.carried = {"F1": "fixed"}
    await story.review(actor=None)
    before = await kinds(ledger)
    story.push({**BASE, SEARCH: PLANTED})
    again = finding(severity="warning", title="Old warning")
    story.model.answers = {AgentName.GENERAL: [findings(again)]}
    await story.review(actor=None)
    assert await kinds(ledger) - before == BACK


async def test_a_merge_keeps_what_was_asked_about_it(
    ledger: Store, tmp_path: Path, stage_templates: Path
) -> None:
    """One decision for each order, finding and turn."""
    shutil.copytree(stage_templates, tmp_path, dirs_exist_ok=True)
    stage = await open_stage(ledger, tmp_path)
    stage.open()
    for title in ("First", "Second", "Third"):
        await stage.finds(title=title)
    await stage.says("/mergeward fix F2")
    stage.merge()
    await stage.closed()
    assert len(stage.fix_pulls()) == 1
    assert await kinds(ledger) == HAND_OFF


async def test_a_comment_keeps_what_was_asked_about_it(
    ledger: Store, tmp_path: Path, stage_templates: Path
) -> None:
    """One decision for each thing that a person commands."""
    shutil.copytree(stage_templates, tmp_path, dirs_exist_ok=True)
    stage = await open_stage(ledger, tmp_path)
    stage.open()
    await stage.finds()
    verbs = ("fix F1", "unfix F1", "dismiss F1 so", "stop", "resume")
    await stage.says("\n".join(map("/mergeward {}".format, verbs)))
    await stage.says("break glass")
    assert await kinds(ledger) == COMMANDED


def test_the_stories_ask_everything() -> None:
    """No kind is listed that none of these stories shows."""
    shown = (FIX, BACK, HAND_OFF, RESOLVED, COMMANDED)
    assert set(KEPT.values()) == {kind for story in shown for kind in story}
