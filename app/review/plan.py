"""From a change to who reads what: filter, tier and reviewers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.domain.coverage import Coverage
from app.domain.diff import FileChange
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
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
"""Who reads a change of which tier (DESIGN §4); those without a prompt yet are left out."""


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """What a run is going to do. Nothing to read: `files` is empty and no model runs."""

    files: tuple[FileChange, ...]
    coverage: Coverage
    risk: RiskAssessment
    reviewers: tuple[AgentName, ...]

    @property
    def tier(self) -> Tier:
        return self.risk.tier

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.files)


def plan_review(
    files: Iterable[FileFacts], policy: Policy, available: Collection[AgentName]
) -> ReviewPlan:
    """Filter, rate and staff a review. There is always at least one reviewer for what is read."""
    filtered = filter_files(files)
    risk = assess(filtered.reviewed)
    chosen = tuple(
        agent
        for agent in REVIEWERS[risk.tier]
        if agent in available and policy.reviewers.allows(agent)
    )
    return ReviewPlan(
        files=filtered.reviewed,
        coverage=filtered.coverage,
        risk=risk,
        reviewers=chosen or (AgentName.GENERAL,),
    )
