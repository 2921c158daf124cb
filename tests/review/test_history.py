"""What a task's earlier rounds mean for the one under way (app/review/history.py)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.runs import RunState, Trigger
from app.review.history import (
    Look,
    NewHead,
    bot_pushed_since,
    known_patch,
    looks_of,
    records_of,
    touched,
)
from app.store.tables import ReviewRun
from loop_guards import RoundRecord, blocking_since_resume, ever_blocked, rounds_started
from tests.review.factories import coverage

NOW = datetime(2026, 3, 1, tzinfo=UTC)
A, B, C = "a" * 40, "b" * 40, "c" * 40


def run(**changes: Any) -> ReviewRun:
    """A round that was judged."""
    values: dict[str, Any] = {
        "pull_request_id": 1,
        "fix_task_id": 1,
        "head_sha": A,
        "trigger": Trigger.WEBHOOK,
        "state": RunState.DONE,
        "charged_at": NOW,
        "blocking": [1],
        "coverage": coverage().to_json(),
        "incomplete": [],
        "machine_caused": True,
        "task_resumes": 0,
        "created_at": NOW,
    }
    return ReviewRun(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, {}, id="judged"),
        pytest.param({"review_id": 5}, {"published": True}, id="published"),
        pytest.param({"task_resumes": 2}, {"resumes": 2}, id="after two resumes"),
        pytest.param({"incomplete": ["security"]}, {"coverage_full": False}, id="short"),
        pytest.param({"blocking": []}, {"blocking": frozenset()}, id="nothing blocks"),
        pytest.param({"state": RunState.FAILED}, {"blocking": None}, id="failed"),
        pytest.param({"state": RunState.RUNNING}, {"blocking": None}, id="under way"),
        pytest.param(
            {"state": RunState.SKIPPED, "charged_at": None},
            {"blocking": None, "called": False},
            id="never called",
        ),
    ],
)
def test_a_run_is_a_record(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    """Charged counts, whatever became of it; only a finished run said anything."""
    base = RoundRecord(head=A, called=True, blocking=frozenset({1}))
    assert records_of([run(**changes)]) == (replace(base, **expected),)


def test_a_resume_forgets_histories_and_no_finding() -> None:
    """What the guards count of rounds before and after a resume."""
    runs = [
        run(blocking=[1, 2]),
        run(state=RunState.CANCELLED, task_resumes=1),
        run(blocking=[3], task_resumes=1, head_sha=B),
    ]
    records = records_of(runs)
    assert rounds_started(records) == 3
    assert blocking_since_resume(records, 1) == (frozenset({3}),)
    assert ever_blocked(records) == {1, 2, 3}
    assert [look.head for look in looks_of(runs, 1)] == [B]
    assert [look.head for look in looks_of(runs, 0)] == [A, B]


def look(head: str = A, **changes: Any) -> Look:
    base = Look(head, merge_base=C, patch_id="one", blocking=frozenset({1}))
    return replace(base, **changes)


def new(sha: str = B, **changes: Any) -> NewHead:
    return replace(NewHead(sha, merge_base=C, patch_id="two"), **changes)


IN, OUT = frozenset({"a.py", "x.md"}), frozenset({"x.md"})


@pytest.mark.parametrize(
    ("looks", "now", "changed", "expected"),
    [
        pytest.param([], new(), OUT, True, id="first round"),
        pytest.param([look(blocking=frozenset())], new(), OUT, True, id="nothing blocked"),
        pytest.param([look()], new(), IN, True, id="its file"),
        pytest.param([look()], new(), OUT, False, id="another file"),
        pytest.param([look()], new(), frozenset(), False, id="new commit, no change"),
        pytest.param([look()], new(by_person=True), OUT, True, id="a person's push"),
        pytest.param([look()], new(), None, True, id="the commit is gone"),
        pytest.param([look()], new(A), frozenset(), True, id="the same head again"),
        pytest.param([look()], new(A, idle_turn=True), frozenset(), False, id="empty turn"),
        pytest.param([look(blocking=frozenset({2}))], new(), OUT, True, id="names no file"),
        pytest.param(
            [look(blocking=frozenset({2}))], new(), frozenset(), False, id="no file, no change"
        ),
        pytest.param([look(blocking=frozenset({1, 3}))], new(), OUT, True, id="one of two"),
        pytest.param(
            [look(blocking=frozenset({3})), look()], new(), OUT, False, id="the last look counts"
        ),
    ],
)
def test_what_a_turn_touched(
    looks: list[Look], now: NewHead, changed: frozenset[str] | None, expected: bool
) -> None:
    """A turn that changes no file of what blocked before it touched nothing."""
    files = {1: frozenset({"a.py"}), 2: frozenset[str](), 3: frozenset({"b.py", "x.md"})}
    assert touched(looks, now, changed, files) is expected


ONE = {"patch_id": "one"}


@pytest.mark.parametrize(
    ("looks", "now", "expected"),
    [
        pytest.param([], new(), False, id="first round"),
        pytest.param([look()], new(), False, id="another patch"),
        pytest.param([look()], new(**ONE), True, id="the same patch"),
        pytest.param([look(), look(C, patch_id="two")], new(**ONE), True, id="one from before"),
        pytest.param([look()], new(A, **ONE), False, id="the same commit"),
        pytest.param([look()], new(**ONE, by_person=True), False, id="a person's push"),
        pytest.param([look(patch_id="")], new(patch_id=""), False, id="no patch"),
        pytest.param([look()], new(**ONE, merge_base=A), False, id="only the base moved"),
        pytest.param(
            [look(), look(C, patch_id="two")],
            new(**ONE, merge_base=A),
            True,
            id="one from before, on a base that moved",
        ),
    ],
)
def test_a_patch_that_is_known(looks: list[Look], now: NewHead, expected: bool) -> None:
    """A bot that pushes what was judged before goes in a circle."""
    assert known_patch(looks, now) is expected


@pytest.mark.parametrize(
    ("looks", "now", "expected"),
    [
        pytest.param([look(A)], new(B), True, id="a bot's push"),
        pytest.param([look(A)], new(B, by_person=True), False, id="a person's push"),
        pytest.param([look(A)], new(A), False, id="no push"),
        pytest.param([look(A), look(B)], new(C, by_person=True), True, id="a bot, then a person"),
        pytest.param(
            [look(A), look(B, machine=False)], new(B), False, id="a person, looked at again"
        ),
        pytest.param([look(C)], new(C), True, id="fixed before the resume"),
        pytest.param([look(C, machine=False), look(A)], new(A), False, id="a bot before that"),
    ],
)
def test_who_pushed_since(looks: list[Look], now: NewHead, expected: bool) -> None:
    """Whether a bot pushed after the commit at which a finding was marked fixed."""
    assert bot_pushed_since(A, looks, now) is expected
