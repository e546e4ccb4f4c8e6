"""Makes the tables of a new database, and brings those of an older version up to date (Alembic)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from triplewire.errors import StoreError
from triplewire.store.database import create_tables

if TYPE_CHECKING:
    from triplewire.store.database import Database

MIGRATIONS = Path(__file__).parent / "migrations"


def bring_up_to_date(database: Database) -> None:
    """Make or change the tables, all or nothing; other processes wait meanwhile. Raises `StoreError` where the
    database is of a newer Triplewire, or of another program."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    known = ScriptDirectory.from_config(config)
    with database.engine.begin() as connection:
        if not database.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(7_461_001, 2)))
        config.attributes["connection"] = connection
        revision = MigrationContext.configure(connection).get_current_revision()
        if revision is None:
            names = sa.inspect(connection).get_table_names()
            if "subscriptions" in names or "publications" in names:
                raise StoreError("the database has tables of another program", remedy="give one of its own")
            create_tables(connection)
            command.stamp(config, "head")
        elif revision not in {script.revision for script in known.walk_revisions()}:
            raise StoreError(f"a newer Triplewire has written it (revision {revision})", remedy="install that version")
        elif revision != known.get_current_head():
            command.upgrade(config, "head")
