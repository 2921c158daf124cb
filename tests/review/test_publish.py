"""What a round writes (app/review/publish.py)."""

from __future__ import annotations

import pytest

from app.domain.coverage import CoverageState
from app.domain.effects import (
    NEEDS_HUMAN,
    AddLabel,
    AnnotationLevel,
    CheckConclusion,
    Comment,
    DismissReview,
    PublishReview,
    ResolveThread,
    ReviewEvent,
    ReviewReceipt,
    SetCheckRun,
    SetStickyComment,
)
from app.domain.findings import Location
from app.domain.forge import PublishedReview, ReviewState
from app.review.publish import (
    Publishing,
    conclusion_of,
    effects_of,
    event_of,
    review_marker,
    told_in_body,
    unreviewed_check,
)
from loop_guards import Severity, Verdict
from tests.review.factories import coverage, finding, publishing, view

CONCERNS = view(verdict=Verdict.SIGNIFICANT_CONCERNS, fresh=(finding(),))
CHANGES = view(verdict=Verdict.CHANGES_REQUESTED, fresh=(finding(),))
MINOR = view(verdict=Verdict.MINOR_ISSUES, fresh=(finding(),))
PARTLY = view(coverage=coverage(CoverageState.TOO_LARGE, "window"))
FAILED = view(failed_reviewers=("security",))


@pytest.mark.parametrize(
    ("facts", "event", "conclusion"),
    [
        pytest.param(
            publishing(), ReviewEvent.COMMENT, CheckConclusion.SUCCESS, id="advise-clean"
        ),
        pytest.param(
            publishing(CONCERNS),
            ReviewEvent.COMMENT, CheckConclusion.NEUTRAL, id="advise-concerns-block-nothing",
        ),
        pytest.param(
            publishing(gated=True), ReviewEvent.APPROVE, CheckConclusion.SUCCESS, id="gate-clean"
        ),
        pytest.param(
            publishing(CONCERNS, gated=True),
            ReviewEvent.REQUEST_CHANGES, CheckConclusion.FAILURE, id="gate-concerns",
        ),
        pytest.param(
            publishing(MINOR, gated=True),
            ReviewEvent.COMMENT, CheckConclusion.NEUTRAL, id="gate-minor-issues",
        ),
        pytest.param(
            publishing(PARTLY, gated=True),
            ReviewEvent.COMMENT, CheckConclusion.ACTION_REQUIRED, id="gate-partly-covered",
        ),
        pytest.param(
            publishing(FAILED, gated=True),
            ReviewEvent.COMMENT, CheckConclusion.ACTION_REQUIRED, id="gate-reviewer-failed",
        ),
        pytest.param(
            publishing(PARTLY),
            ReviewEvent.COMMENT, CheckConclusion.NEUTRAL, id="advise-partly-covered",
        ),
        pytest.param(
            publishing(is_fix_pr=True),
            ReviewEvent.APPROVE, CheckConclusion.SUCCESS, id="fix-approved",
        ),
        pytest.param(
            publishing(CHANGES, is_fix_pr=True),
            ReviewEvent.REQUEST_CHANGES, CheckConclusion.FAILURE, id="fix-changes-requested",
        ),
        pytest.param(
            publishing(CHANGES, is_fix_pr=True, gated=True, escalation="Cap."),
            ReviewEvent.REQUEST_CHANGES, CheckConclusion.ACTION_REQUIRED, id="fix-escalated-gate",
        ),
    ],
)  # fmt: skip
def test_what_the_forge_is_told(
    facts: Publishing, event: ReviewEvent, conclusion: CheckConclusion
) -> None:
    """Advice blocks nothing; a gate is green only for a head that was reviewed whole."""
    assert (event_of(facts), conclusion_of(facts)) == (event, conclusion)


@pytest.mark.parametrize(
    ("gated", "conclusion"),
    [
        pytest.param(True, CheckConclusion.ACTION_REQUIRED, id="gate"),
        pytest.param(False, CheckConclusion.NEUTRAL, id="advise"),
    ],
)
def test_a_head_that_was_not_reviewed(gated: bool, conclusion: CheckConclusion) -> None:
    """Neutral passes a required check, so a gate never says it of an unreviewed head."""
    check = unreviewed_check("run-1", "b" * 40, "Skipped", "Why.", gated=gated)
    assert check.conclusion is conclusion


def test_one_round_writes_review_status_and_check_in_this_order() -> None:
    """A round costs one content-creating request besides the sticky comment; the check ends it."""
    effects = effects_of(publishing(CONCERNS))
    assert [type(effect) for effect in effects] == [PublishReview, SetStickyComment, SetCheckRun]


def test_what_nobody_sees_is_told_whole() -> None:
    """The same review says what it would have said without that anchor: the defect and what it
    would do in production; what stands on its line is not repeated."""
    fresh = (
        finding(1, body="The first breaks.", production_risk="Orders are lost."),
        finding(2, body="The second breaks.", production_risk="Pages go blank."),
    )
    seen = view(verdict=Verdict.SIGNIFICANT_CONCERNS, fresh=fresh, inline=frozenset({"F1", "F2"}))
    receipt = ReviewReceipt(9, ReviewEvent.COMMENT, unplaced=("finding-2",))
    edit = told_in_body(publishing(seen), receipt)
    assert (edit.review_id, edit.marker) == (9, review_marker(seen.run_id))
    texts = ("The first breaks.", "Orders are lost.", "The second breaks.", "Pages go blank.")
    assert [edit.body.count(text) for text in texts] == [0, 0, 1, 1]


def test_a_round_that_changes_nothing_posts_no_review() -> None:
    """What the last review said is not said again."""
    effects = effects_of(publishing(changed=False))
    assert [type(effect) for effect in effects] == [SetStickyComment, SetCheckRun]


def test_a_comment_withdraws_earlier_verdicts() -> None:
    """A comment lifts no block, so what stands is dismissed, and only that."""
    ours = tuple(
        PublishedReview(number, state, "b" * 40, "")
        for number, state in enumerate(ReviewState, start=1)
    )
    effects = effects_of(publishing(MINOR, gated=True, our_reviews=ours))
    dismissed = {effect.review_id for effect in effects if isinstance(effect, DismissReview)}
    standing = {r.id for r in ours if r.state.value in ("APPROVED", "CHANGES_REQUESTED")}
    assert dismissed == standing


def test_a_new_verdict_dismisses_nothing() -> None:
    """An approval replaces our own earlier verdict by itself."""
    ours = (PublishedReview(1, ReviewState.CHANGES_REQUESTED, "b" * 40, ""),)
    effects = effects_of(publishing(is_fix_pr=True, our_reviews=ours))
    assert not any(isinstance(effect, DismissReview) for effect in effects)


def test_fixed_findings_resolve_their_own_threads_only() -> None:
    """A thread is resolved for a fixed finding that has one; if not granted, a reply says so."""
    seen = view(fixed=(finding(1), finding(2)))
    effects = effects_of(publishing(seen, thread_ids={"F1": "PRRT_1"}, comment_ids={"F1": 11}))
    resolved = [effect for effect in effects if isinstance(effect, ResolveThread)]
    assert [(item.node_id, item.otherwise and item.otherwise.comment_id) for item in resolved] == [
        ("PRRT_1", 11)
    ]


def test_an_escalation_is_one_comment_and_one_label() -> None:
    """A human is asked once, with the rule and the cost."""
    effects = effects_of(publishing(CHANGES, is_fix_pr=True, escalation="Cap."))
    said = [effect for effect in effects if isinstance(effect, Comment)]
    assert [label.name for label in effects if isinstance(label, AddLabel)] == [NEEDS_HUMAN]
    assert len(said) == 1
    assert "Cap." in said[0].body
    assert "$" in said[0].body


def test_what_has_no_place_in_the_diff_stands_in_the_body() -> None:
    """Losing an anchor loses no finding."""
    lost = finding(2, location=Location("app/a.py", 900, 900), body="Far away.")
    seen = view(
        verdict=Verdict.SIGNIFICANT_CONCERNS, fresh=(finding(), lost), inline=frozenset({"F1"})
    )
    (review,) = [
        effect for effect in effects_of(publishing(seen)) if isinstance(effect, PublishReview)
    ]
    assert [comment.marker.id for comment in review.comments] == ["finding-1"]
    assert "Far away." in review.body


@pytest.mark.parametrize(
    ("changes", "fix", "labels"),
    [
        pytest.param({}, False, ["Re-review"], id="clean"),
        pytest.param(
            {"fresh": (finding(1),), "verdict": Verdict.SIGNIFICANT_CONCERNS},
            False,
            ["Queue fixes", "Re-review", "Explain"],
            id="findings",
        ),
        pytest.param(
            {"open_before": (finding(1),), "verdict": Verdict.SIGNIFICANT_CONCERNS},
            False,
            ["Queue fixes", "Re-review", "Explain"],
            id="still-open",
        ),
        pytest.param(
            {"fresh": (finding(1),), "verdict": Verdict.CHANGES_REQUESTED},
            True,
            ["Re-review", "Explain"],
            id="a-fix-gets-its-turns-by-itself",
        ),
        pytest.param(
            {"failed_reviewers": ("security",)}, False, ["Re-review", "Explain"], id="in-part"
        ),
    ],
)
def test_buttons(changes: dict[str, object], fix: bool, labels: list[str]) -> None:
    """At most three, and none that would do nothing here."""
    check = effects_of(publishing(view(**changes), is_fix_pr=fix))[-1]
    assert isinstance(check, SetCheckRun)
    assert [button.label for button in check.actions] == labels


def test_annotations_show_what_is_open_on_this_head() -> None:
    """The worst first, also of earlier rounds; what has no line has no annotation; never more than
    go with the request that ends the check."""
    minor = [
        finding(n, severity=Severity.SUGGESTION, location=Location("app/a.py", n, n))
        for n in range(10, 70)
    ]
    whole = finding(3, location=Location("app/a.py"))
    seen = view(
        fresh=(*minor, whole),
        open_before=(finding(2, body="cc @acme/all"),),
        fixed=(finding(4),),
        verdict=Verdict.SIGNIFICANT_CONCERNS,
    )
    check = effects_of(publishing(seen))[-1]
    assert isinstance(check, SetCheckRun)
    assert len(check.annotations) == 50
    first = check.annotations[0]
    assert (first.path, first.start_line, first.level) == ("app/a.py", 2, AnnotationLevel.FAILURE)
    assert first.title == "F2 critical: Defect 2"
    assert "@acme" not in first.message
    assert {item.level for item in check.annotations[1:]} == {AnnotationLevel.NOTICE}
