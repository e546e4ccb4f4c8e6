"""`triplewire doctor`: what a service stands on, each fault with its remedy."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import typer

from triplewire.cli import output
from triplewire.cli.arguments import grouped
from triplewire.cli.report import one_line
from triplewire.cli.serve import database_of, folder_of, needs
from triplewire.cli.settings import GivenSettings
from triplewire.errors import TriplewireError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from triplewire.config import ServiceSettings

FINE, NOTE, FAULT = "fine", "note", "fault"
_LEAST_FREE = 1 << 30  # bytes of a disk
_MOST_SKEW = 1.0  # seconds between the clocks of this machine and of the database
_MOST_HOSTS, _SHOWN = 200, 5  # addresses that are looked up, and what is named of them
_LATE = 300.0  # seconds that an accepted publication waits
_EXPAT = (2, 8, 5)  # CVE-2026-93990 is mended there


class Finding(NamedTuple):
    """What was looked at, how it is, and what to do."""

    about: str
    state: str
    what: str
    remedy: str = ""


@grouped
def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="An object a line.")] = False, *, given: GivenSettings
) -> None:
    """
    \b
    triplewire doctor --data broker
    triplewire doctor --data broker --database postgresql://user@host/name --json

    Look at the libraries, the folder, the database, the feeds and the dead letters of a service, which may run
    meanwhile, and say what to do. Exit code 1: there is a fault; a note is none.
    """
    needs("serve", "sqlalchemy", "alembic")
    effective = given.effective()
    findings = list(_findings(effective.service, folder_of(effective, is_made=False)))
    with output.text_output(None) as stream:
        for finding in findings:
            if as_json:
                output.write_json(stream, finding._asdict())
            else:
                remedy = f"; {finding.remedy}" if finding.remedy else ""
                stream.write(one_line(f"{finding.state:6}{finding.about}: {finding.what}{remedy}") + "\n")
    if any(finding.state == FAULT for finding in findings):
        raise typer.Exit(1)


def _findings(settings: ServiceSettings, data: Path) -> Iterator[Finding]:
    from triplewire.store.database import Database

    yield from _of_libraries()
    yield from _of_folder(data)
    url = database_of(settings, data)
    if url.startswith("sqlite:") and not Path(url.removeprefix("sqlite:///")).exists():
        yield Finding("database", NOTE, "there is none yet", f"it is made by: triplewire serve --data {data}")
        return
    try:
        with Database.open(url, alone=False) as database, database.reading() as connection:
            for look in (_clock, _waiting, _feeds, _letters, _subscriptions):
                yield look(connection)
            yield _upstreams(connection, settings.upstream)
            yield _addresses(connection, settings.allow_private_addresses)
    except TriplewireError as error:
        yield Finding("database", FAULT, error.what, error.remedy or "start it, or mend --database")


def _of_libraries() -> Iterator[Finding]:
    from pyexpat import EXPAT_VERSION

    from triplewire.store.database import has_wal_bug
    from triplewire.store.sqlite_library import sqlite3

    what = f"version {sqlite3.sqlite_version}"
    if has_wal_bug(sqlite3.sqlite_version_info):
        remedy = "install pysqlite3, take a Python with SQLite 3.51.3 or newer, or PostgreSQL"
        yield Finding("SQLite", NOTE, f"{what} may lose commits in WAL mode: a slower journal is used", remedy)
    else:
        yield Finding("SQLite", FINE, what)
    version = tuple(int(part) for part in EXPAT_VERSION.removeprefix("expat_").split("."))
    if version < _EXPAT:
        what = (
            f"version {EXPAT_VERSION.removeprefix('expat_')} has known faults: documents are parsed in a process apart"
        )
        yield Finding("Expat", NOTE, what, "take a Python with Expat 2.8.5 or newer")
    else:
        yield Finding("Expat", FINE, f"version {EXPAT_VERSION}")


def _of_folder(data: Path) -> Iterator[Finding]:
    if not data.is_dir():
        yield Finding("folder", NOTE, f"{data} is not there", "it is made by: triplewire serve, or token create")
        return
    if not os.access(data, os.W_OK | os.X_OK):
        yield Finding("folder", FAULT, f"{data} cannot be written", "give it to the user of the service: chown")
    elif stat.S_IMODE(data.stat().st_mode) & 0o077:
        yield Finding("folder", NOTE, f"others of this machine may look into {data}", f"chmod 700 {data}")
    else:
        yield Finding("folder", FINE, f"{data} is its own")
    free = shutil.disk_usage(data).free
    what = f"{free / 1e9:,.1f} GB are free"
    yield Finding("disk", FINE, what) if free >= _LEAST_FREE else Finding("disk", FAULT, what, "make room")


def _clock(connection: Connection) -> Finding:
    import sqlalchemy as sa

    if connection.dialect.name == "sqlite":
        return Finding("clock", FINE, "that of this machine")
    begun = time.time()
    there = float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    skew = max(there - time.time(), begun - there, 0.0)
    what = f"the database is {skew:.1f} s off"
    if skew > _MOST_SKEW:
        return Finding("clock", FAULT, what, "have both follow NTP: leases and expiry go by these clocks")
    return Finding("clock", FINE, what)


def _waiting(connection: Connection) -> Finding:
    import sqlalchemy as sa

    from triplewire.store.tables import publications

    table = publications
    here = sa.select(sa.func.count(), sa.func.min(table.c.received)).where(table.c.state == "accepted")
    count, oldest = connection.execute(here).one()
    what = f"{count:,} publications wait to be matched"
    if count and time.time() - oldest > _LATE:
        remedy = "is a service running? Its log says why it does not match"
        return Finding("matching", FAULT, f"{what}, the oldest for {time.time() - oldest:,.0f} s", remedy)
    return Finding("matching", FINE, what)


def _feeds(connection: Connection) -> Finding:
    import sqlalchemy as sa

    from triplewire.store.tables import sources

    rows = connection.execute(sa.select(sources.c.id, sources.c.state)).all()
    broken = [row.id for row in rows if json.loads(row.state or "{}").get("failures", 0) >= 3]
    if broken:
        named = ", ".join(broken[:_SHOWN]) + (" ..." if len(broken) > _SHOWN else "")
        return Finding("feeds", FAULT, f"{len(broken)} of {len(rows)} fail: {named}", "look at them: GET /sources")
    return Finding("feeds", FINE, f"{len(rows):,} are there")


def _upstreams(connection: Connection, urls: Sequence[str]) -> Finding:
    from triplewire.broker.network.links import states_of

    states = {url: state for url, state in states_of(connection).items() if url in {name.rstrip("/") for name in urls}}
    wrong = {url: f"{count:,} roots are suspended" for url, state in states.items() if (count := state["suspended"])}
    wrong |= {url: state["reason"] for url, state in states.items() if state["failures"]}
    if wrong:
        named = "; ".join(f"{url}: {reason}" for url, reason in list(wrong.items())[:_SHOWN])
        remedy = "is it running, and upstream_token right? GET /subscriptions there says why some are suspended"
        return Finding("upstreams", FAULT, f"{len(wrong)} of {len(states)} fail: {named}", remedy)
    roots = sum(state["roots"] for state in states.values())
    return Finding("upstreams", FINE, f"{len(states):,} with {roots:,} roots" if states else "none")


def _addresses(connection: Connection, allow_private: bool) -> Finding:
    """Of the hosts of webhooks: which of them may not be asked, or have no address."""
    import sqlalchemy as sa

    from triplewire.net.guard import checked_addresses, target_of
    from triplewire.store.tables import targets

    here = sa.select(targets.c.address).where(targets.c.kind == "webhook", targets.c.state == "active").distinct()
    refused: dict[str, str] = {}
    for url in connection.execute(here.limit(_MOST_HOSTS)).scalars():
        try:
            asked = target_of(url, allow_private)
            checked_addresses(asked.host, asked.port, allow_private=allow_private, seconds=5.0)
        except (ValueError, TriplewireError) as error:
            refused[urlsplit(url).hostname or ""] = str(error)
    if refused:
        named = "; ".join(f"{host}: {reason}" for host, reason in list(refused.items())[:_SHOWN])
        remedy = "change them, or set allow_private_addresses where they lie in your own network"
        return Finding("webhooks", FAULT, f"{len(refused)} hosts are not asked: {named}", remedy)
    return Finding("webhooks", FINE, "their hosts have addresses that may be asked")


def _letters(connection: Connection) -> Finding:
    import sqlalchemy as sa

    from triplewire.store.tables import deliveries, publications

    def count(table: Any, state: str) -> int:
        here = sa.select(sa.func.count()).select_from(table).where(table.c.state == state)
        return int(connection.execute(here).scalar_one())

    dead, refused = count(deliveries, "dead"), count(publications, "refused")
    if dead or refused:
        what = f"{dead:,} deliveries and {refused:,} publications are given up"
        return Finding("dead letters", FAULT, what, "look at them: triplewire deadletter list")
    return Finding("dead letters", FINE, "none")


def _subscriptions(connection: Connection) -> Finding:
    import sqlalchemy as sa

    from triplewire.store.tables import subscriptions

    here = sa.select(subscriptions.c.state, sa.func.count()).group_by(subscriptions.c.state)
    states = {row[0]: row[1] for row in connection.execute(here)}
    what = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items())) or "none"
    if states.get("suspended"):
        return Finding("subscriptions", NOTE, what, "GET /subscriptions says why some are suspended")
    return Finding("subscriptions", FINE, what)
