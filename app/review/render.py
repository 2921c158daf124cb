"""Every sentence a review says. Pure: values in, Markdown out.

Model text arrives here untrusted and goes through `outgoing` before it is placed; our own
sentences are short, name the reason code's meaning and the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.agents.sanitise import outgoing, outgoing_failure, outgoing_line
from app.domain.coverage import MISSING, Coverage, CoverageState
from app.domain.findings import Finding
from app.domain.runs import Tier, Usage
from app.policy.load import EffectivePolicy, PolicySource
from app.review.budget import NoRoom
from app.review.filter import SkipReason
from loop_guards import NextReason, ReviewReason, Severity, StartReason, Verdict

_MOST_NAMED = 100
"""Missing files that a text names: a page holds 65,536 characters. The coverage ledger has all."""

_MOST_LEFT_OUT = 50
"""Files of no interest that a text names."""


class NextStep(StrEnum):
    """What follows a round; one sentence each in `_NEXT`."""

    NOTHING = "nothing"
    HANDOFF_AT_MERGE = "handoff_at_merge"
    FIXER_TURN = "fixer_turn"
    MERGE = "merge"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class ReviewView:
    """All that the texts of one round are made of.

    `fresh`, `open_before`, `fixed` and `settled` (people live with them) are disjoint; `blocking`
    holds short ids. `allowance` is None
    where rounds are not counted (a human's own pull request).
    """

    run_id: int
    head_sha: str
    verdict: Verdict
    summary: str
    fresh: tuple[Finding, ...]
    open_before: tuple[Finding, ...]
    fixed: tuple[Finding, ...]
    inline: frozenset[str]
    blocking: frozenset[str]
    coverage: Coverage
    tier: Tier
    failed_reviewers: tuple[str, ...]
    round_number: int
    allowance: int | None
    next_step: NextStep
    usage: Usage
    models: tuple[str, ...]
    notes: tuple[str, ...] = ()
    task_usage: Usage | None = None
    settled: tuple[Finding, ...] = ()


_VERDICTS = {
    Verdict.APPROVED: "Approved",
    Verdict.APPROVED_WITH_COMMENTS: "Approved with comments",
    Verdict.MINOR_ISSUES: "Minor issues",
    Verdict.SIGNIFICANT_CONCERNS: "Significant concerns",
    Verdict.CHANGES_REQUESTED: "Changes requested",
    Verdict.ESCALATED: "A human is needed",
}

_NEXT = {
    NextStep.NOTHING: "",
    NextStep.HANDOFF_AT_MERGE: "Nothing is handed to a fixer before this is merged.",
    NextStep.FIXER_TURN: "Next: the fixer gets another turn on this branch.",
    NextStep.MERGE: "Next: somebody merges this; nothing more happens by itself.",
    NextStep.HUMAN: "Next: a human decides; all automation on this fix has stopped.",
}

_SEVERITY_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.SUGGESTION)


def headline(view: ReviewView) -> str:
    """The verdict and the counts in one line, used as title of the check and of the review."""
    return f"{verdict_words(view)}: {counts(view.fresh + view.open_before, len(view.fixed))}"


def verdict_words(view: ReviewView) -> str:
    """The verdict in words. What was not read whole is never called approved."""
    complete = view.coverage.is_full and not view.failed_reviewers
    approving = view.verdict in (Verdict.APPROVED, Verdict.APPROVED_WITH_COMMENTS)
    return _VERDICTS[view.verdict] if complete or not approving else "Not reviewed completely"


def counts(open_findings: tuple[Finding, ...], fixed: int) -> str:
    """`2 critical, 1 warning, 1 fixed` or `no findings`."""
    parts = []
    for severity in _SEVERITY_ORDER:
        number = sum(1 for finding in open_findings if finding.severity is severity)
        if number:
            parts.append(f"{number} {severity.value}{'s' if _plural(severity, number) else ''}")
    if fixed:
        parts.append(f"{fixed} fixed")
    return ", ".join(parts) or "no findings"


def review_body(view: ReviewView) -> str:
    """The body of the round's review. A clean change gets one line (and the folded figures)."""
    blocks = [outgoing(f"**{headline(view)}.**{_spaced(view.summary)}")]
    blocks += [_section("New", view.fresh, view), _section("Still open", view.open_before, view)]
    if view.fixed:
        blocks.append("Fixed: " + ", ".join(_reference(finding) for finding in view.fixed) + ".")
    if view.settled:
        names = ", ".join(_reference(finding) for finding in view.settled)
        blocks.append(f"Left as it is, by a person's decision: {names}.")
    blocks.append(_not_inline(view))
    blocks.append(_missing(view))
    blocks.append(" ".join(part for part in (_round(view), _NEXT[view.next_step]) if part))
    blocks += [f"> {note}" for note in view.notes]
    blocks.append(figures(view))
    return "\n\n".join(block for block in blocks if block)


def inline_body(finding: Finding, suggestion_block: str) -> str:
    """One inline comment: severity and short id first, then the defect, then the fix."""
    head = f"**{finding.short_id} · {finding.severity.value} · {outgoing_line(finding.title)}**"
    parts = [head, *_told(finding), suggestion_block]
    return "\n\n".join(part for part in parts if part)


def annotation_title(finding: Finding) -> str:
    """The heading of an annotation on the check run."""
    return f"{finding.short_id} {finding.severity.value}: {outgoing_line(finding.title)}"


def annotation_text(finding: Finding) -> str:
    """Its text: GitHub shows it as it is, without Markdown."""
    return "\n\n".join(_told(finding))


def figures(view: ReviewView) -> str:
    """Tier, coverage, tokens, cost and models, folded away."""
    usage = view.usage
    cost = "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    reviewed = len(view.coverage.of(CoverageState.REVIEWED))
    return (
        "<details><summary>Coverage, models and cost</summary>\n\n"
        f"{reviewed} of {len(view.coverage.entries)} files read ({view.tier.value} tier) · "
        f"{usage.model_calls} model calls · {tokens:,} tokens in, {usage.output_tokens:,} out · "
        f"{cost} · {outgoing_line(', '.join(view.models)) or 'no model'}\n"
        f"{_left_out(view.coverage)}\n</details>"
    )


def forced_title(login: str, title: str) -> str:
    """The title of a check whose head a person approved by force, before what it says else."""
    return f"Approved by force by {outgoing_line(login)}; {outgoing_line(title)}"


def check_summary(view: ReviewView) -> str:
    """The text of the check run: the same facts as the review, without its inline comments."""
    found = _listed(view.fresh + view.open_before)
    blocks = [outgoing(view.summary), found, _missing(view), _NEXT[view.next_step], *view.notes]
    return "\n\n".join(block for block in blocks if block) or "Nothing to say."


def _listed(findings: tuple[Finding, ...]) -> str:
    return "\n".join(
        f"- {_reference(finding)} {finding.severity.value}: {outgoing_line(finding.title)}"
        for finding in findings
    )


def status_body(view: ReviewView) -> str:
    """The sticky status comment: where this pull request stands, in two lines."""
    counted = counts(view.fresh + view.open_before, len(view.fixed))
    line = f"Mergeward reviewed `{view.head_sha[:10]}`: **{verdict_words(view)}** ({counted})."
    after = " ".join(part for part in (_round(view), _NEXT[view.next_step]) if part)
    return "\n\n".join(part for part in (line, after) if part)


def escalation_body(view: ReviewView, rule: str, addressed_to: str | None) -> str:
    """The one comment of an escalation: which rule, what remains, what it cost."""
    remaining = tuple(f for f in view.fresh + view.open_before if f.short_id in view.blocking)
    usage = view.task_usage or view.usage
    cost = "an unknown sum" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    tokens = usage.input_tokens + usage.output_tokens
    rounds = "1 round was" if view.round_number == 1 else f"{view.round_number} rounds were"
    spent = f"Their reviews: {usage.model_calls} model calls, {tokens:,} tokens, {cost}."
    blocks = [
        f"**A human is needed.** {rule}",
        f"What remains:\n\n{_listed(remaining)}" if remaining else "",
        f"{rounds} used. {spent}",
        f"cc @{addressed_to}" if addressed_to else "",
    ]
    return "\n\n".join(block for block in blocks if block)


def unanswered_body(rule: str, addressed_to: str | None) -> str:
    """The comment of an escalation that no review goes with: nothing could be said of this head."""
    lines = [f"**A human is needed.** {rule}", "Automation on this fix has stopped."]
    if addressed_to:
        lines.append(f"cc @{addressed_to}")
    return "\n".join(lines)


def policy_notes(policy: EffectivePolicy) -> tuple[str, ...]:
    """What is said where the policy file can't be used: which one holds instead, line and key."""
    if policy.problem is None:
        return ()
    holds = "its last valid version" if policy.source is PolicySource.LAST_VALID else "the default"
    problem = " · ".join(outgoing_line(line) for line in policy.problem.splitlines())
    return (f"The policy file can't be used, so {holds} holds. {problem}",)


def fixed_reply(head_sha: str) -> str:
    """What is said in a thread that we may not resolve."""
    return f"Fixed in `{head_sha[:10]}`."


_RULES = {
    NextReason.COVERAGE: "Parts of this fix could not be reviewed in two rounds.",
    NextReason.UNAVAILABLE: "The review could not be carried out.",
    NextReason.BUDGET: "The budget of this fix and its siblings is spent.",
    NextReason.BOUNCE: "A finding that was fixed came back with a later change.",
    NextReason.UNSTABLE_REVIEW: "The reviewers keep changing their mind about a finding.",
    NextReason.STALL: "Two turns in a row changed nothing about what blocks this fix.",
    NextReason.CAP: "This fix has used all its rounds and is still not approved.",
}


def escalation_rule(reason: str) -> str:
    """The sentence of the rule that ended the automation."""
    known = reason in frozenset(NextReason)
    return _RULES.get(NextReason(reason), "") if known else f"Rule: {reason}."


_SKIPPED = {
    ReviewReason.STOPPED: "A person stopped the automation here.",
    ReviewReason.KILL_SWITCH: "Mergeward is switched off.",
    ReviewReason.ESCALATED: "This fix waits for a person's decision.",
    ReviewReason.DRAFT: "Drafts are reviewed once they are ready, or on `mergeward review`.",
    ReviewReason.SKIP_LABEL: "The label `mergeward:skip` is set.",
    ReviewReason.PING_PONG: "Machines caused the last rounds; a person's push or command goes on.",
    StartReason.CAP: "This fix has used all its rounds.",
    StartReason.BUDGET: "The budget of this fix and its siblings is spent.",
}


def skipped_text(reason: str) -> str:
    """Why a head is not reviewed, in one sentence."""
    for codes in (ReviewReason, StartReason):
        if reason in frozenset(codes):
            return _SKIPPED.get(codes(reason), f"Not reviewed: {reason}.")
    return f"Not reviewed: {reason}."


def failed_text(why: str) -> str:
    """What the check says of a run that came to nothing."""
    return f"This head was not reviewed: {outgoing_failure(why)}"


def unpublished_text(why: str) -> str:
    """What the check says of a review that is done but could not be put on the page."""
    return f"This head was reviewed, but the review could not be published: {outgoing_failure(why)}"


def nothing_to_read(coverage: Coverage) -> str:
    """What the check says when everything was left out."""
    said = "\n".join(_not_read(coverage)) or "Nothing in this change is for a reviewer to read."
    return f"{said}\n{_left_out(coverage)}"


def _section(title: str, findings: tuple[Finding, ...], view: ReviewView) -> str:
    if not findings:
        return ""
    rows = [
        _row(f, view) for severity in _SEVERITY_ORDER for f in findings if f.severity is severity
    ]
    return f"{title}:\n\n" + "\n".join(rows)


def _row(finding: Finding, view: ReviewView) -> str:
    blocks = " · blocks" if finding.short_id in view.blocking else ""
    title = outgoing_line(finding.title)
    return f"- {_reference(finding)} {finding.severity.value}{blocks}: {title}"


def _not_inline(view: ReviewView) -> str:
    """Findings that no line of the diff can carry stand here, and count just as much."""
    rest = [finding for finding in view.fresh if finding.short_id not in view.inline]
    parts = ["\n\n".join((f"**{f.short_id}** {outgoing_line(f.title)}", *_told(f))) for f in rest]
    return "\n\n".join(("Outside the lines of the diff:", *parts)) if parts else ""


def _told(finding: Finding) -> list[str]:
    """What is wrong, and what it would do in production: the same wherever it is said."""
    parts = [outgoing(finding.body)]
    if finding.production_risk:
        parts.append(outgoing(f"In production: {finding.production_risk}"))
    return parts


def _missing(view: ReviewView) -> str:
    """What was not reviewed and why, if anything; noise that was left out is not missing."""
    lines = [
        f"The {name} reviewer failed, so this review is not complete."
        for name in view.failed_reviewers
    ]
    return "\n".join((*lines, *_not_read(view.coverage)))


def _not_read(coverage: Coverage) -> list[str]:
    """A line for each missing file, but for those beyond the first hundred."""
    missing = [entry for state in MISSING for entry in coverage.of(state)]
    lines = [
        f"Not reviewed: {_code(entry.path)} ({reason_words(entry.reason)})."
        for entry in missing[:_MOST_NAMED]
    ]
    if len(missing) > _MOST_NAMED:
        lines.append(f"Not reviewed either: {len(missing) - _MOST_NAMED} more files.")
    return lines


def _left_out(coverage: Coverage) -> str:
    skipped = coverage.of(CoverageState.SKIPPED)
    if not skipped:
        return ""
    named = ", ".join(
        f"{_code(e.path)} ({reason_words(e.reason)})" for e in skipped[:_MOST_LEFT_OUT]
    )
    more = len(skipped) - _MOST_LEFT_OUT
    return f"\nLeft out: {named}" + (f" and {more} more" if more > 0 else "")


_REASONS = {
    NoRoom.LARGER_THAN_WINDOW.value: "too large for a model's context window",
    NoRoom.NO_ROOM_LEFT.value: "the change is too large to read all of it",
    NoRoom.ENDLESS_LINE.value: "a line of it has no end in sight",
    SkipReason.POLICY.value: "left out by the policy file",
    SkipReason.WITHHELD.value: "withheld by the policy file",
    SkipReason.BINARY_SOURCE.value: "binary, though named like source",
    "not_reviewed": "no reviewer got to it",
}


def reason_words(reason: str) -> str:
    """Why a file was not read, in words; a code that has none of its own is read as it stands."""
    return _REASONS.get(reason, reason.replace("_", " "))


def _reference(finding: Finding) -> str:
    location = finding.location
    if location.path is None:
        return f"**{finding.short_id}**"
    line = f":{location.start_line}" if location.start_line else ""
    return f"**{finding.short_id}** {_code(f'{location.path}{line}')}"


def _code(path: str) -> str:
    """A path as a code span: hostile names can't end it, and inside nothing is a mention."""
    name = path.replace("`", "'")
    return outgoing_line(f"`{name}`")


def _round(view: ReviewView) -> str:
    if view.allowance is None:
        return ""
    return f"Round {view.round_number} of {view.allowance}."


def _plural(severity: Severity, number: int) -> bool:
    return number > 1 and severity is not Severity.CRITICAL


def _spaced(text: str) -> str:
    return f" {text}" if text else ""
