"""The scripted fixer: reads the named files, makes the planted replacements, and reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from app.sandbox.model import markup
from app.sandbox.model.conversation import Conversation, Exchange
from app.sandbox.model.scenario import Fix, Scenario
from app.sandbox.model.sections import NamedFinding, task_findings
from app.sandbox.model.seen import content_of
from app.sandbox.model.wire import Reply, ToolUse, call, say

_REFUSED = re.compile(r"\s*(error|refused|denied|cannot|could not|failed)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Edit:
    """One replacement to make for one finding of the task, in a file that holds its text."""

    finding: NamedFinding
    fix: Fix
    path: str

    def use(self) -> ToolUse:
        arguments = {"path": self.path, "old_text": self.fix.find, "new_text": self.fix.replace}
        return ToolUse("edit_file", arguments)


def next_turn(scenario: Scenario, conversation: Conversation) -> Reply:
    """Read, then edit, then report."""
    task = task_findings(conversation.user_text)
    unread = list(_unread(scenario, conversation, task))
    if unread:
        return call(*unread)
    edits = tuple(_edits(scenario, conversation, task))
    undone = [edit for edit in edits if _made(conversation, edit) is None]
    if undone and "edit_file" in conversation.tools:
        return call(*(edit.use() for edit in undone))
    return say(_report(scenario, conversation, task, edits))


def _unread(
    scenario: Scenario, conversation: Conversation, task: tuple[NamedFinding, ...]
) -> Iterator[ToolUse]:
    """The files of the task's findings, and those that their fixes name, unless read before."""
    if "read_file" not in conversation.tools:
        return
    read = conversation.paths_of("read_file")
    wanted = [path for finding in task for path in _paths(scenario, finding)]
    for path in dict.fromkeys(wanted):
        if path and path not in read:
            yield ToolUse("read_file", {"path": path})


def _paths(scenario: Scenario, finding: NamedFinding) -> list[str]:
    named = [fix.path for fix in _fixes(scenario, finding) if fix.path]
    return [finding.path, *named]


def _fixes(scenario: Scenario, finding: NamedFinding) -> tuple[Fix, ...]:
    entry = scenario.titled(finding.title)
    if entry is None or not fnmatchcase(finding.path, entry.path):
        return ()
    return scenario.fixes_of(entry)


def _edits(
    scenario: Scenario, conversation: Conversation, task: tuple[NamedFinding, ...]
) -> Iterator[_Edit]:
    for finding in task:
        for fix in _fixes(scenario, finding):
            path = fix.path or finding.path
            if fix.find in _content(conversation, path):
                yield _Edit(finding, fix, path)


def _content(conversation: Conversation, path: str) -> str:
    """The file as the first read showed it: before this conversation's own edits."""
    reads = [item for item in conversation.called("read_file") if item.path == path]
    return content_of(reads[0]) if reads and not reads[0].is_error else ""


def _made(conversation: Conversation, edit: _Edit) -> Exchange | None:
    wanted = dict(edit.use().input)
    same = (item for item in conversation.called("edit_file") if dict(item.input) == wanted)
    return next(same, None)


def _report(
    scenario: Scenario,
    conversation: Conversation,
    task: tuple[NamedFinding, ...],
    edits: tuple[_Edit, ...],
) -> str:
    fixed: list[str] = []
    declined: list[str] = []
    for finding in task:
        own = [edit for edit in edits if edit.finding.id == finding.id]
        reason = _reason_to_decline(scenario, conversation, finding, own)
        if reason is None:
            paths = ", ".join(dict.fromkeys(edit.path for edit in own))
            words = f"Replaced the code in {paths} that the finding points at."
            fixed.append(markup.element("fixed", words, id=finding.id))
        else:
            declined.append(markup.element("declined", reason, id=finding.id))
    summary = f"{len(fixed)} of {len(task)} findings fixed."
    return markup.parent("fix_report", (*fixed, *declined, markup.element("summary", summary)))


def _reason_to_decline(
    scenario: Scenario, conversation: Conversation, finding: NamedFinding, edits: list[_Edit]
) -> str | None:
    if not _fixes(scenario, finding):
        return "I know no safe fix for this."
    if not edits:
        return f"{finding.path} as I read it does not hold the code that the fix replaces."
    for edit in edits:
        made = _made(conversation, edit)
        if made is None:
            return "I have no tool to edit files."
        if made.is_error or _REFUSED.match(made.text):
            return f"The edit of {edit.path} was refused: {' '.join(made.text.split())[:300]}"
    return None
