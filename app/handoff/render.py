"""Every sentence the handoff says on GitHub. Pure: values in, Markdown out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.agents.sanitise import outgoing
from app.domain.findings import Finding
from loop_guards import HandoffDecision, HandoffReason


@dataclass(frozen=True, slots=True)
class HandedTask:
    """One task of the plan, by what people need to know of it."""

    paths: tuple[str, ...]
    short_ids: tuple[str, ...]
    target: str
    waiting: bool


_REASONS = {
    HandoffReason.ALREADY_HANDED_OFF: "a fix task covers it already",
    HandoffReason.NOT_OPEN: "it is fixed, dismissed, or gone from the merged files",
    HandoffReason.STOPPED: "a person stopped the automation here",
    HandoffReason.HUMAN_QUEUE: "a person ordered it",
    HandoffReason.ESCALATED: "its fix waits for a person",
    HandoffReason.POST_MERGE: "it was first seen after the merge",
    HandoffReason.MODE_OFF: "the policy switches handoff off",
    HandoffReason.MODE_MANUAL: "the policy hands off only on a person's order",
    HandoffReason.VERIFY_RUN: "a verify run found it",
    HandoffReason.BOT_PULL_REQUEST: "a bot wrote this pull request",
    HandoffReason.ACKNOWLEDGED: "a person accepted it as it is",
    HandoffReason.PRE_EXISTING: "it is older than this pull request",
    HandoffReason.NO_PATH: "it names no file",
    HandoffReason.OTHER_BASE: "it was merged into another branch",
    HandoffReason.BELOW_SEVERITY: "its severity is below what the policy hands off",
    HandoffReason.BUDGET: "the limit of automatic fixes is reached",
    HandoffReason.AUTO: "handed off",
}


def reason_text(reason: str) -> str:
    """Why a finding is (not) handed off, as half a sentence."""
    if reason not in frozenset(HandoffReason):
        return reason.replace("_", " ")
    return _REASONS.get(HandoffReason(reason), reason.replace("_", " "))


def plan_comment(
    tasks: Sequence[HandedTask],
    refused: Sequence[HandoffDecision],
    findings: Mapping[int, Finding],
    resumed: Sequence[str] = (),
) -> str:
    """What the merge handed off, and folded away what it did not and why. `resumed` are short ids
    of findings whose fix goes on by a person's order."""
    lines = [_task_line(task) for task in tasks]
    lines += [f"- {short_id}: its fix was waiting for a person and goes on" for short_id in resumed]
    head = "Handed to the fixer:" if lines else "Nothing was handed to a fixer."
    rest = [
        _refused_line(findings.get(decision.finding_id), reason_text(str(decision.reason)))
        for decision in refused
    ]
    folded = (
        f"<details><summary>Not handed off: {len(rest)}</summary>\n\n"
        + "\n".join(rest)
        + "\n\n</details>"
        if rest
        else ""
    )
    return "\n".join([head, *lines, "", folded]).rstrip()


def _task_line(task: HandedTask) -> str:
    where = ", ".join(map(_code, task.paths)) or "no file"
    wait = " (waits for another fix of the same file)" if task.waiting else ""
    return f"- {', '.join(task.short_ids)} in {where}{wait}"


def _refused_line(finding: Finding | None, why: str) -> str:
    """Cleaned as a whole, so that no title can open a fence or end the line."""
    if finding is None:
        return f"- a finding: {why}"
    return outgoing(f"- **{finding.short_id}** {' '.join(finding.title.split())}: {why}")


def _code(path: str) -> str:
    """A path as a code span: hostile names can't end it, and inside nothing is a mention."""
    name = " ".join(path.replace("`", "'").split())
    return outgoing(f"`{name}`")
