"""From a change to who reads what: filter, tier and reviewers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.domain.coverage import Coverage
from app.domain.diff import FileChange
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
from app.review.concerns import has_work
from app.review.filter import FileFacts, filter_files
from app.review.risk import RiskAssessment, assess

REVIEWERS: dict[Tier, tuple[AgentName, ...]] = {
    Tier.TRIVIAL: (AgentName.GENERAL,),
    Tier.LITE: (AgentName.CODE_QUALITY, AgentName.DOCUMENTATION, AgentName.AGENTS_MD),
    Tier.FULL: (
        AgentName.SECURITY,
        AgentName.PERFORMANCE,
        AgentName.CODE_QUALITY,
        AgentName.DOCUMENTATION,
        AgentName.RELEASE,
        AgentName.COMPLIANCE,
        AgentName.AGENTS_MD,
    ),
}
"""Who reads a change of which tier (DESIGN §4), if there is something for them to do."""


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """What a run is going to do. Nothing to read: `files` is empty and no model runs.

    `parts` are the same files as each reviewer reads them, one session after the other: a change
    that fits into the reviewers' windows is one part. `left_out` are files without a place in any.
    `doubtful` are the paths of those that only say that they are generated. `seen` are files that
    an earlier round has read as they are now.
    """

    files: tuple[FileChange, ...]
    coverage: Coverage
    risk: RiskAssessment
    reviewers: tuple[AgentName, ...]
    parts: tuple[tuple[FileChange, ...], ...] = ()
    left_out: tuple[FileChange, ...] = ()
    doubtful: frozenset[str] = frozenset()
    seen: tuple[FileChange, ...] = ()

    @property
    def tier(self) -> Tier:
        return self.risk.tier

    @property
    def paths(self) -> frozenset[str]:
        """The files that a finding may name: also one without a place may have been seen."""
        return frozenset(file.path for file in (*self.files, *self.left_out, *self.seen))


def plan_review(
    files: Iterable[FileFacts], policy: Policy, available: Collection[AgentName]
) -> ReviewPlan:
    """Filter, rate and staff a review. There is always at least one reviewer for what is read."""
    filtered = filter_files(files)
    risk = assess(filtered.reviewed)
    chosen = tuple(
        agent
        for agent in REVIEWERS[risk.tier]
        if agent in available
        and policy.reviewers.allows(agent)
        and has_work(agent, filtered.reviewed)
    )
    return ReviewPlan(
        files=filtered.reviewed,
        coverage=filtered.coverage,
        risk=risk,
        reviewers=chosen or (AgentName.GENERAL,),
        parts=(filtered.reviewed,) if filtered.reviewed else (),
        doubtful=frozenset(filtered.notes),
    )
