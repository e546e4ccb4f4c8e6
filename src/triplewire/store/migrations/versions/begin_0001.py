"""The tables of the first version, which `triplewire.store.tables` made. A later revision changes them."""

revision, down_revision, branch_labels, depends_on = "0001", None, None, None


def upgrade() -> None:
    """Nothing: a new database is made as it is now, and stamped with the newest revision."""


def downgrade() -> None:
    """There is nothing before."""
