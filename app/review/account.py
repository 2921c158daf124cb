"""What the coordinator's answer is worth, word by word, before it is held against the ledger. Pure.

It may merge, move, rate and drop what its reviewers reported; it may not lose a report, invent one,
or speak worse of a file than those who read it. Where its word does not hold, the reviewer's does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.agents.hedging import is_hedged
from app.domain.findings import DroppedFinding, JudgedFinding, ReportedFinding
from app.domain.runs import AgentName
from loop_guards import Severity

_OWN = AgentName.COORDINATOR.value


@dataclass(frozen=True, slots=True)
class Answered:
    """The coordinator's words and what they are checked against.

    `rated` has the severities of earlier findings by short id. `read` are the files whose source or
    patch the coordinator itself looked at; `known_paths` those of the change.
    """

    judged: tuple[JudgedFinding, ...]
    dropped: tuple[DroppedFinding, ...]
    reported: tuple[ReportedFinding, ...]
    rated: Mapping[str, Severity]
    known_paths: Collection[str]
    read: Collection[str]


@dataclass(frozen=True, slots=True)
class Accounted:
    """What holds of them. Every report is in exactly one place: the `refs` of one finding, or one
    drop. `unread` are the references of findings that were kept although somebody was unsure and
    the coordinator never looked; `problems` are protocol errors, one sentence each."""

    judged: tuple[JudgedFinding, ...]
    dropped: tuple[DroppedFinding, ...]
    unread: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Account:
    facts: Answered
    open: dict[str, ReportedFinding]
    problems: list[str] = field(default_factory=list)

    def take(self, refs: Iterable[str]) -> tuple[str, ...]:
        """Those of the references that are still nowhere; they are somewhere from now on."""
        known = {one.ref for one in self.facts.reported}
        taken: list[str] = []
        for ref in dict.fromkeys(refs):
            if ref in self.open:
                del self.open[ref]
                taken.append(ref)
            elif ref in known:
                self.problems.append(f"The judge spoke of {ref} twice; the first word counts.")
            elif ref != _OWN:
                self.problems.append(f"The judge named {ref[:80]}, which no reviewer reported.")
        return tuple(taken)


def account(facts: Answered) -> Accounted:
    """Hold each word against the reports: what is kept counts before what is dropped, what comes
    first before what comes again, and what nothing was said of is kept as it was reported."""
    sheet = _Account(facts, {one.ref: one for one in facts.reported})
    own = 0
    kept: list[JudgedFinding] = []
    for item in facts.judged:
        checked = _checked(item, sheet)
        if checked is not None and not checked.refs and checked.short_id is None:
            own += 1
            named = replace(checked.finding, ref=f"{_OWN}-{own}", reviewer=_OWN)
            checked = replace(checked, finding=named)
        if checked is not None:
            kept.append(checked)
    dropped = _dropped(sheet)
    for ref, report in sheet.open.items():
        sheet.problems.append(f"The judge said nothing of {ref}; it is kept as reported.")
        kept.append(JudgedFinding(report, (ref,)))
    unread = tuple(_of(item) for item in kept if _is_unsure(item, facts))
    sheet.problems += [f"The judge kept {ref}, an unsure one, and read nothing." for ref in unread]
    return Accounted(tuple(kept), dropped, unread, tuple(sheet.problems))


def _checked(item: JudgedFinding, sheet: _Account) -> JudgedFinding | None:
    """The finding as far as it holds, or None. One that is refused speaks for no reviewer: what it
    named is still to be accounted for."""
    facts, path = sheet.facts, item.finding.location.path
    if item.short_id is not None and item.short_id not in facts.rated:
        sheet.problems.append(f"The judge named the unknown finding {item.short_id}.")
        item = replace(item, short_id=None)
    if path is not None and path not in facts.known_paths and item.short_id is None:
        sheet.problems.append(f"The judge named {path!r}, which is not part of this change.")
        return None
    refs = sheet.take(item.refs)
    item = replace(item, refs=refs)
    if not refs and item.short_id is None and not _was_read(item.finding, facts):
        title = item.finding.title
        sheet.problems.append(f"The judge raised {title!r} itself and read no source; refused.")
        return None
    return _sourced(item, sheet)


def _sourced(item: JudgedFinding, sheet: _Account) -> JudgedFinding:
    """The finding under its first source's name and prompt, with what it left out, and rated no
    worse than its sources by one who looked at nothing.

    The other direction is open: a reviewer's own reasons show that a claim is less than it says,
    while that it is more, only the source can show.
    """
    facts, found = sheet.facts, item.finding
    sources = [one for one in facts.reported if one.ref in item.refs]
    if sources:
        first = next(one for one in sources if one.ref == item.refs[0])
        section = next((one.category for one in sources if one.category != "general"), "general")
        category = section if found.category == "general" else found.category
        found = replace(
            found,
            ref=first.ref,
            reviewer=first.reviewer,
            category=category,
            prompt_version=first.prompt_version,
        )
    rated = [one.severity for one in sources]
    rated += [facts.rated[item.short_id]] if item.short_id is not None else []
    if rated and not _was_read(found, facts):
        found = _no_worse(found, sources, rated, sheet, _of(item))
    return replace(item, finding=found)


def _no_worse(
    found: ReportedFinding,
    sources: list[ReportedFinding],
    rated: list[Severity],
    sheet: _Account,
    name: str,
) -> ReportedFinding:
    worst = worst_of(rated)
    if not worst.at_least(found.severity):
        sheet.problems.append(f"The judge made {name} {found.severity} unread; it is {worst}.")
        found = replace(found, severity=worst)
    if found.production_risk and sources and not any(one.production_risk for one in sources):
        sheet.problems.append(f"The judge saw a production risk in {name} and read no source.")
        found = replace(found, production_risk=None)
    return found


def worst_of(severities: Iterable[Severity]) -> Severity:
    """The worst of them; at least one is needed."""
    first, *others = severities
    for one in others:
        first = one if one.at_least(first) else first
    return first


def _dropped(sheet: _Account) -> tuple[DroppedFinding, ...]:
    items = (replace(item, refs=sheet.take(item.refs)) for item in sheet.facts.dropped)
    return tuple(item for item in items if item.refs)


def _was_read(finding: ReportedFinding, facts: Answered) -> bool:
    """Whether the coordinator looked at the finding's file, or at any file for one without."""
    path = finding.location.path
    return bool(facts.read) if path is None else path in facts.read


def _is_unsure(item: JudgedFinding, facts: Answered) -> bool:
    """Whether somebody doubts it and the coordinator did not look: all of its sources do, or the
    coordinator's own words."""
    if not item.refs or _was_read(item.finding, facts):
        return False
    sources = [one for one in facts.reported if one.ref in item.refs]
    return all(map(is_hedged, sources)) or is_hedged(item.finding)


def _of(item: JudgedFinding) -> str:
    return item.refs[0] if item.refs else item.short_id or item.finding.ref
