"""What is found without a model: it enters the judge pass beside the agents' findings."""

from __future__ import annotations

from app.domain.findings import JudgedFinding
from app.domain.policy import POLICY_PATH
from app.review.direction_marks import direction_marks
from app.review.plan import ReviewPlan
from app.review.policy_change import unusable_policy
from app.review.source import Source, texts_of


async def found_by_code(source: Source, plan: ReviewPlan) -> tuple[JudgedFinding, ...]:
    """The findings in what the change is to be reviewed for. They hold whatever a model says of
    them: no answer drops one, and one that is found again is open."""
    touched = {POLICY_PATH} & plan.paths
    policy = (await texts_of(source.tree, touched)).get(POLICY_PATH)
    return (
        *direction_marks((*plan.files, *plan.left_out)),
        *unusable_policy(plan.paths, policy),
    )
