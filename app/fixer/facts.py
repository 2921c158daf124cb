"""The frozen facts of one turn of a fix task."""

from __future__ import annotations

from dataclasses import dataclass

from app.domain.findings import Finding
from app.domain.policy import Policy
from app.domain.pull_request import RepoRef
from app.domain.tasks import FixTaskState
from app.git.mirror import Repository
from loop_guards import RoundFacts


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """A fix task before one of its turns, as the ledger knows it.

    `findings` are the open ones: on the first turn those of the task, later what the last round
    left blocking on the fix pull request. `remarks` is what that round said. `fix_number` is None
    before there is a fix pull request. `turn` counts from 1; `turns_begun` are those of the task.
    """

    repo: RepoRef
    task_id: int
    lineage_id: int
    branch: str
    base_ref: str
    source_number: int
    source_id: int
    paths: tuple[str, ...]
    state: FixTaskState
    turn: int
    turns_begun: int
    findings: tuple[Finding, ...]
    remarks: str
    fix_number: int | None
    round_facts: RoundFacts

    @property
    def page(self) -> int:
        """The pull request on which people look for this task."""
        return self.fix_number or self.source_number


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn works: the mirror, the commit it starts from, and the rules that hold.

    `tip` is where the task's branch stood on the forge, None before its first push.
    """

    mirror: Repository
    policy: Policy
    start: str
    tip: str | None
