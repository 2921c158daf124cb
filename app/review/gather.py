"""Turns the world into `ReviewFacts`: the forge's word of now, the ledger, and git."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

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
from app.store.lineages import resumes_of, spent_of
from app.store.queries import latest_run, task_findings
from app.store.tables import FindingRow, FixTask, Lineage, PullRequestRow, ReviewRun
from loop_guards import FindingStatus, Verdict


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
    has_threads: bool
    previous: ReviewRun | None
    rounds: int
    lineage_id: int | None
    task: TaskView | None


async def gather(
    job: JobContext,
    services: ReviewServices,
    forge: Forge,
    repo: RepoRef,
    pull: PullRequest,
    *,
    as_of: datetime,
) -> Gathered:
    """Freeze everything the run is decided from. `as_of`: just before the forge told `pull`.

    A run that an earlier try began keeps the head and base it began with.
    """
    told, pull = pull, await _as_begun(job, pull)
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
    ledger = await _remember(job, repo, told, signal, as_of)
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
        rounds_before=ledger.rounds,
        already_reviewed=_same(ledger.previous, pull, policy.policy),
        lineage_id=ledger.lineage_id,
        task=ledger.task,
        threads=await forge.review_threads(repo, pull.number) if ledger.has_threads else (),
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
        and was_whole(previous)
        and previous.head_sha == pull.head_sha
        and previous.base_sha == pull.base_sha
        and previous.policy_digest == policy.fingerprint
    )


async def _as_begun(job: JobContext, pull: PullRequest) -> PullRequest:
    if not job.has("run"):
        return pull
    async with job.store.read() as session:
        run = await session.get_one(ReviewRun, int(job.recorded("run")["id"]))
        return replace(pull, head_sha=run.head_sha, base_sha=run.base_sha)


async def _remember(
    job: JobContext, repo: RepoRef, pull: PullRequest, signal: BotSignal | None, as_of: datetime
) -> _Ledger:
    now = job.clock.now()
    async with job.store.write() as session:
        row = await ensure_pull_request(
            session,
            repo.repository_id,
            pull,
            bot=BotFact(signal is not None, signal.value if signal else None),
            updated_at=as_of,
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
            has_threads=any(item.thread_id is not None for item in rows),
            previous=await latest_run(session, row.id, state=RunState.DONE),
            rounds=sum(run.state is RunState.DONE for run in await charged_runs(session, row.id)),
            lineage_id=row.lineage_id,
            task=await task_view(session, task, rows) if task else None,
        )


async def _own_task(
    session: AsyncSession, repo: RepoRef, pull: PullRequest, signal: BotSignal | None
) -> FixTask | None:
    """The task this pull request answers. Only our own fixer's pull requests answer one."""
    if signal is not BotSignal.OUR_APP:
        return None
    return await task_of_branch(session, repo.repository_id, pull.head_ref)


async def task_view(session: AsyncSession, task: FixTask, rows: Sequence[FindingRow]) -> TaskView:
    """The task as its rounds are decided from; `rows` are its fix pull request's findings."""
    lineage = await session.get_one(Lineage, task.lineage_id)
    links = {link.finding_id: link for link, _ in await task_findings(session, task.id)}
    mirrors = [row for row in rows if row.source_finding_id in links]
    rounds = _since_resume(await charged_runs(session, task.fix_pull_request_id or 0))
    return TaskView(
        task_id=task.id,
        lineage_id=task.lineage_id,
        handed={row.id: row.severity_at_handoff for row in mirrors if row.severity_at_handoff},
        ordered=frozenset(row.id for row in mirrors if links[row.source_finding_id or 0].ordered),
        rounds_started=task.rounds_started,
        allowance=task.allowance,
        blocking_history=tuple(frozenset(run.blocking) for run in rounds),
        spent=spent_of(lineage),
        stopped=lineage.state is LineageState.STOPPED,
        escalated=task.state is FixTaskState.ESCALATED,
        coverage_attempts=_short_in_a_row(rounds),
        lineage_resumes=await resumes_of(session, task.lineage_id),
    )


def _since_resume(runs: Sequence[ReviewRun]) -> list[ReviewRun]:
    """The finished rounds after the last escalation: only a person's resume leads on from one."""
    since: list[ReviewRun] = []
    for run in runs:
        if run.verdict is Verdict.ESCALATED or run.state is RunState.FAILED:
            since = []
        elif run.state is RunState.DONE:
            since.append(run)
    return since


def _short_in_a_row(rounds: Sequence[ReviewRun]) -> int:
    whole = (not was_whole(run) for run in reversed(rounds))
    return sum(1 for _ in takewhile(bool, whole))


def was_whole(run: ReviewRun) -> bool:
    """Whether a finished run covered everything it should, by everyone who should."""
    return Coverage.from_json(run.coverage).is_full and not run.incomplete
