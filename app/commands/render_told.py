"""What explain, status, why and help say. Pure: values in, Markdown out.

Texts of models and people are untrusted: they go through `outgoing` before they are placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import loop_guards as guards
from app.agents.sanitise import outgoing, outgoing_failure, outgoing_line
from app.commands.facts import Asked, KnownFinding, LastRun, Ledger, Said, Standing, Story
from app.policy.guards_meanings import MEANINGS
from loop_guards import FindingStatus, PullState, Severity, TaskState

_QUESTIONS: Mapping[str, tuple[str, tuple[type[StrEnum], ...]]] = {
    "review_start": ("May a review start", (guards.ReviewReason, guards.StartReason)),
    "verdict": ("Verdict", (guards.RubricReason, guards.ConvergenceReason)),
    "after_round": ("After the round", (guards.NextReason,)),
    "turn_start": ("May the fixer's turn start", (guards.StartReason,)),
    "task": ("Fix task", (guards.TaskReason,)),
    "handoff": ("Hand-off", (guards.HandoffReason,)),
    "fixed": ("Fixed", (guards.FixedReason,)),
    "return": ("Return", (guards.ReturnReason,)),
    "order": ("Order", (guards.OrderReason,)),
    "unqueue": ("Unqueue", (guards.UnqueueReason,)),
    "dismissal": ("Dismissal", (guards.DismissalReason,)),
    "stop": ("Stop", (guards.StopReason,)),
    "resume": ("Resume", (guards.ResumeReason,)),
    "break_glass": ("Break glass", (guards.GlassReason,)),
}
"""The kinds of stored decisions: how a page names each, and whose reasons its codes are."""

_MOST_DECISIONS = 12
"""Decisions about one finding that are told, the latest ones."""
_MOST_FINDINGS = 50

HELP = """A line of its own may say:

- `/mergeward review`: review the present head
- `/mergeward fix F1 F3` or `/mergeward fix all`: queue findings for the fixer
- `/mergeward unfix F1`: take a finding out of the queue
- `/mergeward dismiss F2 <why>`: leave a finding as it is, with the reason
- `/mergeward explain F1`: what was found, by whom, what was decided about it
- `/mergeward why` and `/mergeward status`: why things stand as they do, and how
- `/mergeward stop` and `/mergeward resume`: no automation here, and on again
- `/mergeward help`

Breaking the glass, which approves the present head, is a comment of its own: those two words, and \
a reason if you like. All of it needs write access to the repository."""


def status(asked: Asked, ledger: Ledger, standing: Standing) -> str:
    """Where the pull request stands: the review, the findings, the queue, the automation."""
    lines = [
        _review(standing.run, asked),
        "A review waits or runs." if standing.waiting else "",
        _findings(ledger),
        _queue(ledger),
        *(_task(task.id, task.state, task.fix_number) for task in ledger.tasks),
        _automation(ledger),
        _glass(standing),
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def why(standing: Standing) -> str:
    """The latest decision of each kind, with what its reason means."""
    lines = [f"- {_decision(said)}" for said in standing.latest]
    run = standing.run
    if run is not None and run.verdict is None and run.reason:
        lines.append(f"- The last review ({run.state}): {outgoing_failure(run.reason)}")
    if not lines:
        return "Nothing was decided here yet: this pull request was never reviewed."
    return "\n".join(("The latest decisions, oldest first:", *lines))


def explain(story: Story, ledger: Ledger) -> str:
    """One finding: what, by whom, what was decided about it, what happens next."""
    finding = story.finding
    rated = f"{finding.severity.value}, {_plain(finding.origin.value)}"
    parts = [
        f"**{finding.short_id}** {place(story)}{rated}: {outgoing_line(finding.title)}",
        outgoing(finding.body),
        outgoing(f"In production: {finding.production_risk}") if finding.production_risk else "",
        f"Evidence:\n\n{outgoing(finding.evidence)}" if finding.evidence else "",
        _found_by(story),
        _decided(story),
        f"Next: {next_step(story.known, ledger)}",
    ]
    return "\n\n".join(part for part in parts if part)


def place(story: Story) -> str:
    """Where it is, as a code span: inside one nothing is a mention."""
    location = story.finding.location
    if location.path is None:
        return ""
    line = f":{location.start_line}" if location.start_line else ""
    path = " ".join(location.path.replace("`", "'").split())
    return f"{outgoing_line(f'`{path}{line}`')} "


def next_step(known: KnownFinding, ledger: Ledger) -> str:
    """What happens to a finding by itself from here."""
    if known.status is not FindingStatus.OPEN:
        return f"nothing; it is {known.status.value}. An order (`fix`) takes up what people closed."
    if ledger.stopped:
        return "nothing, until somebody resumes the automation here."
    if known.covered_by is not None and known.covered_by.is_live:
        return _next_of_task(known)
    if ledger.state is PullState.CLOSED:
        return "nothing; the pull request was closed without a merge."
    if known.queued_by is not None:
        who = outgoing_line(known.queued_by)
        return f"it goes to the fixer at the merge, as ordered by {who}."
    if ledger.state is PullState.MERGED:
        return "nothing by itself; `/mergeward fix` hands it to the fixer."
    return "the next review looks again; the merge asks the policy whether a fixer gets it."


def _next_of_task(known: KnownFinding) -> str:
    where = f" in #{known.fix_number}" if known.fix_number is not None else ""
    if known.covered_by is TaskState.ESCALATED:
        return f"its fix{where} waits for a person: resume it, or close it."
    return f"a fix for it is under way{where}."


def _found_by(story: Story) -> str:
    who = outgoing_line(", ".join(story.reviewers)) or "nobody that is on record"
    parts = [f"Found by: {who}"]
    if story.prompt_version:
        parts.append(f"prompt {outgoing_line(story.prompt_version)}")
    if story.round_number is not None:
        parts.append(f"round {story.round_number}")
    parts.append(f"first seen at `{story.finding.first_seen_sha[:10]}`")
    if story.models:
        parts.append(f"models of that round: {outgoing_line(', '.join(story.models))}")
    return f"{'; '.join(parts)}."


def _decided(story: Story) -> str:
    lines = [f"- {_decision(said)}" for said in story.decisions[-_MOST_DECISIONS:]]
    earlier = len(story.decisions) - _MOST_DECISIONS
    if earlier > 0:
        lines.insert(0, f"- {earlier} earlier decisions.")
    if story.status_by is not None:
        reason = f": {outgoing_line(story.status_reason)}" if story.status_reason else ""
        by = outgoing_line(story.status_by)
        lines.append(f"- {_plain(story.finding.status.value).capitalize()} by {by}{reason}")
    return "\n".join(("Decided:", *lines)) if lines else "Nothing was decided about it yet."


def _decision(said: Said) -> str:
    name, reasons = _QUESTIONS.get(said.kind, (_plain(said.kind), ()))
    for kind in reasons:
        if said.reason in frozenset(kind):
            return f"{name}: {_plain(said.outcome)}. {MEANINGS[kind][said.reason]}"
    return f"{name}: {_plain(said.outcome)} ({outgoing_line(said.reason)})."


def _plain(code: str) -> str:
    return outgoing_line(code).replace("_", " ")


def _review(run: LastRun | None, asked: Asked) -> str:
    if run is None:
        return "Never reviewed."
    head = "the present head" if run.head_sha == asked.pull_request.head_sha else "an earlier head"
    seen = f"`{run.head_sha[:10]}`, {head}"
    if run.verdict is not None:
        number = f", round {run.round_number}" if run.round_number else ""
        return f"Last review ({seen}{number}): {_plain(run.verdict)}."
    reason = f": {outgoing_failure(run.reason)}" if run.reason else ""
    return f"Last review ({seen}): {_plain(run.state)}{reason}"


def _findings(ledger: Ledger) -> str:
    still = [item for item in ledger.findings if item.status is FindingStatus.OPEN]
    if not still:
        return "No open findings."
    counts = ", ".join(
        f"{number} {severity.value}"
        for severity in Severity
        if (number := sum(item.severity is severity for item in still))
    )
    names = ", ".join(item.short_id for item in still[:_MOST_FINDINGS])
    return f"Open findings: {counts} ({names})."


def _queue(ledger: Ledger) -> str:
    queued = [item for item in ledger.findings if item.queued_by is not None]
    names = ", ".join(
        f"{item.short_id} by {outgoing_line(item.queued_by or '')}"
        for item in queued[:_MOST_FINDINGS]
    )
    return f"Queued for the fixer: {names}." if names else ""


def _task(number: int, state: TaskState, fix_number: int | None) -> str:
    where = f" in #{fix_number}" if fix_number is not None else ""
    return f"Fix task {number}{where}: {_plain(state.value)}."


def _automation(ledger: Ledger) -> str:
    if not ledger.stopped:
        return ""
    by = f" by {outgoing_line(ledger.stopped_by)}" if ledger.stopped_by else ""
    return f"Automation is stopped{by}; `/mergeward resume` goes on."


def _glass(standing: Standing) -> str:
    if not standing.glasses:
        return ""
    times = "once" if standing.glasses == 1 else f"{standing.glasses} times"
    now = f"; the present head by {outgoing_line(standing.glass_by)}" if standing.glass_by else ""
    return f"Approved by force {times}{now}."
