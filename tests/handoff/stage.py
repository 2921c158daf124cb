"""A repository in real git, a forge in memory, the real ledger and worker, and a scripted agent.

Reviews are not run here: what a round would leave in the ledger is put there by `reviewed`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from sqlmodel import col, select

from app.agents.port import (
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    HostTool,
    ModelCallFinished,
    ModelCallStarted,
    ignore_events,
)
from app.clock import FixedClock
from app.commands.flow import handle_comment
from app.commands.flow import report_failure as report_comment
from app.commands.services import CommandServices
from app.control.routing import shipped_routing
from app.domain.effects import OpenPullRequest, PullRequestReceipt
from app.domain.forge import AppIdentity, CloneRemote
from app.domain.jobs import Cause, JobKind
from app.domain.pull_request import (
    Account,
    AccountKind,
    Permission,
    PullRequest,
    PullRequestState,
    RepoRef,
)
from app.domain.runs import RunState, Trigger, Usage
from app.domain.tasks import FixTaskState
from app.fixer.flow import report_failure, run_fix_task
from app.fixer.services import FixerServices
from app.forges.port import Forge
from app.forges.recording import RecordingForge, World
from app.git.mirror import Mirrors
from app.handoff.flow import close_pull_request
from app.handoff.services import HandoffServices
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.ledger import enqueue
from app.jobs.requests import JobRequest, pull_request_subject
from app.jobs.turns import turn_request
from app.jobs.worker import Story, Worker
from app.store.commands import BotFact, ensure_lineage, ensure_pull_request
from app.store.findings import finding_rows, number_findings
from app.store.queries import pull_request
from app.store.session import Store
from app.store.tables import (
    DecisionRow,
    FindingRow,
    FixTask,
    Job,
    Lineage,
    Order,
    PullRequestRow,
    ReviewRun,
)
from loop_guards import FindingStatus, Origin, Severity, Verdict
from tests.git.repos import BareRepo, git
from tests.store.rows import INSTALLATION, NOW, REPOSITORY, add_repository

BAD = "return rows[0] / 0"
FILE = "app/a.py"
SOURCE = f"def a(rows):\n    {BAD}\n    return eval(rows)\n    return None\n".encode()
OTHER = b"def b():\n    return 1\n"
BASE = {"app/b.py": OTHER}
"""What the default branch begins with."""
USAGE = Usage(model_calls=1, input_tokens=100, output_tokens=10, cost_usd=Decimal("0.01"))

Play = Callable[[Mapping[str, HostTool]], Awaitable[str]]
"""One session of the scripted agent: uses its tools, gives its answer."""


def account(login: str) -> Account:
    kind = AccountKind.BOT if login.endswith("[bot]") else AccountKind.USER
    return Account(crc32(login.encode()), login, kind)


REVIEWER = AppIdentity(101, "mergeward", account("mergeward[bot]"))
FIXER = AppIdentity(102, "mergeward-fixer", account("mergeward-fixer[bot]"))
OUR_LOGINS = frozenset({"mergeward[bot]", "mergeward-fixer[bot]"})


class GitForge(RecordingForge):
    """The forge in memory, with its repository in real git."""

    def __init__(self, world: World, identity: AppIdentity, repository: BareRepo) -> None:
        super().__init__(world, identity)
        self.repository_path = repository

    async def clone_remote(self, repo: RepoRef, *, write: bool) -> CloneRemote:
        await super().clone_remote(repo, write=write)
        return CloneRemote(self.repository_path.url, "")

    async def ensure_pull_request(
        self, repo: RepoRef, wanted: OpenPullRequest, *, maybe_published: bool = True
    ) -> PullRequestReceipt:
        for branch in (wanted.head, wanted.base):
            tip = self.repository_path.tip(f"refs/heads/{branch}")
            self.world.branches[repo.repository_id, branch] = tip
        return await super().ensure_pull_request(repo, wanted, maybe_published=maybe_published)


@dataclass
class ScriptedAgent:
    """A runtime that plays one scripted session after the other; the last one again and again."""

    plays: list[Play] = field(default_factory=list)
    tasks: list[AgentTask] = field(default_factory=list)

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        self.tasks.append(task)
        await on_event(ModelCallStarted(task.key, 1, task.models[0]))
        play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
        text = await play({tool.name: tool for tool in task.tools})
        await on_event(ModelCallFinished(task.key, 1, task.models[0], USAGE))
        return AgentResult(text, USAGE, FinishReason.STOP, model=task.models[0])


def edits(old: str = BAD, new: str = "return 0", path: str = FILE, report: str = "") -> Play:
    """Replaces one text and reports F1 fixed."""

    async def play(tools: Mapping[str, HostTool]) -> str:
        arguments = {"path": path, "old_text": old, "new_text": new}
        await tools["edit_file"].call(arguments)
        return (
            report
            or "<fix_report><fixed id='F1'>done</fixed><summary>Fixed.</summary></fix_report>"
        )

    return play


def says(text: str) -> Play:
    """Changes nothing."""

    async def play(tools: Mapping[str, HostTool]) -> str:
        return text

    return play


FIXED = "<fix_report><fixed id='F1'>done</fixed><summary>Fixed.</summary></fix_report>"
DECLINES = says("<fix_report><declined id='F1'>It is right as it is.</declined></fix_report>")
NONSENSE = says("I have fixed everything!")


@dataclass
class Stage:
    """Everything that stories of the end of a pull request meet."""

    store: Store
    folder: Path
    git: BareRepo
    policy: str = ""
    world: World = field(default_factory=World)
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    agent: ScriptedAgent = field(default_factory=lambda: ScriptedAgent([edits()]))
    repo: RepoRef = field(default_factory=lambda: RepoRef(INSTALLATION, REPOSITORY, "acme", "shop"))

    def __post_init__(self) -> None:
        self.world.add_repository(self.repo)
        self.world.permissions.update(alice=Permission.WRITE, mallory=Permission.READ)
        self.reviewer = GitForge(self.world, REVIEWER, self.git)
        self.fixer = GitForge(self.world, FIXER, self.git)
        self.mirrors = Mirrors(self.folder / "mirrors")
        self.base_files: dict[str, bytes] = dict(BASE)
        self.main = (self.git.path / "refs/heads/main").read_text().strip()
        if self.policy:
            self.base_files[".github/mergeward.yml"] = self.policy.encode()
            self.main = self.git.commit(self.base_files)

    def opener(self, forge: Forge) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Forge]:
            yield forge

        return opened

    @property
    def handoff(self) -> HandoffServices:
        return HandoffServices(self.opener(self.reviewer), self.mirrors, OUR_LOGINS)

    @property
    def commands(self) -> CommandServices:
        return CommandServices(self.opener(self.reviewer), self.mirrors, OUR_LOGINS)

    @property
    def fixing(self) -> FixerServices:
        return FixerServices(
            open_forge=self.opener(self.fixer),
            open_reviewer=self.opener(self.reviewer),
            mirrors=self.mirrors,
            runtime=self.agent,
            routing=shipped_routing("anthropic"),
            work=self.folder / "work",
        )

    # What people do on the forge.

    def open(
        self, number: int = 1, *, author: str = "alice", files: Mapping[str, bytes] | None = None
    ) -> PullRequest:
        """A pull request that adds files to the base."""
        tree = {**self.base_files, **(files or {FILE: SOURCE})}
        head = self.git.commit(tree, parent=self.main, ref=f"refs/heads/topic-{number}")
        pull = PullRequest(
            number=number,
            title="Add a",
            body="",
            author=account(author),
            state=PullRequestState.OPEN,
            draft=False,
            head_ref=f"topic-{number}",
            head_sha=head,
            head_repo="acme/shop",
            base_ref="main",
            base_sha=self.main,
            default_branch="main",
        )
        return self.world.put_pull(self.repo, pull)

    def merge(self, number: int = 1, files: Mapping[str, bytes] | None = None) -> str:
        """Merges with these files added to the base. Returns the merge commit."""
        pull = self.world.pull(self.repo, number).value
        if files is None:
            files = {FILE: SOURCE}
        self.base_files.update(files)
        self.main = self.git.commit(self.base_files, parent=self.main)
        self.world.put_pull(
            self.repo,
            replace(
                pull,
                state=PullRequestState.MERGED,
                merge_commit_sha=self.main,
                merged_by=account("alice"),
                closed_at=self.clock.now(),
            ),
        )
        return self.main

    def close(self, number: int = 1) -> None:
        pull = self.world.pull(self.repo, number).value
        closed = replace(pull, state=PullRequestState.CLOSED, closed_at=self.clock.now())
        self.world.put_pull(self.repo, closed)

    # What webhooks bring.

    async def closed(self, number: int = 1, *, by: str = "alice", delivery: str = "d1") -> None:
        """The delivery of the end of a pull request, and everything that follows."""
        await self.queue(self.close_request(number, by=by, delivery=delivery))
        await self.run()

    def close_request(
        self, number: int = 1, *, by: str = "alice", delivery: str = "d1"
    ) -> JobRequest:
        place = f"{REPOSITORY}:{number}"
        return JobRequest(
            kind=JobKind.CLOSE_PULL_REQUEST,
            key=f"close:{place}:{delivery}",
            payload=self._payload(number, by),
            subject=pull_request_subject(REPOSITORY, number),
            lane=f"close:{place}",
            installation_id=INSTALLATION,
            repository_id=REPOSITORY,
        )

    def comment_request(self, comment_id: int, body: str, number: int, by: str) -> JobRequest:
        return JobRequest(
            kind=JobKind.HANDLE_COMMENT,
            key=f"comment:{REPOSITORY}:{comment_id}",
            payload={**self._payload(number, by), "comment_id": comment_id, "body": body},
            subject=pull_request_subject(REPOSITORY, number),
            lane=f"comments:{REPOSITORY}:{number}",
            installation_id=INSTALLATION,
            repository_id=REPOSITORY,
        )

    async def says(self, body: str, *, number: int = 1, by: str = "alice") -> int:
        """A comment on the page, its delivery, and everything that follows."""
        comment_id = self.world.comment(self.repo, number, account(by), body)
        await self.queue(self.comment_request(comment_id, body, number, by))
        await self.run()
        return comment_id

    def _payload(self, number: int, by: str) -> dict[str, Any]:
        cause = Cause("closed", account(by), self.clock.now(), "d")
        return {"repository_id": REPOSITORY, "number": number, "causes": [cause.to_json()]}

    async def queue(self, request: JobRequest) -> int:
        async with self.store.write() as session:
            return (await enqueue(session, request, now=self.clock.now())).job_id

    async def run(self, *kinds: JobKind) -> None:
        """Work until nothing is due. Reviews stay queued: nobody carries them out here."""
        fixing, failed = self.fixing, partial(report_failure, services=self.fixing)
        stories: dict[JobKind, Story] = {
            JobKind.CLOSE_PULL_REQUEST: partial(close_pull_request, services=self.handoff),
            JobKind.HANDLE_COMMENT: partial(handle_comment, services=self.commands),
            JobKind.RUN_FIX_TASK: partial(run_fix_task, services=fixing),
        }
        worker = Worker(
            self.store,
            {kind: story for kind, story in stories.items() if not kinds or kind in kinds},
            clock=self.clock,
            wakeups=InProcessDispatcher(),
            after_failure={
                JobKind.RUN_FIX_TASK: failed,
                JobKind.HANDLE_COMMENT: partial(report_comment, services=self.commands),
            },
        )
        await worker.run_until_idle()

    async def later(self, **passed: float) -> None:
        """Time passes, and what became due is done."""
        self.clock.move_to(self.clock.now() + timedelta(**passed))
        await self.run()

    # What rounds leave in the ledger.

    async def known(self, number: int = 1) -> PullRequestRow:
        """The pull request as a first review would store it."""
        pull = self.world.pull(self.repo, number).value
        bot = pull.author.kind is AccountKind.BOT
        now = self.clock.now()
        async with self.store.write() as session:
            row = await ensure_pull_request(
                session, REPOSITORY, pull, bot=BotFact(bot), updated_at=now, now=now
            )
            if row.lineage_id is None:
                await ensure_lineage(session, row, now=now)
            return row

    async def finds(self, number: int = 1, **difference: Any) -> int:
        """A round finds a defect. Returns the finding's id."""
        row = await self.known(number)
        head = self.world.pull(self.repo, number).value.head_sha
        values: dict[str, Any] = {
            "path": FILE,
            "start_line": 2,
            "severity": Severity.CRITICAL,
            "category": "bug",
            "title": "Division by zero",
            "body": "It fails.",
            "code": f"    {BAD}",
            "origin": Origin.ORIGINAL,
            "status": FindingStatus.OPEN,
            "first_seen_sha": head,
            "last_seen_sha": head,
            "created_at": self.clock.now(),
            "updated_at": self.clock.now(),
        }
        found = FindingRow(**{**values, **difference}, pull_request_id=row.id, number=0)
        async with self.store.write() as session:
            await number_findings(session, row.id, [found])
        return found.id

    async def reviewed(self, task_id: int, *, fixed: bool, summary: str = "Again, please.") -> None:
        """A round of the fix pull request: approved, or its findings block and a turn follows."""
        now = self.clock.now()
        async with self.store.write() as session:
            task = await session.get_one(FixTask, task_id)
            assert task.fix_pull_request_id is not None
            rows = await finding_rows(session, task.fix_pull_request_id)
            session.add(
                ReviewRun(
                    pull_request_id=task.fix_pull_request_id,
                    fix_task_id=task.id,
                    head_sha="0" * 40,
                    trigger=Trigger.WEBHOOK,
                    state=RunState.DONE,
                    verdict=Verdict.APPROVED if fixed else Verdict.CHANGES_REQUESTED,
                    summary=summary,
                    blocking=[] if fixed else [row.id for row in rows],
                    created_at=now,
                )
            )
            task.rounds_started += 1
            if fixed:
                task.state = FixTaskState.APPROVED
                for row in rows:
                    row.status = FindingStatus.FIXED
            else:
                task.state = FixTaskState.QUEUED
                await enqueue(session, turn_request(task, INSTALLATION), now=now)
        await self.run()

    # What the ledger says.

    async def tasks(self) -> Sequence[FixTask]:
        async with self.store.read() as session:
            return (await session.exec(select(FixTask).order_by(col(FixTask.id)))).all()

    async def task(self) -> FixTask:
        (only,) = await self.tasks()
        return only

    async def orders(self) -> Sequence[Order]:
        async with self.store.read() as session:
            return (await session.exec(select(Order).order_by(col(Order.id)))).all()

    async def findings(self, number: int = 1) -> Sequence[FindingRow]:
        async with self.store.read() as session:
            row = await pull_request(session, REPOSITORY, number)
            return await finding_rows(session, row.id) if row else []

    async def jobs(self, kind: JobKind) -> Sequence[Job]:
        async with self.store.read() as session:
            return (await session.exec(select(Job).where(col(Job.kind) == kind))).all()

    async def reasons(self, kind: str) -> list[str]:
        """The reason codes of all stored decisions of a kind."""
        async with self.store.read() as session:
            found = await session.exec(
                select(DecisionRow.reason)
                .where(DecisionRow.kind == kind)
                .order_by(col(DecisionRow.id))
            )
            return list(found.all())

    async def lineage(self) -> Lineage:
        async with self.store.read() as session:
            return (await session.exec(select(Lineage).order_by(col(Lineage.id)))).all()[0]

    async def change(self, row: type[Any], row_id: int, **values: Any) -> None:
        """Something else happened to a row."""
        async with self.store.write() as session:
            found = await session.get_one(row, row_id)
            for name, value in values.items():
                setattr(found, name, value)

    def comments(self, number: int = 1) -> list[str]:
        """What our Apps said in the conversation."""
        said = self.world.pull(self.repo, number).comments
        return [item.body for item in said if item.author.login in OUR_LOGINS]

    def fix_pulls(self) -> list[PullRequest]:
        """Pull requests that the fixer opened."""
        return [pull for pull in self.world.pulls_of(self.repo) if pull.author == FIXER.account]

    def commits_on(self, branch: str) -> int:
        """How many commits a branch has beyond the base."""
        out = git("rev-list", "--count", f"{self.main}..refs/heads/{branch}", cwd=self.git.path)
        return int(out)


async def open_stage(store: Store, folder: Path, policy: str = "") -> Stage:
    """A stage in a folder that holds a copy of the templates (`tests.handoff.fixtures`)."""
    async with store.write() as session:
        await add_repository(session)
    return Stage(store, folder, BareRepo(folder / "origin.git"), policy)


def at(moment: datetime, **passed: float) -> datetime:
    return moment + timedelta(**passed)
