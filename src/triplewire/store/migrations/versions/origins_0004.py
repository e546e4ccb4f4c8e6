"""Origins of publications that came from another broker."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0004", "0003", None, None


def upgrade() -> None:
    """A new table."""
    op.create_table(
        "origins",
        sa.Column("publication", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("broker", sa.Text(), primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
    )
    op.create_index("origins_id", "origins", ["id", "broker", "number"])


def downgrade() -> None:
    """Without it, publications may go in circles."""
    op.drop_table("origins")
