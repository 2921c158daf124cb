"""Turns the world into `ReviewFacts`: the forge's word of now, the ledger, and git."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.bots import Authorship, BotSignal, bot_signal, is_human_act
from app.domain.coverage import Coverage
from app.domain.findings import Finding
from app.domain.jobs import causes_of
from app.domain.policy import Policy
from app.domain.pull_request import PullRequest, RepoRef
from app.domain.runs import RunState, Trigger
from app.domain.tasks import FixTaskState, LineageState
from app.forges.port import Forge
from app.git.process import Remote
from app.jobs.context import JobContext
from app.policy.read import read_policy
from app.review.facts import ReviewFacts
from app.review.record import charged_runs
from app.review.services import ReviewServices
from app.review.source import Source, open_source
from app.review.verdict import TaskView
from app.store.commands import BotFact, ensure_lineage, ensure_pull_request
from app.store.findings import finding_rows, to_finding
from app.store.fixtasks import link_fix_pull_request, task_of_branch
from app.store.lineages import spent_of
from app.store.queries import latest_run, task_findings
from app.store.tables import FindingRow, FixTask, Lineage, PullRequestRow, ReviewRun
from loop_guards import FindingStatus


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts, and the git objects they came from."""

    facts: ReviewFacts
    source: Source


@dataclass(frozen=True, slots=True)
class _Ledger:
    """What we remember of the pull request."""

    row: PullRequestRow
    existing: tuple[Finding, ...]
    previous: ReviewRun | None
    lineage_id: int | None
    task: TaskView | None


async def gather(
    job: JobContext, services: ReviewServices, forge: Forge, repo: RepoRef, pull: PullRequest
) -> Gathered:
    """Freeze everything the run is decided from."""
    clone = await forge.clone_remote(repo, write=False)
    mirror = await services.mirrors.ready(
        repo.repository_id,
        Remote(clone.url, clone.token),
        branches=tuple(dict.fromkeys((pull.base_ref, pull.default_branch))),
        pulls=(pull.number,),
        commits=(pull.base_sha, pull.head_sha),
    )
    policy = await read_policy(mirror, services.mirrors.branch_ref(pull.default_branch))
    source = await open_source(mirror, pull.base_sha, pull.head_sha)
    trailers = await mirror.co_authors(source.merge_base, pull.head_sha)
    signal = bot_signal(_authorship(pull, policy.policy, services.our_logins, trailers))
    ledger = await _remember(job, repo, pull, signal)
    causes = causes_of(job.payload)
    facts = ReviewFacts(
        now=job.clock.now(),
        repo=repo,
        pull_request=pull,
        pull_request_id=ledger.row.id,
        trigger=Trigger(job.payload.get("trigger", Trigger.WEBHOOK)),
        causes=causes,
        by_human=any(
            is_human_act(cause, policy.policy.machine_accounts, services.our_logins)
            for cause in causes
        ),
        bot_signal=signal,
        policy=policy,
        limits=policy.policy.limits.for_guards(),
        merge_base=source.merge_base,
        diff=source.diff,
        existing=ledger.existing,
        previous_summary=ledger.previous.summary if ledger.previous else "",
        machine_rounds=ledger.row.machine_rounds,
        already_reviewed=_same(ledger.previous, pull, policy.policy),
        lineage_id=ledger.lineage_id,
        task=ledger.task,
        threads=await forge.review_threads(repo, pull.number) if ledger.existing else (),
    )
    return Gathered(facts, source)


def _authorship(
    pull: PullRequest, policy: Policy, our_logins: frozenset[str], trailers: tuple[str, ...]
) -> Authorship:
    return Authorship(
        author=pull.author,
        head_ref=pull.head_ref,
        co_authors=trailers,
        our_logins=our_logins,
        added=frozenset(policy.bots.add),
        exempted=frozenset(policy.bots.exempt),
    )


def _same(previous: ReviewRun | None, pull: PullRequest, policy: Policy) -> bool:
    """Whether exactly this head, base and policy were reviewed before, and wholly."""
    return (
        previous is not None
        and Coverage.from_json(previous.coverage).is_full
        and not previous.incomplete
        and previous.head_sha == pull.head_sha
        and previous.base_sha == pull.base_sha
        and previous.policy_digest == policy.fingerprint
    )


async def _remember(
    job: JobContext, repo: RepoRef, pull: PullRequest, signal: BotSignal | None
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
        task = await _own_task(session, repo, pull, signal)
        if task is not None:
            await link_fix_pull_request(session, task, row, now=now)
        elif row.lineage_id is None:
            await ensure_lineage(session, row, now=now)
        rows = await finding_rows(session, row.id)
        return _Ledger(
            row=row,
            existing=tuple(to_finding(item) for item in rows if item.status is FindingStatus.OPEN),
            previous=await latest_run(session, row.id, state=RunState.DONE),
            lineage_id=row.lineage_id,
            task=await _task_view(session, task, rows) if task else None,
        )


async def _own_task(
    session: AsyncSession, repo: RepoRef, pull: PullRequest, signal: BotSignal | None
) -> FixTask | None:
    """The task this pull request answers. Only our own fixer's pull requests answer one."""
    if signal is not BotSignal.OUR_APP:
        return None
    return await task_of_branch(session, repo.repository_id, pull.head_ref)


async def _task_view(session: AsyncSession, task: FixTask, rows: Sequence[FindingRow]) -> TaskView:
    lineage = await session.get_one(Lineage, task.lineage_id)
    ordered = {link.finding_id for link, _ in await task_findings(session, task.id) if link.ordered}
    mirrors = [row for row in rows if row.source_finding_id is not None]
    rounds = [
        run
        for run in await charged_runs(session, task.fix_pull_request_id or 0)
        if run.state is RunState.DONE
    ]
    return TaskView(
        task_id=task.id,
        lineage_id=task.lineage_id,
        handed={row.id: row.severity_at_handoff for row in mirrors if row.severity_at_handoff},
        ordered=frozenset(row.id for row in mirrors if row.source_finding_id in ordered),
        rounds_started=task.rounds_started,
        allowance=task.allowance,
        blocking_history=tuple(frozenset(run.blocking) for run in rounds),
        spent=spent_of(lineage),
        stopped=lineage.state is LineageState.STOPPED,
        escalated=task.state is FixTaskState.ESCALATED,
    )
