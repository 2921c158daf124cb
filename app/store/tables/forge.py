"""Installations, repositories, pull requests: what GitHub told us, as of the newest event."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from sqlalchemy import UniqueConstraint

from app.domain.jobs import AppRole
from app.domain.pull_request import AccountKind, PullRequestState
from app.store.tables.columns import (
    Table,
    count,
    flag,
    github_id,
    integer,
    member_of,
    moment,
    refers_to,
    row_id,
    text,
)


class Installation(Table, table=True):
    """One of our Apps installed on one account. `id` is GitHub's installation id."""

    __tablename__ = "installations"

    id: int = github_id()
    app: AppRole = member_of(AppRole, AppRole.REVIEWER)
    account_id: int | None = integer(optional=True)
    account_login: str = text("")
    account_kind: AccountKind | None = member_of(AccountKind, optional=True)
    suspended_at: datetime | None = moment(optional=True)
    removed_at: datetime | None = moment(optional=True)
    created_at: datetime = moment()
    updated_at: datetime = moment()


class Repository(Table, table=True):
    """One repository. `id` is GitHub's; owner and name follow renames.

    `fixer_installation_id` is the fixer App's installation on it, once seen; it has no foreign key
    since that installation may be removed on its own. `enabled_at` bounds catch-up: nothing pushed
    before it is ever touched.
    """

    __tablename__ = "repositories"

    id: int = github_id()
    installation_id: int = refers_to("installations.id")
    fixer_installation_id: int | None = integer(optional=True)
    owner: str = text()
    name: str = text()
    default_branch: str = text("")
    private: bool = flag(True)
    enabled_at: datetime = moment()
    removed_at: datetime | None = moment(optional=True)
    updated_at: datetime = moment()

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


class PullRequestRow(Table, table=True):
    """One pull request. `forge_updated_at` guards against late events (`store.commands`).

    `bot_signal` is the one signal that made `is_bot` true. `machine_rounds` counts machine-caused
    rounds since `last_human_act_at`. `planned_merge_sha` is the merge commit whose automatic plan
    was made. `lineage_id` and `fix_task_id` have no foreign key because
    those tables refer to this one.
    """

    __tablename__ = "pull_requests"
    __table_args__ = (UniqueConstraint("repository_id", "number", name="uq_pull_requests_number"),)

    id: int = row_id()
    repository_id: int = refers_to("repositories.id")
    number: int = integer()
    title: str = text("")
    author_id: int = integer()
    author_login: str = text()
    author_kind: AccountKind = member_of(AccountKind)
    is_bot: bool = flag()
    bot_signal: str | None = text(optional=True)
    is_fix_pr: bool = flag()
    fix_task_id: int | None = integer(optional=True, index=True)
    lineage_id: int | None = integer(optional=True, index=True)
    state: PullRequestState = member_of(PullRequestState, PullRequestState.OPEN)
    draft: bool = flag()
    head_ref: str = text("")
    head_sha: str = text("")
    base_ref: str = text("")
    base_sha: str = text("")
    merge_commit_sha: str | None = text(optional=True)
    merged_by_id: int | None = integer(optional=True)
    merged_by_login: str | None = text(optional=True)
    opened_at: datetime | None = moment(optional=True)
    closed_at: datetime | None = moment(optional=True)
    merged_at: datetime | None = moment(optional=True)
    last_reviewed_sha: str | None = text(optional=True)
    planned_merge_sha: str | None = text(optional=True)
    last_human_act_at: datetime | None = moment(optional=True)
    machine_rounds: int = count()
    findings_numbered: int = count()
    sticky_comment_id: int | None = integer(optional=True)
    forge_updated_at: datetime | None = moment(optional=True)
    created_at: datetime = moment()
    updated_at: datetime = moment()

    FORGE_FIELDS: ClassVar[tuple[str, ...]] = (
        "title",
        "state",
        "draft",
        "head_ref",
        "head_sha",
        "base_ref",
        "base_sha",
        "merge_commit_sha",
        "merged_by_id",
        "merged_by_login",
        "opened_at",
        "closed_at",
        "merged_at",
    )
    """The columns that follow GitHub and nothing else."""
