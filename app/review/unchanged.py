"""What of a change an earlier round has read already: only the rest is read again.

A file counts as read when its patch is the same to the byte, so a rebase or a merge of the base
that leaves it alone is no reason to pay twice, and commit dates say nothing. What the earlier round
found there stays what it was: without a change nothing is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.agents.findings_xml import ParsedReview, ParseOutcome
from app.domain.diff import Diff
from app.domain.findings import CarriedClaim, CarriedState, Finding
from app.domain.runs import Usage
from app.errors import GitError
from app.git.mirror import Repository
from app.review.conduct import Conducted
from app.review.plan import ReviewPlan


@dataclass(frozen=True, slots=True)
class PreviousLook:
    """The latest round that read all it should: its commits, what it said, and the agents of it
    with the versions of their prompts."""

    head: str
    merge_base: str
    summary: str
    agents: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What that round saw."""

    reviewers: frozenset[str] = frozenset()
    diff: Diff = field(default_factory=lambda: Diff(()))


async def seen_in(repository: Repository, look: PreviousLook | None) -> Seen | None:
    """The change as the earlier round read it; None when there was none, or its commits are no
    longer to be had."""
    if look is None:
        return None
    try:
        diff = await repository.diff(look.merge_base, look.head)
    except GitError:
        return None
    return Seen(frozenset(look.agents), diff)


def without_seen(plan: ReviewPlan, seen: Seen | None) -> ReviewPlan:
    """The plan without the files that all of its reviewers have read as they are now.

    A reviewer who is new in this round has read nothing.
    """
    if seen is None or not seen.reviewers.issuperset(plan.reviewers):
        return plan
    same = frozenset(
        file.path
        for file in plan.files
        if (before := seen.diff.file(file.path)) is not None and before.patch == file.patch
    )
    if not same:
        return plan
    files = tuple(file for file in plan.files if file.path not in same)
    return replace(
        plan,
        files=files,
        seen=tuple(file for file in plan.files if file.path in same),
        parts=(files,) if files else (),
    )


def nothing_new(look: PreviousLook, existing: tuple[Finding, ...]) -> Conducted:
    """What agents would say of a change in which there is nothing they have not read: it is as it
    was, and so is every earlier finding. Nobody is asked."""
    carried = tuple(
        CarriedClaim(finding.short_id, CarriedState.OPEN, "nothing changed") for finding in existing
    )
    review = ParsedReview(ParseOutcome.OK, summary=look.summary, carried=carried)
    return Conducted((), review, Usage(), (), (), look.agents)
