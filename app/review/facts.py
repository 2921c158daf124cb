"""The frozen facts of one review run: everything decisions and prompts are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.bots import Act
from app.domain.diff import Diff
from app.domain.findings import Finding
from app.domain.forge import IssueComment
from app.domain.jobs import Cause
from app.domain.pull_request import PullRequest, RepoRef, ReviewThread
from app.domain.runs import Trigger
from app.policy.load import EffectivePolicy
from app.review.heard import Heard
from app.review.history import Turn
from app.review.unchanged import PreviousLook
from app.review.verdict import TaskView
from loop_guards import Limits


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    """One pull request at one head, as it was when the run began.

    `existing` are the open findings of earlier rounds (on a fix pull request also those of its
    task). `acts` are what asked for this run, as the guards see it. `diff` is from `merge_base` to
    the head. `rounds_before` counts the finished rounds of this pull request. `turn` is what came
    between the last look at a fix and this one. `comment_ids` maps short ids of findings to the
    first comment of their threads, `comments` are the conversation as far as it was read with the
    threads (None: not yet), `heard` to what people did there; of those, `writers` may write.
    `settled` maps fingerprints of findings that people decided to live with to their names.
    `previous` is the latest round whose reading still counts. `stopped`: a person stopped the
    lineage.
    """

    now: datetime
    repo: RepoRef
    pull_request: PullRequest
    pull_request_id: int
    trigger: Trigger
    causes: tuple[Cause, ...]
    acts: tuple[Act, ...]
    bot_signal: str | None
    policy: EffectivePolicy
    limits: Limits
    merge_base: str
    diff: Diff
    existing: tuple[Finding, ...]
    previous_summary: str
    machine_rounds: int
    rounds_before: int
    already_reviewed: bool
    lineage_id: int | None = None
    task: TaskView | None = None
    turn: Turn | None = None
    threads: tuple[ReviewThread, ...] = ()
    comments: tuple[IssueComment, ...] | None = None
    comment_ids: Mapping[str, int] = field(default_factory=dict)
    heard: Mapping[str, Heard] = field(default_factory=dict)
    writers: frozenset[str] = frozenset()
    settled: Mapping[str, str] = field(default_factory=dict)
    previous: PreviousLook | None = None
    stopped: bool = False

    @property
    def by_human(self) -> bool:
        """Whether a person caused this run."""
        return any(act.by_human for act in self.acts)
