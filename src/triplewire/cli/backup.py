"""`triplewire backup` and `restore`: a copy of the database of a service, and what is done when it is put back."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli.arguments import check_files, file_argument, grouped
from triplewire.cli.output import whole_file
from triplewire.cli.report import say
from triplewire.cli.serve import database_of, folder_of, needs
from triplewire.cli.settings import GivenSettings
from triplewire.errors import StoreError
from triplewire.store.sqlite_library import sqlite3

_SQLITE = "sqlite:///"


@grouped
def backup_command(
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="Where the copy goes.")],
    *,
    given: GivenSettings,
) -> None:
    """
    \b
    triplewire backup --data broker --output broker-monday.db

    Copy the SQLite database of a service, which may run meanwhile: all that was committed when it ends. Keep the file
    `secret` of the folder beside it: addresses of feeds are made with it. PostgreSQL has pg_dump.
    """
    effective = given.effective()
    url = database_of(effective.service, folder_of(effective, is_made=False))
    if not url.startswith(_SQLITE):
        raise typer.BadParameter("PostgreSQL has its own: pg_dump", param_hint="--database")
    file = url.removeprefix(_SQLITE)
    try:
        with (
            whole_file(output) as part,
            closing(sqlite3.connect(part)) as copy,
            closing(sqlite3.connect(f"{Path(file).as_uri()}?mode=ro", uri=True, timeout=60)) as source,
        ):
            source.backup(copy, pages=4_096)
    except sqlite3.Error as error:
        raise StoreError(f"it cannot be copied: {error}", source=file) from None
    say(f"written to {output}")


@grouped
def restore_command(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", parser=file_argument, help="What `triplewire backup` wrote.")
    ] = None,
    *,
    given: GivenSettings,
) -> None:
    """
    \b
    triplewire restore broker-monday.db --data broker
    triplewire restore --data broker --database postgresql://user@host/name    # after pg_restore

    Put a copy in the place of the database of a service that is not running. What came after the copy is gone; events
    to come have numbers that were never given, so that who has read further than the copy misses none of them.
    """
    needs("serve", "sqlalchemy", "alembic")
    from triplewire.broker.events.event_log import skip_numbers
    from triplewire.store.database import Database

    effective = given.effective()
    data = folder_of(effective)
    url = database_of(effective.service, data)
    if file is not None:
        if not url.startswith(_SQLITE):
            raise typer.BadParameter("PostgreSQL has its own: pg_restore; then this without FILE", param_hint="FILE")
        check_files([file])
        with Database.open(url, warn=say):  # nobody serves it
            _put(file, Path(url.removeprefix(_SQLITE)))
    with Database.open(url, warn=say) as database:
        database.write(skip_numbers)
    say("put back; events to come have new numbers")


def _put(file: Path, place: Path) -> None:
    """The copy in the place of the database. Raises `StoreError` where it is no whole database."""
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
            (said,) = source.execute("PRAGMA integrity_check").fetchone()
            if said != "ok":
                raise sqlite3.DatabaseError(said)
            with closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
    except sqlite3.Error as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"it is no whole database: {error}", source=str(file)) from None
    for suffix in ("-wal", "-shm", "-journal"):
        place.with_name(place.name + suffix).unlink(missing_ok=True)
    os.replace(part, place)
