"""What the reviewers of a run came to, as values and as the coordinator reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from app.agents.findings_xml import ParseOutcome
from app.agents.hedging import is_hedged
from app.agents.port import ModelRef
from app.agents.sanitise import attribute, code, enclose, reported
from app.domain.findings import ReportedFinding
from app.domain.runs import AgentName, Usage


@dataclass(frozen=True, slots=True)
class ReviewerOutcome:
    """One reviewer's part of a run.

    PARTIAL: its findings hold, but it did not see or say all. FAILED: nothing may be concluded.
    `reason` says why in a word or two (`timeout`, `malformed`), "" when OK. `problems` are for
    logs.
    """

    reviewer: AgentName
    status: ParseOutcome
    findings: tuple[ReportedFinding, ...] = ()
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    model: ModelRef | None = None
    sessions: int = 0
    problems: tuple[str, ...] = ()


def joined(parts: Sequence[ReviewerOutcome]) -> ReviewerOutcome:
    """One reviewer's outcomes of the parts of a change as one; at least one is needed.

    Findings are numbered through. One part that failed makes the whole PARTIAL.
    """
    if len(parts) == 1:
        return parts[0]
    states = {part.status for part in parts}
    found = chain.from_iterable(part.findings for part in parts)
    return ReviewerOutcome(
        reviewer=parts[0].reviewer,
        status=states.pop() if len(states) == 1 else ParseOutcome.PARTIAL,
        findings=tuple(
            replace(finding, ref=f"{parts[0].reviewer}-{number}")
            for number, finding in enumerate(found, start=1)
        ),
        reason=next((part.reason for part in parts if part.reason), ""),
        usage=sum((part.usage for part in parts), start=Usage()),
        model=next((part.model for part in reversed(parts) if part.model), None),
        sessions=sum(part.sessions for part in parts),
        problems=tuple(chain.from_iterable(part.problems for part in parts)),
    )


def render_reviewer_results(outcomes: Iterable[ReviewerOutcome]) -> str:
    """The answer of `spawn_reviewers`. Every text in it is cleaned: it is data from models."""
    return enclose("reviewer_results", "\n".join(_reviewer(outcome) for outcome in outcomes))


def _reviewer(outcome: ReviewerOutcome) -> str:
    reason = f' reason="{attribute(outcome.reason)}"' if outcome.reason else ""
    head = f'<reviewer name="{outcome.reviewer}" status="{outcome.status}"{reason}'
    if not outcome.findings:
        return f"{head}/>"
    inside = "\n".join(_finding(finding) for finding in outcome.findings)
    return f"{head}>\n{inside}\n</reviewer>"


def _finding(finding: ReportedFinding) -> str:
    place = finding.location
    fields = [
        _code("path", place.path),
        *_lines(place.start_line, place.end_line),
        _field("severity", finding.severity),
        _field("category", finding.category),
        _field("title", finding.title),
        _field("body", finding.body),
        _code("evidence", finding.evidence),
        _code("suggestion", finding.suggestion),
        *(f"<also>{_code('path', path)}</also>" for path in finding.also),
    ]
    inside = "\n".join(text for text in fields if text)
    doubt = ' hedged="true"' if is_hedged(finding) else ""
    return f'<finding ref="{attribute(finding.ref)}"{doubt}>\n{inside}\n</finding>'


def _lines(start: int | None, end: int | None) -> list[str]:
    if start is None:
        return []
    if end is None or end == start:
        return [f"<line>{start}</line>"]
    return [f"<start_line>{start}</start_line>", f"<end_line>{end}</end_line>"]


def _field(name: str, text: str | None) -> str:
    """Words, which reach the page again; invisible characters have no part in them."""
    return f"<{name}>{reported(text)}</{name}>" if text else ""


def _code(name: str, text: str | None) -> str:
    """Code letter by letter, for what is hidden in it may be the very defect."""
    return f"<{name}>{code(text)}</{name}>" if text else ""
