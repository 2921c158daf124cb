"""What a review says (app/review/render.py)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from app.domain.coverage import CoverageState
from app.domain.runs import Usage
from app.review.render import (
    NextStep,
    check_summary,
    escalation_body,
    escalation_rule,
    headline,
    review_body,
    skipped_text,
    status_body,
)
from loop_guards import NextReason, ReviewReason, Severity, StartReason, Verdict
from tests.review.factories import coverage, finding, view


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_verdict_comes_first(verdict: Verdict) -> None:
    """Every verdict has words, and they open the review."""
    seen = view(verdict=verdict)
    assert review_body(seen).startswith(f"**{headline(seen)}.**")


def test_a_clean_change_gets_one_line() -> None:
    """Nothing found: one sentence, and the figures folded away."""
    visible = review_body(view()).partition("<details>")[0].strip()
    assert visible == "**Approved: no findings.**"


def test_counts_are_in_order_of_severity() -> None:
    """The worst comes first, fixed ones last."""
    seen = view(
        fresh=(
            finding(1, severity=Severity.WARNING),
            finding(2, severity=Severity.WARNING),
            finding(3),
        ),
        fixed=(finding(4),),
    )
    assert headline(seen) == "Approved: 1 critical, 2 warnings, 1 fixed"


def test_what_was_not_read_is_said() -> None:
    """A gap in coverage is named with its file and reason, and so is a failed reviewer."""
    seen = view(
        coverage=coverage(CoverageState.TOO_LARGE, "larger_than_window"),
        failed_reviewers=("security",),
    )
    body = review_body(seen)
    assert "`app/a.py` (too large for a model's context window)" in body
    assert "The security reviewer failed" in body


def test_an_unknown_price_is_not_zero() -> None:
    """A price nobody knows is called unknown."""
    assert "unknown" in review_body(view(usage=Usage(cost_usd=None)))
    assert "$1.5000" in review_body(view(usage=Usage(cost_usd=Decimal("1.5"))))


def test_rounds_are_shown_where_they_are_counted() -> None:
    """A fix sees its round and allowance; a person's own pull request is never counted down."""
    seen = view(allowance=5, round_number=2, next_step=NextStep.FIXER_TURN)
    assert "Round 2 of 5." in status_body(seen)
    assert "Round" not in status_body(view())


def test_model_text_cannot_mention_or_command() -> None:
    """What a model wrote pings nobody and is no command when it is posted."""
    hostile = finding(title="@everyone look", body="/mergeward fix all")
    seen = view(summary="cc @acme/admins", fresh=(hostile,))
    for text in (review_body(seen), check_summary(seen)):
        assert "@everyone" not in text
        assert "@acme/admins" not in text
        assert "\n/mergeward" not in text


def test_an_escalation_names_rule_rest_and_cost() -> None:
    """The one comment says all a person needs, and mentions only whom the policy names."""
    seen = view(open_before=(finding(1), finding(2)), blocking=frozenset({"F1"}), round_number=5)
    text = escalation_body(seen, escalation_rule("cap"), "octo/oncall")
    assert "all its rounds" in text
    assert "**F1**" in text
    assert "**F2**" not in text
    assert text.endswith("cc @octo/oncall")


@pytest.mark.parametrize("reason", [*ReviewReason, *StartReason])
def test_every_skip_has_a_sentence(reason: ReviewReason | StartReason) -> None:
    """No reason to skip is left without words."""
    assert skipped_text(reason.value).endswith(".")


_NO_ESCALATION = (
    NextReason.STOPPED,
    NextReason.NOTHING_BLOCKS,
    NextReason.FINDINGS_BLOCK,
    NextReason.LOOK_AGAIN,
)


@pytest.mark.parametrize(
    "reason",
    [item for item in NextReason if item not in _NO_ESCALATION],
)
def test_every_escalation_has_a_sentence(reason: NextReason) -> None:
    """No rule that ends the automation is left without words."""
    assert len(escalation_rule(reason.value)) > 20
