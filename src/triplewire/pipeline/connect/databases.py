"""Databases behind JDBC, with the drivers of Spark's JVM: tables of matches and dead letters, written once.

The rows of a micro-batch go to a staging table, from all tasks at once. One transaction removes those of an earlier try
of it, takes those over that are not there yet, and drops the staging table. What is there is known by stream,
micro-batch and identity, the primary key. So each row is there once, wherever the process before was killed.

The SQL is standard but for the types of a table that has to be made, which are those of PostgreSQL. For another
database, make the tables first, with the columns of `triplewire.notify.rows.TABLES`.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.errors import Refusal, StoreError, TriplewireError
from triplewire.net.addresses import JDBC, SQLITE, Address, sqlite_path
from triplewire.notify.rows import KEY, TABLES, Part
from triplewire.pipeline.connect.sink_rows import SCHEMAS, errors_of, rows_of, when_stopped, without_nul
from triplewire.pipeline.rows import columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PACKAGES = "org.postgresql:postgresql:42.7.8"
POSTGRESQL = "jdbc:postgresql:"
DRIVERS = {POSTGRESQL: "org.postgresql.Driver"}
_OF_POSTGRESQL = {"socketTimeout": "3600", "tcpKeepAlive": "true"}  # a statement about many rows takes long
_BATCH = 1_000  # rows that go to the database together
_PATIENCE = "SET lock_timeout = '60s'"  # that a statement waits for a lock of another program
_NO_TABLE = "42P01"  # PostgreSQL's SQLSTATE "undefined_table"
_AS_INSTANT = "TIMESTAMP WITH TIME ZONE"


def options(target: Address, **settings: str) -> dict[str, str]:
    """What Spark's JDBC source and sink need to reach a database."""
    driver = next((driver for start, driver in DRIVERS.items() if target.url.startswith(start)), "")
    usual = _OF_POSTGRESQL if is_postgresql(target) else {}
    return {"url": target.url, **({"driver": driver} if driver else {}), **usual, **target.settings, **settings}


def options_of_reading(target: Address, **settings: str) -> dict[str, str]:
    """The same for reading rows, so that it does not wait long for a lock."""
    waiting = {"sessionInitStatement": _PATIENCE} if is_postgresql(target) else {}
    return {**waiting, **options(target, **settings)}


def is_postgresql(target: Address) -> bool:
    """Is it known how this database speaks?"""
    return target.url.startswith(POSTGRESQL)


def database_errors(target: Address) -> AbstractContextManager[None]:
    """Turns what a database or its driver says into an `UnavailableError`."""
    return errors_of(target, "the database cannot be used", PACKAGES)


def staging_table(table: str, stream: str) -> str:
    """The staging table of a stream for a table, in the same schema: no longer than the 63 bytes that PostgreSQL takes,
    which cuts a longer name, perhaps to the name of another table."""
    schema, dot, _ = table.rpartition(".")
    digest = hashlib.sha256(f"{stream} {table}".encode()).hexdigest()
    return f"{schema}{dot}triplewire_staging_{digest[:32]}"


class JdbcSink:
    """A table of matches or of dead letters: each row once."""

    def __init__(self, target: Address, kind: str) -> None:
        self._target = target
        self._kind = kind
        self._table = target.name

    def __str__(self) -> str:
        return str(self._target)

    def check(self, spark: SparkSession, stream: str, stop: threading.Event | None = None) -> None:
        """Make the table where it is not there. Raises `TriplewireError`, also where rows cannot be written: the table
        has other columns or types, the user may not, or another program keeps it locked."""
        stop = stop or threading.Event()
        with database_errors(self._target), _connection(spark, self._target, stop=stop) as (run, quoted):
            from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types

            try:
                run(f"SELECT 1 FROM {self._table} WHERE 1 = 0")
            except Py4JJavaError as error:
                if is_postgresql(self._target) and error.java_exception.getSQLState() != _NO_TABLE:
                    raise
                types = ", ".join(f"{quoted(name)} {kind}" for name, kind in TABLES[self._kind].items())
                key = ", ".join(map(quoted, KEY))
                run(f"CREATE TABLE {self._table} ({types}, PRIMARY KEY ({key}))")
        none = rows_of(spark.createDataFrame([], columns_of(SCHEMAS[self._kind])), self._kind)
        # under a name of this stream's own: other runs may write to the table, and one that was killed left this one
        self.deliver(none, Part(f"{stream}-check", 0, self._kind, replaces=True, stop=stop))

    def deliver(self, rows: DataFrame, part: Part) -> list[Refusal]:
        """Write the rows that are not there yet, all or none; with `Part.replaces`, in place of those before."""
        staging = staging_table(self._table, part.stream)
        named = rows.selectExpr(f"'{part.stream}' AS stream", f"{part.batch}L AS batch", *without_nul(part.kind))
        how = {"batchsize": str(part.rows_at_once(_BATCH)), **options(self._target, dbtable=staging)}
        connected = partial(_connection, rows.sparkSession, self._target, stop=part.stop)
        with database_errors(self._target):
            try:
                named.write.format("jdbc").options(**how).mode("overwrite").save()
                with connected(commit=False) as (run, quoted):
                    if part.replaces:
                        here = f"{quoted('stream')} = '{part.stream}' AND {quoted('batch')} = {part.batch}"
                        run(f"DELETE FROM {self._table} WHERE {here}")
                    run(self._insertion(staging, part.kind, quoted))
                    run(f"DROP TABLE {staging}")
            except Exception:
                with suppress(Exception), connected() as (run, _):  # as far as the database can still be reached
                    run(f"DROP TABLE {staging}")
                raise
        return []

    def _insertion(self, staging: str, kind: str, quoted: Any) -> str:
        names = {name: quoted(name) for name in TABLES[kind]}
        values = [
            f"CAST(s.{names[name]} AS {_AS_INSTANT})" if type_ == _AS_INSTANT else f"s.{names[name]}"
            for name, type_ in TABLES[kind].items()
        ]
        same = " AND ".join(f"t.{names[name]} = s.{names[name]}" for name in KEY)
        return (
            f"INSERT INTO {self._table} ({', '.join(names.values())}) SELECT {', '.join(values)} FROM {staging} s "
            f"WHERE NOT EXISTS (SELECT 1 FROM {self._table} t WHERE {same})"
        )


@contextmanager
def _connection(
    spark: SparkSession, target: Address, *, commit: bool = True, stop: threading.Event | None = None
) -> Iterator[Any]:
    """What runs a statement, and what quotes a name. Without `commit`, the block is one transaction. It is given up
    when another thread sets `stop`, and where PostgreSQL waits long for a lock."""
    jvm: Any = spark._jvm
    settings = jvm.java.util.HashMap()
    for name, value in options(target, dbtable=target.name).items():
        settings.put(name, value)
    of_spark = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(jvm.PythonUtils.toScalaMap(settings))
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(target.url)
    connection = dialect.createConnectionFactory(of_spark).apply(-1)
    closing = jvm.java.util.concurrent.ForkJoinPool.commonPool()
    try:
        with when_stopped(stop or threading.Event(), lambda: connection.abort(closing)):
            connection.setAutoCommit(commit)
            statement = connection.createStatement()
            if is_postgresql(target):
                statement.execute(_PATIENCE)
            yield statement.execute, dialect.quoteIdentifier
            if not commit:
                connection.commit()
    finally:
        connection.close()  # what is not committed is taken back


# --- subscriptions from a table: columns `id`, `language`, `query`, perhaps `prefixes`, `base`, as texts --------------

DEFAULT_TABLE = "subscriptions"
"""The table of an address that names none."""

NEEDED = ("id", "language", "query")
COLUMNS = (*NEEDED, "prefixes", "base")
_ROWS, _CHARACTERS = 1_000, 64 << 20  # of rows that are held at a time, at most


def fetched(target: Address, folder: Path, spark: Callable[[], SparkSession], longest: int) -> list[Path]:
    """The subscriptions of a table, as Parquet files in a folder that is made. Texts of more than `longest` characters,
    which make a row that is refused, are cut to one more, by a database of which it is known how. `spark` is asked for
    a session where only the JVM reaches the database. Raises `TriplewireError`, also where a column is missing that
    each subscription needs: no row of it can be one."""
    rows_at_once = min(max(_CHARACTERS // longest, 1), _ROWS)
    if target.kind == SQLITE:
        folder.mkdir()
        return [_from_sqlite(target, folder / "rows.parquet", longest, rows_at_once)]
    assert target.kind == JDBC

    def table(name: str) -> DataFrame:
        how = options_of_reading(target, dbtable=name, fetchsize=str(rows_at_once))
        return spark().read.format("jdbc").options(**how).load()

    with database_errors(target):
        if is_postgresql(target):  # Spark asks for the columns on a connection that waits for a lock for ever
            with _connection(spark(), target) as (run, _):
                run(f"SELECT 1 FROM {target.name} WHERE 1 = 0")
        rows = table(target.name)
        columns = _of_subscriptions(target, rows.columns)
        if is_postgresql(target):
            cut = ", ".join(f'left(CAST("{name}" AS text), {longest + 1}) AS "{name}"' for name in columns)
            rows = table(f"(SELECT {cut} FROM {target.name}) AS subscriptions")
        texts = [f"CAST(`{name}` AS string) AS `{name}`" for name in columns]
        rows.selectExpr(*texts).write.parquet(f"file://{folder}")
    return sorted(folder.glob("*.parquet"))


def renamed(refuse: Callable[[Refusal], None], names: dict[str, str]) -> Callable[[Refusal], None]:
    """A receiver of refusals that says the names of databases instead of those of the files written here."""

    def told(refusal: Refusal) -> None:
        for file, name in names.items():
            subject = name if refusal.subject == file else refusal.subject
            refusal = replace(refusal, subject=subject, where=refusal.where.replace(file, name))
        refuse(refusal)

    return told


def _from_sqlite(target: Address, file: Path, longest: int, rows_at_once: int) -> Path:
    path = Path(sqlite_path(target.url))
    if not path.is_file():  # SQLite would make it
        raise StoreError("there is no such file", source=target.url)
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
            description = connection.execute(f'SELECT * FROM "{target.name}" LIMIT 0').description
            names = _of_subscriptions(target, [entry[0] for entry in description])
            cut = ", ".join(f'substr("{name}", 1, {longest + 1})' for name in names)
            cursor = connection.execute(f'SELECT {cut} FROM "{target.name}"')
            schema = pa.schema([(name, pa.string()) for name in names])
            with pq.ParquetWriter(file, schema) as writer:
                while rows := cursor.fetchmany(rows_at_once):
                    columns = [pa.array(map(_text, column), pa.string()) for column in zip(*rows, strict=True)]
                    writer.write_table(pa.table(columns, schema=schema))
    except sqlite3.Error as error:
        raise StoreError(f"the database cannot be read: {error}", source=str(target)) from None
    return file


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return None if value is None else str(value)


def _of_subscriptions(target: Address, columns: Sequence[str]) -> list[str]:
    """The columns of a table that make subscriptions. Raises `TriplewireError` where it lacks a needed one."""
    if missing := [name for name in NEEDED if name not in columns]:
        what = f"the table has no column {' and no column '.join(missing)}, only {', '.join(columns)}"
        raise TriplewireError(what, source=str(target), remedy=f"columns: {', '.join(COLUMNS)}")
    return [name for name in COLUMNS if name in columns]
