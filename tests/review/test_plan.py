"""Who reads what (app/review/plan.py)."""

from __future__ import annotations

import pytest

from app.domain.policy import Policy, Reviewers
from app.domain.runs import SHIPPED_AGENTS, AgentName, Tier
from app.review.filter import FileFacts, SkipReason
from app.review.plan import REVIEWERS, plan_review
from tests.review.factories import change

SHIPPED = frozenset({AgentName.GENERAL, AgentName.CODE_QUALITY, AgentName.SECURITY})


@pytest.mark.parametrize(
    ("lines", "path", "tier", "reviewers"),
    [
        pytest.param(4, "app/a.py", Tier.TRIVIAL, (AgentName.GENERAL,), id="trivial"),
        pytest.param(40, "app/a.py", Tier.LITE, (AgentName.CODE_QUALITY,), id="lite"),
        pytest.param(
            400, "app/a.py", Tier.FULL, (AgentName.SECURITY, AgentName.CODE_QUALITY), id="large"
        ),
        pytest.param(
            1, "app/auth/a.py", Tier.FULL, (AgentName.SECURITY, AgentName.CODE_QUALITY),
            id="sensitive",
        ),
    ],
)  # fmt: skip
def test_the_tier_staffs_the_review(
    lines: int, path: str, tier: Tier, reviewers: tuple[AgentName, ...]
) -> None:
    """Size and place decide the tier, the tier decides who reads."""
    plan = plan_review([FileFacts(change(path, lines))], Policy(), SHIPPED)
    assert (plan.tier, plan.reviewers) == (tier, reviewers)


def test_somebody_always_reads() -> None:
    """Switching off all reviewers of a tier leaves the general one."""
    off = Policy(reviewers=Reviewers(code_quality=False, documentation=False, agents_md=False))
    assert plan_review([FileFacts(change(lines=40))], off, SHIPPED).reviewers == (
        AgentName.GENERAL,
    )


def test_nothing_left_to_read() -> None:
    """A change of noise alone has no files to read and names each reason."""
    plan = plan_review([FileFacts(change(), skip_reason=SkipReason.POLICY)], Policy(), SHIPPED)
    assert plan.files == ()
    assert [entry.reason for entry in plan.coverage.entries] == ["policy"]


def test_no_tier_is_without_reviewers() -> None:
    """Every tier names somebody."""
    assert all(REVIEWERS[tier] for tier in Tier)


ALL = frozenset(SHIPPED_AGENTS)


@pytest.mark.parametrize(
    ("path", "starts"),
    [
        pytest.param("app/a.py", set(), id="plain code"),
        pytest.param("db/migrations/0001_a.py", {AgentName.RELEASE}, id="migration"),
        pytest.param("CHANGELOG.md", {AgentName.RELEASE}, id="changelog"),
        pytest.param("sub/AGENTS.md", {AgentName.AGENTS_MD}, id="instructions below"),
        pytest.param(
            "web/package.json", {AgentName.RELEASE, AgentName.AGENTS_MD}, id="package manager"
        ),
        pytest.param("app/agents.py", set(), id="a name that only sounds like it"),
    ],
)
def test_some_start_only_for_their_files(path: str, starts: set[AgentName]) -> None:
    """Release and the reviewer of agents' instructions start for their own files; all others
    read every change of their tier."""
    plan = plan_review([FileFacts(change(path, 400))], Policy(), ALL)
    own = {AgentName.RELEASE, AgentName.AGENTS_MD}
    assert own & set(plan.reviewers) == starts
    assert set(REVIEWERS[plan.tier]) - own <= set(plan.reviewers)


def test_a_file_counts_by_its_old_name_too() -> None:
    """Moving a migration away is a matter of release, and any move may change the layout."""
    moved = change("app/b.py", 400, old_path="db/migrations/0001_a.py")
    plan = plan_review([FileFacts(moved)], Policy(), ALL)
    assert {AgentName.RELEASE, AgentName.AGENTS_MD} <= set(plan.reviewers)
