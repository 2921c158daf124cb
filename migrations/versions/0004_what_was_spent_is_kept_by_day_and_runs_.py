"""What was spent is kept by day, and runs hold their part

Revision: 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:

    op.create_table(
        "spend_notices",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("percent", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spend_notices")),
        sa.UniqueConstraint("scope", "period", "percent", name="uq_spend_notices_mark"),
    )
    op.create_table(
        "spend_days",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("micro_dollars", sa.BigInteger(), nullable=False),
        sa.Column("unpriced_tokens", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"],
            ["repositories.id"],
            name=op.f("fk_spend_days_repository_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spend_days")),
        sa.UniqueConstraint("repository_id", "day", name="uq_spend_days_day"),
    )
    with op.batch_alter_table("spend_days", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_spend_days_repository_id"), ["repository_id"], unique=False
        )

    with op.batch_alter_table("review_runs", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("reserved_micro", sa.BigInteger(), server_default="0", nullable=False)
        )


def downgrade() -> None:

    with op.batch_alter_table("review_runs", schema=None) as batch_op:
        batch_op.drop_column("reserved_micro")

    with op.batch_alter_table("spend_days", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_spend_days_repository_id"))

    op.drop_table("spend_days")
    op.drop_table("spend_notices")
