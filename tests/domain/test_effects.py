"""Effects can't be built in a shape that GitHub would refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.effects import (
    CheckAction,
    CheckConclusion,
    CheckStatus,
    PublishReview,
    ReviewEvent,
    SetCheckRun,
)
from app.domain.markers import Marker, MarkerKind
from app.domain.permits import SaidVerdict
from loop_guards import Verdict
from tests.domain.decisions import after, rubric

COMMENT, APPROVE, REQUEST = ReviewEvent.COMMENT, ReviewEvent.APPROVE, ReviewEvent.REQUEST_CHANGES
ACTION = CheckAction("Queue fixes", "Fix what was found", "queue")


@pytest.mark.parametrize(
    ("status", "conclusion"),
    [
        pytest.param(CheckStatus.COMPLETED, None, id="no conclusion"),
        pytest.param(CheckStatus.IN_PROGRESS, CheckConclusion.SUCCESS, id="too early"),
    ],
)
def test_status_and_conclusion(status: CheckStatus, conclusion: CheckConclusion | None) -> None:
    """GitHub completes a run that has a conclusion, whatever status was sent with it."""
    with pytest.raises(ValueError, match="disagree"):
        SetCheckRun("a" * 40, "1", status, "t", "s", conclusion)


def test_at_most_three_buttons() -> None:
    """A fourth button refuses the whole check run."""
    with pytest.raises(ValueError, match="3 buttons"):
        SetCheckRun("a" * 40, "1", CheckStatus.QUEUED, "t", "s", actions=(ACTION,) * 4)


@pytest.mark.parametrize(
    ("label", "description", "identifier"),
    [
        pytest.param("l" * 21, "d", "i", id="label"),
        pytest.param("l", "d" * 41, "i", id="description"),
        pytest.param("l", "d", "i" * 21, id="identifier"),
    ],
)
def test_short_buttons(label: str, description: str, identifier: str) -> None:
    """GitHub's limits for a button are 20, 40 and 20 characters."""
    with pytest.raises(ValueError, match="longer than GitHub allows"):
        CheckAction(label, description, identifier)


SAID = [
    pytest.param(rubric(Verdict.APPROVED), True, id="approved"),
    pytest.param(rubric(Verdict.APPROVED_WITH_COMMENTS), True, id="with comments"),
    pytest.param(rubric(Verdict.APPROVED, full=False), False, id="not read whole"),
    pytest.param(rubric(Verdict.MINOR_ISSUES), False, id="minor issues"),
    pytest.param(rubric(Verdict.SIGNIFICANT_CONCERNS), False, id="concerns"),
    pytest.param(after(Verdict.APPROVED), True, id="fix approved"),
    pytest.param(after(Verdict.APPROVED, full=False), False, id="fix not read whole"),
    pytest.param(after(Verdict.CHANGES_REQUESTED), False, id="fix goes on"),
    pytest.param(after(Verdict.ESCALATED), False, id="fix escalated"),
]


def review(event: ReviewEvent, verdict: SaidVerdict) -> PublishReview:
    return PublishReview(event, "b", "a" * 40, Marker(MarkerKind.REVIEW, "run-1"), verdict)


def check(conclusion: CheckConclusion, verdict: SaidVerdict | None) -> SetCheckRun:
    return SetCheckRun("a" * 40, "1", CheckStatus.COMPLETED, "t", "s", conclusion, verdict=verdict)


@pytest.mark.parametrize(("verdict", "approves"), SAID)
def test_a_review_says_what_the_guards_said(verdict: SaidVerdict, approves: bool) -> None:
    """No approval without theirs, no request for changes against theirs; a comment is advice."""
    fitting, wrong = (APPROVE, REQUEST) if approves else (REQUEST, APPROVE)
    assert review(fitting, verdict).verdict is verdict
    assert review(COMMENT, verdict).event is COMMENT
    with pytest.raises(ValueError, match=f"{wrong} is not what .* said: {verdict.verdict} "):
        review(wrong, verdict)
    with pytest.raises(ValueError, match="is not what loop_guards said"):
        replace(review(fitting, verdict), event=wrong)


@pytest.mark.parametrize(("verdict", "approves"), SAID)
def test_a_green_check_is_an_approval(verdict: SaidVerdict, approves: bool) -> None:
    """What a required check lets pass as success was approved; every other end needs no verdict."""
    if approves:
        assert check(CheckConclusion.SUCCESS, verdict).verdict is verdict
    else:
        with pytest.raises(ValueError, match=f"SUCCESS is not what .* said: {verdict.verdict} "):
            check(CheckConclusion.SUCCESS, verdict)
    for conclusion in CheckConclusion:
        if conclusion is not CheckConclusion.SUCCESS:
            assert check(conclusion, None).conclusion is conclusion


def test_a_green_check_without_a_verdict() -> None:
    """Nobody is green by omission."""
    with pytest.raises(ValueError, match="SUCCESS needs a verdict of loop_guards"):
        check(CheckConclusion.SUCCESS, None)
