"""What the coordinator looked at itself, and what it kept in doubt without a look. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from app.agents.findings_xml import ParsedReview
from app.agents.port import AgentEvent, ToolCalled
from app.agents.reviewer_results import ReviewerOutcome
from app.review.account import Answered, account

_LOOKING = frozenset({"read_file", "read_patch", "grep"})

MOST_NAMED = 40
"""References that a note names: a prompt has no place for hundreds of them."""


def looked_at(
    event: AgentEvent, patches: Mapping[str, str], known_paths: Collection[str]
) -> frozenset[str]:
    """The file of the change that this event shows to have been looked at, if any: its source, its
    patch (`patches` has their names by path), or a search in it alone. A failed call showed
    nothing, and a list of names shows no source."""
    if not isinstance(event, ToolCalled) or event.failed or event.name not in _LOOKING:
        return frozenset()
    asked = str(event.arguments.get("path", "")).strip().removeprefix("./")
    path = next((source for source, name in patches.items() if name == asked), asked)
    return frozenset({path}) if path in known_paths else frozenset()


def kept_unread(
    review: ParsedReview,
    results: Iterable[ReviewerOutcome],
    known_paths: Collection[str],
    read: Collection[str],
) -> tuple[str, ...]:
    """The references of findings that were kept although they are in doubt and nobody checked."""
    said = account(
        Answered(
            judged=review.judged,
            dropped=review.dropped,
            reported=tuple(finding for one in results for finding in one.findings),
            rated={},
            known_paths=known_paths,
            read=read,
        )
    )
    return said.unread[:MOST_NAMED]
