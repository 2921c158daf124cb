"""May the task's branch be worked on? (fixer/branches.py)"""

from __future__ import annotations

import pytest

from app.fixer.branches import Lost, before_push, before_turn


@pytest.mark.parametrize(
    ("proposed", "tip", "lost"),
    [
        pytest.param(False, None, None, id="first-turn"),
        pytest.param(False, "a", Lost.TAKEN, id="somebody-elses"),
        pytest.param(True, "a", None, id="later-turn"),
        pytest.param(True, None, Lost.DELETED, id="deleted"),
    ],
)
def test_where_a_turn_may_begin(proposed: bool, tip: str | None, lost: Lost | None) -> None:
    """A first turn needs no branch there, a later one needs its own."""
    assert before_turn(proposed=proposed, tip=tip) is lost


@pytest.mark.parametrize(
    ("proposed", "tip", "at", "lost"),
    [
        pytest.param(False, None, None, None, id="first-push"),
        pytest.param(False, None, "ours", None, id="pushed-before-a-crash"),
        pytest.param(False, None, "b", Lost.TAKEN, id="somebody-was-faster"),
        pytest.param(True, "a", "a", None, id="later-push"),
        pytest.param(True, "a", "b", Lost.MOVED, id="moved"),
        pytest.param(True, "a", None, Lost.DELETED, id="deleted"),
    ],
)
def test_where_a_commit_may_be_pushed(
    proposed: bool, tip: str | None, at: str | None, lost: Lost | None
) -> None:
    """Only where the turn began, or where its commit is already."""
    assert before_push(proposed=proposed, tip=tip, at=at, sha="ours") is lost
