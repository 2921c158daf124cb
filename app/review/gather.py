"""Turns the world into `ReviewFacts`: the forge's word of now, the ledger, and git."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.bots import Act, Authorship, BotSignal, act_kind, bot_signal, is_human_act
from app.domain.findings import Finding, Location
from app.domain.forge import IssueComment
from app.domain.jobs import Cause, causes_of
from app.domain.policy import HumanPrs, Policy
from app.domain.pull_request import PullRequest, RepoRef, ReviewThread
from app.domain.runs import RunState, Trigger
from app.domain.tasks import FixTaskState, LineageState
from app.forges.port import Forge
from app.git.process import Remote
from app.jobs.context import JobContext
from app.policy.read import read_policy
from app.review.facts import ReviewFacts
from app.review.heard import Heard, heard, people_in, words_of
from app.review.history import (
    NewHead,
    Turn,
    files_of,
    flips_of,
    known_patch,
    looks_of,
    records_of,
    runs_of_task,
    touched,
    was_whole,
)
from app.review.record import charged_runs
from app.review.services import ReviewServices
from app.review.source import Source, open_source, paths_between
from app.review.unchanged import PreviousLook
from app.review.verdict import FixedBefore, TaskView
from app.store.commands import BotFact, ensure_lineage, ensure_pull_request
from app.store.findings import finding_comments, finding_rows, settled_findings, to_finding
from app.store.fixtasks import link_fix_pull_request, task_of_branch
from app.store.lineages import is_stopped, resumes_of, spent_of
from app.store.queries import latest_run, task_findings
from app.store.tables import FindingRow, FixTask, Lineage, PullRequestRow, ReviewRun
from loop_guards import (
    ActKind,
    FindingStatus,
    TaskReason,
    blocking_since_resume,
    ever_blocked,
    rounds_started,
    short_looks,
)


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
    files: Mapping[int, frozenset[str]]
    settled: Mapping[str, str]
    stopped: bool


@dataclass(frozen=True, slots=True)
class _Talk:
    """The threads of our findings, the conversation below, and what people did there."""

    threads: tuple[ReviewThread, ...] = ()
    comments: tuple[IssueComment, ...] | None = None
    comment_ids: Mapping[str, int] = field(default_factory=dict)
    heard: Mapping[str, Heard] = field(default_factory=dict)
    writers: frozenset[str] = frozenset()


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
    talk = await _listen(job, services, forge, repo, pull, ledger, policy.policy)
    causes = causes_of(job.payload)
    acts = _acts(causes, policy.policy, services.our_logins)
    facts = ReviewFacts(
        now=job.clock.now(),
        repo=repo,
        pull_request=pull,
        pull_request_id=ledger.row.id,
        trigger=Trigger(job.payload.get("trigger", Trigger.WEBHOOK)),
        causes=causes,
        acts=acts,
        bot_signal=signal,
        policy=policy,
        limits=policy.policy.limits.for_guards(),
        merge_base=source.merge_base,
        diff=source.diff,
        existing=ledger.existing,
        previous_summary=ledger.previous.summary if ledger.previous else "",
        machine_rounds=ledger.row.machine_rounds,
        rounds_before=ledger.rounds,
        already_reviewed=_same(ledger.previous, pull, policy.policy)
        and not (job.payload.get("again") or (ledger.task and ledger.task.idle_turn)),
        lineage_id=ledger.lineage_id,
        task=ledger.task,
        turn=await _turn(source, ledger, ledger.task, acts) if ledger.task else None,
        threads=talk.threads,
        comments=talk.comments,
        comment_ids=talk.comment_ids,
        heard=talk.heard,
        writers=talk.writers,
        settled=ledger.settled,
        previous=_previous_look(job, ledger, policy.policy),
        stopped=ledger.stopped,
    )
    return Gathered(facts, source)


async def _listen(
    job: JobContext,
    services: ReviewServices,
    forge: Forge,
    repo: RepoRef,
    pull: PullRequest,
    ledger: _Ledger,
    policy: Policy,
) -> _Talk:
    """Read the threads, and ask what the people in them may do."""
    if not ledger.has_threads:
        return _Talk()
    discussion = await forge.discussion(repo, pull.number)
    threads = discussion.threads
    async with job.store.read() as session:
        ids = await finding_comments(session, ledger.row.id)
    words = words_of(ledger.existing, threads, ids, services.our_logins)
    rights = {login: await forge.permission(repo, login) for login in people_in(words)}
    gated = policy.human_prs is HumanPrs.GATE or ledger.task is not None
    said = heard(ledger.existing, words, rights, author=pull.author.login, gated=gated)
    writers = frozenset(login for login, right in rights.items() if right.can_write)
    return _Talk(threads, discussion.comments, ids, said, writers)


def _acts(causes: Sequence[Cause], policy: Policy, our_logins: frozenset[str]) -> tuple[Act, ...]:
    return tuple(
        Act(
            act_kind(cause.action),
            by_human=is_human_act(cause, policy.machine_accounts, our_logins),
        )
        for cause in causes
    )


async def _turn(source: Source, ledger: _Ledger, task: TaskView, acts: tuple[Act, ...]) -> Turn:
    """What came between the last look at the task's fix and this one."""
    now = NewHead(
        sha=source.head,
        merge_base=source.merge_base,
        patch_id=await source.repository.patch_id(source.merge_base, source.head),
        by_person=any(act.by_human and act.kind is ActKind.PUSH for act in acts),
        idle_turn=task.idle_turn,
    )
    changed: frozenset[str] | None = frozenset()
    if task.looks:
        changed = await paths_between(source.repository, task.looks[-1].head, source.head)
    return Turn(
        now,
        touched=touched(task.looks, now, changed, ledger.files),
        known_patch=known_patch(task.looks, now),
    )


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


def _previous_look(job: JobContext, ledger: _Ledger, policy: Policy) -> PreviousLook | None:
    """The latest round, if what it read need not be read again: it was whole, by the same policy,
    and nobody asks for all to be read. On a fix every round reads the whole fix."""
    run = ledger.previous
    counts = (
        run is not None
        and ledger.task is None
        and was_whole(run)
        and run.policy_digest == policy.fingerprint
        and not job.payload.get("again")
        and job.payload.get("trigger") != Trigger.COMMAND
    )
    if run is None or not counts:
        return None
    return PreviousLook(run.head_sha, run.merge_base_sha or "", run.summary, run.prompt_versions)


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
            task=_as_it_began(job, await task_view(session, task, rows)) if task else None,
            files={row.id: files_of(row) for row in rows},
            settled=await settled_findings(session, repo.repository_id, rows),
            stopped=await is_stopped(session, row.lineage_id),
        )


def _as_it_began(job: JobContext, task: TaskView) -> TaskView:
    """The task as the job's run found it: a charged round has other words for its state."""
    if not job.has("run"):
        return task
    return replace(task, idle_turn=bool(job.recorded("run").get("idle_turn")))


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
    runs = await runs_of_task(session, task.id)
    records = records_of(runs)
    return TaskView(
        task_id=task.id,
        lineage_id=task.lineage_id,
        handed={row.id: row.severity_at_handoff for row in mirrors if row.severity_at_handoff},
        ordered=frozenset(row.id for row in mirrors if links[row.source_finding_id or 0].ordered),
        rounds_started=rounds_started(records),
        allowance=task.allowance,
        blocking_history=blocking_since_resume(records, task.resumes),
        spent=spent_of(lineage),
        stopped=lineage.state is LineageState.STOPPED,
        escalated=task.state is FixTaskState.ESCALATED,
        coverage_attempts=short_looks(records, task.resumes),
        lineage_resumes=await resumes_of(session, task.lineage_id),
        resumes=task.resumes,
        mirrored=frozenset(row.id for row in rows if row.source_finding_id is not None),
        ever_blocked=ever_blocked(records),
        looks=looks_of(runs, task.resumes),
        flips=await flips_of(session, task.id, task.resumes),
        fixed={row.fingerprint: _fixed_before(row) for row in rows if row.fixed_sha is not None},
        idle_turn=task.state_reason == TaskReason.NOTHING_CHANGED,
    )


def _fixed_before(row: FindingRow) -> FixedBefore:
    return FixedBefore(
        row.id, row.fixed_sha or "", Location(row.path, row.start_line, row.end_line)
    )
