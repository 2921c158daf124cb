"""What the guards are asked about a round, kept and asked again (app/review/verdict.py)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.review.verdict import NextQuestion, Question, RubricQuestion, as_json, ask_again
from app.store.types import storable_json
from loop_guards import AfterRoundFacts, Limits, RubricFinding, VerdictDecision
from tests.loop_guards.factories import ANY_LIMITS, anything

QUESTIONS: st.SearchStrategy[Question] = st.one_of(
    st.builds(
        RubricQuestion,
        findings=st.lists(anything(RubricFinding), max_size=6).map(tuple),
        coverage_full=st.booleans(),
        limits=ANY_LIMITS,
    ),
    st.builds(NextQuestion, after=anything(AfterRoundFacts), limits=ANY_LIMITS),
)


def kept(question: Question) -> Any:
    """What a database gives back of it."""
    return json.loads(json.dumps(storable_json(as_json(question))))


@given(QUESTIONS)
def test_the_same_question_has_the_same_answer(question: Question) -> None:
    """A later try publishes exactly what the round was given, with reasons and trace."""
    assert ask_again(kept(question)) == question.answer()


def test_a_question_without_findings_is_the_rubrics() -> None:
    """The two kinds of questions are told apart also where there is nothing to tell."""
    said = ask_again(kept(RubricQuestion((), coverage_full=True, limits=Limits())))
    assert isinstance(said, VerdictDecision)
