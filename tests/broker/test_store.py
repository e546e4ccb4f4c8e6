"""What a broker asks of its database, held for SQLite and PostgreSQL by the same tests."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import ReflectedColumn

from triplewire.errors import ArgumentError, BusyError, StoreError, TriplewireError, UnavailableError
from triplewire.store.database import Database, has_wal_bug, insert_rows, inserted_number, now
from triplewire.store.tables import changes, facts, metadata, terms, tokens
from waiting import until

HOLDER = """
import sys, threading
from triplewire.store.database import Database
database = Database.open(sys.argv[1])
print(database.alone_at("matching", "the one before"), flush=True)
threading.Event().wait()
"""


def keep(name: str, value: str = "") -> Callable[[Connection], None]:
    """A write of a fact."""

    def work(connection: Connection) -> None:
        connection.execute(facts.insert().values(name=name, value=value))

    return work


def kept(database: Database) -> set[str]:
    """The names of all facts."""
    with database.reading() as connection:
        return set(connection.execute(sa.select(facts.c.name)).scalars())


@contextmanager
def under_way(database: Database) -> Iterator[None]:
    """A write that began before the block, and ends behind it: what is begun meanwhile waits."""
    entered, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        entered.set()
        assert go_on.wait(300)

    first = database.begin(slow)
    assert entered.wait(300)
    try:
        yield
    finally:
        go_on.set()
        first.result(300)


# --- writing ---------------------------------------------------------------------------------------------------------


def test_what_a_database_refuses_of_many_rows_is_an_error_of_ours(database_url: str) -> None:
    with Database.open(database_url) as database:
        with pytest.raises(StoreError, match="the database cannot be used"):
            database.write(lambda connection: insert_rows(connection, facts, [("a", ""), ("a", "")]))
        assert "a" not in kept(database)


def test_writes_that_wait_share_a_commit(database_url: str) -> None:
    with Database.open(database_url) as database:
        with under_way(database):
            before = database.commits
            waiting = [database.begin(keep(f"fact {number}")) for number in range(200)]
        for write in waiting:
            write.result(300)
        assert database.commits == before + 2
        assert len(kept(database)) == 200


def test_a_write_that_fails_takes_no_other_with_it(database_url: str) -> None:
    with Database.open(database_url) as database:

        def fails(connection: Connection) -> None:
            keep("half of it")(connection)
            raise ValueError("on purpose")

        with under_way(database):
            given = keep("before"), fails, keep("after"), keep("before")
            before, failing, after, twice = map(database.begin, given)
        for write in (before, after):
            write.result(300)
        with pytest.raises(ValueError, match="on purpose"):
            failing.result(300)
        with pytest.raises(StoreError):
            twice.result(300)
        assert kept(database) == {"before", "after"}
        with pytest.raises(ValueError, match="on purpose"):
            database.write(fails)
        assert kept(database) == {"before", "after"}


def test_a_caller_that_gives_up_stops_no_other(database_url: str) -> None:
    with Database.open(database_url) as database:
        with under_way(database):
            assert database.begin(keep("given up")).cancel()
        database.write(keep("after"))
        assert kept(database) == {"after"}


@pytest.mark.parametrize(("name", "value"), [("a lone surrogate", "\ud800"), ("a surrogate in pairs", "\ud83d\ude00")])
def test_what_cannot_be_kept_is_refused_as_an_argument(database_url: str, name: str, value: str) -> None:
    with Database.open(database_url) as database:
        with pytest.raises(ArgumentError):
            database.write(keep(name, value))
        with pytest.raises(ArgumentError), database.reading() as connection:
            connection.execute(sa.select(changes).where(changes.c.number > 2**64)).all()
        database.write(keep(name))


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
def test_what_is_too_large_for_an_index_takes_no_other_with_it(database_url: str) -> None:
    with Database.open(database_url) as database:
        with under_way(database):
            too_large, after = database.begin(keep(secrets.token_hex(5_000))), database.begin(keep("after"))
        after.result(300)
        with pytest.raises(ArgumentError):
            too_large.result(300)
        with pytest.raises(ArgumentError):
            database.write(keep(secrets.token_hex(5_000)))
        assert kept(database) == {"after"}


def test_who_writes_after_the_end_is_told(database_url: str) -> None:
    with Database.open(database_url) as database:
        database.write(keep("before"))
    with pytest.raises(UnavailableError):
        database.write(keep("after"))
    with Database.open(database_url) as database:
        assert kept(database) == {"before"}


def test_errors_show_no_values(database_url: str) -> None:
    secret = b"\x00this is a secret"
    row = {"digest": secret, "owner": "ann", "created": now()}
    with Database.open(database_url) as database:
        database.write(lambda connection: connection.execute(tokens.insert().values(row)))
        with pytest.raises(StoreError) as raised:
            database.write(lambda connection: connection.execute(tokens.insert().values(row)))
        cause: BaseException | None = raised.value
        while cause is not None:
            assert "this is a secret" not in str(cause)
            cause = cause.__cause__


# --- cursors----------------------------------------------------------------------------------------------------

Accept = Callable[[Database, Callable[[Connection], None]], None]


def naively(database: Database, work: Callable[[Connection], None]) -> None:
    """Write as a program does that thinks of nobody else."""
    with database.engine.begin() as connection:
        work(connection)


def skipped(url: str, accept: Accept, patience: float) -> int:
    """How many rows a reader misses who asks for what comes behind the last number, while others write. The first of
    them commits when a later number was read, or else after `patience` seconds."""
    writers, each = 4, 40
    last, seen, written, begun, is_overtaken = 0, 0, threading.Event(), list[int](), threading.Event()
    with Database.open(url) as watching:
        others = [watching] * writers if watching.is_sqlite else [Database.open(url) for _ in range(writers)]

        def write_some(place: int) -> None:
            def work(connection: Connection) -> None:
                begun.append(number := inserted_number(connection, changes, {"subscription": place}))
                if begun[0] == number:
                    is_overtaken.wait(patience)
                time.sleep(0.001 * (place % 3))  # a transaction takes as long as it takes

            for _ in range(each):
                accept(others[place], work)

        threads = [threading.Thread(target=write_some, args=(place,)) for place in range(writers)]
        for thread in threads:
            thread.start()
        while True:
            is_over = written.is_set()
            with watching.reading() as connection:
                numbers = connection.execute(sa.select(changes.c.number).where(changes.c.number > last)).scalars().all()
            last, seen = max(numbers, default=last), seen + len(numbers)
            if begun and last > begun[0]:
                is_overtaken.set()
            if is_over:
                break
            if not any(thread.is_alive() for thread in threads):
                written.set()
        for database in others if not watching.is_sqlite else []:
            database.close()
    return writers * each - seen


def test_who_reads_behind_a_number_misses_nothing(database_url: str) -> None:
    assert skipped(database_url, lambda database, work: database.write(work), 0.5) == 0


def test_of_naive_writers_a_reader_misses_some(new_database: Callable[[], str]) -> None:
    """The test above would see it: numbers of PostgreSQL are given before, and not in the order of, commits."""
    url = new_database()
    if url.startswith("sqlite"):
        pytest.skip("a SQLite file has one writer at a time anyway")
    assert skipped(url, naively, 300) > 0


# --- one process at a time -------------------------------------------------------------------------------------------


def test_a_work_goes_on_elsewhere_after_a_kill(database_url: str) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, database_url], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "1"
        if database_url.startswith("sqlite"):
            with pytest.raises(BusyError, match="another process"):
                Database.open(database_url)
        else:
            with Database.open(database_url) as database:
                assert database.alone_at("matching", "the next one") is None
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait(300)
    with Database.open(database_url) as database:
        end, term = time.monotonic() + 300, None
        while term is None and time.monotonic() < end:
            term = database.alone_at("matching", "the next one")
        assert term == 2
        with pytest.raises(BusyError):
            database.write(lambda connection: database.check_term(connection, "matching", 1))
        database.write(lambda connection: database.check_term(connection, "matching", 2))


def test_who_has_a_work_may_take_it_again(database_url: str) -> None:
    with Database.open(database_url) as database:
        assert [database.alone_at("matching", "this one") for _ in range(3)] == [1, 2, 3]


def test_a_work_whose_session_was_ended_is_free(server: str, database_url: str) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("a lock of a SQLite file has no session")
    import psycopg

    with Database.open(database_url) as first, Database.open(database_url) as second:
        assert first.alone_at("matching", "first") == 1
        with psycopg.connect(server, autocommit=True) as administrator:
            locks = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 1"
            administrator.execute(f"SELECT pg_terminate_backend(pid) FROM ({locks}) AS holders")
            end, term = time.monotonic() + 300, None
            while term is None and time.monotonic() < end:
                term = second.alone_at("matching", "second")
        assert term == 2
        with pytest.raises(BusyError):
            first.write(lambda connection: first.check_term(connection, "matching", 1))
        with pytest.raises(UnavailableError):
            first.alone_at("matching", "first")
        assert first.alone_at("matching", "first") is None


# --- versions --------------------------------------------------------------------------------------------------------


def test_the_tables_are_stamped_and_stay(database_url: str) -> None:
    with Database.open(database_url) as database:
        database.write(keep("a fact"))
        with database.reading() as connection:
            first = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars().all()
    with Database.open(database_url) as database:
        assert kept(database) == {"a fact"}
        with database.reading() as connection:
            assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars().all() == first
    assert len(first) == 1


UNDONE = (
    "DROP TABLE failing",
    "DROP TABLE revisions",
    "DROP INDEX subscriptions_id",
    "ALTER TABLE sources DROP COLUMN full_sync",
    "DROP TABLE origins",
    "UPDATE alembic_version SET version_num = '0001'",
)


def test_a_database_of_the_first_version_is_brought_up_to_date(database_url: str) -> None:
    with Database.open(database_url) as database:
        for text in UNDONE:
            database.write(lambda connection, text=text: connection.execute(sa.text(text)))
        database.write(keep("a fact"))
    with Database.open(database_url) as database:
        assert kept(database) == {"a fact"}
        with database.reading() as connection:
            there = sa.inspect(connection)
            for table in metadata.sorted_tables:
                assert {column["name"] for column in there.get_columns(table.name)} == set(table.columns.keys())
                indexes = {index["name"] for index in there.get_indexes(table.name)}
                assert indexes >= {index.name for index in table.indexes}, table.name


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
def test_who_runs_with_the_tables_before_goes_on(database_url: str) -> None:
    """Processes of several versions over one database: a newer one brings the tables up to date while older ones read
    and write, so it takes nothing away, and fills what they do not know of."""

    def columns() -> dict[str, dict[str, ReflectedColumn]]:
        with sa.create_engine(database.engine.url).connect() as connection:
            there = sa.inspect(connection)
            return {name: {each["name"]: each for each in there.get_columns(name)} for name in there.get_table_names()}

    with Database.open(database_url) as database:
        for text in UNDONE:
            database.write(lambda connection, text=text: connection.execute(sa.text(text)))
        before = columns()
        with Database.open(database_url) as newer:
            newer.write(keep("of the newer one"))
            database.write(keep("of the older one"))
            assert kept(database) == kept(newer) == {"of the newer one", "of the older one"}
        after = columns()
    for table, known in before.items():
        kinds = {name: (str(column["type"]), column["nullable"]) for name, column in known.items()}
        assert kinds.items() <= {n: (str(c["type"]), c["nullable"]) for n, c in after[table].items()}.items(), table
        for name in after[table].keys() - known.keys():
            assert after[table][name]["nullable"] or after[table][name]["default"] is not None, f"{table}.{name}"


def test_a_database_of_a_newer_version_is_left_alone(database_url: str) -> None:
    with Database.open(database_url) as database:
        database.write(lambda connection: connection.execute(sa.text("UPDATE alembic_version SET version_num = 'x9'")))
    with pytest.raises(StoreError, match="newer"):
        Database.open(database_url)
    with pytest.raises(StoreError, match="newer"):  # and the lock is free
        Database.open(database_url)


def test_a_database_of_another_program_is_left_alone(database_url: str) -> None:
    url = database_url.replace("postgresql:", "postgresql+psycopg:")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE subscriptions (mine INTEGER)"))
    engine.dispose()
    with pytest.raises(StoreError, match="another program"):
        Database.open(database_url)


def test_many_processes_make_the_tables_at_once(new_database: Callable[[], str]) -> None:
    url = new_database()
    if url.startswith("sqlite"):
        pytest.skip("a SQLite file has one process")
    opened: list[Database | TriplewireError] = []

    def open_it() -> None:
        try:
            opened.append(Database.open(url))
        except TriplewireError as error:
            opened.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [type(each) for each in opened] == [Database] * 6
    for each in opened:
        assert isinstance(each, Database)
        each.close()


@pytest.mark.parametrize(
    ("version", "has_it"),
    [
        ((3, 40, 1), True), ((3, 44, 5), True), ((3, 44, 6), False), ((3, 45, 0), True), ((3, 50, 6), True),
        ((3, 50, 7), False), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 52, 0), False), ((4, 0, 0), False),
    ],
)  # fmt: skip
def test_which_sqlite_may_lose_commits(version: tuple[int, ...], has_it: bool) -> None:
    assert has_wal_bug(version) is has_it


def test_the_journal_is_one_that_loses_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    url = f"sqlite:///{tmp_path / 'broker.db'}"
    with Database.open(url, warn=said.append) as database, database.reading() as connection:
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar()
        version = tuple(map(int, connection.exec_driver_sql("SELECT sqlite_version()").scalar_one().split(".")))
    assert (journal, len(said)) == (("truncate", 1) if has_wal_bug(version) else ("wal", 0))
    assert synchronous == 2, "FULL"


@pytest.mark.parametrize("url", ["mysql://host/name", "postgresql://test@127.0.0.1:1/none"])
def test_a_database_that_cannot_be_had(url: str) -> None:
    with pytest.raises((StoreError, UnavailableError)):
        Database.open(url)


def test_terms_are_never_given_twice(database_url: str) -> None:
    """Also where the process before has ended and left nothing in memory."""
    given = []
    for _ in range(3):
        with Database.open(database_url) as database:
            given.append(until(lambda database=database: database.alone_at("matching", str(os.getpid()))))
            with database.reading() as connection:
                assert connection.execute(sa.select(sa.func.count()).select_from(terms)).scalar() == 1
    assert given == [1, 2, 3]
