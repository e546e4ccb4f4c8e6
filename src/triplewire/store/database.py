"""The database of a broker: SQLite or PostgreSQL, read by many threads and written by one.

    with Database.open("sqlite:///data/broker.db") as database:
        number = database.write(lambda connection: connection.execute(insert(...)).inserted_primary_key[0])
        with database.reading() as connection: ...

Writes of many threads share a commit: each runs in a savepoint of its own, and returns when all of them are committed
and synced (group commit). One commit is under way at a time over all processes, so numbers of rows grow in the order of
commits: who reads behind a number misses nothing. A work that one process does at a time (`alone_at`) is guarded by an
advisory lock of PostgreSQL, or by the lock of the SQLite file, which one process has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

import sqlalchemy as sa
from filelock import FileLock, Timeout
from sqlalchemy.engine import Connection, Engine, Row, make_url
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoneFree

from triplewire.errors import ArgumentError, BusyError, StoreError, TriplewireError, UnavailableError, WriteError
from triplewire.store.sqlite_library import sqlite3
from triplewire.store.tables import terms

T = TypeVar("T")

DAY = 86_400.0  # seconds
_ADDRESSES = "write sqlite:///FILE or postgresql://USER@HOST/NAME"
MOST_AT_ONCE = 256  # writes that share a commit
_WAL_FIXED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))  # where a WAL of several connections loses no commits any more
_LOCK_SECONDS = 2.0
_DEADLOCK, _TOO_LARGE = "40P01", "54"  # appendix A of the manual of PostgreSQL
_MIGRATIONS = 20  # tries
_CLASS = 7_461_001  # of our advisory locks in PostgreSQL; the second number is that of the work
_WORKS = {"matching": 1, "migrating": 2, "writing": 3, "polling": 11, "network": 12}
PAUSE, LONG_PAUSE = 20.0, 600.0
"""Seconds between two statements of a transaction in PostgreSQL, after which the server ends it: in a broker, and in a
store of other tables, whose transactions compute, as a registry of metadata that parses all rules of a subscription."""
_SESSION = (
    "tcp_keepalives_idle=5",
    "tcp_keepalives_interval=5",
    "tcp_keepalives_count=3",
    "temp_buffers=64MB",
)
"""Of a session of PostgreSQL: what a process holds that has lost its network is free within 20 seconds. Memory of
temporary tables is taken as they grow; with the usual 8 MB, every tenth access reads a page again."""


def has_wal_bug(version: tuple[int, ...]) -> bool:
    """May this SQLite lose committed writes in WAL mode? (3.7.0 to 3.51.2; mended in 3.51.3, 3.50.7 and 3.44.6.)"""
    if version >= _WAL_FIXED[-1]:
        return False
    return not any(version[:2] == fixed[:2] and version >= fixed for fixed in _WAL_FIXED)


@dataclass
class _Write:
    work: Callable[[Connection], Any]
    done: Future[Any] = field(default_factory=Future)


class Database:
    """A database that is open. Make it with `open`."""

    def __init__(self, engine: Engine, lock: FileLock | None, warn: Callable[[str], None]) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.commits = 0
        self._lock = lock
        self._warn = warn
        self._queue: SimpleQueue[_Write | None] = SimpleQueue()
        self._queueing = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write_all, name="database", daemon=True)
        self._held: dict[str, Connection] = {}

    @classmethod
    def open(
        cls,
        url: str | sa.URL,
        *,
        warn: Callable[[str], None] = lambda text: None,
        alone: bool = True,
        tables: sa.MetaData | None = None,
        made: bool = True,
    ) -> Database:
        """Open a database, make its tables where there are none, and bring older ones up to date: those of a broker, or
        these `tables`.

        `url`: `sqlite:///FILE` or `postgresql://...`; for given tables also `spark://`, a directory. Without `alone`, a
        SQLite file may be served by another process meanwhile: for a look, or a row that no other process writes.
        Unless it may be `made`, the first of the given tables has to be there.
        Raises `BusyError` where another process has the SQLite file, `UnavailableError` where PostgreSQL does not
        answer, and `StoreError` where there is something else.
        """
        try:
            parsed = make_url(url)
        except (ValueError, SQLAlchemyError):  # what stands there may be a password
            raise StoreError("the address of the database cannot be read", remedy=_ADDRESSES) from None
        if not parsed.database and parsed.get_backend_name() != "postgresql":
            raise StoreError("the address names no database", source=parsed.render_as_string(), remedy=_ADDRESSES)
        lock: FileLock | None = None
        if not made and parsed.get_backend_name() != "postgresql" and not Path(parsed.database or "").exists():
            raise StoreError("there is no such store", source=parsed.render_as_string())
        if parsed.get_backend_name() == "sqlite":
            lock = _locked(Path(parsed.database or "")) if alone else None
            engine = _sqlite(parsed.render_as_string(hide_password=False), warn)
        elif parsed.get_backend_name() == "postgresql":
            engine = _postgres(parsed, PAUSE if tables is None else LONG_PAUSE)
        elif parsed.get_backend_name() == "spark":  # `pipeline.sql_dialect`, which whoever gives such a URL registers
            lock = _locked(Path(parsed.database or "", "served")) if alone else None
            engine = sa.create_engine(parsed, pool_use_lifo=True)
        else:
            raise StoreError(f"{parsed.get_backend_name()} is no database of a broker", remedy=_ADDRESSES)
        database = cls(engine, lock, warn)
        try:
            with errors_of_database(parsed.render_as_string()):
                if tables is None:
                    database._migrate()
                elif made or sa.inspect(engine).has_table(next(iter(tables.tables))):
                    database.make(tables)
                else:
                    raise StoreError("it holds another store, or none", source=parsed.render_as_string())
        except BaseException:
            database._release()
            raise
        database._thread.start()
        return database

    def _migrate(self) -> None:
        """Make the tables of a broker, or bring them up to date. Other processes write nothing meanwhile. One that
        reads several tables may wait for this one while this one waits for it: then PostgreSQL ends one of the two."""
        from triplewire.store.migrate import bring_up_to_date

        for is_last in (*[False] * _MIGRATIONS, True):
            try:
                with self.engine.begin() as connection:
                    alone_in(connection, "migrating")
                    alone_in(connection, "writing")
                    bring_up_to_date(connection)
                return
            except DBAPIError as error:
                if is_last or _code(error) != _DEADLOCK:
                    raise

    def make(self, tables: sa.MetaData) -> None:
        """Make the tables that are not there; other processes wait meanwhile. Raises `StoreError` where those that are
        there have other columns."""
        with self._writing() as connection, connection.begin():
            alone_in(connection, "migrating")
            tables.create_all(connection)
            if connection.dialect.name != "spark":
                _check_columns(connection, tables)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Do what waits to be written, and close."""
        with self._queueing:
            self._is_closed = True
            self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()
        self._release()

    def _release(self) -> None:
        for connection in self._held.values():
            with suppress(SQLAlchemyError):
                connection.close()
        self.engine.dispose()
        if self._lock is not None:
            self._lock.release()

    # --- reading and writing -----------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees what is committed. Nothing is written through it. Within it, wait for no write and
        begin no other reading: where SQLite has no WAL, a commit waits for the readers that there are, and new readers
        for the commit. Raises as `write` does."""
        with errors_of_database(""), self.engine.connect() as connection:
            yield connection
            if self.engine.dialect.name == "postgresql":
                connection.commit()  # with a rollback, psycopg has all statements of the connection planned anew
            else:
                connection.rollback()

    def rows(self, query: sa.Select[Any]) -> Sequence[Row[Any]]:
        """What a query finds."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def first(self, query: sa.Select[Any]) -> Row[Any] | None:
        """The first row that a query finds; None for none."""
        with self.reading() as connection:
            return connection.execute(query).first()

    def value(self, query: sa.Select[Any]) -> Any:
        """The first column of the first row that a query finds; None for none."""
        with self.reading() as connection:
            return connection.execute(query).scalar()

    def write(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, once all that it has written is committed and synced. Raises what `work` raises,
        `UnavailableError` where the database is away or closed, and `StoreError` where it cannot be written: then
        nothing of it is there."""
        written: T = self.begin(work).result()
        return written

    def execute(self, statement: sa.UpdateBase) -> int:
        """Write what one statement changes; returns how many rows."""
        return self.write(lambda connection: connection.execute(statement).rowcount)

    def begin(self, work: Callable[[Connection], T]) -> Future[T]:
        """The same without waiting."""
        write = _Write(work)
        with self._queueing:
            if self._is_closed:
                raise UnavailableError("the database is closed")
            self._queue.put(write)
        return write.done

    def _write_all(self) -> None:
        """Take all writes that wait, and commit them together."""
        ended = False
        while not ended:
            writes: list[_Write] = []
            following = self._queue.get()
            while following is not None:
                writes.append(following)
                if len(writes) == MOST_AT_ONCE or self._queue.empty():
                    break
                following = self._queue.get()
            ended = following is None
            writes = [write for write in writes if write.done.set_running_or_notify_cancel()]
            if writes:
                self._commit(writes)

    def _writing(self) -> Connection:
        return self.engine.connect().execution_options(is_writing=True)

    def _commit(self, writes: list[_Write]) -> None:
        """Run the writes and commit them; those that raise are left out. Where the commit itself fails, all fail."""
        results: list[tuple[_Write, Any]] = []
        failed: list[tuple[_Write, BaseException]] = []
        try:
            with errors_of_database(""), self._writing() as connection, connection.begin():
                alone_in(connection, "writing")
                for write in writes:
                    if len(writes) == 1:
                        results.append((write, write.work(connection)))
                        continue
                    try:
                        with connection.begin_nested():
                            results.append((write, write.work(connection)))
                    except OperationalError as error:
                        if _code(error)[:2] != _TOO_LARGE:
                            raise
                        failed.append((write, error))
                    except BaseException as error:
                        failed.append((write, error))
        except BaseException as error:
            for write in writes:
                write.done.set_exception(error)
            return
        self.commits += 1
        for write, result in results:
            write.done.set_result(result)
        for write, raised in failed:
            try:
                with errors_of_database(""):
                    raise raised
            except BaseException as error:
                write.done.set_exception(error)

    # --- work that one process does at a time ------------------------------------------------------------------------

    def alone_at(self, work: str, holder: str) -> int | None:
        """The number of the term in which this process does a work, or None while another one does it. Ask again and
        again: the process before may have been killed. `holder` is shown to people."""
        if not self.is_sqlite and not self._locks(work):  # a SQLite file has one process
            return None
        return self.write(lambda connection: _new_term(connection, work, holder))

    def _locks(self, work: str) -> bool:
        """Take the lock of a work, or keep it; it lasts as long as its session."""
        with errors_of_database(""):
            session = self._held.pop(work, None)
            if session is None:
                session = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            try:
                taken = session.execute(sa.select(sa.func.pg_try_advisory_lock(_CLASS, _WORKS[work]))).scalar_one()
            except BaseException:
                session.invalidate()
                session.close()
                raise
        if taken:
            self._held[work] = session
        else:
            session.close()
        return bool(taken)

    @staticmethod
    def check_term(connection: Connection, work: str, term: int) -> None:
        """Raises `BusyError` in a write where another process has taken the work over since."""
        now = connection.execute(sa.select(terms.c.term).where(terms.c.work == work).with_for_update()).scalar()
        if now != term:
            raise BusyError(f"another process has taken over {work}")


def _check_columns(connection: Connection, tables: sa.MetaData) -> None:
    columns = sa.inspect(connection).get_multi_columns(filter_names=list(tables.tables))
    there = {(table, column["name"]) for (_, table), described in columns.items() for column in described}
    if missing := {(table.name, column.name) for table in tables.sorted_tables for column in table.columns} - there:
        what = "another version of Triplewire has written it: table {} has no column {}".format(*min(missing))
        raise StoreError(what, remedy="use that version, or begin with an empty store")


def alone_in(connection: Connection, work: str) -> None:
    """Have other processes wait, until this transaction ends. One process at a time writes to other databases."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CLASS, _WORKS[work])))


def inserted_number(connection: Connection, table: sa.Table, values: Mapping[str, Any]) -> int:
    """Insert a row; returns its number."""
    key: Any = connection.execute(table.insert().values(values)).inserted_primary_key
    return int(key[0])


def inserted_numbers(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> Sequence[int]:
    """Insert many rows as `insert_rows` does; returns their numbers. What a row does not name is null."""
    if connection.dialect.name == "sqlite":
        first = highest(connection, table.c.number) + 1
        numbers: Sequence[int] = range(first, first + len(rows))
    else:
        of_column = sa.func.pg_get_serial_sequence(table.name, "number")
        each = sa.func.generate_series(1, len(rows)).table_valued("place")
        numbers = connection.execute(sa.select(sa.func.nextval(of_column)).select_from(each)).scalars().all()
    names = [column.name for column in table.columns][1:]
    insert_rows(connection, table, [(n, *map(row.get, names)) for n, row in zip(numbers, rows, strict=True)])
    return numbers


def insert_rows(connection: Connection, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert many rows of all columns of a table, in their order, as fast as the driver can."""
    if not rows:
        return
    names = ", ".join(column.name for column in table.columns)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(table.columns))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", list(rows))
        return
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "spark":
        driver.insert_rows(table.name, rows)
        return
    command, base = f"COPY {table.name} ({names}) FROM STDIN", connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(command) as copy:
            for row in rows:
                copy.write_row(row)
    except base as error:  # as SQLAlchemy would say it of a statement of its own
        raise DBAPIError.instance(command, (), error, base) from error


def begins_with(column: sa.ColumnElement[str], text: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Does a text begin so? (LIKE would take no notice of case in SQLite.)"""
    length = len(text) if isinstance(text, str) else sa.func.length(text)
    return sa.func.substr(column, 1, length) == text


def highest(connection: Connection, column: sa.Column[int]) -> int:
    """The highest number of a column; 0 where there is none."""
    return int(connection.execute(sa.select(sa.func.max(column))).scalar() or 0)


def fact(connection: Connection, facts: sa.Table, name: str) -> str | None:
    """What was stated under a name."""
    value: str | None = connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar()
    return value


def state(connection: Connection, facts: sa.Table, **values: str) -> None:
    """State facts, in the place of those of the same names."""
    connection.execute(facts.delete().where(facts.c.name.in_(values)))
    insert_rows(connection, facts, list(values.items()))


def made_once(database: Database, facts: sa.Table, name: str, make: Callable[[], str]) -> str:
    """What was stated under a name; where it was not yet, what is made now is stated."""

    def write(connection: Connection) -> str:
        value = fact(connection, facts, name) or make()
        state(connection, facts, **{name: value})
        return value

    with database.reading() as connection:
        value = fact(connection, facts, name)
    return value or database.write(write)


def _new_term(connection: Connection, work: str, holder: str) -> int:
    here = terms.c.work == work
    term = (connection.execute(sa.select(terms.c.term).where(here)).scalar() or 0) + 1
    connection.execute(terms.delete().where(here))
    connection.execute(terms.insert().values(work=work, term=term, holder=holder))
    return term


@contextmanager
def errors_of_database(name: str) -> Iterator[None]:
    """Turns errors of a driver into ours."""
    try:
        yield
    except TriplewireError:
        raise
    except NoneFree as error:
        raise BusyError("all connections to the database are in use", source=name) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise ArgumentError(f"the database cannot keep it: {error}", source=name) from error
    except DBAPIError as error:
        cause = " ".join(str(error.orig).split())
        raise _kind(error, cause)(f"the database cannot be used: {cause}", source=name) from error


def _kind(error: DBAPIError, cause: str) -> type[TriplewireError]:
    """Which of our errors it is. PostgreSQL says it by a code (appendix A of its manual): 22 what was given is wrong,
    54 it is too large, as a text of an index, 23 it contradicts what is there, 42 the statement is wrong, 53100 the
    disk is full; others are of the server."""
    code = _code(error)
    if isinstance(error, DataError) or code[:2] == _TOO_LARGE:  # as a text with U+0000
        return ArgumentError
    if isinstance(error.orig, sqlite3.Error):
        return BusyError if "locked" in cause else StoreError
    return StoreError if code == "53100" or code[:2] in ("23", "42") else UnavailableError


def _code(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _locked(file: Path) -> FileLock:
    """The lock of a SQLite file, for as long as the process lives. Raises `BusyError`, and `WriteError` where there can
    be no such file."""
    lock = FileLock(f"{file}.lock", thread_local=False)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        Path(lock.lock_file).touch()  # FileLock goes on trying where the file cannot be made
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout:
        what, remedy = "another process serves it", "end that, or use PostgreSQL, which several processes may serve"
        raise BusyError(what, source=str(file), remedy=remedy) from None
    except OSError as error:
        raise WriteError(f"it cannot be written: {error.strerror}", source=str(file)) from None
    return lock


def _postgres(url: sa.URL, pause: float) -> Engine:
    """An engine for PostgreSQL, whose commits are synced as the server does it."""
    settings = (*_SESSION, f"idle_in_transaction_session_timeout={round(pause * 1e3)}ms")
    options = " ".join(f"-c {setting}" for setting in settings)
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=12,
        pool_use_lifo=True,  # the connection that wrote last has temporary tables, and plans
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"options": options, "connect_timeout": 10},
    )


def _sqlite(url: str, warn: Callable[[str], None]) -> Engine:
    """An engine for SQLite whose commits are synced to the disk."""
    journal = "WAL"
    if has_wal_bug(sqlite3.sqlite_version_info):
        journal = "TRUNCATE"
        warn(
            f"SQLite {sqlite3.sqlite_version} may lose commits in WAL mode: a slower journal is used; "
            "3.51.3 or newer has it mended, and so has pysqlite3"
        )
    engine = sa.create_engine(
        url,
        module=sqlite3,
        connect_args={"timeout": 60, "check_same_thread": False},
        pool_size=12,
        pool_use_lifo=True,  # the connection that wrote last has the pages in its cache
        hide_parameters=True,
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # the driver begins no transactions of its own
        for pragma in (f"journal_mode={journal}", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # a transaction that reads and then writes would fail where another process has begun to write meanwhile
        is_writing = connection.get_execution_options().get("is_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")

    return engine


def now() -> float:
    """The time, in seconds since 1970."""
    return time.time()
