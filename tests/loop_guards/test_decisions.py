"""What all decisions share: the seal, the record, totality; and that the package stands alone."""

from __future__ import annotations

import ast
import copy
import pickle
import re
import subprocess
import sys
import time
from dataclasses import MISSING, FrozenInstanceError, fields, is_dataclass, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import loop_guards
from loop_guards import (
    Acts,
    ClosePlan,
    Decision,
    HandoffDecision,
    HandoffFinding,
    HandoffOutcome,
    HandoffReason,
    Limits,
    MergeFacts,
    NextDecision,
    Severity,
    Spent,
    StartDecision,
    TaskState,
    Verdict,
    VerdictDecision,
    after_round,
    decide_fix_verdict,
    decide_handoff,
    decide_rubric,
    may_start_round,
)
from tests.loop_guards.factories import (
    LIMITS,
    after,
    before_round,
    finding,
    merge,
    of_task,
    remark,
)

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "loop_guards").glob("*.py"))
APP = sorted((ROOT / "app").rglob("*.py"))
ENUMS = [
    value
    for name in loop_guards.__all__
    if isinstance(value := getattr(loop_guards, name), type) and issubclass(value, StrEnum)
]

SAMPLES: dict[str, Decision] = {
    "handoff": decide_handoff(finding(), merge(), LIMITS),
    "rubric": decide_rubric([remark(Severity.WARNING)], coverage_full=True, limits=LIMITS),
    "fix": decide_fix_verdict([of_task()], coverage_full=True),
    "start": may_start_round(before_round(), LIMITS),
    "next": after_round(after({1}), LIMITS),
}
FORGED: list[tuple[type[Decision], dict[str, Any]]] = [
    (Decision, {}),
    (HandoffDecision, {"finding_id": 1}),
    (VerdictDecision, {"verdict": Verdict.APPROVED, "approves": True}),
    (StartDecision, {}),
    (NextDecision, {}),
]


@pytest.mark.parametrize(("kind", "more"), FORGED, ids=[kind.__name__ for kind, _ in FORGED])
@pytest.mark.parametrize("seal", [{}, {"seal": object()}], ids=["no seal", "another seal"])
def test_nobody_else_makes_decisions(
    kind: type[Decision], more: dict[str, Any], seal: dict[str, Any]
) -> None:
    """An effect that wants a decision can only be had by asking; the error says so."""
    with pytest.raises(TypeError, match="ask loop_guards"):
        kind(outcome="yes", reason="auto", **more, **seal)


def test_nobody_else_makes_a_close_plan() -> None:
    """The plan that tasks are made from is sealed like a decision."""
    with pytest.raises(TypeError, match="ask loop_guards"):
        ClosePlan(tasks=(), decisions=())


@pytest.mark.parametrize("decision", SAMPLES.values(), ids=SAMPLES)
def test_a_decision_can_not_be_turned_into_another(decision: Decision) -> None:
    """Neither replacing, assigning, pickling nor extending gets around the seal."""
    with pytest.raises(TypeError, match="ask loop_guards"):
        replace(decision, outcome="yes")
    with pytest.raises(FrozenInstanceError):
        decision.outcome = "yes"  # type: ignore[misc]  # the test is that it can't be done
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(decision)
    with pytest.raises(TypeError, match="ask loop_guards"):
        type("Forged", (type(decision),), {"__module__": "app.handoff"})


@pytest.mark.parametrize("decision", SAMPLES.values(), ids=SAMPLES)
def test_a_copy_is_the_decision_itself(decision: Decision) -> None:
    """Copying makes nothing new; equal questions get equal, hashable answers."""
    assert copy.copy(decision) is decision
    assert copy.deepcopy(decision) is decision
    assert {decision: 1}[decision] == 1


@pytest.mark.parametrize("decision", SAMPLES.values(), ids=SAMPLES)
def test_compared_values_can_not_be_changed(decision: Decision) -> None:
    """What was compared is part of the answer."""
    compared: Any = decision.compared
    with pytest.raises(TypeError):
        compared["added"] = 1


def test_a_record_says_everything() -> None:
    """Outcome, reason, all reasons, values and trace, as stored."""
    record = decide_handoff(finding(), merge(author_is_bot=True), LIMITS).as_record()
    assert (record["outcome"], record["reason"]) == (HandoffOutcome.NO, "bot_pull_request")
    assert record["reasons"] == ["bot_pull_request"]
    assert record["compared"]["author_is_bot"] is True
    assert record["compared"]["severity"] == "warning"
    assert record["trace"][0] == ["merged", None]
    assert record["trace"][-1] == ["bot_pull_request", HandoffReason.BOT_PULL_REQUEST]


def test_a_record_keeps_all_that_held() -> None:
    """The first decides, the others are stored beside it."""
    record = may_start_round(before_round(stopped=True, kill_switch=True), LIMITS).as_record()
    assert (record["reason"], record["reasons"]) == ("stopped", ["stopped", "kill_switch"])


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_every_word_survives_a_round_trip(kind: type[StrEnum]) -> None:
    """What is stored as text comes back as the same member; values are the lower-case names."""
    for member in kind:
        assert kind(str(member)) is member
        assert member.value == member.name.lower()


def test_severities_are_ordered_by_how_bad_they_are() -> None:
    """critical > warning > suggestion, compared by rank, 0 for the worst."""
    assert [each.rank for each in Severity] == [0, 1, 2]
    assert sorted(Severity, key=lambda each: each.rank) == [
        Severity.CRITICAL,
        Severity.WARNING,
        Severity.SUGGESTION,
    ]
    assert Severity.WARNING.at_least(Severity.WARNING)
    assert Severity.CRITICAL.at_least(Severity.WARNING)
    assert not Severity.SUGGESTION.at_least(Severity.WARNING)


def test_which_tasks_are_live_and_hold_their_files() -> None:
    """A task covers its findings until it ends; its files are free while it waits or escalated."""
    live = {state for state in TaskState if state.is_live}
    assert live == {
        TaskState.WAITING,
        TaskState.QUEUED,
        TaskState.FIXING,
        TaskState.REVIEWING,
        TaskState.APPROVED,
        TaskState.ESCALATED,
    }
    holding = {state for state in TaskState if state.holds_lease}
    assert holding == live - {TaskState.WAITING, TaskState.ESCALATED}


VALUES = [
    value
    for name in loop_guards.__all__
    if isinstance(value := getattr(loop_guards, name), type) and is_dataclass(value)
]
EVERY_VALUE: set[type[Any]] = {
    value
    for name, module in sys.modules.items()
    if name.partition(".")[0] == "loop_guards"
    for value in vars(module).values()
    if isinstance(value, type) and is_dataclass(value)
}


@pytest.mark.parametrize("kind", sorted(EVERY_VALUE, key=str), ids=lambda kind: kind.__name__)
def test_facts_and_answers_are_frozen(kind: type[Any]) -> None:
    """What was decided about can't be changed afterwards, nor be given more fields."""
    assert kind.__dataclass_params__.frozen
    assert not any("__dict__" in vars(each) for each in kind.__mro__)


# Facts that stand for something when they are left out; every other says no, none or zero.
ASSUMED: dict[str, object] = {
    "AfterRoundFacts.newest_head": True,
    "AfterRoundFacts.touched": True,
    "FixFinding.severity_when_raised": Severity.SUGGESTION,
    "HandoffFinding.in_merged_tree": True,
    "MergeFacts.minimum_severity": Severity.WARNING,
    "MergeFacts.targets": ("builtin",),
    "ResumeFacts.is_current": True,
    "RoundRecord.coverage_full": True,
    "TaskFacts.anything_blocks": True,
    "TaskFacts.paths_free": True,
}


def test_a_fact_that_is_left_out_says_nothing() -> None:
    """A new fact is off until somebody finds it out, unless it is listed here."""
    defaults = {
        f"{kind.__name__}.{item.name}": item.default
        for kind in VALUES
        if kind is not Limits
        for item in fields(kind)
        if item.default is not MISSING
    }
    assert {
        name: value for name, value in defaults.items() if value and value != Spent()
    } == ASSUMED


BAD_LIMITS: list[tuple[str, Any]] = [
    *(
        (item.name, -1)
        for item in fields(Limits)
        if item.name not in ("path_window", "bot_pr_window")
    ),
    ("path_window", timedelta(0)),
    ("bot_pr_window", timedelta(-1)),
    ("pingpong_cap", 0),
    ("pingpong_cap", 11),
    ("max_review_iterations", 0),
    ("max_review_iterations", 2.5),
    ("max_fix_tasks", True),
    ("max_fix_tasks", "10"),
    ("budget_micro_dollars", float("nan")),
]


@pytest.mark.parametrize(("name", "value"), BAD_LIMITS, ids=[f"{n}={v}" for n, v in BAD_LIMITS])
def test_a_limit_that_makes_no_sense_is_named(name: str, value: object) -> None:
    """A wrong constant fails when it is set, not when it is needed."""
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=name):
        Limits(**arguments)


REFUSED: list[tuple[str, Any, str]] = [
    ("path_window", timedelta(0), "path_window must be a positive length of time"),
    ("path_tasks", "3", "path_tasks must be a whole number, not '3'"),
    ("path_tasks", 0, "path_tasks must be at least 1, not 0"),
    ("max_fix_tasks", -1, "max_fix_tasks must be at least 0, not -1"),
    ("pingpong_cap", 11, "pingpong_cap must be between 1 and 10"),
]


@pytest.mark.parametrize(("name", "value", "words"), REFUSED, ids=[each[2] for each in REFUSED])
def test_the_error_says_what_a_limit_must_be(name: str, value: object, words: str) -> None:
    """The field, what it may be, and what it was."""
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        Limits(**arguments)


def test_an_act_can_not_be_counted_below_zero() -> None:
    """The field and the reason."""
    with pytest.raises(ValueError, match=r"^merges must not be negative: acts are counted$"):
        Acts(merges=-1)


def test_the_shipped_limits() -> None:
    """The numbers of DESIGN §3; changing one is a decision, not an accident."""
    assert Limits() == Limits(
        max_review_iterations=5,
        max_fix_tasks=10,
        max_task_files=5,
        max_also_files=5,
        path_tasks=3,
        path_window=timedelta(days=7),
        pingpong_cap=3,
        max_bot_prs_per_day=20,
        bot_prs_per_window=10,
        bot_pr_window=timedelta(minutes=20),
        verify_cycles=2,
        thread_replies=2,
        model_calls_per_session=40,
        risk_pattern_warnings=3,
        risk_pattern_same_place=2,
        stall_turns=2,
        max_flips=2,
        coverage_attempts=2,
        max_reviewers=7,
        sessions_per_agent=3,
        max_model_runs=0,
        budget_input_tokens=2_000_000,
        budget_micro_dollars=10_000_000,
        budget_model_seconds=3_600,
    )


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: path.name)
def test_the_guards_import_only_themselves_and_the_standard_library(path: Path) -> None:
    """Pure rules: nothing of the product, nothing installed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in names:
            top = name.split(".")[0]
            assert top == "loop_guards" or top in sys.stdlib_module_names


def test_the_guards_run_without_anything_installed() -> None:
    """In an interpreter with no site-packages the package imports and brings nothing of the app."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import loop_guards; "
        "print(sorted({name.split('.')[0] for name in sys.modules} "
        "- set(sys.stdlib_module_names) - {'__main__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == ("['loop_guards']", "")


@pytest.mark.parametrize("path", APP, ids=lambda path: path.stem)
def test_the_product_uses_the_public_surface_alone(path: Path) -> None:
    """The seal lies in a submodule; code that imports one could forge decisions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("loop_guards.")
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("loop_guards.") for alias in node.names)


def test_the_public_surface_is_what_it_says() -> None:
    """Every name of `__all__` exists, once; the seal is not among them."""
    assert len(set(loop_guards.__all__)) == len(loop_guards.__all__)
    assert all(hasattr(loop_guards, name) for name in loop_guards.__all__)
    assert not {"sealed", "Sealed"} & set(loop_guards.__all__)


def test_two_hundred_findings_are_decided_quickly() -> None:
    """200 decisions with their traces take about 2 ms; ten times that is a changed algorithm."""
    findings = [finding(number, f"{number}.py") for number in range(200)]
    facts = merge()
    best = min(_seconds(findings, facts) for _ in range(5))
    assert best < 0.02


def _seconds(findings: list[HandoffFinding], facts: MergeFacts) -> float:
    begun = time.process_time()
    for each in findings:
        decide_handoff(each, facts, LIMITS)
    return time.process_time() - begun
