"""The frozen facts of one comment that commands something."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.commands.grammar import Command
from app.domain.policy import Policy
from app.domain.pull_request import Account, PullRequest, RepoRef
from loop_guards import FindingStatus, PullState, TaskState


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks, and what they may do at this moment. `by_human` False: nothing, it is a machine.

    `at` is when we heard of it, also if the job that answers is a later try.
    """

    account: Account
    by_human: bool
    can_write: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A comment on a pull request that holds commands."""

    now: datetime
    repo: RepoRef
    pull_request: PullRequest
    comment_id: int
    person: Person
    policy: Policy
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding of the pull request as an order meets it.

    `covered_by` is the state of the latest task that covered it, `task_id` that task and
    `fix_number` its pull request. `queued_by` is the login of the pending order.
    """

    id: int
    short_id: str
    status: FindingStatus
    covered_by: TaskState | None = None
    task_id: int | None = None
    fix_number: int | None = None
    queued_by: str | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What we remember of the pull request; nothing if it was never reviewed."""

    pull_request_id: int | None = None
    state: PullState = PullState.OPEN
    stopped: bool = False
    findings: tuple[KnownFinding, ...] = ()
