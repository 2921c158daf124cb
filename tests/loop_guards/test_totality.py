"""Every public function answers every input of its types. A new one is asked here by itself."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loop_guards as guards
from loop_guards import (
    ClosePlan,
    Decision,
    HandoffFinding,
    Limits,
    MergeFacts,
    NextOutcome,
    plan_merged,
)
from tests.loop_guards.factories import ANY_LIMITS, PATIENT, anything

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value for name in guards.__all__ if inspect.isfunction(value := getattr(guards, name))
}


def returned(function: Callable[..., Any]) -> Any:
    return typing.get_type_hints(function)["return"]


def decides(function: Callable[..., Any]) -> bool:
    kind = returned(function)
    return isinstance(kind, type) and issubclass(kind, Decision)


# The words that each deciding function answers with.
WORDS: dict[str, tuple[type[StrEnum], type[StrEnum]]] = {
    "after_round": (guards.NextOutcome, guards.NextReason),
    "answer_dismissal": (guards.DismissalOutcome, guards.DismissalReason),
    "answer_glass": (guards.GlassOutcome, guards.GlassReason),
    "answer_order": (guards.OrderOutcome, guards.OrderReason),
    "answer_resume": (guards.ResumeOutcome, guards.ResumeReason),
    "answer_stop": (guards.StopOutcome, guards.StopReason),
    "answer_unqueue": (guards.UnqueueOutcome, guards.UnqueueReason),
    "decide_fix_verdict": (guards.Verdict, guards.ConvergenceReason),
    "decide_handoff": (guards.HandoffOutcome, guards.HandoffReason),
    "decide_rubric": (guards.Verdict, guards.RubricReason),
    "decide_thread": (guards.ThreadAction, guards.ThreadReason),
    "judge_actor": (guards.ActorOutcome, guards.ActorReason),
    "judge_fixed": (guards.FixedOutcome, guards.FixedReason),
    "judge_return": (guards.ReturnOutcome, guards.ReturnReason),
    "may_review": (guards.ReviewOutcome, guards.ReviewReason),
    "may_start_round": (guards.StartOutcome, guards.StartReason),
    "may_start_turn": (guards.StartOutcome, guards.StartReason),
    "may_verify": (guards.VerifyOutcome, guards.VerifyReason),
    "move_task": (guards.TaskState, guards.TaskReason),
}


def test_every_deciding_function_is_asked() -> None:
    """A new question needs its words here, and by that its answers are held to them."""
    assert {name for name, each in FUNCTIONS.items() if decides(each)} == set(WORDS)


ANSWERED = {"outcome": st.sampled_from(NextOutcome), "batch": st.just("7")}
"""Arguments that are words of ours, not anything."""


def arguments(function: Callable[..., Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Anything of the types that the function says it takes."""
    hints = typing.get_type_hints(function)
    names = inspect.signature(function).parameters
    return st.fixed_dictionaries(
        {name: ANSWERED[name] if name in ANSWERED else anything(hints[name]) for name in names}
    )


def _plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_plain(each) for each in value)
    return value is None or type(value) in (str, int, float, bool)


@pytest.mark.parametrize("name", WORDS)
def test_every_question_has_an_answer(name: str) -> None:
    """Total: no input of its types raises; the answer is explained in words of its own enums, and
    its record is plain data that is read back as it was written."""
    function, (outcomes, reasons) = FUNCTIONS[name], WORDS[name]

    @PATIENT
    @given(arguments(function))
    def answers(facts: dict[str, Any]) -> None:
        decision: Decision = function(**facts)
        assert type(decision) is returned(function)
        assert type(decision.outcome) is outcomes
        spoken = [asked.reason for asked in decision.trace if asked.reason is not None]
        assert decision.trace
        assert {type(code) for code in (decision.reason, *decision.reasons, *spoken)} == {reasons}
        record = decision.as_record()
        assert _plain(record)
        assert json.loads(json.dumps(record)) == record
        assert record["reason"] == record["reasons"][0]

    answers()


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(WORDS)))
def test_every_other_question_is_total_too(name: str) -> None:
    """Counts, plans and yes-or-no: an answer of the promised type, for every input."""
    function = FUNCTIONS[name]
    promised = typing.get_origin(returned(function)) or returned(function)

    @PATIENT
    @given(arguments(function))
    def answers(facts: dict[str, Any]) -> None:
        answer = function(**facts)
        assert isinstance(answer, promised)
        if isinstance(answer, ClosePlan):
            assert all(said.trace for said in answer.decisions)

    answers()


# Plain facts that an answer does not tell again, and what it tells besides the facts.
UNTOLD: dict[str, str] = {
    # Names of what is decided about: no guard compares them, and the plan holds them.
    "decide_handoff": "id target repository merge_commit",
}
AMOUNTS = " ".join(
    f"{amount}_{unit}"
    for amount in ("spent", "reserved", "worst_case", "budget")
    for unit in ("input_tokens", "micro_dollars", "model_seconds", "model_runs")
)
BESIDES: dict[str, str] = {
    "after_round": "blocking spent_input_tokens spent_micro_dollars spent_model_seconds "
    "spent_model_runs",
    "answer_resume": "resume_rounds",
    "decide_fix_verdict": "blocking findings coverage_full",
    "decide_handoff": "order dismissed_at max_fix_tasks max_path_tasks",
    "decide_rubric": "critical warning suggestion production_risk coverage_full "
    "risk_pattern_warnings risk_pattern_same_place",
    "decide_thread": "thread_replies",
    "judge_fixed": "changed files",
    "judge_return": "max_flips",
    "may_review": "pingpong_cap max_bot_prs_per_day bot_prs_per_window",
    "may_start_round": AMOUNTS,
    "may_start_turn": AMOUNTS,
    "may_verify": "verify_cycles",
    "move_task": "event",
}
LIMITS_TOLD = {item.name for item in fields(Limits)} - set(AMOUNTS.split())


def _facts(given_facts: dict[str, Any]) -> dict[str, Any]:
    """The plain facts among the arguments, by name."""
    every = [
        (item.name, getattr(value, item.name))
        for value in given_facts.values()
        if is_dataclass(value) and not isinstance(value, Limits)
        for item in fields(value)
    ]
    return {name: value for name, value in every if value is None or isinstance(value, str | int)}


@pytest.mark.parametrize("name", WORDS)
def test_what_was_compared_is_told_as_it_was(name: str) -> None:
    """An answer tells the facts that it is made of and the limits that it was held to."""
    function = FUNCTIONS[name]
    besides = set(BESIDES.get(name, "").split())

    @PATIENT
    @given(arguments(function))
    def tells(given_facts: dict[str, Any]) -> None:
        compared = dict(function(**given_facts).compared)
        told = {key: compared.pop(key) for key in besides}
        facts = _facts(given_facts)
        left_out = {key: facts.pop(key, None) for key in UNTOLD.get(name, "").split()}
        assert compared == {key: facts[key] for key in facts if key not in told}
        assert not set(left_out) & set(compared)
        for key in set(told) & LIMITS_TOLD:
            assert told[key] == getattr(given_facts["limits"], key)

    tells()


@PATIENT
@given(anything(tuple[HandoffFinding, ...]), anything(MergeFacts), ANY_LIMITS)
def test_every_merge_has_a_plan(
    findings: tuple[HandoffFinding, ...], facts: MergeFacts, limits: Limits
) -> None:
    """Total too: also for findings that contradict each other or share an id."""
    made = plan_merged(findings, facts, limits)
    assert len(made.decisions) == len(findings)
    assert all(len(task.paths) <= limits.max_task_files for task in made.tasks)
