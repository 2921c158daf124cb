"""The first tables

Revision: 0001, the first one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=True),
        sa.Column("pull_request_id", sa.BigInteger(), nullable=True),
        sa.Column("finding_id", sa.BigInteger(), nullable=True),
        sa.Column("fix_task_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("reasons", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("record", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
    )
    op.create_index("ix_decisions_decided_at", "decisions", ["decided_at"], unique=False)
    op.create_index("ix_decisions_finding_id", "decisions", ["finding_id"], unique=False)
    op.create_index("ix_decisions_fix_task_id", "decisions", ["fix_task_id"], unique=False)
    op.create_index("ix_decisions_kind", "decisions", ["kind"], unique=False)
    op.create_index("ix_decisions_pull_request_id", "decisions", ["pull_request_id"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("guid", sa.Text(), nullable=False),
        sa.Column("app", sa.String(length=40), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("installation_id", sa.BigInteger(), nullable=True),
        sa.Column("repository_id", sa.BigInteger(), nullable=True),
        sa.Column("ignored_reason", sa.Text(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("guid", "app", name="uq_deliveries_guid"),
    )
    op.create_index("ix_deliveries_received_at", "deliveries", ["received_at"], unique=False)
    op.create_table(
        "installations",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("app", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("account_login", sa.Text(), nullable=False),
        sa.Column("account_kind", sa.String(length=40), nullable=True),
        sa.Column("suspended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installations"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("lane", sa.Text(), nullable=True),
        sa.Column("installation_id", sa.BigInteger(), nullable=True),
        sa.Column("repository_id", sa.BigInteger(), nullable=True),
        sa.Column("payload", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lost_leases", sa.Integer(), nullable=False),
        sa.Column("run_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_reason", sa.Text(), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("superseded_by", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("delivery_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["deliveries.id"], name="fk_jobs_delivery_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_delivery_id", "jobs", ["delivery_id"], unique=False)
    op.create_index("ix_jobs_ready", "jobs", ["state", "run_at"], unique=False)
    op.create_index("ix_jobs_subject", "jobs", ["subject", "state"], unique=False)
    op.create_index(
        "uq_jobs_live_key",
        "jobs",
        ["key"],
        unique=True,
        sqlite_where=sa.text("state IN ('queued', 'running')"),
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_index(
        "uq_jobs_running_lane",
        "jobs",
        ["lane"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "repositories",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("installation_id", sa.BigInteger(), nullable=False),
        sa.Column("fixer_installation_id", sa.BigInteger(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("default_branch", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("enabled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["installation_id"],
            ["installations.id"],
            name="fk_repositories_installation_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_repositories"),
    )
    op.create_index(
        "ix_repositories_installation_id", "repositories", ["installation_id"], unique=False
    )
    op.create_table(
        "job_steps",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=True),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name="fk_job_steps_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_job_steps"),
        sa.UniqueConstraint("job_id", "name", name="uq_job_steps_name"),
    )
    op.create_index("ix_job_steps_job_id", "job_steps", ["job_id"], unique=False)
    op.create_table(
        "pull_requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("author_id", sa.BigInteger(), nullable=False),
        sa.Column("author_login", sa.Text(), nullable=False),
        sa.Column("author_kind", sa.String(length=40), nullable=False),
        sa.Column("is_bot", sa.Boolean(), nullable=False),
        sa.Column("bot_signal", sa.Text(), nullable=True),
        sa.Column("is_fix_pr", sa.Boolean(), nullable=False),
        sa.Column("fix_task_id", sa.BigInteger(), nullable=True),
        sa.Column("lineage_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("draft", sa.Boolean(), nullable=False),
        sa.Column("head_ref", sa.Text(), nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("base_ref", sa.Text(), nullable=False),
        sa.Column("base_sha", sa.Text(), nullable=False),
        sa.Column("merge_commit_sha", sa.Text(), nullable=True),
        sa.Column("merged_by_id", sa.BigInteger(), nullable=True),
        sa.Column("merged_by_login", sa.Text(), nullable=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("merged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_reviewed_sha", sa.Text(), nullable=True),
        sa.Column("planned_merge_sha", sa.Text(), nullable=True),
        sa.Column("last_human_act_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("machine_rounds", sa.Integer(), nullable=False),
        sa.Column("findings_numbered", sa.Integer(), nullable=False),
        sa.Column("sticky_comment_id", sa.BigInteger(), nullable=True),
        sa.Column("forge_updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"],
            ["repositories.id"],
            name="fk_pull_requests_repository_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pull_requests"),
        sa.UniqueConstraint("repository_id", "number", name="uq_pull_requests_number"),
    )
    op.create_index("ix_pull_requests_fix_task_id", "pull_requests", ["fix_task_id"], unique=False)
    op.create_index("ix_pull_requests_lineage_id", "pull_requests", ["lineage_id"], unique=False)
    op.create_index(
        "ix_pull_requests_repository_id", "pull_requests", ["repository_id"], unique=False
    )
    op.create_table(
        "lineages",
        sa.Column("model_calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.BigInteger(), nullable=True),
        sa.Column("model_seconds", sa.Float(), nullable=False),
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_pull_request_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("stopped_by_id", sa.BigInteger(), nullable=True),
        sa.Column("stopped_by_login", sa.Text(), nullable=True),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cost_unknown", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_pull_request_id"],
            ["pull_requests.id"],
            name="fk_lineages_source_pull_request_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_lineages"),
        sa.UniqueConstraint("source_pull_request_id", name="uq_lineages_source_pull_request_id"),
    )
    op.create_table(
        "review_runs",
        sa.Column("model_calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.BigInteger(), nullable=True),
        sa.Column("model_seconds", sa.Float(), nullable=False),
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("pull_request_id", sa.BigInteger(), nullable=False),
        sa.Column("fix_task_id", sa.BigInteger(), nullable=True),
        sa.Column("lineage_id", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("base_sha", sa.Text(), nullable=False),
        sa.Column("merge_base_sha", sa.Text(), nullable=True),
        sa.Column("patch_id", sa.Text(), nullable=True),
        sa.Column("policy_digest", sa.Text(), nullable=True),
        sa.Column("trigger", sa.String(length=40), nullable=False),
        sa.Column("machine_caused", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("round_number", sa.BigInteger(), nullable=True),
        sa.Column("charged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tier", sa.String(length=40), nullable=True),
        sa.Column("verdict", sa.String(length=40), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("coverage", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("dropped", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("blocking", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("incomplete", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("models", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("decision_ids", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("check_run_id", sa.BigInteger(), nullable=True),
        sa.Column("review_id", sa.BigInteger(), nullable=True),
        sa.Column("prompt_versions", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["pull_request_id"],
            ["pull_requests.id"],
            name="fk_review_runs_pull_request_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_review_runs"),
    )
    op.create_index("ix_review_runs_fix_task_id", "review_runs", ["fix_task_id"], unique=False)
    op.create_index(
        "ix_review_runs_head", "review_runs", ["pull_request_id", "head_sha"], unique=False
    )
    op.create_index("ix_review_runs_job_id", "review_runs", ["job_id"], unique=False)
    op.create_index("ix_review_runs_lineage_id", "review_runs", ["lineage_id"], unique=False)
    op.create_index(
        "ix_review_runs_pull_request_id", "review_runs", ["pull_request_id"], unique=False
    )
    op.create_index("ix_review_runs_state", "review_runs", ["state"], unique=False)
    op.create_table(
        "threads",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("pull_request_id", sa.BigInteger(), nullable=False),
        sa.Column("comment_id", sa.BigInteger(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("line", sa.BigInteger(), nullable=True),
        sa.Column("resolved", sa.Boolean(), nullable=False),
        sa.Column("resolved_by_login", sa.Text(), nullable=True),
        sa.Column("resolved_by_us", sa.Boolean(), nullable=False),
        sa.Column("our_replies", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["pull_request_id"],
            ["pull_requests.id"],
            name="fk_threads_pull_request_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_threads"),
        sa.UniqueConstraint("pull_request_id", "comment_id", name="uq_threads_comment"),
    )
    op.create_index("ix_threads_pull_request_id", "threads", ["pull_request_id"], unique=False)
    op.create_table(
        "findings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("pull_request_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("start_line", sa.BigInteger(), nullable=True),
        sa.Column("end_line", sa.BigInteger(), nullable=True),
        sa.Column("severity", sa.String(length=40), nullable=False),
        sa.Column("severity_at_handoff", sa.String(length=40), nullable=True),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("suggestion", sa.Text(), nullable=True),
        sa.Column("also", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("origin", sa.String(length=40), nullable=False),
        sa.Column("status", sa.String(length=40), nullable=False),
        sa.Column("trivial", sa.Boolean(), nullable=False),
        sa.Column("production_risk", sa.Text(), nullable=True),
        sa.Column("reviewers", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("flips", sa.Integer(), nullable=False),
        sa.Column("first_seen_run_id", sa.BigInteger(), nullable=True),
        sa.Column("first_seen_sha", sa.Text(), nullable=False),
        sa.Column("last_seen_run_id", sa.BigInteger(), nullable=True),
        sa.Column("last_seen_sha", sa.Text(), nullable=False),
        sa.Column("fixed_sha", sa.Text(), nullable=True),
        sa.Column("status_reason", sa.Text(), nullable=True),
        sa.Column("status_by_id", sa.BigInteger(), nullable=True),
        sa.Column("status_by_login", sa.Text(), nullable=True),
        sa.Column("status_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.BigInteger(), nullable=True),
        sa.Column("fix_task_id", sa.BigInteger(), nullable=True),
        sa.Column("source_finding_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["first_seen_run_id"],
            ["review_runs.id"],
            name="fk_findings_first_seen_run_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["last_seen_run_id"],
            ["review_runs.id"],
            name="fk_findings_last_seen_run_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["pull_request_id"],
            ["pull_requests.id"],
            name="fk_findings_pull_request_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["threads.id"], name="fk_findings_thread_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_findings"),
        sa.UniqueConstraint("pull_request_id", "number", name="uq_findings_number"),
    )
    op.create_index(
        "ix_findings_fingerprint", "findings", ["pull_request_id", "fingerprint"], unique=False
    )
    op.create_index(
        "ix_findings_first_seen_run_id", "findings", ["first_seen_run_id"], unique=False
    )
    op.create_index("ix_findings_fix_task_id", "findings", ["fix_task_id"], unique=False)
    op.create_index("ix_findings_last_seen_run_id", "findings", ["last_seen_run_id"], unique=False)
    op.create_index("ix_findings_pull_request_id", "findings", ["pull_request_id"], unique=False)
    op.create_index(
        "ix_findings_source_finding_id", "findings", ["source_finding_id"], unique=False
    )
    op.create_index("ix_findings_status", "findings", ["pull_request_id", "status"], unique=False)
    op.create_index("ix_findings_thread_id", "findings", ["thread_id"], unique=False)
    op.create_table(
        "fix_tasks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("lineage_id", sa.BigInteger(), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("source_pull_request_id", sa.BigInteger(), nullable=False),
        sa.Column("fix_pull_request_id", sa.BigInteger(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("paths", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("batch", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=True),
        sa.Column("base_ref", sa.Text(), nullable=False),
        sa.Column("merge_commit_sha", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=True),
        sa.Column("rounds_started", sa.Integer(), nullable=False),
        sa.Column("allowance", sa.Integer(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("verify_cycles", sa.Integer(), nullable=False),
        sa.Column("escalation_reason", sa.Text(), nullable=True),
        sa.Column(
            "escalation_reasons", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False
        ),
        sa.Column("escalated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resumes", sa.Integer(), nullable=False),
        sa.Column("lease_taken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("accept_by", sa.DateTime(timezone=True), nullable=True),
        sa.Column("turn_by", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["fix_pull_request_id"],
            ["pull_requests.id"],
            name="fk_fix_tasks_fix_pull_request_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["lineage_id"], ["lineages.id"], name="fk_fix_tasks_lineage_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["repository_id"],
            ["repositories.id"],
            name="fk_fix_tasks_repository_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["source_pull_request_id"],
            ["pull_requests.id"],
            name="fk_fix_tasks_source_pull_request_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_fix_tasks"),
        sa.UniqueConstraint("key", name="uq_fix_tasks_key"),
    )
    op.create_index(
        "ix_fix_tasks_fix_pull_request_id", "fix_tasks", ["fix_pull_request_id"], unique=False
    )
    op.create_index("ix_fix_tasks_lineage_id", "fix_tasks", ["lineage_id"], unique=False)
    op.create_index("ix_fix_tasks_repository_id", "fix_tasks", ["repository_id"], unique=False)
    op.create_index(
        "ix_fix_tasks_source_pull_request_id", "fix_tasks", ["source_pull_request_id"], unique=False
    )
    op.create_index("ix_fix_tasks_state", "fix_tasks", ["repository_id", "state"], unique=False)
    op.create_table(
        "publications",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("marker", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("pull_request_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("fix_task_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("content_digest", sa.Text(), nullable=True),
        sa.Column("receipt", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["pull_request_id"],
            ["pull_requests.id"],
            name="fk_publications_pull_request_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["review_runs.id"], name="fk_publications_run_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_publications"),
        sa.UniqueConstraint("marker", name="uq_publications_marker"),
    )
    op.create_index("ix_publications_fix_task_id", "publications", ["fix_task_id"], unique=False)
    op.create_index(
        "ix_publications_pull_request_id", "publications", ["pull_request_id"], unique=False
    )
    op.create_index("ix_publications_run_id", "publications", ["run_id"], unique=False)
    op.create_table(
        "reviewer_runs",
        sa.Column("model_calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.BigInteger(), nullable=True),
        sa.Column("model_seconds", sa.Float(), nullable=False),
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("agent", sa.String(length=40), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("findings_count", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["review_runs.id"], name="fk_reviewer_runs_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_reviewer_runs"),
        sa.UniqueConstraint("run_id", "agent", name="uq_reviewer_runs_agent"),
    )
    op.create_index("ix_reviewer_runs_run_id", "reviewer_runs", ["run_id"], unique=False)
    op.create_table(
        "fix_task_findings",
        sa.Column("fix_task_id", sa.BigInteger(), nullable=False),
        sa.Column("finding_id", sa.BigInteger(), nullable=False),
        sa.Column("severity_at_handoff", sa.String(length=40), nullable=False),
        sa.Column("ordered", sa.Boolean(), nullable=False),
        sa.Column("declined_reason", sa.Text(), nullable=True),
        sa.Column("left_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["finding_id"],
            ["findings.id"],
            name="fk_fix_task_findings_finding_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["fix_task_id"],
            ["fix_tasks.id"],
            name="fk_fix_task_findings_fix_task_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("fix_task_id", "finding_id", name="pk_fix_task_findings"),
    )
    op.create_index(
        "ix_fix_task_findings_finding_id", "fix_task_findings", ["finding_id"], unique=False
    )
    op.create_index(
        "ix_fix_task_findings_fix_task_id", "fix_task_findings", ["fix_task_id"], unique=False
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("finding_id", sa.BigInteger(), nullable=False),
        sa.Column("ordered_by_id", sa.BigInteger(), nullable=False),
        sa.Column("ordered_by_login", sa.Text(), nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("outcome_reason", sa.Text(), nullable=True),
        sa.Column("fix_task_id", sa.BigInteger(), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["finding_id"], ["findings.id"], name="fk_orders_finding_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["fix_task_id"], ["fix_tasks.id"], name="fk_orders_fix_task_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orders"),
    )
    op.create_index("ix_orders_finding_id", "orders", ["finding_id"], unique=False)
    op.create_index("ix_orders_fix_task_id", "orders", ["fix_task_id"], unique=False)
    op.create_index(
        "uq_orders_pending",
        "orders",
        ["finding_id"],
        unique=True,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index("uq_orders_source", "orders", ["finding_id", "source"], unique=True)


def downgrade() -> None:
    op.drop_index("uq_orders_source", table_name="orders")
    op.drop_index(
        "uq_orders_pending",
        table_name="orders",
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.drop_index("ix_orders_fix_task_id", table_name="orders")
    op.drop_index("ix_orders_finding_id", table_name="orders")
    op.drop_table("orders")
    op.drop_index("ix_fix_task_findings_fix_task_id", table_name="fix_task_findings")
    op.drop_index("ix_fix_task_findings_finding_id", table_name="fix_task_findings")
    op.drop_table("fix_task_findings")
    op.drop_index("ix_reviewer_runs_run_id", table_name="reviewer_runs")
    op.drop_table("reviewer_runs")
    op.drop_index("ix_publications_run_id", table_name="publications")
    op.drop_index("ix_publications_pull_request_id", table_name="publications")
    op.drop_index("ix_publications_fix_task_id", table_name="publications")
    op.drop_table("publications")
    op.drop_index("ix_fix_tasks_state", table_name="fix_tasks")
    op.drop_index("ix_fix_tasks_source_pull_request_id", table_name="fix_tasks")
    op.drop_index("ix_fix_tasks_repository_id", table_name="fix_tasks")
    op.drop_index("ix_fix_tasks_lineage_id", table_name="fix_tasks")
    op.drop_index("ix_fix_tasks_fix_pull_request_id", table_name="fix_tasks")
    op.drop_table("fix_tasks")
    op.drop_index("ix_findings_thread_id", table_name="findings")
    op.drop_index("ix_findings_status", table_name="findings")
    op.drop_index("ix_findings_source_finding_id", table_name="findings")
    op.drop_index("ix_findings_pull_request_id", table_name="findings")
    op.drop_index("ix_findings_last_seen_run_id", table_name="findings")
    op.drop_index("ix_findings_fix_task_id", table_name="findings")
    op.drop_index("ix_findings_first_seen_run_id", table_name="findings")
    op.drop_index("ix_findings_fingerprint", table_name="findings")
    op.drop_table("findings")
    op.drop_index("ix_threads_pull_request_id", table_name="threads")
    op.drop_table("threads")
    op.drop_index("ix_review_runs_state", table_name="review_runs")
    op.drop_index("ix_review_runs_pull_request_id", table_name="review_runs")
    op.drop_index("ix_review_runs_lineage_id", table_name="review_runs")
    op.drop_index("ix_review_runs_job_id", table_name="review_runs")
    op.drop_index("ix_review_runs_head", table_name="review_runs")
    op.drop_index("ix_review_runs_fix_task_id", table_name="review_runs")
    op.drop_table("review_runs")
    op.drop_table("lineages")
    op.drop_index("ix_pull_requests_repository_id", table_name="pull_requests")
    op.drop_index("ix_pull_requests_lineage_id", table_name="pull_requests")
    op.drop_index("ix_pull_requests_fix_task_id", table_name="pull_requests")
    op.drop_table("pull_requests")
    op.drop_index("ix_job_steps_job_id", table_name="job_steps")
    op.drop_table("job_steps")
    op.drop_index("ix_repositories_installation_id", table_name="repositories")
    op.drop_table("repositories")
    op.drop_index(
        "uq_jobs_running_lane",
        table_name="jobs",
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.drop_index(
        "uq_jobs_live_key",
        table_name="jobs",
        sqlite_where=sa.text("state IN ('queued', 'running')"),
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.drop_index("ix_jobs_subject", table_name="jobs")
    op.drop_index("ix_jobs_ready", table_name="jobs")
    op.drop_index("ix_jobs_delivery_id", table_name="jobs")
    op.drop_table("jobs")
    op.drop_table("installations")
    op.drop_index("ix_deliveries_received_at", table_name="deliveries")
    op.drop_table("deliveries")
    op.drop_index("ix_decisions_pull_request_id", table_name="decisions")
    op.drop_index("ix_decisions_kind", table_name="decisions")
    op.drop_index("ix_decisions_fix_task_id", table_name="decisions")
    op.drop_index("ix_decisions_finding_id", table_name="decisions")
    op.drop_index("ix_decisions_decided_at", table_name="decisions")
    op.drop_table("decisions")
