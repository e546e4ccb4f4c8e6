"""Targets that deliveries were given up for, of which their owners are told."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None


def upgrade() -> None:
    """A new table."""
    op.create_table(
        "failing",
        sa.Column("target", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("subscription", sa.BigInteger(), nullable=False),
        sa.Column("solution", sa.Text(), nullable=False),
        sa.Column("is_told", sa.Boolean(), nullable=False),
    )


def downgrade() -> None:
    """Without it, nobody is told."""
    op.drop_table("failing")
