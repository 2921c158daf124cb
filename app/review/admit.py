"""May this run start? Facts are mapped to the guards' questions; the guards answer."""

from __future__ import annotations

from app.domain.policy import HumanPrs
from app.domain.pull_request import PullRequestState
from app.domain.runs import Trigger
from app.review.facts import ReviewFacts
from loop_guards import (
    Decision,
    Limits,
    ReviewDecision,
    ReviewStart,
    RoundFacts,
    StartDecision,
    may_review,
    may_start_round,
)

SKIP_LABEL = "mergeward:skip"


def admit(facts: ReviewFacts) -> tuple[ReviewDecision | StartDecision, ...]:
    """Every decision that was taken, in order; the run may start if the last one allows it."""
    task = facts.task
    first = may_review(
        ReviewStart(
            is_open=facts.pull_request.state is PullRequestState.OPEN,
            is_newest_head=True,
            draft=facts.pull_request.draft,
            by_human=facts.by_human,
            commanded=facts.trigger is Trigger.COMMAND,
            machine_rounds=facts.machine_rounds,
            already_reviewed=facts.already_reviewed,
            is_fix_pr=task is not None,
            skip_label=_skips(facts),
            stopped=facts.stopped,
            escalated=task is not None and task.escalated,
        ),
        facts.limits,
    )
    if task is None or not first.allowed:
        return (first,)
    second = may_start_round(
        RoundFacts(
            rounds_started=task.rounds_started,
            allowance=task.allowance,
            spent=task.spent,
            stopped=task.stopped,
            escalated=task.escalated,
            lineage_resumes=task.lineage_resumes,
        ),
        facts.limits,
    )
    return (first, second)


def refuse_closed() -> ReviewDecision:
    """The guards' word on a pull request that is no longer open; nothing else is asked of it."""
    facts = ReviewStart(
        is_open=False,
        is_newest_head=True,
        draft=False,
        by_human=False,
        commanded=False,
        machine_rounds=0,
        already_reviewed=False,
    )
    return may_review(facts, Limits())


def _skips(facts: ReviewFacts) -> bool:
    """The label counts where a review is advice; a gate is not opened by a label."""
    gated = facts.policy.policy.human_prs is HumanPrs.GATE
    return not gated and SKIP_LABEL in facts.pull_request.labels


def reason_of(decisions: tuple[Decision, ...]) -> str:
    """The code of the decision that settled it."""
    return str(decisions[-1].reason)
