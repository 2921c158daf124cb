"""From a stored round to effects on the forge. `effects_of` is pure; everything is found again by
its marker, so publishing twice changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.domain.diff import Diff
from app.domain.effects import (
    NEEDS_HUMAN,
    AddLabel,
    Annotation,
    AnnotationLevel,
    CheckAction,
    CheckConclusion,
    CheckStatus,
    Comment,
    DismissReview,
    EditReview,
    Effect,
    InlineComment,
    PublishReview,
    ReplyToThread,
    ResolveThread,
    ReviewEvent,
    ReviewReceipt,
    SetCheckRun,
    SetStickyComment,
)
from app.domain.findings import Finding
from app.domain.forge import PublishedReview, ReviewState
from app.domain.markers import Marker, MarkerKind
from app.domain.permits import SaidVerdict, approves
from app.review.anchors import Anchor, anchor
from app.review.render import (
    ReviewView,
    annotation_text,
    annotation_title,
    check_summary,
    escalation_body,
    fixed_reply,
    forced_title,
    headline,
    inline_body,
    review_body,
    status_body,
)
from app.review.suggestions import suggestion_at
from app.store.glass import Forced
from loop_guards import Severity, Verdict

RE_REVIEW = CheckAction("Re-review", "Review this head again", "re-review")
QUEUE_FIXES = CheckAction("Queue fixes", "Hand every open finding to a fixer", "queue-fixes")
EXPLAIN = CheckAction("Explain", "Say why, in a comment", "explain")
"""The buttons; `app.commands.check_actions` answers them by the identifiers."""

_MOST_ANNOTATIONS = 50
"""As many as go with one request (GitHub's limit)."""

_LEVELS = {
    Severity.CRITICAL: AnnotationLevel.FAILURE,
    Severity.WARNING: AnnotationLevel.WARNING,
    Severity.SUGGESTION: AnnotationLevel.NOTICE,
}


@dataclass(frozen=True, slots=True)
class Publishing:
    """What effects are made from. `decision` is the guards' verdict, the one that `view` tells
    (ValueError otherwise). `thread_ids` and `comment_ids` are of fixed findings' threads, by short
    id. `escalation` is the sentence of the rule, None when nothing is escalated. `forced`: a person
    approved this head by force.
    """

    view: ReviewView
    diff: Diff
    pull_request_id: int
    gated: bool
    is_fix_pr: bool
    decision: SaidVerdict
    changed: bool
    our_reviews: tuple[PublishedReview, ...] = ()
    thread_ids: Mapping[str, str] = field(default_factory=dict)
    comment_ids: Mapping[str, int] = field(default_factory=dict)
    escalation: str | None = None
    escalate_to: str | None = None
    sticky_comment_id: int | None = None
    check_run_id: int | None = None
    forced: Forced | None = None

    @property
    def said(self) -> SaidVerdict:
        """What approves or does not: a person who broke the glass goes before the review."""
        return self.decision if self.forced is None else self.forced.decision

    def __post_init__(self) -> None:
        told, said = self.view.verdict, self.decision.verdict
        if told is not said:
            raise ValueError(f"the page would tell {told}, loop_guards said {said}")


def external_id(run_id: int) -> str:
    """How a run's check run is found again."""
    return f"run-{run_id}"


def review_marker(run_id: int) -> Marker:
    return Marker(MarkerKind.REVIEW, external_id(run_id))


def finding_marker(finding: Finding) -> Marker:
    return Marker(MarkerKind.FINDING, f"finding-{finding.id}")


def inline_anchors(findings: tuple[Finding, ...], diff: Diff) -> dict[str, Anchor]:
    """Where new findings stand in the diff; those without a place go into the body."""
    placed = ((f.short_id, anchor(f.location, diff, f.evidence)) for f in findings)
    return {short_id: place for short_id, place in placed if place is not None}


def effects_of(facts: Publishing) -> tuple[Effect, ...]:
    """Everything this round writes, in order: the review first, the check that says it is over
    last."""
    effects: list[Effect] = []
    if facts.changed:
        effects.append(_review(facts))
        effects += _withdrawals(facts)
    effects += _resolutions(facts)
    effects.append(_sticky(facts))
    effects += _escalation(facts)
    effects.append(_check(facts))
    return tuple(effects)


def told_in_body(facts: Publishing, receipt: ReviewReceipt) -> EditReview:
    """The published review with everything in its body that was to stand at a line and got none.
    The verdict is what it was: a finding counts wherever it is said."""
    view = facts.view
    unplaced = {
        finding.short_id for finding in view.fresh if finding_marker(finding).id in receipt.unplaced
    }
    told = replace(view, inline=view.inline - unplaced)
    return EditReview(receipt.review_id, review_marker(view.run_id), review_body(told))


def starting_check(run_id: int, head_sha: str) -> SetCheckRun:
    """The check while the run goes on."""
    return SetCheckRun(
        head_sha=head_sha,
        external_id=external_id(run_id),
        status=CheckStatus.IN_PROGRESS,
        title="Reviewing",
        summary="The reviewers are reading this change.",
    )


def unreviewed_check(
    external: str,
    head_sha: str,
    title: str,
    summary: str,
    *,
    gated: bool,
    forced: Forced | None = None,
) -> SetCheckRun:
    """The check of a head that was not reviewed. Neutral passes a required check, so behind a gate
    it asks for action instead. A head that a person `forced` stays approved."""
    if forced is not None:
        return SetCheckRun(
            head_sha=head_sha,
            external_id=external,
            status=CheckStatus.COMPLETED,
            conclusion=CheckConclusion.SUCCESS,
            title=forced_title(forced.login, title),
            summary=summary,
            verdict=forced.decision,
        )
    return SetCheckRun(
        head_sha=head_sha,
        external_id=external,
        status=CheckStatus.COMPLETED,
        conclusion=CheckConclusion.ACTION_REQUIRED if gated else CheckConclusion.NEUTRAL,
        title=title,
        summary=summary,
        actions=(RE_REVIEW,),
    )


def event_of(facts: Publishing) -> ReviewEvent:
    """What the review says to GitHub. Advice on a person's pull request is a comment."""
    judges = facts.is_fix_pr or facts.gated
    if judges and approves(facts.said):
        return ReviewEvent.APPROVE
    blocking = (Verdict.CHANGES_REQUESTED, Verdict.SIGNIFICANT_CONCERNS, Verdict.ESCALATED)
    if judges and facts.decision.verdict in blocking:
        return ReviewEvent.REQUEST_CHANGES
    return ReviewEvent.COMMENT


def conclusion_of(facts: Publishing) -> CheckConclusion:
    """The gate (DESIGN §7): green means reviewed, and below full coverage nothing is green."""
    if facts.forced is not None:
        return CheckConclusion.SUCCESS
    complete = facts.view.coverage.is_full and not facts.view.failed_reviewers
    if facts.escalation is not None or not complete:
        return CheckConclusion.ACTION_REQUIRED if facts.gated else CheckConclusion.NEUTRAL
    if approves(facts.decision):
        return CheckConclusion.SUCCESS
    if facts.is_fix_pr:
        return CheckConclusion.FAILURE
    bad = facts.decision.verdict is Verdict.SIGNIFICANT_CONCERNS
    return CheckConclusion.FAILURE if bad and facts.gated else CheckConclusion.NEUTRAL


def _review(facts: Publishing) -> PublishReview:
    view = facts.view
    places = inline_anchors(view.fresh, facts.diff)
    return PublishReview(
        event=event_of(facts),
        body=review_body(view),
        head_sha=view.head_sha,
        marker=review_marker(view.run_id),
        verdict=facts.said,
        comments=tuple(
            _inline(finding, places[finding.short_id], facts.diff)
            for finding in view.fresh
            if finding.short_id in places
        ),
    )


def _inline(finding: Finding, place: Anchor, diff: Diff) -> InlineComment:
    change = diff.file(place.path)
    block = suggestion_at(place, finding.location, change, finding.suggestion) if change else ""
    return InlineComment(
        path=place.path,
        line=place.line,
        side=place.side,
        start_line=place.start_line,
        body=inline_body(finding, block),
        marker=finding_marker(finding),
    )


def _withdrawals(facts: Publishing) -> list[Effect]:
    """A comment lifts no earlier verdict of ours: withdraw it in so many words."""
    if event_of(facts) is not ReviewEvent.COMMENT:
        return []
    standing = (ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED)
    return [
        DismissReview(review.id, f"Superseded: {headline(facts.view)}.")
        for review in facts.our_reviews
        if review.state in standing
    ]


def _resolutions(facts: Publishing) -> list[Effect]:
    effects: list[Effect] = []
    for finding in facts.view.fixed:
        node_id = facts.thread_ids.get(finding.short_id)
        if node_id is None:
            continue
        comment_id = facts.comment_ids.get(finding.short_id)
        reply = (
            ReplyToThread(
                comment_id,
                Marker(MarkerKind.REPLY, f"fixed-{finding.id}"),
                fixed_reply(facts.view.head_sha),
            )
            if comment_id is not None
            else None
        )
        effects.append(ResolveThread(node_id, otherwise=reply))
    return effects


def _sticky(facts: Publishing) -> SetStickyComment:
    return SetStickyComment(
        marker=Marker(MarkerKind.STATUS, f"pull-{facts.pull_request_id}"),
        body=status_body(facts.view),
        comment_id=facts.sticky_comment_id,
    )


def _escalation(facts: Publishing) -> list[Effect]:
    if facts.escalation is None:
        return []
    body = escalation_body(facts.view, facts.escalation, facts.escalate_to)
    marker = Marker(MarkerKind.COMMENT, f"escalation-{facts.view.run_id}")
    return [Comment(marker, body), AddLabel(NEEDS_HUMAN)]


def _check(facts: Publishing) -> SetCheckRun:
    return SetCheckRun(
        head_sha=facts.view.head_sha,
        external_id=external_id(facts.view.run_id),
        status=CheckStatus.COMPLETED,
        conclusion=conclusion_of(facts),
        title=_title(facts),
        summary=check_summary(facts.view),
        annotations=_annotations(facts),
        actions=_buttons(facts),
        check_run_id=facts.check_run_id,
        verdict=facts.said,
    )


def _buttons(facts: Publishing) -> tuple[CheckAction, ...]:
    """A fix gets its turns by itself, and a clean change needs no reasons."""
    found = facts.view.fresh + facts.view.open_before
    wanted = (
        (QUEUE_FIXES, bool(found) and not facts.is_fix_pr),
        (RE_REVIEW, True),
        (EXPLAIN, bool(found) or conclusion_of(facts) is not CheckConclusion.SUCCESS),
    )
    return tuple(button for button, shown in wanted if shown)


def _annotations(facts: Publishing) -> tuple[Annotation, ...]:
    """Everything that is open on lines of this head, the worst first: a thread of an earlier round
    may be folded away as outdated, the check of the head shows it where it is now."""
    found = facts.view.fresh + facts.view.open_before
    ranked = sorted(found, key=lambda finding: finding.severity.rank)
    placed = (_annotation(finding) for finding in ranked)
    return tuple(item for item in placed if item is not None)[:_MOST_ANNOTATIONS]


def _annotation(finding: Finding) -> Annotation | None:
    at = finding.location
    if at.path is None or at.start_line is None:
        return None
    return Annotation(
        path=at.path,
        start_line=at.start_line,
        end_line=at.end_line or at.start_line,
        level=_LEVELS[finding.severity],
        title=annotation_title(finding),
        message=annotation_text(finding),
    )


def _title(facts: Publishing) -> str:
    if facts.forced is None:
        return headline(facts.view)
    return forced_title(facts.forced.login, headline(facts.view))
