"""Turns a fix task into facts: the ledger's word, then git's."""

from __future__ import annotations

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.findings import Finding
from app.domain.pull_request import PullRequestState
from app.domain.recheck import still_there
from app.domain.tasks import FixTaskState, LineageState
from app.errors import GitError, JobCancelled
from app.fixer.facts import Place, TurnFacts
from app.fixer.services import FixerServices
from app.forges.port import Forge
from app.git.process import Remote
from app.git.worktrees import remote_sha
from app.jobs.context import JobContext
from app.policy.read import read_policy
from app.store.findings import finding_rows, to_finding
from app.store.lineages import resumes_of, spent_of
from app.store.queries import as_repo_ref, latest_run, repository, task_findings
from app.store.tables import FixTask, Lineage, PullRequestRow
from loop_guards import FindingStatus, RoundFacts


async def gather(job: JobContext) -> TurnFacts:
    """The task as the ledger knows it. Raises JobCancelled when there is nothing to work on."""
    async with job.store.read() as session:
        task = await session.get(FixTask, int(job.payload["fix_task_id"]))
        row = await repository(session, task.repository_id) if task else None
        if task is None or task.branch is None:
            raise JobCancelled("the fix task is gone")
        if row is None or row.removed_at is not None:
            raise JobCancelled("the App is not installed on this repository (any more)")
        source = await session.get_one(PullRequestRow, task.source_pull_request_id)
        fix = await _fix_pull_request(session, task)
        last = await latest_run(session, fix.id) if fix else None
        begun = int(job.recorded("turn")["number"]) if job.has("turn") else None
        turn = begun or task.turns + 1
        return TurnFacts(
            repo=as_repo_ref(row),
            task_id=task.id,
            lineage_id=task.lineage_id,
            branch=task.branch,
            base_ref=task.base_ref,
            source_number=source.number,
            source_id=source.id,
            paths=tuple(task.paths),
            state=task.state,
            turn=turn,
            turns_begun=task.turns,
            findings=await _findings(session, task, fix, frozenset(last.blocking if last else ())),
            remarks=last.summary if last else "",
            fix_number=fix.number if fix else None,
            round_facts=await _round_facts(session, task, turns_before=turn - 1),
        )


async def _fix_pull_request(session: AsyncSession, task: FixTask) -> PullRequestRow | None:
    number = task.fix_pull_request_id
    return await session.get(PullRequestRow, number) if number is not None else None


async def _round_facts(session: AsyncSession, task: FixTask, *, turns_before: int) -> RoundFacts:
    lineage = await session.get_one(Lineage, task.lineage_id)
    return RoundFacts(
        rounds_started=task.rounds_started,
        allowance=task.allowance,
        turns_begun=turns_before,
        spent=spent_of(lineage),
        stopped=lineage.state is LineageState.STOPPED,
        escalated=task.state is FixTaskState.ESCALATED,
        lineage_resumes=await resumes_of(session, task.lineage_id),
    )


async def _findings(
    session: AsyncSession, task: FixTask, fix: PullRequestRow | None, blocking: frozenset[int]
) -> tuple[Finding, ...]:
    if fix is None:
        rows = [row for _, row in await task_findings(session, task.id)]
    else:
        known = await finding_rows(session, fix.id)
        rows = [row for row in known if row.id in blocking or not blocking]
    return tuple(to_finding(row) for row in rows if row.status is FindingStatus.OPEN)


async def find_place(services: FixerServices, forge: Forge, facts: TurnFacts) -> Place | None:
    """Where the turn works. A first turn starts from the tip of the base, later ones from their
    own branch. None: the branch that the fix is meant for is no longer there."""
    clone = await forge.clone_remote(facts.repo, write=True)
    remote = Remote(clone.url, clone.token)
    default = (await forge.repository(facts.repo)).default_branch
    try:
        mirror = await services.mirrors.ready(
            facts.repo.repository_id,
            remote,
            branches=tuple(dict.fromkeys((facts.base_ref, default))),
        )
    except GitError:
        if await forge.branch_sha(facts.repo, facts.base_ref) is None:
            return None
        raise
    tip = await remote_sha(mirror, remote, facts.branch)
    if tip is not None:
        await services.mirrors.ready(facts.repo.repository_id, remote, commits=(tip,))
    policy = await read_policy(mirror, services.mirrors.branch_ref(default))
    base = await mirror.resolve(services.mirrors.branch_ref(facts.base_ref))
    return Place(mirror, policy.policy, tip or base, tip)


async def is_proposed(forge: Forge, facts: TurnFacts) -> bool:
    """Whether there is a fix pull request to work on, or none yet. One that is closed ends its task
    by its own event, which may be late."""
    if facts.fix_number is None:
        return True
    pull = await forge.pull_request(facts.repo, facts.fix_number)
    return pull.state is PullRequestState.OPEN


async def gone_from(place: Place, facts: TurnFacts) -> frozenset[int]:
    """Findings whose line no longer stands where the first turn starts."""
    if facts.fix_number is not None:
        return frozenset()
    tree = place.mirror.tree(place.start)
    return frozenset(
        [
            finding.id
            for finding in facts.findings
            if finding.location.path is not None
            and not still_there(finding.code, await tree.read(finding.location.path))
        ]
    )
