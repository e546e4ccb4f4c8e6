"""Makes the tables of a new database, and brings those of an older version up to date (Alembic)."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from triplewire.errors import StoreError
from triplewire.store.tables import metadata

MIGRATIONS = Path(__file__).parent / "migrations"


def bring_up_to_date(connection: Connection) -> None:
    """Make or change the tables, all or nothing. Raises `StoreError` where the database is of a newer Triplewire, or of
    another program."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    known = ScriptDirectory.from_config(config)
    config.attributes["connection"] = connection
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None:
        names = sa.inspect(connection).get_table_names()
        if "subscriptions" in names or "publications" in names:
            raise StoreError("the database has tables of another program", remedy="give one of its own")
        metadata.create_all(connection)
        command.stamp(config, "head")
    elif revision not in {script.revision for script in known.walk_revisions()}:
        raise StoreError(f"a newer Triplewire has written it (revision {revision})", remedy="install that version")
    elif revision != known.get_current_head():
        command.upgrade(config, "head")
