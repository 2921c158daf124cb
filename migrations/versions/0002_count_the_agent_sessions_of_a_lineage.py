"""Count the agent sessions of a lineage

Revision: 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The rows that are there need a number; what they used before was not counted. A constant
    # default lets both databases add the column without copying the table.
    column = sa.Column("sessions", sa.Integer(), nullable=False, server_default="0")
    op.add_column("lineages", column)


def downgrade() -> None:
    with op.batch_alter_table("lineages") as batch_op:
        batch_op.drop_column("sessions")
