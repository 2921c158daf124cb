"""The frozen facts of the end of a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.findings import Finding
from app.domain.policy import Policy
from app.domain.pull_request import PullRequest, RepoRef
from loop_guards import HandoffFinding, HumanOrder, Limits, MergeFacts


@dataclass(frozen=True, slots=True)
class CloseFacts:
    """A closed pull request with its ledger. `handoff` and `merge` are None unless it was merged.

    `own_task_id`: the task that this pull request answers, if it is a fix. `batch` names the plan:
    `merge`, or an order given after it. `by_human`: a person closed it.
    """

    now: datetime
    repo: RepoRef
    pull_request: PullRequest
    pull_request_id: int
    policy: Policy
    limits: Limits
    by_human: bool
    orders: tuple[HumanOrder, ...]
    findings: Mapping[int, Finding]
    batch: str
    own_task_id: int | None = None
    handoff: tuple[HandoffFinding, ...] = ()
    merge: MergeFacts | None = None
    gone: frozenset[int] = frozenset()
