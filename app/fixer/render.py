"""Every sentence the built-in fixer says on GitHub. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.agents.sanitise import outgoing
from app.domain.findings import Finding
from app.fixer.agent import NO_ANSWER, FixAnswer
from app.fixer.facts import TurnFacts
from loop_guards import StartReason

MAX_TITLE = 120
"""Characters of a title; GitHub takes more and shows fewer."""


@dataclass(frozen=True, slots=True)
class FixView:
    """What a fix pull request is about. `reports` are the fixer's own words by short id."""

    task_id: int
    source_number: int
    paths: tuple[str, ...]
    findings: tuple[Finding, ...]
    reports: Mapping[str, str]
    declined: Mapping[str, str]
    summary: str
    turn: int


def view_of(facts: TurnFacts, answer: FixAnswer = NO_ANSWER) -> FixView:
    """What is said is made from the facts of the turn and the fixer's own words."""
    return FixView(
        task_id=facts.task_id,
        source_number=facts.source_number,
        paths=facts.paths,
        findings=facts.findings,
        reports=answer.fixed,
        declined=answer.declined,
        summary=answer.summary,
        turn=facts.turn,
    )


def pull_request_title(view: FixView) -> str:
    """`Fix 3 findings in app/a.py (#12)`."""
    count = len(view.findings)
    noun = "finding" if count == 1 else "findings"
    where = _plain(view.paths[0]) if view.paths else "the change"
    more = f" and {len(view.paths) - 1} more" if len(view.paths) > 1 else ""
    title = f"Fix {count} {noun} in {where}{more}"
    return f"{title[: MAX_TITLE - 12]} (#{view.source_number})"


def pull_request_body(view: FixView) -> str:
    """What was found, what was done about each, and what happens next."""
    lines = [
        f"Findings of #{view.source_number} that were still there after its merge:",
        "",
        *(_item(f.short_id, f"{f.severity.value}: {f.title}") for f in view.findings),
        "",
        *_report_lines(view),
        "",
        "This is reviewed like any pull request, and merged by a person. Close it to stop the fix.",
    ]
    return "\n".join(lines)


def commit_message(view: FixView) -> str:
    """First line as the title, then one line per finding."""
    lines = [pull_request_title(view), ""]
    lines += [f"- {f.severity.value}: {_plain(f.title)}" for f in view.findings]
    if view.turn > 1:
        lines += ["", f"Turn {view.turn}."]
    return "\n".join(lines) + "\n"


_ENDED = {
    "nothing_changed": "The fixer changed nothing, so there is nothing to propose.",
    "verify_failed": "The repository's check fails on what the fixer made, so it is not proposed.",
    "base_gone": "The branch that this was merged into is no longer there.",
    "branch_taken": "There is a branch of the fix's name that is not the fixer's.",
    "branch_deleted": "Somebody deleted the branch of this fix, so it goes no further.",
    "not_configured": "No fixer App is set up here, so nobody can propose a fix.",
    "nothing_left": "What was to be fixed is no longer there, so nothing is proposed.",
}


def ended_comment(view: FixView, reason: str) -> str:
    """Why a task ended without another push."""
    failed = f"No fix is proposed: the fixer's turn failed (`{_plain(reason)}`)."
    lines = [_ENDED.get(reason, failed)]
    lines += ["", *(_item(f.short_id, f.title) for f in view.findings)]
    lines += ["", *_report_lines(view)] if view.summary or view.reports or view.declined else []
    if reason != "nothing_left":
        lines += ["", "The findings stay open; a person can order a fix again."]
    return "\n".join(lines)


_REFUSED = {
    StartReason.CAP: "This fix has used all its rounds.",
    StartReason.BUDGET: "The budget of this fix and its siblings is spent.",
}


def escalated_comment(view: FixView, reason: str, addressed_to: str | None) -> str:
    """The one comment of an escalation before a turn: which rule, and what remains."""
    rule = _REFUSED.get(StartReason(reason), f"Rule: {reason}.")
    lines = [f"**A human is needed.** {rule}", "What remains:"]
    lines += [_item(f.short_id, f"{f.severity.value}: {f.title}") for f in view.findings]
    lines += [f"cc @{addressed_to}"] if addressed_to else []
    return "\n".join(lines)


def _report_lines(view: FixView) -> list[str]:
    lines = [outgoing(view.summary)] if view.summary else []
    lines += [_item(key, f"done: {text}") for key, text in view.reports.items()]
    lines += [_item(key, f"not done: {text}") for key, text in view.declined.items()]
    return lines


def _item(short_id: str, text: str) -> str:
    """One line of a list. Cleaned as a whole, so that no text can open a fence or end the item."""
    return outgoing(f"- **{short_id}** {' '.join(text.split())}")


def _plain(text: str) -> str:
    """One line of a title or a commit message, which are no Markdown: the entity that breaks a
    mention or an issue's closing word on a page is the invisible character itself there."""
    line = outgoing(" ".join(text.replace("`", "'").replace("~~~", "~").split()))
    return line.replace("&#8203;", "\u200b").replace("&lt;", "<")
