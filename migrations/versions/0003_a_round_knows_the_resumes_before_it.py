"""A round knows the resumes before it

Revision: 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Rounds that are there count as before any resume: at worst a resumed task forgets them. A
    # constant default lets both databases add the column without copying the table.
    column = sa.Column("task_resumes", sa.Integer(), nullable=False, server_default="0")
    op.add_column("review_runs", column)


def downgrade() -> None:
    with op.batch_alter_table("review_runs") as batch_op:
        batch_op.drop_column("task_resumes")
