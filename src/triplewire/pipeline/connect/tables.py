"""Subscriptions from a table of a database: columns `id`, `language`, `query`, perhaps `prefixes`, `base`, as texts.

They are written to a Parquet file, which is read as any file of subscriptions is: so each row that is wrong is refused
alone. `prefixes` is a JSON object.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.errors import Refusal, TriplewireError
from triplewire.net.addresses import JDBC, SQLITE, Address, sqlite_path
from triplewire.pipeline.connect.jdbc import database_errors, is_postgresql, options_of_reading, refuse_locked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        options = options_of_reading(target, dbtable=name, fetchsize=str(rows_at_once))
        return spark().read.format("jdbc").options(**options).load()

    with database_errors(target):
        refuse_locked(spark(), target)
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
        raise TriplewireError("there is no such file", source=target.url)
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
                    columns = [list(map(_text, column)) for column in zip(*rows, strict=True)]
                    writer.write_table(pa.table([pa.array(column, pa.string()) for column in columns], schema=schema))
    except sqlite3.Error as error:
        raise TriplewireError(f"the database cannot be read: {error}", source=str(target)) from None
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
