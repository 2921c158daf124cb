"""Turns the end of a pull request into `CloseFacts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import col, func, or_, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.bots import Authorship, BotSignal, bot_signal, is_human_act
from app.domain.findings import Finding
from app.domain.jobs import causes_of
from app.domain.policy import Policy
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.domain.recheck import still_there
from app.domain.tasks import LIVE_TASK_STATES, RESUME_BATCH, LineageState
from app.forges.port import Forge
from app.git.mirror import Repository as GitRepository
from app.git.process import Remote
from app.handoff.facts import CloseFacts
from app.handoff.services import HandoffServices
from app.jobs.context import JobContext
from app.policy.read import read_policy
from app.store.commands import BotFact, ensure_lineage, ensure_pull_request
from app.store.decisions import deferred_findings
from app.store.findings import finding_rows, to_finding
from app.store.fixtasks import link_fix_pull_request, task_of_branch
from app.store.lineages import spent_of
from app.store.queries import pending_orders
from app.store.tables import FindingRow, FixTask, FixTaskFinding, Lineage, Order, PullRequestRow
from loop_guards import (
    BATCH_MERGE,
    FindingStatus,
    HandoffFinding,
    HumanOrder,
    Limits,
    MergeFacts,
    TaskState,
    WaitingTask,
)


@dataclass(frozen=True, slots=True)
class _Ledger:
    row: PullRequestRow
    findings: tuple[Finding, ...]
    orders: tuple[Order, ...]
    covered: dict[int, TaskState]
    dismissed: dict[int, datetime]
    lineage: Lineage
    deferred: frozenset[int]
    own_task_id: int | None
    tasks_of_merge: int
    tasks_on_base: tuple[FixTask, ...]


async def gather(
    job: JobContext, services: HandoffServices, forge: Forge, repo: RepoRef, pull: PullRequest
) -> CloseFacts:
    """Freeze everything the plan is made from; the merged tree is asked about each finding."""
    mirror = await _mirror(services, forge, repo, pull)
    policy = (await read_policy(mirror, services.mirrors.branch_ref(pull.default_branch))).policy
    signal = bot_signal(
        Authorship(
            author=pull.author,
            head_ref=pull.head_ref,
            our_logins=services.our_logins,
            added=frozenset(policy.bots.add),
            exempted=frozenset(policy.bots.exempt),
        )
    )
    limits = policy.limits.for_guards()
    ledger = await _remember(job, repo, pull, signal, limits.path_window)
    gone = await _gone(mirror, pull, ledger.findings)
    batch = str(job.payload.get("batch", BATCH_MERGE))
    return CloseFacts(
        now=job.clock.now(),
        repo=repo,
        pull_request=pull,
        pull_request_id=ledger.row.id,
        policy=policy,
        limits=limits,
        by_human=any(
            is_human_act(cause, policy.machine_accounts, services.our_logins)
            for cause in causes_of(job.payload)
        ),
        orders=tuple(_order(order) for order in ledger.orders),
        findings={finding.id: finding for finding in ledger.findings},
        batch=batch,
        own_task_id=ledger.own_task_id,
        handoff=_handoff_findings(ledger, gone, batch, limits, job),
        merge=_merge_facts(job, repo, pull, policy, ledger, limits),
        gone=gone,
    )


async def _mirror(
    services: HandoffServices, forge: Forge, repo: RepoRef, pull: PullRequest
) -> GitRepository:
    clone = await forge.clone_remote(repo, write=False)
    commits = (pull.merge_commit_sha,) if pull.merge_commit_sha else ()
    return await services.mirrors.ready(
        repo.repository_id,
        Remote(clone.url, clone.token),
        # Not the base: a branch that was merged into may be gone by now.
        branches=(pull.default_branch,),
        commits=commits,
    )


async def _remember(
    job: JobContext,
    repo: RepoRef,
    pull: PullRequest,
    signal: BotSignal | None,
    window: timedelta,
) -> _Ledger:
    now = job.clock.now()
    async with job.store.write() as session:
        row = await ensure_pull_request(
            session,
            repo.repository_id,
            pull,
            bot=BotFact(signal is not None, signal.value if signal else None),
            updated_at=now,
            now=now,
        )
        task = await _own_task(session, row, signal)
        if task is not None:
            await link_fix_pull_request(session, task, row, now=now)
        lineage = (
            await session.get_one(Lineage, row.lineage_id)
            if row.lineage_id is not None
            else await ensure_lineage(session, row, now=now)
        )
        rows = await finding_rows(session, row.id)
        return _Ledger(
            row=row,
            findings=tuple(to_finding(item) for item in rows),
            orders=tuple(await pending_orders(session, row.id)),
            covered={**_by_own_task(rows, pull), **await _covering(session, row.id)},
            dismissed={
                item.id: item.status_at
                for item in rows
                if item.status is FindingStatus.DISMISSED and item.status_at is not None
            },
            lineage=lineage,
            deferred=await deferred_findings(session, row.id),
            own_task_id=task.id if task else None,
            tasks_of_merge=await _automatic_tasks(session, row.id),
            tasks_on_base=tuple(
                await _tasks_on(session, repo.repository_id, pull.base_ref, now - window)
            ),
        )


async def _own_task(
    session: AsyncSession, row: PullRequestRow, signal: BotSignal | None
) -> FixTask | None:
    """The task that the pull request answers: known since it was opened, or told by its branch."""
    if row.fix_task_id is not None:
        return await session.get(FixTask, row.fix_task_id)
    if signal is not BotSignal.OUR_APP:
        return None
    return await task_of_branch(session, row.repository_id, row.head_ref)


def _by_own_task(rows: Sequence[FindingRow], pull: PullRequest) -> dict[int, TaskState]:
    """What a fix pull request mirrors was handed off before, to the task that ends with it."""
    merged = pull.state is PullRequestState.MERGED
    state = TaskState.MERGED if merged else TaskState.CLOSED
    return {row.id: state for row in rows if row.source_finding_id is not None}


async def _covering(session: AsyncSession, pull_request_id: int) -> dict[int, TaskState]:
    """The state of the latest task that covered each finding of the pull request; WITHDRAWN for a
    live one that the finding has left."""
    statement = (
        select(FixTaskFinding.finding_id, FixTask.state, FixTaskFinding.left_at)
        .join(FixTask, col(FixTask.id) == col(FixTaskFinding.fix_task_id))
        .where(FixTask.source_pull_request_id == pull_request_id)
        .order_by(col(FixTask.id))
    )
    covered: dict[int, TaskState] = {}
    for number, name, left_at in await session.exec(statement):
        state = TaskState(name)
        taken_off = left_at is not None and state.is_live
        covered[number] = TaskState.WITHDRAWN if taken_off else state
    return covered


async def _automatic_tasks(session: AsyncSession, pull_request_id: int) -> int:
    statement = select(func.count()).where(
        FixTask.source_pull_request_id == pull_request_id,
        or_(FixTask.batch == BATCH_MERGE, col(FixTask.batch).startswith(RESUME_BATCH)),
    )
    return int((await session.exec(statement)).one())


async def _tasks_on(
    session: AsyncSession, repository_id: int, base: str, since: datetime
) -> Sequence[FixTask]:
    """The tasks on this base that still live or are younger than `since`."""
    statement = select(FixTask).where(
        FixTask.repository_id == repository_id,
        FixTask.base_ref == base,
        or_(col(FixTask.state).in_(LIVE_TASK_STATES), col(FixTask.created_at) >= since),
    )
    return (await session.exec(statement)).all()


def is_automatic(batch: str) -> bool:
    """Whether a task of this batch is the automatic plan's: made at the merge, or, where that was
    deferred, at a resume."""
    return batch == BATCH_MERGE or batch.startswith(RESUME_BATCH)


async def _gone(
    mirror: GitRepository, pull: PullRequest, findings: Sequence[Finding]
) -> frozenset[int]:
    """Open findings whose line no longer stands in the merged tree."""
    if pull.state is not PullRequestState.MERGED or pull.merge_commit_sha is None:
        return frozenset()
    tree = mirror.tree(pull.merge_commit_sha)
    gone: set[int] = set()
    for finding in findings:
        path = finding.location.path
        if finding.status is not FindingStatus.OPEN or path is None:
            continue
        if not still_there(finding.code, await tree.read(path)):
            gone.add(finding.id)
    return frozenset(gone)


def _order(order: Order) -> HumanOrder:
    return HumanOrder(order.id, order.ordered_at, order.target)


def _handoff_findings(
    ledger: _Ledger, gone: frozenset[int], batch: str, limits: Limits, job: JobContext
) -> tuple[HandoffFinding, ...]:
    """Every finding as the guards see it; a later batch asks only about what was ordered, a
    resume's also about what was deferred."""
    orders = {order.finding_id: _order(order) for order in ledger.orders}
    since = job.clock.now() - limits.path_window
    recent = [
        path
        for task in ledger.tasks_on_base
        if is_automatic(task.batch) and task.created_at >= since
        for path in task.paths
    ]
    return tuple(
        HandoffFinding(
            id=finding.id,
            path=finding.location.path,
            severity=finding.severity,
            origin=finding.origin,
            status=finding.status,
            also=finding.also,
            in_merged_tree=finding.id not in gone,
            covered_by=ledger.covered.get(finding.id),
            order=orders.get(finding.id),
            dismissed_at=ledger.dismissed.get(finding.id),
            path_tasks=max(
                (recent.count(path) for path in (finding.location.path, *finding.also) if path),
                default=0,
            ),
        )
        for finding in ledger.findings
        if batch == BATCH_MERGE
        or finding.id in orders
        or (batch.startswith(RESUME_BATCH) and finding.id in ledger.deferred)
    )


def _merge_facts(
    job: JobContext,
    repo: RepoRef,
    pull: PullRequest,
    policy: Policy,
    ledger: _Ledger,
    limits: Limits,
) -> MergeFacts | None:
    if pull.state is not PullRequestState.MERGED or pull.merge_commit_sha is None:
        return None
    leased = frozenset(
        path
        for task in ledger.tasks_on_base
        # The task that ends with this pull request leaves its paths to what follows.
        if task.state.holds_lease and task.id != ledger.own_task_id
        for path in task.paths
    )
    return MergeFacts(
        now=job.clock.now(),
        repository=repo.repository_id,
        merge_commit=pull.merge_commit_sha,
        base=pull.base_ref,
        default_branch=pull.default_branch,
        mode=policy.handoff.mode,
        author_is_bot=ledger.row.is_bot,
        is_fix_pr=ledger.own_task_id is not None,
        merged=pull.state is PullRequestState.MERGED,
        stopped=ledger.lineage.state is LineageState.STOPPED,
        minimum_severity=policy.handoff.minimum_severity,
        handoff_bases=policy.handoff.bases,
        targets=tuple(policy.handoff.targets),
        tasks_of_merge=ledger.tasks_of_merge,
        budget_spent=spent_of(ledger.lineage).exceeds(limits),
        leased_paths=leased,
        waiting_tasks=tuple(
            WaitingTask(task.id, task.target, tuple(task.paths))
            for task in ledger.tasks_on_base
            # One that was proposed already and waits after a resume has its findings for good.
            if task.state is TaskState.WAITING and task.fix_pull_request_id is None
        ),
    )
