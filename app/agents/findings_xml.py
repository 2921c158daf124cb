"""Reads what agents answer: tolerant of form, strict in what it hands on. Never raises.

An answer that cannot be read is FAILED, never "no findings"; one that was cut off is PARTIAL, never
whole. Findings in JSON are findings, but that there are none is said in our form or not at all.
Words a model may say about the verdict are not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from app.agents.finding_fields import (
    FIELDS,
    FoundFinding,
    Reading,
    as_remark_if_unknown,
    clip,
    distinct,
    is_whole,
    read_findings,
)
from app.agents.language import is_other_language
from app.agents.port import FinishReason
from app.agents.scan import Element, Grammar, scan
from app.agents.scan_json import scan_json
from app.domain.findings import (
    CarriedClaim,
    CarriedState,
    DroppedFinding,
    DropReason,
    JudgedFinding,
    ReportedFinding,
)

_FINDINGS_GRAMMAR: Grammar = MappingProxyType(
    {"findings": frozenset({"finding"}), "finding": FIELDS}
)
_REVIEW_GRAMMAR: Grammar = MappingProxyType(
    {
        "review": frozenset({"summary", "findings", "carried", "dropped"}),
        "carried": frozenset({"item"}),
        "dropped": frozenset({"item"}),
        **_FINDINGS_GRAMMAR,
    }
)
_FIX_GRAMMAR: Grammar = MappingProxyType(
    {"fix_report": frozenset({"fixed", "declined", "summary"})}
)


class ParseOutcome(StrEnum):
    """OK: whole. PARTIAL: what is there is good, but something is missing. FAILED: unreadable."""

    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ParsedFindings:
    """A reviewer's answer. `problems` are sentences for the log and for asking again.

    `other_language`: it can be read, but not by everybody who is meant to.
    """

    outcome: ParseOutcome
    findings: tuple[ReportedFinding, ...] = ()
    problems: tuple[str, ...] = ()
    other_language: bool = False


@dataclass(frozen=True, slots=True)
class ParsedReview:
    """The coordinator's answer. Ids and references are as it wrote them; the judge pass checks."""

    outcome: ParseOutcome
    summary: str = ""
    judged: tuple[JudgedFinding, ...] = ()
    carried: tuple[CarriedClaim, ...] = ()
    dropped: tuple[DroppedFinding, ...] = ()
    problems: tuple[str, ...] = ()
    other_language: bool = False


@dataclass(frozen=True, slots=True)
class ParsedFixReport:
    """The fixer's answer: short ids with what changed, or why not."""

    outcome: ParseOutcome
    fixed: tuple[tuple[str, str], ...] = ()
    declined: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    problems: tuple[str, ...] = ()
    other_language: bool = False


def parse_findings(
    text: str,
    reviewer: str,
    known_paths: Collection[str],
    finish: FinishReason = FinishReason.STOP,
    prompt_version: str = "",
) -> ParsedFindings:
    """Read a reviewer's answer. References are `<reviewer>-1`, `-2`, … in its order.

    A finding at a path that the change (`known_paths`) does not have is kept as a remark on the
    whole change, with the path it named in its evidence.
    """
    root, finish = _answer(text, "findings", _FINDINGS_GRAMMAR, finish)
    if root is None:
        return ParsedFindings(ParseOutcome.FAILED, problems=("there is no <findings> element",))
    reading = Reading(frozenset(known_paths), finish is FinishReason.STOP, prompt_version)
    read = read_findings(root, reading)
    located = [as_remark_if_unknown(found.finding, reading) for found in read]
    findings = tuple(
        replace(found, ref=f"{reviewer}-{number}", reviewer=reviewer)
        for number, found in enumerate(distinct(located), start=1)
    )
    outcome = _findings_outcome(root, bool(findings), finish, reading)
    foreign = any(is_other_language(f"{found.title}\n{found.body}") for found in findings)
    return ParsedFindings(outcome, findings, tuple(reading.problems), foreign)


def parse_review(
    text: str,
    known_paths: Collection[str],
    finish: FinishReason = FinishReason.STOP,
    prompt_version: str = "",
) -> ParsedReview:
    """Read the coordinator's answer. Paths are brought into form, but unknown ones are kept."""
    root, finish = _answer(text, "review", _REVIEW_GRAMMAR, finish)
    section = root.first("findings") if root is not None else None
    if root is None or (section is None and not root.children):
        return ParsedReview(ParseOutcome.FAILED, problems=("there is no <review> element",))
    reading = Reading(frozenset(known_paths), finish is FinishReason.STOP, prompt_version)
    if section is None:
        reading.problems.append("the <findings> element is missing from the review")
        return ParsedReview(_broken(root, finish), problems=tuple(reading.problems))
    judged = tuple(_judged(found) for found in read_findings(section, reading))
    outcome = _findings_outcome(section, bool(judged), finish, reading)
    if root.cut and outcome is ParseOutcome.OK and not is_whole(root):
        outcome = ParseOutcome.PARTIAL
    summary = clip(root.value("summary"))
    said = [summary, *(f"{one.finding.title}\n{one.finding.body}" for one in judged)]
    return ParsedReview(
        outcome,
        summary=summary,
        judged=judged,
        carried=_carried(root, reading),
        dropped=_dropped(root, reading),
        problems=tuple(reading.problems),
        other_language=any(map(is_other_language, said)),
    )


def parse_fix_report(text: str, finish: FinishReason = FinishReason.STOP) -> ParsedFixReport:
    """Read the fixer's report. What it claims is checked by the next review, not here."""
    root, finish = _answer(text, "fix_report", _FIX_GRAMMAR, finish)
    if root is None or not root.children:
        return ParsedFixReport(ParseOutcome.FAILED, problems=("there is no <fix_report> element",))
    problems: list[str] = []
    claims: dict[str, tuple[str, str]] = {}
    for child in (*root.all("fixed"), *root.all("declined")):
        short_id = _short_id(child.attributes.get("id", ""))
        if short_id is None or child.cut:
            problems.append(f"a <{child.name}> element without a usable id was left out")
            continue
        if short_id in claims:
            problems.append(f"{short_id} is reported twice; it counts as declined")
        # Declined comes second in the loop and wins: a doubtful fix is no fix.
        claims[short_id] = (child.name, clip(child.text.strip()))
    partial = finish is not FinishReason.STOP or any(child.cut for child in root.children)
    return ParsedFixReport(
        ParseOutcome.PARTIAL if partial else ParseOutcome.OK,
        fixed=tuple((key, why) for key, (name, why) in claims.items() if name == "fixed"),
        declined=tuple((key, why) for key, (name, why) in claims.items() if name == "declined"),
        summary=clip(root.value("summary")),
        problems=tuple(problems),
    )


def _answer(
    text: str, root: str, grammar: Grammar, finish: FinishReason
) -> tuple[Element | None, FinishReason]:
    """The answer and how it ended: in our form if it holds anything there, else in JSON.

    A text that begins with a brace is JSON, whatever elements its strings speak of. What was cut
    inside JSON was cut, whatever the model said of its end. JSON that holds nothing is no answer.
    """
    element = scan(text, root, grammar)
    if element is not None and element.children and not _BEGINS_WITH_JSON.match(text):
        return element, finish
    in_json = scan_json(text, root, grammar)
    if in_json is None or not (in_json.cut or _holds_anything(in_json)):
        return element, finish
    return in_json, FinishReason.LENGTH if in_json.cut else finish


_BEGINS_WITH_JSON = re.compile(
    r"(?:\s++|<(?P<name>think|thinking)>[\s\S]*?</(?P=name)>|```\w*+)*+[{\[]", re.IGNORECASE
)


def _holds_anything(root: Element) -> bool:
    if root.name != "review":
        return bool(root.children)
    return any(part.children for part in root.all("findings"))


def _findings_outcome(
    root: Element, has_findings: bool, finish: FinishReason, reading: Reading
) -> ParseOutcome:
    cut_inside = any(child.cut and not is_whole(child) for child in root.children)
    if has_findings:
        unsure = finish is FinishReason.UNKNOWN and not root.closed
        broken = finish in (FinishReason.LENGTH, FinishReason.ERROR, FinishReason.REFUSED)
        return ParseOutcome.PARTIAL if cut_inside or unsure or broken else ParseOutcome.OK
    if finish is FinishReason.LENGTH or (cut_inside and finish is FinishReason.UNKNOWN):
        reading.problems.append("the answer was cut off before its first finding was complete")
        return ParseOutcome.PARTIAL
    if root.children:
        reading.problems.append("none of the findings could be read")
        return ParseOutcome.FAILED
    if not root.closed or root.text.strip():
        reading.problems.append("<findings> holds text but no finding, and is not empty either")
        return ParseOutcome.FAILED
    return ParseOutcome.OK if finish is FinishReason.STOP else ParseOutcome.PARTIAL


def _broken(root: Element, finish: FinishReason) -> ParseOutcome:
    cut = finish is FinishReason.LENGTH or root.cut
    return ParseOutcome.PARTIAL if cut else ParseOutcome.FAILED


def _judged(found: FoundFinding) -> JudgedFinding:
    refs = tuple(dict.fromkeys(re.findall(r"[\w.-]+", found.attributes.get("source", ""))))
    short_id = _short_id(found.attributes.get("id", ""))
    reviewer = refs[0].rpartition("-")[0] or refs[0] if refs else "coordinator"
    ref = refs[0] if refs else short_id or found.finding.ref
    return JudgedFinding(replace(found.finding, ref=ref, reviewer=reviewer), refs, short_id)


def _short_id(text: str) -> str | None:
    match = re.fullmatch(r"\s*#?\[?([A-Za-z]{1,3}\d{1,6})\]?\s*", text)
    return match.group(1).upper() if match else None


def _carried(root: Element, reading: Reading) -> tuple[CarriedClaim, ...]:
    claims: dict[str, CarriedClaim] = {}
    for item in _items(root, "carried"):
        short_id = _short_id(item.attributes.get("id", ""))
        state = item.attributes.get("state", "").lower()
        if short_id is None or state not in tuple(CarriedState):
            reading.problems.append(f"a carried item is unusable (id {short_id}, state {state!r})")
            continue
        claim = CarriedClaim(short_id, CarriedState(state), clip(item.text.strip()))
        if short_id in claims and claims[short_id].state is not claim.state:
            reading.problems.append(f"{short_id} is carried with two states; it counts as open")
            claim = replace(claim, state=CarriedState.OPEN)
        claims[short_id] = claim
    return tuple(claims.values())


def _dropped(root: Element, reading: Reading) -> tuple[DroppedFinding, ...]:
    dropped: list[DroppedFinding] = []
    for item in _items(root, "dropped"):
        refs = tuple(re.findall(r"[\w.-]+", item.attributes.get("source", "")))
        reason = re.sub(r"[\s-]+", "_", item.attributes.get("reason", "").lower())
        if not refs or reason not in tuple(DropReason):
            reading.problems.append(f"a dropped item is unusable (source {refs}, {reason!r})")
            continue
        dropped.append(DroppedFinding(refs, DropReason(reason), clip(item.text.strip())))
    return tuple(dropped)


def _items(root: Element, name: str) -> list[Element]:
    return [item for part in root.all(name) for item in part.all("item") if not item.cut]
