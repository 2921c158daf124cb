"""Review runs, what each reviewer did in them, the findings and their threads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint

from app.domain.runs import AgentName, RunState, Tier, Trigger
from app.domain.tasks import PublicationState, ReviewerState
from app.store.tables.columns import (
    Table,
    UsageColumns,
    count,
    flag,
    integer,
    json_list,
    json_object,
    member_of,
    moment,
    refers_to,
    row_id,
    text,
)
from loop_guards import FindingStatus, Origin, Severity, Verdict


class ReviewRun(UsageColumns, table=True):
    """One execution of the pipeline on one head.

    `charged_at` is the moment of the first model call: from then on the run is a round, and
    `round_number` says which of its pull request (or fix task). `blocking` are the ids of the
    findings that stood in the way at its end; `incomplete` names agents whose part is missing.
    `task_resumes` is how often its fix task had been resumed when it began, `patch_id` what the
    fix proposed then. `check_run_id` is GitHub's. `reserved_micro` is what it holds of its caps
    while it goes on, in millionths of a dollar.
    """

    __tablename__ = "review_runs"
    __table_args__ = (Index("ix_review_runs_head", "pull_request_id", "head_sha"),)

    id: int = row_id()
    pull_request_id: int = refers_to("pull_requests.id")
    fix_task_id: int | None = integer(optional=True, index=True)
    lineage_id: int | None = integer(optional=True, index=True)
    job_id: int | None = integer(optional=True, index=True)
    head_sha: str = text()
    base_sha: str = text("")
    merge_base_sha: str | None = text(optional=True)
    patch_id: str | None = text(optional=True)
    policy_digest: str | None = text(optional=True)
    trigger: Trigger = member_of(Trigger)
    machine_caused: bool = flag()
    state: RunState = member_of(RunState, RunState.QUEUED, index=True)
    round_number: int | None = integer(optional=True)
    task_resumes: int = count()
    charged_at: datetime | None = moment(optional=True)
    tier: Tier | None = member_of(Tier, optional=True)
    verdict: Verdict | None = member_of(Verdict, optional=True)
    reason: str | None = text(optional=True)
    summary: str = text("")
    coverage: dict[str, Any] = json_object()
    dropped: list[Any] = json_list()
    blocking: list[int] = json_list()
    incomplete: list[str] = json_list()
    models: list[str] = json_list()
    decision_ids: list[int] = json_list()
    check_run_id: int | None = integer(optional=True)
    review_id: int | None = integer(optional=True)
    reserved_micro: int = integer(0)
    prompt_versions: dict[str, Any] = json_object()
    created_at: datetime = moment()
    started_at: datetime | None = moment(optional=True)
    finished_at: datetime | None = moment(optional=True)


class ReviewerRun(UsageColumns, table=True):
    """One agent's session (or sessions) within a run."""

    __tablename__ = "reviewer_runs"
    __table_args__ = (UniqueConstraint("run_id", "agent", name="uq_reviewer_runs_agent"),)

    id: int = row_id()
    run_id: int = refers_to("review_runs.id")
    agent: AgentName = member_of(AgentName)
    model: str | None = text(optional=True)
    state: ReviewerState = member_of(ReviewerState, ReviewerState.RUNNING)
    reason: str | None = text(optional=True)
    findings_count: int = count()
    attempts: int = count()
    started_at: datetime | None = moment(optional=True)
    finished_at: datetime | None = moment(optional=True)


class FindingRow(Table, table=True):
    """One finding in the ledger of one pull request; `number` 1 is shown as F1.

    `origin` is written once. `severity_at_handoff` is frozen when its first task is made.
    `source_finding_id` is set on a fix pull request's row that mirrors a finding of its task.
    `fix_task_id` is the task that covers it now (or did last). `code` is the source line it points
    at, as last seen ("" when it names no line).
    """

    __tablename__ = "findings"
    __table_args__ = (
        UniqueConstraint("pull_request_id", "number", name="uq_findings_number"),
        Index("ix_findings_status", "pull_request_id", "status"),
        Index("ix_findings_fingerprint", "pull_request_id", "fingerprint"),
    )

    id: int = row_id()
    pull_request_id: int = refers_to("pull_requests.id")
    number: int = integer()
    path: str | None = text(optional=True)
    start_line: int | None = integer(optional=True)
    end_line: int | None = integer(optional=True)
    severity: Severity = member_of(Severity)
    severity_at_handoff: Severity | None = member_of(Severity, optional=True)
    category: str = text()
    title: str = text()
    body: str = text()
    evidence: str = text("")
    code: str = text("")
    suggestion: str | None = text(optional=True)
    also: list[str] = json_list()
    origin: Origin = member_of(Origin)
    status: FindingStatus = member_of(FindingStatus)
    trivial: bool = flag()
    production_risk: str | None = text(optional=True)
    reviewers: list[str] = json_list()
    flips: int = count()
    first_seen_run_id: int | None = refers_to("review_runs.id", optional=True)
    first_seen_sha: str = text()
    last_seen_run_id: int | None = refers_to("review_runs.id", optional=True)
    last_seen_sha: str = text()
    fixed_sha: str | None = text(optional=True)
    status_reason: str | None = text(optional=True)
    status_by_id: int | None = integer(optional=True)
    status_by_login: str | None = text(optional=True)
    status_at: datetime | None = moment(optional=True)
    fingerprint: str = text("")
    prompt_version: str = text("")
    thread_id: int | None = refers_to("threads.id", optional=True)
    fix_task_id: int | None = integer(optional=True, index=True)
    source_finding_id: int | None = integer(optional=True, index=True)
    created_at: datetime = moment()
    updated_at: datetime = moment()

    @property
    def short_id(self) -> str:
        return f"F{self.number}"


class ThreadRow(Table, table=True):
    """One review thread of ours on GitHub. `comment_id` is its first comment."""

    __tablename__ = "threads"
    __table_args__ = (UniqueConstraint("pull_request_id", "comment_id", name="uq_threads_comment"),)

    id: int = row_id()
    pull_request_id: int = refers_to("pull_requests.id")
    comment_id: int = integer()
    node_id: str | None = text(optional=True)
    path: str | None = text(optional=True)
    line: int | None = integer(optional=True)
    resolved: bool = flag()
    resolved_by_login: str | None = text(optional=True)
    resolved_by_us: bool = flag()
    our_replies: int = count()
    created_at: datetime = moment()
    updated_at: datetime = moment()


class Publication(Table, table=True):
    """One effect on GitHub, findable there by its marker.

    Stored as `PREPARED` before the request and as `DONE` with GitHub's answer after it, so a
    repeated job looks for the marker before it writes again.
    """

    __tablename__ = "publications"

    id: int = row_id()
    marker: str = text(unique=True)
    kind: str = text()
    pull_request_id: int | None = refers_to("pull_requests.id", optional=True)
    run_id: int | None = refers_to("review_runs.id", optional=True)
    fix_task_id: int | None = integer(optional=True, index=True)
    state: PublicationState = member_of(PublicationState, PublicationState.PREPARED)
    content_digest: str | None = text(optional=True)
    receipt: dict[str, Any] = json_object()
    created_at: datetime = moment()
    updated_at: datetime = moment()
