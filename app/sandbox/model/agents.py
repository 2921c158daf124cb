"""What each scripted agent does next: a pure function of the scenario and the conversation."""

from __future__ import annotations

from collections.abc import Iterable

from app.sandbox.model import coordinator, fixer, markup
from app.sandbox.model.conversation import Conversation
from app.sandbox.model.matching import sightings
from app.sandbox.model.scenario import Scenario
from app.sandbox.model.sections import changed_paths, existing_findings
from app.sandbox.model.seen import seen_lines
from app.sandbox.model.wire import Reply, ToolUse, call, say

MAX_CALLS_A_TURN = 40
"""Tool calls in one turn at most; the rest follows in the next turn."""


def next_turn(scenario: Scenario, conversation: Conversation) -> Reply:
    """The turn that the agent named by the system prompt makes now."""
    agent = conversation.agent
    if agent == "coordinator":
        ready = bool(conversation.called("spawn_reviewers"))
        search = searched(scenario, conversation) if ready else None
        return search or coordinator.next_turn(scenario, conversation)
    if agent == "fixer":
        return fixer.next_turn(scenario, conversation)
    if agent is not None:
        # Ours, or one that a plugin brought: that one reads like all, and has nothing planted.
        return _review(scenario, conversation)
    return say("This is a scripted model: it plays Mergeward's agents and nothing else.")


def _review(scenario: Scenario, conversation: Conversation) -> Reply:
    changed = changed_paths(conversation.user_text)
    open_paths = [finding.path for finding in existing_findings(conversation.user_text)]
    for tool, paths in (
        ("read_patch", changed),
        ("read_file", [path for path in open_paths if path not in changed]),
    ):
        unread = _uncalled(conversation, tool, paths)
        if unread:
            return call(*unread)
    search = searched(scenario, conversation)
    return search or say(_findings(scenario, conversation))


def searched(scenario: Scenario, conversation: Conversation) -> Reply | None:
    """The search that the scenario asks for, if it was not made yet."""
    if not scenario.search or "grep" not in conversation.tools or conversation.called("grep"):
        return None
    return call(ToolUse("grep", {"pattern": scenario.search}))


def _uncalled(conversation: Conversation, tool: str, paths: Iterable[str]) -> list[ToolUse]:
    if tool not in conversation.tools:
        return []
    called = conversation.paths_of(tool)
    wanted = [path for path in dict.fromkeys(paths) if path and path not in called]
    return [ToolUse(tool, {"path": path}) for path in wanted[:MAX_CALLS_A_TURN]]


def _findings(scenario: Scenario, conversation: Conversation) -> str:
    mine = (entry for entry in scenario.planted if conversation.agent in entry.agents)
    found = sightings(mine, seen_lines(conversation))
    return markup.parent(
        "findings", (markup.finding(item.fields(), item.entry.also) for item in found)
    )
