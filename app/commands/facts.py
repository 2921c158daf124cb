"""The frozen facts of one comment that commands something."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.commands.grammar import Command
from app.domain.findings import Finding
from app.domain.policy import HumanPrs, Policy
from app.domain.pull_request import Account, PullRequest, RepoRef
from app.store.commands import BotFact
from loop_guards import FindingStatus, Limits, PullState, Severity, TaskState


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks, and what they may do at this moment. `by_human` False: nothing, it is a machine.

    `at` is when we heard of it, also if the job that answers is a later try. `unknown`: GitHub does
    not say what they may do, so they may nothing.
    """

    account: Account
    by_human: bool
    can_write: bool
    at: datetime
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A comment on a pull request that holds commands. `source` names it in the ledger
    (`comment:123`). `bot` is set where the ledger does not know the pull request yet and may have
    to: whether a machine wrote it."""

    now: datetime
    repo: RepoRef
    pull_request: PullRequest
    comment_id: int
    source: str
    person: Person
    policy: Policy
    commands: tuple[Command, ...]
    bot: BotFact | None = None

    @property
    def limits(self) -> Limits:
        return self.policy.limits.for_guards()

    @property
    def gated(self) -> bool:
        """Whether the policy makes reviews of people's pull requests binding."""
        return self.policy.human_prs is HumanPrs.GATE


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding of the pull request as a command meets it.

    `covered_by` is the state of the latest task that covered it (WITHDRAWN when a person took it
    off a live one), `task_id` that task and `fix_number` its pull request; `last_of_task`: nothing
    else of it is left to fix. `queued_by` is the login of the pending order. `twins` are the other
    rows of the same finding: on a fix pull request it stands once more. `comment_id` begins its
    thread on this pull request.
    """

    id: int
    short_id: str
    status: FindingStatus
    severity: Severity = Severity.WARNING
    covered_by: TaskState | None = None
    task_id: int | None = None
    fix_number: int | None = None
    last_of_task: bool = False
    queued_by: str | None = None
    source_id: int = 0
    twins: tuple[int, ...] = ()
    comment_id: int | None = None


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A live fix task of the lineage, and the number of its pull request."""

    id: int
    state: TaskState
    fix_number: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What we remember of the pull request; nothing if it was never reviewed.

    `tasks` are the live fix tasks of its lineage, `own_task_id` the one it answers, if it is a fix.
    `deferred`: findings or orders wait for a resume. `source_number` is the pull request that the
    lineage began with.
    """

    pull_request_id: int | None = None
    state: PullState = PullState.OPEN
    lineage_id: int | None = None
    stopped: bool = False
    stopped_by: str | None = None
    findings: tuple[KnownFinding, ...] = ()
    tasks: tuple[KnownTask, ...] = ()
    own_task_id: int | None = None
    source_number: int | None = None
    source_merged: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A stored decision: which question, what came out, and the code of the reason."""

    kind: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class Story:
    """All that is told of one finding: what it is, who found it by which prompt in which round, and
    what was decided about it (oldest first)."""

    known: KnownFinding
    finding: Finding
    reviewers: tuple[str, ...]
    prompt_version: str
    round_number: int | None
    models: tuple[str, ...]
    status_reason: str | None
    status_by: str | None
    decisions: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest review run. `verdict` is None while there is none, or for good."""

    head_sha: str
    state: str
    verdict: str | None
    reason: str | None
    round_number: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a pull request stands. `latest` is the newest decision of each kind, oldest first;
    `waiting` counts the review jobs that are queued or run; `glasses` how often it was approved by
    break glass, `glass_by` who did it for the present head."""

    run: LastRun | None = None
    latest: tuple[Said, ...] = ()
    waiting: int = 0
    glasses: int = 0
    glass_by: str | None = None
