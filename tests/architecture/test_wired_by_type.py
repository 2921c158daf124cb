"""What makes the loop go on takes a decision of the guards, and nothing else passes for one.

Three kinds of acts: creating a fix task, publishing a verdict, starting a machine-caused run. Here
each of them is given something else, to the type checker and at run time; `test_acts` looks for
acts that nobody thought of.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.domain.effects import (
    CheckConclusion,
    CheckStatus,
    PublishReview,
    ReviewEvent,
    SetCheckRun,
)
from app.domain.markers import Marker, MarkerKind
from app.domain.permits import ResumePermit, ReviewPermit, TurnPermit
from app.fixer.agent import FixSession
from app.fixer.record import begin_turn
from app.review.following import follow
from app.review.record import open_run
from app.store.fixtasks import create_task, resume_task
from loop_guards import (
    FixedFacts,
    StartDecision,
    TaskPlan,
    Verdict,
    VerdictDecision,
    judge_fixed,
)
from tests.domain.decisions import resume_order, review_start, round_start, rubric

ROOT = Path(__file__).parents[2]
MARKER = Marker(MarkerKind.REVIEW, "run-1")
ANSWER = judge_fixed(FixedFacts(True, frozenset({"a.py"}), frozenset({"a.py"})))

# By type: what the checker says about code that did not ask.

PLANTED = """
from typing import Any
from app.domain.effects import CheckConclusion, CheckStatus, PublishReview, ReviewEvent, SetCheckRun
from app.domain.markers import Marker, MarkerKind
from app.domain.permits import ResumePermit, ReviewPermit, TurnPermit
from app.fixer.agent import FixSession
from app.fixer.record import begin_turn
from app.review.publish import Publishing
from app.review.following import follow
from app.review.record import open_run
from app.store.fixtasks import create_task, resume_task
from loop_guards import (
    Decision, HandoffDecision, NextDecision, OrderDecision, ReviewDecision, StartDecision, TaskPlan,
    Verdict, VerdictDecision,
)

class LooksLikeOne:
    verdict, approves, allowed, outcome, reason = Verdict.APPROVED, True, True, "start", "allowed"

MARKER = Marker(MarkerKind.REVIEW, "run-1")
DONE, GREEN = CheckStatus.COMPLETED, CheckConclusion.SUCCESS

def publishes(verdict: VerdictDecision, following: NextDecision, start: StartDecision) -> None:
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, verdict)
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, following)
    SetCheckRun("h", "1", DONE, "t", "s", GREEN, verdict=verdict)
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER)  # bad
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, None)  # bad
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, Verdict.APPROVED)  # bad
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, LooksLikeOne())  # bad
    PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, start)  # bad
    SetCheckRun("h", "1", DONE, "t", "s", GREEN, verdict=True)  # bad
    SetCheckRun("h", "1", DONE, "t", "s", GREEN, verdict=start)  # bad

def permits(
    start: StartDecision, review: ReviewDecision, order: OrderDecision, handoff: HandoffDecision,
    anything: Decision,
) -> None:
    ReviewPermit((review, start))
    TurnPermit(start)
    ResumePermit(order)
    ResumePermit(handoff)
    ReviewPermit((anything,))  # bad
    ReviewPermit((order,))  # bad
    TurnPermit(review)  # bad
    TurnPermit(True)  # bad
    TurnPermit(LooksLikeOne())  # bad
    ResumePermit(start)  # bad
    ResumePermit(None)  # bad

async def acts(
    x: Any, plan: TaskPlan, review: ReviewPermit, turn: TurnPermit, resume: ResumePermit,
    following: NextDecision, start: StartDecision, handoff: HandoffDecision,
) -> None:
    await create_task(x, plan, x, now=x)
    await open_run(x, x, x, review)
    await begin_turn(x, x, turn)
    await resume_task(x, x, resume, 2, now=x)
    await follow(x, x, x, following, x)
    FixSession(x, x, x, x, turn)
    await create_task(x, handoff, x, now=x)  # bad
    await create_task(x, LooksLikeOne(), x, now=x)  # bad
    await open_run(x, x, x)  # bad
    await open_run(x, x, x, turn)  # bad
    await begin_turn(x, x, start)  # bad
    await resume_task(x, x, 2, now=x)  # bad
    await follow(x, x, x, start, x)  # bad
    FixSession(x, x, x, x)  # bad
    FixSession(x, x, x, x, None)  # bad
"""


def test_the_type_checker_reports_exactly_what_did_not_ask(tmp_path: Path) -> None:
    """Each violation is an error on its own line, and code that asked has none."""
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED, encoding="utf-8")
    result = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file=", "--strict"),
            # Of other people's packages nothing is needed, and without them this takes seconds.
            *("--no-site-packages", "--ignore-missing-imports", "--allow-subclassing-any"),
            *("--follow-imports=silent", "--explicit-package-bases", "--no-color-output"),
            *("--cache-dir", str(tmp_path / "cache"), str(planted)),
        ],
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = PLANTED.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# bad")}
    said = [line.split(":") for line in result.stdout.splitlines() if ": error:" in line]
    assert {int(parts[1]) for parts in said} == wrong, result.stdout + result.stderr


# At run time: what no checker read is refused all the same.


class LooksLikeOne:
    """Says of itself what a decision says, its class included."""

    verdict = Verdict.APPROVED
    approves = allowed = True
    outcome, reason = "start", "allowed"
    __class__ = VerdictDecision  # type: ignore[assignment]  # that is the lie


MADE_HERE: dict[str, Callable[[], object]] = {
    "verdict": lambda: VerdictDecision(
        outcome="approved", reason="nothing", verdict=Verdict.APPROVED, approves=True
    ),
    "permission": lambda: StartDecision(outcome="start", reason="allowed"),
    "plan": lambda: TaskPlan(
        key="k",
        target="builtin",
        paths=("a.py",),
        finding_ids=(1,),
        ordered_ids=frozenset(),
        batch="merge",
        waiting=False,
        decisions=(),
    ),
    "approval by replacing": lambda: replace(rubric(Verdict.MINOR_ISSUES), approves=True),
    "refusal turned round": lambda: replace(round_start(allowed=False), outcome="start"),
}


@pytest.mark.parametrize("make", MADE_HERE.values(), ids=MADE_HERE)
def test_nobody_else_makes_a_decision(make: Callable[[], object]) -> None:
    """Neither new nor from an old one: only what was asked of loop_guards exists."""
    with pytest.raises(TypeError, match="ask loop_guards instead"):
        make()


def review_of(said: Any) -> object:
    return PublishReview(ReviewEvent.APPROVE, "b", "h", MARKER, said)


def green(said: Any) -> object:
    return SetCheckRun(
        "h", "1", CheckStatus.COMPLETED, "t", "s", CheckConclusion.SUCCESS, verdict=said
    )


def a_round_of_a_task(said: Any) -> object:
    """A run of a fix pull request."""
    return open_run(nothing(), nothing(), nothing(task=nothing(task_id=1)), said)


def nothing(**known: Any) -> Any:
    return SimpleNamespace(**known)


ACTS: dict[str, Callable[[Any], object]] = {
    "review": review_of,
    "check": green,
    "review permit": lambda said: ReviewPermit((said,)),
    "turn permit": TurnPermit,
    "resume permit": ResumePermit,
    "task": lambda said: create_task(nothing(), said, nothing(), now=nothing()),
    "run": a_round_of_a_task,
    "turn": lambda said: begin_turn(nothing(), nothing(), said),
    "session": lambda said: FixSession(nothing(), nothing(), nothing(), nothing(), said),
    "resume": lambda said: resume_task(nothing(), nothing(), said, 2, now=nothing()),
    "what follows": lambda said: follow(nothing(), nothing(), nothing(), said, nothing()),
}
"""Everything that makes the loop go on, given a decision."""

FALSE = {"none": None, "true": True, "a look-alike": LooksLikeOne(), "an answer": ANSWER}
"""ANSWER was asked for, but says nothing about any of these acts."""


@pytest.mark.parametrize("false", FALSE.values(), ids=FALSE)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_what_nobody_decided_starts_nothing(
    act: Callable[[Any], object], false: object
) -> None:
    """What is no decision of the right kind is refused before anything is read or written."""

    async def acted() -> None:
        begun = act(false)
        if inspect.isawaitable(begun):
            await begun

    with pytest.raises((TypeError, ValueError), match=r"ask loop_guards for|needs a verdict"):
        await acted()


async def test_a_permission_for_a_look_is_none_for_a_round() -> None:
    """A run on a fix pull request is a round of its task: that was to be asked, too."""
    permit = ReviewPermit((review_start(),))
    with pytest.raises(ValueError, match="no round of fix task 1 was asked for"):
        await open_run(nothing(), nothing(), nothing(task=nothing(task_id=1)), permit)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ReviewPermit((review_start(allowed=False),)), id="skipped"),
        pytest.param(
            lambda: ReviewPermit((review_start(), round_start(allowed=False))), id="no round"
        ),
        pytest.param(lambda: ReviewPermit((round_start(),)), id="a round without a review"),
        pytest.param(lambda: ReviewPermit(()), id="nobody asked"),
        pytest.param(lambda: TurnPermit(round_start(allowed=False)), id="no turn"),
        pytest.param(lambda: ResumePermit(resume_order(resumes=False)), id="an order, no resume"),
    ],
)
def test_a_refusal_is_no_permission(make: Callable[[], object]) -> None:
    """Having asked is not enough: the answer must allow it."""
    with pytest.raises(ValueError, match="may not start"):
        make()
