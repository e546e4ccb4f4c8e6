"""What a version to come may do to the tables while processes of this one read and write.

It may add a new table, a column that is null, one with a default, an index. The tables are those that each publication
is written to. `HEAD` is the newest revision of this version.
"""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "next", "HEAD", None, None


def upgrade() -> None:
    """More of each kind."""
    op.create_table("next", sa.Column("number", sa.BigInteger(), primary_key=True))
    op.add_column("publications", sa.Column("next_null", sa.Text()))
    op.add_column("subscriptions", sa.Column("next_default", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("events", sa.Column("next_null", sa.Float()))
    op.create_index("next_publications", "publications", ["content"])
