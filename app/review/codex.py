"""Holds the compliance reviewer's findings against the codex that it was given. Pure."""

from __future__ import annotations

from dataclasses import replace

from app.domain.findings import DroppedFinding, DropReason, JudgedFinding, ReportedFinding
from app.domain.runs import AgentName
from app.plugins.codex import Codex
from app.review.conduct import Conducted


def by_the_codex(conducted: Conducted, codex: Codex) -> Conducted:
    """The answer without compliance findings that name no rule of the codex: they are dropped, as
    the coordinator could have, and the run shows them with the reason. What another reviewer found
    as well stays, as that one's.
    """
    lawless = {
        finding.ref
        for finding in conducted.reported
        if finding.reviewer == AgentName.COMPLIANCE and not _named(finding, codex)
    }
    if not lawless:
        return conducted
    review = conducted.review
    judged = tuple(kept for item in review.judged if (kept := _without(item, lawless)) is not None)
    dropped = (
        DroppedFinding(
            refs=tuple(ref for ref in item.refs if ref not in lawless),
            reason=item.reason,
            why=item.why,
        )
        for item in review.dropped
        if not lawless.issuperset(item.refs)
    )
    ours = DroppedFinding(
        refs=tuple(sorted(lawless)),
        reason=DropReason.FALSE_POSITIVE,
        why="It names no rule of the codex.",
    )
    return replace(conducted, review=replace(review, judged=judged, dropped=(*dropped, ours)))


def _named(finding: ReportedFinding, codex: Codex) -> frozenset[str]:
    return codex.named_in(finding.category, finding.title, finding.body)


def _without(item: JudgedFinding, refs: set[str]) -> JudgedFinding | None:
    if not refs.intersection(item.refs):
        return item
    left = tuple(ref for ref in item.refs if ref not in refs)
    return replace(item, refs=left) if left or item.short_id is not None else None
