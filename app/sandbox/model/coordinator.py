"""The scripted coordinator: starts the reviewers, looks at what was open, and judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.sandbox.model import markup
from app.sandbox.model.conversation import Conversation
from app.sandbox.model.matching import Sighting, sightings
from app.sandbox.model.scenario import Scenario, normal_title
from app.sandbox.model.sections import (
    NamedFinding,
    ReviewerFinding,
    ReviewerResult,
    existing_findings,
    reviewer_results,
)
from app.sandbox.model.seen import Reading, reading_of, seen_lines
from app.sandbox.model.wire import Reply, ToolUse, call, say


@dataclass(frozen=True, slots=True)
class _Carried:
    """One earlier finding with what is known of it now, and the refs that raise it again."""

    finding: NamedFinding
    state: str
    why: str
    sighting: Sighting | None
    refs: tuple[str, ...]


def next_turn(scenario: Scenario, conversation: Conversation) -> Reply:
    """Spawn, then read the files of the open findings, then the review."""
    if "spawn_reviewers" in conversation.tools and not conversation.called("spawn_reviewers"):
        return call(ToolUse("spawn_reviewers", {}))
    open_before = existing_findings(conversation.user_text)
    unread = _unread(conversation, open_before)
    if unread:
        return call(*unread)
    return say(_review(scenario, conversation, open_before))


def _unread(conversation: Conversation, findings: Iterable[NamedFinding]) -> list[ToolUse]:
    if "read_file" not in conversation.tools:
        return []
    read = conversation.paths_of("read_file")
    paths = dict.fromkeys(finding.path for finding in findings if finding.path)
    return [ToolUse("read_file", {"path": path}) for path in paths if path not in read]


def _review(
    scenario: Scenario, conversation: Conversation, open_before: tuple[NamedFinding, ...]
) -> str:
    results = _results(conversation)
    raised = _merged(results)
    carried = [_carry(scenario, conversation, finding, raised) for finding in open_before]
    folded = {ref for item in carried for ref in item.refs}
    fresh = [group for group in raised if group[0].ref not in folded]
    return markup.parent(
        "review",
        (
            markup.element("summary", _summary(results, carried, len(fresh))),
            markup.parent(
                "findings",
                [
                    *(_new_finding(scenario, group) for group in fresh),
                    *(_again(item) for item in carried if item.state == "open"),
                ],
            ),
            markup.parent(
                "carried",
                (
                    markup.element("item", item.why, id=item.finding.id, state=item.state)
                    for item in carried
                ),
            ),
            markup.parent("dropped", ()),
        ),
    )


def _results(conversation: Conversation) -> tuple[ReviewerResult, ...]:
    """What the tool answered, or what the prompt hands over when it was called for the model."""
    answers = (item.text for item in conversation.called("spawn_reviewers") if not item.is_error)
    found = [result for text in answers for result in reviewer_results(text)]
    return tuple(found) or reviewer_results(conversation.user_text)


def _merged(results: Iterable[ReviewerResult]) -> list[tuple[ReviewerFinding, ...]]:
    """The reviewers' findings, those of one path and title together."""
    groups: dict[tuple[str, str], tuple[ReviewerFinding, ...]] = {}
    for result in results:
        for finding in result.findings:
            key = finding.key[0], normal_title(finding.key[1])
            groups[key] = (*groups.get(key, ()), finding)
    return list(groups.values())


def _carry(
    scenario: Scenario,
    conversation: Conversation,
    finding: NamedFinding,
    raised: Iterable[tuple[ReviewerFinding, ...]],
) -> _Carried:
    key = finding.path, normal_title(finding.title)
    refs = tuple(
        item.ref
        for group in raised
        for item in group
        if (item.key[0], normal_title(item.key[1])) == key
    )
    sighting = _sighting(scenario, conversation, finding)
    state, why = _state(scenario, conversation, finding, sighting, bool(refs))
    return _Carried(finding, state, why, sighting, refs)


def _sighting(
    scenario: Scenario, conversation: Conversation, finding: NamedFinding
) -> Sighting | None:
    entry = scenario.titled(finding.title)
    if entry is None:
        return None
    lines = tuple(line for line in seen_lines(conversation) if line.path == finding.path)
    return next(iter(sightings((entry,), lines)), None)


def _state(
    scenario: Scenario,
    conversation: Conversation,
    finding: NamedFinding,
    sighting: Sighting | None,
    raised_again: bool,
) -> tuple[str, str]:
    """Open unless a whole read of the file, or its absence, shows that the line is gone."""
    if sighting is not None:
        return "open", f"Still there: {sighting.fields()['evidence']}"
    if raised_again:
        return "open", "A reviewer raised it again."
    if scenario.titled(finding.title) is None:
        return "open", "Nothing read tells whether this is fixed."
    reads = [item for item in conversation.called("read_file") if item.path == finding.path]
    readings = {reading_of(item) for item in reads}
    if Reading.WHOLE in readings:
        return "fixed", f"Read {finding.path} at the head: the line is gone."
    if Reading.MISSING in readings:
        return "fixed", f"{finding.path} does not exist at the head."
    return "open", f"{finding.path} could not be read whole."


def _new_finding(scenario: Scenario, group: tuple[ReviewerFinding, ...]) -> str:
    best = group[0]
    entry = scenario.titled(best.key[1])
    extra: dict[str, str] = {}
    if entry is not None and entry.trivial:
        extra["trivial"] = "true"
    if entry is not None and entry.production_risk:
        extra["production_risk"] = entry.production_risk
    refs = " ".join(item.ref for item in group)
    return markup.finding(best.fields, best.also, extra, source=refs)


def _again(item: _Carried) -> str:
    """An earlier finding that is still open, under its id and where it stands now."""
    refs = " ".join(item.refs)
    if item.sighting is not None:
        entry = item.sighting.entry
        return markup.finding(item.sighting.fields(), entry.also, id=item.finding.id, source=refs)
    finding = item.finding
    fields = {
        "path": finding.path,
        "line": finding.line,
        "severity": finding.severity,
        "title": finding.title,
        "body": finding.body,
    }
    return markup.finding(fields, id=finding.id, source=refs)


def _summary(results: tuple[ReviewerResult, ...], carried: Iterable[_Carried], fresh: int) -> str:
    return " ".join(_summary_parts(results, list(carried), fresh))


def _summary_parts(
    results: tuple[ReviewerResult, ...], carried: list[_Carried], fresh: int
) -> Iterator[str]:
    answered = [result.name for result in results if result.status != "failed"]
    failed = [result.name for result in results if result.status == "failed"]
    yield f"{', '.join(answered) or 'No reviewer'} answered: {fresh} new."
    if failed:
        yield f"No answer from {', '.join(failed)}."
    if carried:
        still = sum(item.state == "open" for item in carried)
        yield f"Of {len(carried)} earlier, {len(carried) - still} fixed and {still} open."
