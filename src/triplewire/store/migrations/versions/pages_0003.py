"""Revisions of pages of a CMS, sources that name all their subscriptions, and subscriptions by their ids."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0003", "0002", None, None


def upgrade() -> None:
    """A new table, a new index, and a new column that is false."""
    op.create_table(
        "revisions",
        sa.Column("owner", sa.Text(), primary_key=True),
        sa.Column("page", sa.Text(), primary_key=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
    )
    op.create_index("subscriptions_id", "subscriptions", ["id"])
    op.add_column("sources", sa.Column("full_sync", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Without them."""
    op.drop_column("sources", "full_sync")
    op.drop_index("subscriptions_id", "subscriptions")
    op.drop_table("revisions")
