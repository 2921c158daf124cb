"""One `<finding>` element as a `ReportedFinding`: each by itself, each value checked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from app.agents.places import find_place, read_lines
from app.agents.scan import Element
from app.domain.findings import Location, ReportedFinding
from loop_guards import Severity

MOST_FINDINGS = 200
MOST_ALSO = 5
TITLE_CHARS = 200
TEXT_CHARS = 8_000
FIELDS = frozenset(
    {
        "path",
        "line",
        "start_line",
        "end_line",
        "severity",
        "category",
        "title",
        "body",
        "evidence",
        "suggestion",
        "also",
        "trivial",
        "production_risk",
    }
)
_SEVERITIES = {
    "critical": Severity.CRITICAL,
    "blocker": Severity.CRITICAL,
    "blocking": Severity.CRITICAL,
    "severe": Severity.CRITICAL,
    "fatal": Severity.CRITICAL,
    "warning": Severity.WARNING,
    "warn": Severity.WARNING,
    "high": Severity.WARNING,
    "major": Severity.WARNING,
    "medium": Severity.WARNING,
    "moderate": Severity.WARNING,
    "error": Severity.WARNING,
    "suggestion": Severity.SUGGESTION,
    "info": Severity.SUGGESTION,
    "low": Severity.SUGGESTION,
    "minor": Severity.SUGGESTION,
    "nit": Severity.SUGGESTION,
    "nitpick": Severity.SUGGESTION,
}


@dataclass(slots=True)
class Reading:
    """One answer being read."""

    known_paths: frozenset[str]
    was_finished: bool
    prompt_version: str = ""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FoundFinding:
    finding: ReportedFinding
    attributes: dict[str, str]


def read_findings(root: Element, reading: Reading) -> list[FoundFinding]:
    elements = root.all("finding")
    if len(elements) > MOST_FINDINGS:
        reading.problems.append(f"{len(elements)} findings; only {MOST_FINDINGS} were read")
    read = (
        _read_finding(element, number, reading)
        for number, element in enumerate(elements[:MOST_FINDINGS], start=1)
    )
    return [found for found in read if found is not None]


def _read_finding(element: Element, number: int, reading: Reading) -> FoundFinding | None:
    """One finding by itself: a bad one does not touch its neighbours."""
    name = f"finding {number}"
    if element.cut and not (reading.was_finished and is_whole(element)):
        reading.problems.append(f"{name} was cut off and left out")
        return None
    title, body = _one_line(element.value("title")), clip(element.value("body"))
    if not title and not body:
        reading.problems.append(f"{name} has neither title nor body and was left out")
        return None
    place = find_place(element.value("path"), reading.known_paths)
    lines = _lines(element, name, reading) or place.lines
    finding = ReportedFinding(
        ref=name,
        reviewer="",
        location=Location(place.path, *(lines if lines and place.path else (None, None))),
        severity=_severity(element.value("severity"), name, reading),
        category=_category(element.value("category")),
        title=title or _first_sentence(body),
        body=body or title,
        evidence=clip(element.value("evidence")),
        suggestion=_suggestion(element),
        also=_also(element, place.path, reading),
        trivial=element.value("trivial").lower() in ("true", "yes", "1"),
        production_risk=clip(element.value("production_risk")) or None,
        prompt_version=reading.prompt_version,
    )
    return FoundFinding(finding, dict(element.attributes))


def is_whole(element: Element) -> bool:
    """An element whose own closing tag is missing, but whose children are all complete."""
    return bool(element.children) and not element.children[-1].cut and element.children[-1].closed


def _lines(element: Element, name: str, reading: Reading) -> tuple[int, int] | None:
    start = element.value("start_line") or element.value("line")
    end = element.value("end_line")
    if not start and not end:
        return None
    first = read_lines(start or end)
    last = read_lines(end) if end else first
    if first is None or last is None:
        reading.problems.append(f"{name}: {start or end!r} is no line number")
        return first or last
    return min(first[0], last[0]), max(first[1], last[1])


def _severity(text: str, name: str, reading: Reading) -> Severity:
    known = _SEVERITIES.get(text.strip().strip("`*\"'.").lower())
    if known is not None:
        return known
    reading.problems.append(f"{name}: severity {text[:40]!r} is unknown and counts as warning")
    return Severity.WARNING


def _category(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:40].strip("_") or "general"


def _suggestion(element: Element) -> str | None:
    """Replacement code without the line breaks after and before its tags, and without a fence."""
    child = element.first("suggestion")
    if child is None or child.cut:
        return None
    text = child.text.replace("\r\n", "\n")
    fenced = re.match(r"^\s*(`{3,}|~{3,})[^\n`]*\n([\s\S]*?)\n?[ \t]*\1[`~]*\s*$", text)
    code = fenced.group(2) if fenced else re.sub(r"^[ \t]*\n|\n[ \t]*$", "", text)
    return code if code.strip() and len(code) <= TEXT_CHARS else None


def _also(element: Element, own: str | None, reading: Reading) -> tuple[str, ...]:
    names: list[str] = []
    for child in element.all("also"):
        inner = re.findall(r"<path>([^<>]*)</path>", child.text)
        names += inner or re.split(r"[\n,]", child.text)
    places = (find_place(name, reading.known_paths) for name in names)
    paths = [place.path for place in places if place.path and place.known and place.path != own]
    return tuple(dict.fromkeys(paths))[:MOST_ALSO]


def as_remark_if_unknown(finding: ReportedFinding, reading: Reading) -> ReportedFinding:
    path = finding.location.path
    if path is None or path in reading.known_paths:
        return finding
    reading.problems.append(f"{finding.ref} names {path[:200]!r}, which is not in this change")
    evidence = f"(reported for {path[:200]}, which is not in this change) {finding.evidence}"
    return replace(finding, location=Location(None), evidence=evidence.strip(), suggestion=None)


def distinct(findings: Iterable[ReportedFinding]) -> list[ReportedFinding]:
    seen: dict[tuple[Location, str, str], ReportedFinding] = {}
    for finding in findings:
        seen.setdefault((finding.location, finding.title.lower(), finding.body), finding)
    return list(seen.values())


def _one_line(text: str) -> str:
    line = " ".join(text.split()).strip("#* ")
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


def _first_sentence(text: str) -> str:
    return _one_line(re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0])


def clip(text: str) -> str:
    text = text.strip()
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"
