"""Turns a comment into facts: who asks, what they may do now, and what the ledger knows."""

from __future__ import annotations

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.facts import Asked, KnownFinding, Ledger, Person
from app.commands.grammar import Command
from app.commands.services import CommandServices
from app.domain.bots import is_human_act
from app.domain.jobs import causes_of
from app.domain.policy import Policy
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.domain.tasks import LineageState, OrderState
from app.forges.port import Forge
from app.git.process import Remote
from app.jobs.context import JobContext
from app.policy.read import read_policy
from app.store.findings import finding_rows
from app.store.queries import pull_request
from app.store.tables import FindingRow, FixTask, Lineage, Order, PullRequestRow
from loop_guards import PullState

STATES = {
    PullRequestState.OPEN: PullState.OPEN,
    PullRequestState.CLOSED: PullState.CLOSED,
    PullRequestState.MERGED: PullState.MERGED,
}
"""The forge's states in the guards' words."""


async def gather(
    job: JobContext,
    services: CommandServices,
    forge: Forge,
    repo: RepoRef,
    commands: tuple[Command, ...],
) -> Asked:
    """Who asks for what."""
    pull = await forge.pull_request(repo, int(job.payload["number"]))
    policy = await policy_of(services, forge, repo, pull)
    return Asked(
        now=job.clock.now(),
        repo=repo,
        pull_request=pull,
        comment_id=int(job.payload["comment_id"]),
        person=await who_asks(job, services, forge, repo, policy),
        policy=policy,
        commands=commands,
    )


async def who_asks(
    job: JobContext, services: CommandServices, forge: Forge, repo: RepoRef, policy: Policy
) -> Person:
    """Whose act the job answers. The permission is the forge's answer of this moment."""
    cause = causes_of(job.payload)[-1]
    by_human = is_human_act(cause, policy.machine_accounts, services.our_logins)
    return Person(
        account=cause.actor,
        by_human=by_human,
        can_write=by_human and (await forge.permission(repo, cause.actor.login)).can_write,
        at=cause.at,
    )


async def policy_of(
    services: CommandServices, forge: Forge, repo: RepoRef, pull: PullRequest
) -> Policy:
    """The policy on the default branch of now."""
    clone = await forge.clone_remote(repo, write=False)
    mirror = await services.mirrors.ready(
        repo.repository_id, Remote(clone.url, clone.token), branches=(pull.default_branch,)
    )
    return (await read_policy(mirror, services.mirrors.branch_ref(pull.default_branch))).policy


async def read_ledger(session: AsyncSession, asked: Asked) -> Ledger:
    """What we know of the pull request, locked: a merge sees the orders, or they see the merge."""
    row = await pull_request(session, asked.repo.repository_id, asked.pull_request.number)
    told = STATES[asked.pull_request.state]
    if row is None:
        return Ledger(state=told)
    row = await session.get_one(
        PullRequestRow, row.id, with_for_update=True, populate_existing=True
    )
    # Merged is final: the ledger may have heard of it after the forge was asked.
    merged = row.state is PullRequestState.MERGED
    lineage = await session.get(Lineage, row.lineage_id) if row.lineage_id else None
    return Ledger(
        pull_request_id=row.id,
        state=PullState.MERGED if merged else told,
        stopped=lineage is not None and lineage.state is LineageState.STOPPED,
        findings=await _findings(session, row),
    )


async def _findings(session: AsyncSession, row: PullRequestRow) -> tuple[KnownFinding, ...]:
    rows = await finding_rows(session, row.id)
    pending = await session.exec(
        select(Order).where(
            col(Order.finding_id).in_([item.id for item in rows]),
            Order.state == OrderState.PENDING,
        )
    )
    queued = {order.finding_id: order.ordered_by_login for order in pending.all()}
    tasks = await _tasks(session, [item.fix_task_id for item in rows if item.fix_task_id])
    return tuple(
        _known(item, tasks.get(item.fix_task_id or 0), queued.get(item.id)) for item in rows
    )


async def _tasks(
    session: AsyncSession, task_ids: list[int]
) -> dict[int, tuple[FixTask, int | None]]:
    """Tasks with the number of their pull request."""
    statement = (
        select(FixTask, PullRequestRow.number)
        .outerjoin(PullRequestRow, col(PullRequestRow.id) == col(FixTask.fix_pull_request_id))
        .where(col(FixTask.id).in_(task_ids))
    )
    return {task.id: (task, number) for task, number in (await session.exec(statement)).all()}


def _known(
    row: FindingRow, covering: tuple[FixTask, int | None] | None, queued_by: str | None
) -> KnownFinding:
    task, number = covering or (None, None)
    return KnownFinding(
        id=row.id,
        short_id=row.short_id,
        status=row.status,
        covered_by=task.state if task else None,
        task_id=task.id if task else None,
        fix_number=number,
        queued_by=queued_by,
    )
