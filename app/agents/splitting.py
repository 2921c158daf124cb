"""What is done when a change is too much for one answer of a reviewer: it is read in halves. Pure.

An answer that was cut off twice, or a change that no window holds, is no smaller the third time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.agents.findings_xml import ParseOutcome
from app.agents.port import AgentErrorKind
from app.agents.prompt_context import PromptContext
from app.agents.reviewer_results import ReviewerOutcome, joined
from app.domain.findings import ReportedFinding

_TOO_MUCH = frozenset({"length", AgentErrorKind.CONTEXT_OVERFLOW.value})


def halves_of(context: PromptContext, outcome: ReviewerOutcome) -> tuple[PromptContext, ...]:
    """The two halves of what was too much, or () where halves would not help: it was not too much,
    or it is a single file.

    The files that the outcome says nothing of come first: if there is a session for one half alone,
    it goes to those of which we know least.
    """
    files = context.changed_files
    if outcome.status is ParseOutcome.OK or outcome.reason not in _TOO_MUCH or len(files) < 2:
        return ()
    spoken = _spoken_of(outcome)
    ordered = sorted(files, key=lambda file: file.path in spoken)
    middle = (len(ordered) + 1) // 2
    return tuple(
        replace(context, changed_files=tuple(half), part=(number, 2))
        for number, half in enumerate((ordered[:middle], ordered[middle:]), start=1)
    )


def with_halves(whole: ReviewerOutcome, halves: Sequence[ReviewerOutcome]) -> ReviewerOutcome:
    """The whole's outcome and those of its halves (one or two, in order) as one.

    It is OK when both halves are. What the cut answer had found is kept, unless a half found the
    same at the same line.
    """
    if not halves:
        return whole
    together = joined((*halves, whole))
    complete = len(halves) == 2 and all(one.status is ParseOutcome.OK for one in halves)
    return replace(
        together,
        status=ParseOutcome.OK if complete else ParseOutcome.PARTIAL,
        reason="" if complete else whole.reason,
        findings=tuple(
            replace(finding, ref=f"{whole.reviewer}-{number}")
            for number, finding in enumerate(_once(together.findings), start=1)
        ),
    )


def unread_after(context: PromptContext, outcome: ReviewerOutcome) -> frozenset[str]:
    """The files of which nothing is known after this outcome. An answer that was cut off has read
    those it speaks of, and of the others nobody can tell."""
    if outcome.status is ParseOutcome.OK:
        return frozenset()
    paths = frozenset(file.path for file in context.changed_files)
    if outcome.status is ParseOutcome.FAILED:
        return paths
    return paths - _spoken_of(outcome) if outcome.reason in _TOO_MUCH else frozenset()


def _spoken_of(outcome: ReviewerOutcome) -> frozenset[str]:
    paths = (path for one in outcome.findings for path in (one.location.path, *one.also))
    return frozenset(path for path in paths if path is not None)


def _once(findings: Iterable[ReportedFinding]) -> tuple[ReportedFinding, ...]:
    seen: dict[tuple[object, str], ReportedFinding] = {}
    for one in findings:
        place = (one.location.path, one.location.start_line)
        seen.setdefault((place, one.title.casefold()), one)
    return tuple(seen.values())
