"""The stage of the review's stories: real ledger and git, a forge in memory, a scripted model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from sqlmodel import col, select

from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ModelCallFinished,
    ModelCallStarted,
    ignore_events,
)
from app.agents.runtimes.direct import ProviderSettings, WireFormat
from app.clock import FixedClock
from app.control.routing import Routing, shipped_routing
from app.domain.effects import (
    AddLabel,
    Comment,
    DismissReview,
    EditReview,
    Effect,
    PublishReview,
    ReplyToThread,
    ResolveThread,
    ReviewReceipt,
    SetCheckRun,
    SetStickyComment,
)
from app.domain.forge import AppIdentity, CloneRemote
from app.domain.jobs import Cause, JobKind
from app.domain.markers import markers_of
from app.domain.pull_request import Account, AccountKind, PullRequest, PullRequestState, RepoRef
from app.domain.runs import AgentName, RunState, Trigger, Usage
from app.forges.port import Forge
from app.forges.recording import RecordingForge, World
from app.git.mirror import Mirrors
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.ledger import enqueue
from app.jobs.requests import JobRequest, pull_request_subject
from app.jobs.sweeper import sweep
from app.jobs.worker import Worker, WorkerOptions
from app.plugins.builtin.github import GitHubPlugin
from app.plugins.builtin.models import ModelsPlugin
from app.plugins.lifecycle import PluginHost
from app.plugins.port import ReviewPlugin
from app.plugins.runtimes import OneRuntime
from app.review.judge import fingerprint
from app.review.pipeline import report_failure, review_pull_request
from app.review.services import ReviewServices
from app.store.commands import ensure_lineage
from app.store.findings import number_findings
from app.store.session import Store
from app.store.tables import (
    DecisionRow,
    FindingRow,
    FixTask,
    FixTaskFinding,
    Job,
    Lineage,
    PullRequestRow,
    ReviewerRun,
    ReviewRun,
    ThreadRow,
)
from loop_guards import FindingStatus, Origin, Severity, TaskState
from tests.git.repos import BareRepo, Tree
from tests.store.rows import (
    INSTALLATION,
    REPOSITORY,
    account,
    add_pull_request,
    add_repository,
)

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
REPO = RepoRef(INSTALLATION, REPOSITORY, "acme", "shop")
REVIEWER = Account(9001, "mergeward[bot]", AccountKind.BOT)
FIXER = Account(9002, "mergeward-fixer[bot]", AccountKind.BOT)
PERSON = account("mara")
MACHINE = account("renovate[bot]", AccountKind.BOT)
OURS = frozenset({REVIEWER.login, FIXER.login})
SEARCH = "app/search.py"
BEFORE = b"def search(q):\n    return []\n"
PLANTED = b"def search(q):\n    return db.run(f'select {q}')\n"
BASE: dict[str, bytes] = {SEARCH: BEFORE, "README.md": b"# Shop\n"}
SESSION = Usage(
    model_calls=1, input_tokens=100, output_tokens=10, cost_usd=Decimal("0.01"), model_seconds=1.0
)
"""What every session of the scripted model uses."""

Speech = str | AgentFailure | Callable[[AgentTask], Awaitable[str]]


def finding(**changes: object) -> str:
    """One finding as a reviewer writes it."""
    values: dict[str, object] = {
        "path": SEARCH,
        "line": 2,
        "severity": "critical",
        "category": "security",
        "title": "Search term in the SQL text",
        "body": "The term reaches the statement.",
        **changes,
    }
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    return f"<finding>{fields}</finding>"


def findings(*items: str) -> str:
    """A reviewer's whole answer."""
    return f"<findings>{''.join(items)}</findings>"


NOTHING = "<findings/>"
NONSENSE = "I think it is fine."
BROKEN = AgentFailure(AgentErrorKind.AUTH, "the key is not valid")


@dataclass
class ScriptedModel:
    """Answers by agent, call by call (the last answer repeats). `calls` names who was asked.

    Unless it is told something else, the coordinator calls `spawn_reviewers`, keeps what the
    reviewers found, and says of each earlier finding what `carried` holds (default: still open).
    """

    answers: dict[AgentName, Sequence[Speech]] = field(default_factory=dict)
    carried: dict[str, str] = field(default_factory=dict)
    evidence: str = "line 2"
    calls: list[str] = field(default_factory=list)
    tasks: list[AgentTask] = field(default_factory=list)
    before: Callable[[AgentTask], Awaitable[None]] | None = None
    each: Usage = field(default_factory=lambda: SESSION)
    events: list[AgentEvent] = field(default_factory=list)
    """What each session tells besides its call."""

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        self.tasks.append(task)
        await on_event(ModelCallStarted(task.key, 1, task.models[0]))
        self.calls.append(task.agent.value)
        if self.before is not None:
            await self.before(task)
        for event in self.events:
            await on_event(event)
        said = await self._say(task)
        used: AgentEvent = ModelCallFinished(task.key, 1, task.models[0], self.each)
        await on_event(used)
        if isinstance(said, AgentFailure):
            return AgentResult("", self.each, FinishReason.ERROR, said, task.models[0])
        return AgentResult(said, self.each, FinishReason.STOP, None, task.models[0])

    async def _say(self, task: AgentTask) -> str | AgentFailure:
        script = self.answers.get(task.agent)
        if not script:
            return await self.judge(task) if task.agent is AgentName.COORDINATOR else NOTHING
        asked = self.calls.count(task.agent.value)
        said = script[min(asked, len(script)) - 1]
        return said if isinstance(said, (str, AgentFailure)) else await said(task)

    async def judge(self, task: AgentTask) -> str:
        """What a coordinator says that keeps everything."""
        results = await use(task, "spawn_reviewers")
        kept = "".join(re.findall(r'<finding ref="[^"]+"[^>]*>.*?</finding>', results, re.DOTALL))
        kept = kept.replace('<finding ref="', '<finding source="')
        return self.review(task, kept)

    def review(self, task: AgentTask, kept: str = "", dropped: str = "") -> str:
        """A coordinator's answer with these findings."""
        known = re.findall(r'<finding id="(F\d+)"', task.prompt)
        carried = "".join(
            f'<item id="{name}" state="{self.carried.get(name, "open")}">{self.evidence}</item>'
            for name in known
        )
        return (
            f"<review><summary>Read.</summary><findings>{kept}</findings>"
            f"<carried>{carried}</carried><dropped>{dropped}</dropped></review>"
        )


async def use(task: AgentTask, tool: str, **arguments: object) -> str:
    """Call a tool of the session as a model would."""
    found = {item.name: item for item in task.tools}
    return await found[tool].call(arguments)


class ServedForge(RecordingForge):
    """The forge in memory, whose repository is a real one on this disk.

    `kills` are calls in which the worker dies: (verb, whether its effect still happens).
    `before_review` is awaited before a review is posted.
    """

    served: BareRepo
    kills: set[tuple[str, bool]]
    before_review: Callable[[], Awaitable[None]] | None = None

    async def ensure_review(
        self, repo: RepoRef, number: int, review: PublishReview, *, maybe_published: bool = True
    ) -> ReviewReceipt:
        if self.before_review is not None:
            await self.before_review()
        return await super().ensure_review(repo, number, review, maybe_published=maybe_published)

    def _fault(self, verb: str, *, after: bool = False) -> None:
        if (verb, after) in self.kills:
            self.kills.remove((verb, after))
            raise asyncio.CancelledError
        super()._fault(verb, after=after)

    async def clone_remote(self, repo: RepoRef, *, write: bool) -> CloneRemote:
        self._fault("clone_remote")
        return CloneRemote(self.served.url, "")


def told(effect: Effect) -> str:
    """An effect in a few words."""
    match effect:
        case SetCheckRun():
            return f"check {effect.conclusion or effect.status}: {effect.title}"
        case PublishReview():
            places = ", ".join(f"{item.path}:{item.line}" for item in effect.comments)
            return f"review {effect.event} [{places}]"
        case EditReview():
            return "review edited"
        case SetStickyComment():
            return "status"
        case Comment(marker):
            return f"comment {marker.id}"
        case ReplyToThread():
            return f"reply {effect.marker.id}"
        case ResolveThread():
            return "resolve"
        case AddLabel(name):
            return f"label {name}"
        case DismissReview():
            return "dismiss"
        case _:
            return type(effect).__name__


def plugins(routing: Routing, *more: ReviewPlugin) -> PluginHost:
    """The built-in plugins as a service has them, with these models; then others."""
    provider = ProviderSettings(routing.provider, WireFormat.ANTHROPIC, "a-key-of-the-story")
    return PluginHost((GitHubPlugin(), ModelsPlugin((provider,), routing), *more))


class TickingClock(FixedClock):
    """Stands still but for a millisecond per look, so that no two moments are the same."""

    def now(self) -> datetime:
        self.move_to(super().now() + timedelta(milliseconds=1))
        return super().now()


@dataclass
class Story:
    """One repository, its pull requests, and everything that reviews them."""

    store: Store
    git: BareRepo
    folder: Path
    world: World = field(default_factory=World)
    clock: TickingClock = field(default_factory=lambda: TickingClock(START))
    model: ScriptedModel = field(default_factory=ScriptedModel)
    number: int = 7
    _asked: int = 0

    def __post_init__(self) -> None:
        self.forge = ServedForge(self.world, AppIdentity(101, "mergeward", REVIEWER))
        self.forge.served, self.forge.kills = self.git, set()
        self.world.add_repository(REPO)
        self.services = ReviewServices(
            open_forge=self._open_forge,
            mirrors=Mirrors(self.folder / "mirrors"),
            plugins=plugins(shipped_routing("anthropic")),
            runtimes=OneRuntime(self.model),
            runs=self.folder / "runs",
            our_logins=OURS,
        )

    @asynccontextmanager
    async def _open_forge(self) -> AsyncIterator[Forge]:
        yield self.forge

    # What people (and machines) do

    def policy(self, text: str, *, extra: Mapping[str, bytes] | None = None) -> None:
        """The default branch gets this policy."""
        tree = {**BASE, **(extra or {}), ".github/mergeward.yml": text.encode()}
        self.git.commit(tree, parent=self.git.tip())

    def open_pull(self, tree: Tree, **changes: Any) -> PullRequest:
        """Somebody proposes this tree."""
        base = self.git.tip()
        number = changes.pop("number", self.number)
        values: dict[str, Any] = {
            "number": number,
            "title": "Search",
            "body": "",
            "author": PERSON,
            "state": PullRequestState.OPEN,
            "draft": False,
            "head_ref": "feature",
            "head_sha": self.git.commit(tree, parent=base, ref=f"refs/pull/{number}/head"),
            "head_repo": REPO.full_name,
            "base_ref": "main",
            "base_sha": base,
            "default_branch": "main",
            **changes,
        }
        self.number = number
        return self.world.put_pull(REPO, PullRequest(**values))

    @property
    def place(self) -> tuple[RepoRef, int]:
        return REPO, self.number

    @property
    def pull(self) -> PullRequest:
        return self.world.pull(REPO, self.number).value

    def change(self, **changes: Any) -> PullRequest:
        """The pull request becomes a draft, gets a label, is closed …"""
        return self.world.put_pull(REPO, replace(self.pull, **changes))

    def push(self, tree: Tree) -> str:
        """A commit on top of the pull request's head."""
        sha = self.git.commit(tree, parent=self.pull.head_sha, ref=f"refs/pull/{self.number}/head")
        self.change(head_sha=sha)
        return sha

    # What Mergeward does

    async def ask(
        self,
        actor: Account | None = PERSON,
        *,
        trigger: Trigger = Trigger.WEBHOOK,
        action: str = "opened",
    ) -> int:
        """A job for a review, as a webhook would queue it. Its id."""
        self._asked += 1
        self.pass_time(60)
        subject = pull_request_subject(REPOSITORY, self.number)
        now = self.clock.now()
        causes = [Cause(action, actor, now, f"d{self._asked}").to_json()] if actor else []
        request = JobRequest(
            kind=JobKind.REVIEW_PULL_REQUEST,
            key=f"review:{self._asked}",
            payload={
                "repository_id": REPOSITORY,
                "number": self.number,
                "trigger": trigger.value,
                "causes": causes,
            },
            subject=subject,
            lane=subject,
            installation_id=INSTALLATION,
            repository_id=REPOSITORY,
        )
        async with self.store.write() as session:
            return (await enqueue(session, request, now=now)).job_id

    async def work(self, options: WorkerOptions | None = None) -> None:
        """A worker does what is due now, then ends."""
        worker = Worker(
            self.store,
            {JobKind.REVIEW_PULL_REQUEST: partial(review_pull_request, services=self.services)},
            clock=self.clock,
            wakeups=InProcessDispatcher(),
            options=options,
            after_failure={JobKind.REVIEW_PULL_REQUEST: partial(_tell, services=self.services)},
        )
        await worker.run_until_idle()

    async def review(self, actor: Account | None = PERSON, **asked: Any) -> None:
        """A job is asked for and done."""
        await self.ask(actor, **asked)
        await self.work()

    async def recover(self) -> None:
        """The worker died: its lease ends and another one goes on."""
        self.pass_time(120)
        await sweep(self.store, now=self.clock.now())
        await self.work()

    async def retry(self, times: int = 1) -> None:
        """Failed jobs are tried again when their time has come."""
        for _ in range(times):
            self.pass_time(3600)
            await self.work()

    def pass_time(self, seconds: float) -> None:
        self.clock.move_to(self.clock.now() + timedelta(seconds=seconds))

    # What is to be seen

    def page(self) -> list[str]:
        """What changed on the forge since the last look, in order."""
        seen = [told(effect) for effect in self.forge.written]
        self.forge.written.clear()
        return seen

    @property
    def check(self) -> SetCheckRun:
        """The newest check of the head, as it is shown."""
        shown = [item.shown for item in self.world.checks]
        return [item for item in shown if item.head_sha == self.pull.head_sha][-1]

    def shown(self) -> dict[str, object]:
        """What stands on the pull request's page now, however often it was written."""
        record = self.world.pull(REPO, self.number)
        return {
            "reviews": [(item.told.state.value, len(item.comment_ids)) for item in record.reviews],
            "threads": [(item.path, item.line, item.resolved_by) for item in record.threads],
            "comments": [
                str(marker.kind) for item in record.comments for marker in markers_of(item.body)
            ],
            "labels": list(record.value.labels),
            "checks": [
                f"{item.shown.conclusion or item.shown.status}: {item.shown.title}"
                for item in self.world.checks
            ],
        }

    @property
    def bodies(self) -> list[str]:
        """The bodies of our reviews."""
        return [item.told.body for item in self.world.pull(REPO, self.number).reviews]

    @property
    def open_threads(self) -> list[tuple[str, int | None]]:
        """Those that nobody resolved; without a line where nobody sees them."""
        threads = self.world.pull(REPO, self.number).threads
        return [(item.path, item.line) for item in threads if item.resolved_by is None]

    async def row(self) -> PullRequestRow:
        rows: list[PullRequestRow] = await self.rows(PullRequestRow)
        return next(row for row in rows if row.number == self.number)

    async def runs(self) -> list[ReviewRun]:
        return await self.rows(ReviewRun)

    async def reviewer_runs(self) -> list[ReviewerRun]:
        return await self.rows(ReviewerRun)

    async def tasks(self) -> list[FixTask]:
        return await self.rows(FixTask)

    async def last_run(self) -> ReviewRun:
        return (await self.runs())[-1]

    async def findings(self) -> list[FindingRow]:
        own = (await self.row()).id
        return [row for row in await self.rows(FindingRow) if row.pull_request_id == own]

    async def decisions(self) -> list[tuple[str, str, str]]:
        rows = await self.rows(DecisionRow)
        return [(row.kind, row.outcome, row.reason) for row in rows]

    async def jobs(self, kind: JobKind = JobKind.REVIEW_PULL_REQUEST) -> list[Job]:
        return [job for job in await self.rows(Job) if job.kind is kind]

    async def spent(self) -> tuple[int, int]:
        """Model calls and input tokens booked on the lineage."""
        lineage = await self._lineage()
        return lineage.model_calls, lineage.input_tokens

    async def sessions(self) -> int:
        """Agent sessions booked on the lineage."""
        return (await self._lineage()).sessions

    async def _lineage(self) -> Lineage:
        own = (await self.row()).lineage_id
        rows: list[Lineage] = await self.rows(Lineage)
        return next(row for row in rows if row.id == own)

    async def rows(self, table: type[Any]) -> list[Any]:
        async with self.store.read() as session:
            return list((await session.exec(select(table).order_by(col(table.id)))).all())

    async def snapshot(self) -> dict[str, list[Any]]:
        """All that the ledger says, without times."""
        pulls = await self.rows(PullRequestRow)
        return {
            "runs": [
                (
                    *(row.state, row.verdict, row.reason, row.round_number, row.model_calls),
                    *(tuple(row.blocking), row.review_id is not None),
                )
                for row in await self.runs()
            ],
            "findings": [
                (row.short_id, row.status, row.origin, row.first_seen_run_id, row.thread_id)
                for row in await self.rows(FindingRow)
            ],
            "threads": [(row.comment_id, row.path) for row in await self.rows(ThreadRow)],
            "decisions": await self.decisions(),
            "spent": [(row.model_calls, row.input_tokens) for row in await self.rows(Lineage)],
            "pulls": [
                (row.machine_rounds, row.findings_numbered, row.sticky_comment_id) for row in pulls
            ],
            "tasks": [
                (row.state, row.state_reason, row.rounds_started)
                for row in await self.rows(FixTask)
            ],
            "jobs": [(row.kind, row.state) for row in await self.rows(Job)],
        }


async def open_fix(story: Story, *severities: Severity, tree: Tree, **changes: Any) -> int:
    """A merged pull request (1) left findings, and the fixer proposes `tree` for their task (2).

    Returns the task's id. `changes` are of the task's row.
    """
    now = story.clock.now()
    async with story.store.write() as session:
        source = await add_pull_request(session, number=1, state=PullRequestState.MERGED)
        lineage = await ensure_lineage(session, source, now=now)
        found = [_source_finding(source.id, severity, story.git.tip()) for severity in severities]
        await number_findings(session, source.id, found)
        values: dict[str, Any] = {
            "key": "task",
            "lineage_id": lineage.id,
            "repository_id": REPOSITORY,
            "source_pull_request_id": source.id,
            "target": "builtin",
            "paths": [SEARCH],
            "state": TaskState.REVIEWING,
            "base_ref": "main",
            "merge_commit_sha": story.git.tip(),
            "branch": "mergeward/fix/1",
            "allowance": 5,
            "turns": 1,
            "lease_taken_at": now,
            "created_at": now,
            "updated_at": now,
            **changes,
        }
        task = FixTask(**values)
        session.add(task)
        await session.flush()
        session.add_all([_spent_round(source.id, task, now) for _ in range(task.rounds_started)])
        for row in found:
            row.fix_task_id = task.id
            session.add(
                FixTaskFinding(
                    fix_task_id=task.id,
                    finding_id=row.id,
                    severity_at_handoff=row.severity,
                    created_at=now,
                )
            )
    story.open_pull(tree, number=2, author=FIXER, head_ref="mergeward/fix/1", title="Fix")
    return task.id


def _spent_round(pull_request_id: int, task: FixTask, now: datetime) -> ReviewRun:
    """A round that was charged and said nothing."""
    return ReviewRun(
        pull_request_id=pull_request_id,
        fix_task_id=task.id,
        head_sha="0" * 40,
        trigger=Trigger.WEBHOOK,
        state=RunState.CANCELLED,
        charged_at=now,
        created_at=now,
    )


def _source_finding(pull_request_id: int, severity: Severity, sha: str) -> FindingRow:
    code = PLANTED.decode().splitlines()[1]
    return FindingRow(
        pull_request_id=pull_request_id,
        number=0,
        path=SEARCH,
        start_line=2,
        end_line=2,
        severity=severity,
        severity_at_handoff=severity,
        category="security",
        title=f"Old {severity}",
        body="It was there at the merge.",
        code=code,
        fingerprint=fingerprint(SEARCH, f"Old {severity}", code),
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
        first_seen_sha=sha,
        last_seen_sha=sha,
        created_at=START,
        updated_at=START,
    )


async def _tell(job: Any, error: BaseException, services: ReviewServices) -> None:
    await report_failure(job, error, services)


async def open_story(store: Store, folder: Path) -> Story:
    """A repository with the base tree on its default branch, known to the ledger."""
    repo = BareRepo.create(folder / "forge.git")
    repo.commit(BASE)
    async with store.write() as session:
        await add_repository(session)
    return Story(store, repo, folder)
