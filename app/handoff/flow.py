"""A pull request closed: discard, or hand off once. The story of DESIGN §3.2."""

from __future__ import annotations

from app.domain.effects import Comment
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import Mode
from app.domain.pull_request import PullRequestState
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.handoff.facts import CloseFacts
from app.handoff.gather import gather
from app.handoff.record import stop_review, store_close
from app.handoff.render import HandedTask, plan_comment
from app.handoff.services import HandoffServices
from app.jobs.context import JobContext
from app.jobs.places import repo_of
from loop_guards import BATCH_MERGE, ClosePlan, HandoffDecision, TaskPlan, plan_unmerged


async def close_pull_request(job: JobContext, services: HandoffServices) -> None:
    """Plan once what the end of a pull request causes, store it, and say so."""
    repo = await repo_of(job)
    async with services.open_forge() as forge:
        pull = await forge.pull_request(repo, int(job.payload["number"]))
        if pull.state is PullRequestState.OPEN:
            return
        if not job.has("planned"):
            await stop_review(job, repo.repository_id, pull.number)
            facts = await gather(job, services, forge, repo, pull)
            plan = decide(facts, services)
            await store_close(job, facts, plan, words_of(facts, plan))
        job.notify()
        await _tell(job, forge, Target(repo, pull.number))


def decide(facts: CloseFacts, services: HandoffServices) -> ClosePlan | None:
    """The guards' plan; None where the policy lets us look on only."""
    if facts.policy.mode is Mode.SHADOW:
        return None
    if facts.merge is None:
        closed_at = facts.pull_request.closed_at or facts.now
        return plan_unmerged(facts.orders, closed_at=closed_at, still_closed=True)
    return services.plan(facts.handoff, facts.merge, facts.limits, batch=facts.batch)


def words_of(facts: CloseFacts, plan: ClosePlan | None) -> Comment | None:
    """One comment per plan. A merge that has no findings, or an unmerged end, needs no words.

    A fix that was merged has nothing to hand off; saying so would only be noise.
    """
    if plan is None or facts.merge is None or not plan.decisions:
        return None
    if facts.own_task_id is not None and not (plan.tasks or plan.resumed):
        return None
    resumed = set(plan.resumed)
    refused = [
        item
        for item in plan.decisions
        if isinstance(item, HandoffDecision) and not item.yes and item.finding_id not in resumed
    ]
    batch = "" if facts.batch == BATCH_MERGE else f":{facts.batch}"
    return Comment(
        Marker(MarkerKind.COMMENT, f"handoff:{facts.pull_request_id}{batch}"),
        plan_comment(
            [_handed(task, facts) for task in plan.tasks],
            refused,
            facts.findings,
            [facts.findings[number].short_id for number in plan.resumed],
        ),
    )


def _handed(task: TaskPlan, facts: CloseFacts) -> HandedTask:
    return HandedTask(
        paths=task.paths,
        short_ids=tuple(facts.findings[number].short_id for number in task.finding_ids),
        target=task.target,
        waiting=task.waiting,
    )


async def _tell(job: JobContext, forge: Forge, target: Target) -> None:
    """What was stored with the plan is said as it was then, also by a later try."""
    said = job.recorded("planned")["comment"]
    if said is None or job.has("told"):
        return
    comment = Comment(Marker(MarkerKind.COMMENT, said["id"]), said["body"])
    await apply(forge, target, (comment,))
    await job.record("told")
