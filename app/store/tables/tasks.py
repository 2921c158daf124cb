"""Lineages, fix tasks, the findings they cover, and the orders that people gave."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy import text as sql

from app.domain.tasks import FixTaskState, LineageState, OrderState
from app.store.tables.columns import (
    Table,
    UsageColumns,
    count,
    flag,
    integer,
    json_list,
    member_of,
    moment,
    refers_to,
    row_id,
    text,
)
from loop_guards import Severity


class Lineage(UsageColumns, table=True):
    """The tree that grows from one source pull request; budget and stop belong to it.

    The usage columns are what it spent so far; `cost_usd` holds the known part, and
    `cost_unknown` says that some call had no known price. `sessions` counts the agent sessions that
    made a model call.
    """

    __tablename__ = "lineages"

    id: int = row_id()
    source_pull_request_id: int = refers_to("pull_requests.id", unique=True)
    state: LineageState = member_of(LineageState, LineageState.ACTIVE)
    stopped_by_id: int | None = integer(optional=True)
    stopped_by_login: str | None = text(optional=True)
    stopped_at: datetime | None = moment(optional=True)
    cost_unknown: bool = flag()
    sessions: int = count()
    created_at: datetime = moment()
    updated_at: datetime = moment()


class FixTask(Table, table=True):
    """One unit of fixing. `key` is (repository, merge commit, smallest path, batch).

    `allowance` is the number of rounds it may start; `lease_*` is its lease on all its `paths`;
    `accept_by` and `turn_by` are its deadlines.
    """

    __tablename__ = "fix_tasks"
    __table_args__ = (Index("ix_fix_tasks_state", "repository_id", "state"),)

    id: int = row_id()
    key: str = text(unique=True)
    lineage_id: int = refers_to("lineages.id")
    repository_id: int = refers_to("repositories.id")
    source_pull_request_id: int = refers_to("pull_requests.id")
    fix_pull_request_id: int | None = refers_to("pull_requests.id", optional=True)
    target: str = text()
    paths: list[str] = json_list()
    batch: str = text("merge")
    state: FixTaskState = member_of(FixTaskState, FixTaskState.WAITING)
    state_reason: str | None = text(optional=True)
    base_ref: str = text()
    merge_commit_sha: str = text()
    branch: str | None = text(optional=True)
    rounds_started: int = count()
    allowance: int = count()
    turns: int = count()
    verify_cycles: int = count()
    escalation_reason: str | None = text(optional=True)
    escalation_reasons: list[str] = json_list()
    escalated_at: datetime | None = moment(optional=True)
    resumes: int = count()
    lease_taken_at: datetime | None = moment(optional=True)
    lease_ended_at: datetime | None = moment(optional=True)
    accept_by: datetime | None = moment(optional=True)
    turn_by: datetime | None = moment(optional=True)
    finished_at: datetime | None = moment(optional=True)
    created_at: datetime = moment()
    updated_at: datetime = moment()


class FixTaskFinding(Table, table=True):
    """One finding that a task covers, with the severity frozen when it was handed off.

    `ordered`: a human asked for it, so it blocks at any severity. `left_at`: it was withdrawn from
    the task. `declined_reason` is what the fixer said when it declined.
    """

    __tablename__ = "fix_task_findings"

    fix_task_id: int = refers_to("fix_tasks.id", key=True)
    finding_id: int = refers_to("findings.id", key=True)
    severity_at_handoff: Severity = member_of(Severity)
    ordered: bool = flag()
    declined_reason: str | None = text(optional=True)
    left_at: datetime | None = moment(optional=True)
    created_at: datetime = moment()


class Order(Table, table=True):
    """A human's order to fix one finding. Every order ends in exactly one final state.

    `source` names where it was given (`comment:123`, `dashboard`, `api`): one order per finding
    and source, and one pending order per finding.
    """

    __tablename__ = "orders"
    __table_args__ = (
        Index("uq_orders_source", "finding_id", "source", unique=True),
        Index(
            "uq_orders_pending",
            "finding_id",
            unique=True,
            sqlite_where=sql("state = 'pending'"),
            postgresql_where=sql("state = 'pending'"),
        ),
    )

    id: int = row_id()
    finding_id: int = refers_to("findings.id")
    ordered_by_id: int = integer()
    ordered_by_login: str = text()
    ordered_at: datetime = moment()
    target: str | None = text(optional=True)
    source: str = text()
    state: OrderState = member_of(OrderState, OrderState.PENDING)
    outcome_reason: str | None = text(optional=True)
    fix_task_id: int | None = refers_to("fix_tasks.id", optional=True)
    settled_at: datetime | None = moment(optional=True)
