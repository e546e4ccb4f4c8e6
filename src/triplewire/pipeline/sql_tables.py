"""Tables of SQL in a directory, which Spark reads: versions of all of them, each published by one rename.

    DIR/versions/12.json      what the 12th version is made of; the highest number counts
    DIR/TABLE/….parquet       rows that a transaction has added; from time to time a folder that Spark has written anew
    DIR/TABLE/….gone.parquet  numbers of rows that a transaction has removed

What a transaction changes comes through this process, which reads documents and tells what changes: so it writes its
rows and the numbers of those that go, and nothing else. Each row has a number of its own (`ROW`), which none has
again, so what is removed needs no order. The newest rows are kept in memory, and Spark gets them with its queries;
`MOST_RECENT` of them become a file of the *base*, which Spark reads itself. Where rows that are gone, or files, become
many, Spark writes the base anew (*compaction*).
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire import crash, folders
from triplewire.engine.store.directory import hash_of
from triplewire.errors import BusyError, DamagedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW = "_row"
"""The column of the numbers of rows; no statement names it."""
MOST_RECENT = 50_000
"""Rows of a table that are kept in memory."""
MOST_FILES = 64
"""Files of a table that are read one by one; where there are more, they become one."""
MOST_GONE = 100_000
"""Rows of the base that are gone, before it is written anew."""
RETAINED = 8
"""So many of the newest versions stay, for those who read them meanwhile."""

_NO_ROWS = pa.chunked_array([], pa.int64())
_GONE = pa.schema([pa.field(ROW, pa.int64())])


@dataclass(frozen=True)
class Table:
    """A table as of some moment; it is never changed, only replaced. `base`: files and folders that Spark reads.
    `recent`: the other rows. `gone`: numbers of rows that count no longer. `files` and `gone_files` are where these two
    lie on disk. `following`: the number that the next row gets."""

    recent: pa.Table
    base: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    gone: pa.ChunkedArray = field(default_factory=lambda: _NO_ROWS)
    gone_files: tuple[str, ...] = ()
    following: int = 1

    @classmethod
    def empty(cls, columns: pa.Schema) -> Table:
        """A table of these columns without rows."""
        return cls(pa.schema([*columns, pa.field(ROW, pa.int64())]).empty_table())

    def with_rows(self, rows: pa.Table) -> Table:
        """With these rows, too, which have all columns in their order."""
        if not len(rows):
            return self
        numbers = pa.array(range(self.following, self.following + len(rows)), pa.int64())
        new = pa.table([*rows.columns, numbers], names=self.recent.schema.names).cast(self.recent.schema)
        return replace(
            self, recent=pa.concat_tables([self.recent, new]).combine_chunks(), following=self.following + len(rows)
        )

    def without(self, numbers: pa.ChunkedArray) -> Table:
        """Without the rows of these numbers."""
        if not len(numbers):
            return self
        stays = pc.invert(pc.is_in(self.recent[ROW], value_set=numbers))
        gone = pa.chunked_array([*self.gone.chunks, *numbers.chunks], pa.int64())
        return replace(self, recent=self.recent.filter(stays), gone=gone)

    def emptied(self) -> Table:
        """Without any row."""
        return replace(self.without(self.recent[ROW]), base=()) if self.base or len(self.recent) else self

    def frame(self, spark: SparkSession, directory: Path) -> DataFrame:
        """The rows as a data frame."""
        recent: DataFrame = spark.createDataFrame(self.recent)
        if not self.base:
            return recent
        rows = spark.read.schema(recent.schema).parquet(*(str(directory / path) for path in self.base))
        if len(self.gone):
            gone = spark.createDataFrame(pa.table({ROW: self.gone}))
            rows = rows.join(gone.hint("broadcast"), ROW, "left_anti").select(*recent.columns)
        return rows.unionAll(recent) if len(self.recent) else rows


Tables: TypeAlias = Mapping[str, Table]


class Directory:
    """A directory of tables. `tables` are those of the newest version, of this process or of another one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.tables: Tables = {}
        self._one_at_a_time = threading.RLock()  # readers and the writer of this process

    def look(self) -> Tables:
        """The tables of the newest version. Raises `DamagedError` where a file is not what was written."""
        (self.path / "versions").mkdir(parents=True, exist_ok=True)
        with self._one_at_a_time:
            if (newest := max(self._numbers(), default=0)) != self.number:
                self.tables = {name: self._read(entry) for name, entry in self._manifest(newest)["tables"].items()}
                self.number = newest
            return self.tables

    def publish(self, before: int, tables: Tables, spark: Callable[[], SparkSession]) -> None:
        """Write what has changed since version `before`, and publish it. Raises `BusyError` where another process has
        published one meanwhile. `spark` is asked for a session where a table is compacted."""
        with self._one_at_a_time:
            self._publish(before, tables, spark)

    def _publish(self, before: int, tables: Tables, spark: Callable[[], SparkSession]) -> None:
        known = self.tables
        changed = {name: table for name, table in tables.items() if table is not known.get(name)}
        if not changed:
            return
        with folders.alone(self.path):
            if max(self._numbers(), default=0) != before or before != self.number:
                raise BusyError("another process has written to it meanwhile", source=str(self.path))
            written = {name: self._written(name, table, known.get(name), spark) for name, table in changed.items()}
            now = {**tables, **written}
            content = {"form": 1, "tables": {name: _entry(table) for name, table in now.items()}}
            aside = self.path / "versions" / f".{before + 1}"
            with folders.on_disk(aside) as stream:
                stream.write(json.dumps({**content, "sha256": hash_of(content)}).encode())
            crash.point("spark.written")
            aside.rename(self._file(before + 1))
            folders.sync(self.path / "versions")
            self.tables, self.number = now, before + 1
            if any(table.base != known[name].base for name, table in written.items() if name in known):
                self._sweep()

    # --- files -------------------------------------------------------------------------------------------------------

    def _numbers(self) -> list[int]:
        return [int(file.stem) for file in (self.path / "versions").glob("[0-9]*.json")]

    def _file(self, number: int) -> Path:
        return self.path / "versions" / f"{number}.json"

    def _manifest(self, number: int) -> dict[str, Any]:
        file = self._file(number)
        try:
            content: dict[str, Any] = json.loads(file.read_bytes())
            if content.pop("sha256", "") != hash_of(content) or content["form"] != 1:
                raise ValueError("its SHA-256 differs")
        except (OSError, ValueError, LookupError, AttributeError) as error:
            remedy = f"restore it from a copy, or remove it: the version before ({number - 1}) counts then"
            raise DamagedError(f"it is not what was written: {error}", source=str(file), remedy=remedy) from error
        return content

    def _read(self, entry: Mapping[str, Any]) -> Table:
        schema = pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(entry["schema"])))
        try:
            gone = pa.concat_tables([_GONE.empty_table(), *self._tables(entry["gone"])])[ROW]
            recent = pa.concat_tables([schema.empty_table(), *self._tables(entry["files"])])
        except (OSError, pa.ArrowException) as error:
            remedy = "restore the directory from a copy"
            raise DamagedError(f"a file cannot be read: {error}", source=str(self.path), remedy=remedy) from error
        recent = recent.filter(pc.invert(pc.is_in(recent[ROW], value_set=gone)))
        base, files, gone_files = (tuple(entry[kind]) for kind in ("base", "files", "gone"))
        return Table(recent, base, files, gone, gone_files, entry["following"])

    def _tables(self, files: Iterable[str]) -> list[pa.Table]:
        return [pq.read_table(self.path / file) for file in files]

    def _written(self, name: str, table: Table, before: Table | None, spark: Callable[[], SparkSession]) -> Table:
        """The table with its new rows on disk."""
        (self.path / name).mkdir(exist_ok=True)
        first = before.following if before else 1
        gone = table.gone.filter(pc.less(table.gone, first))  # what was never on disk needs not be told
        table = replace(table, gone=gone)
        if len(table.base) > MOST_FILES or len(gone) > MOST_GONE:
            return self._compacted(name, table, spark())
        is_large = len(table.recent) > MOST_RECENT
        if is_large or max(len(table.files), len(table.gone_files)) >= MOST_FILES:
            gone = gone if table.base else _NO_ROWS
            table = replace(table, gone=gone, gone_files=self._gone(name, gone))
            added = (self._added(name, table.recent),)
            if is_large:
                return replace(table, recent=table.recent.schema.empty_table(), base=(*table.base, *added), files=())
            return replace(table, files=added)
        new = table.recent.filter(pc.greater_equal(table.recent[ROW], first))
        files = (*table.files, self._added(name, new)) if len(new) else table.files
        more = gone.slice(len(before.gone) if before else 0)
        return replace(table, files=files, gone_files=(*table.gone_files, *self._gone(name, more)))

    def _compacted(self, name: str, table: Table, spark: SparkSession) -> Table:
        """The same rows, written by Spark in the order of their first columns, so that it passes over most of a file
        that it asks for a few."""
        path = f"{name}/{secrets.token_hex(8)}"
        rows = table.frame(spark, self.path)
        rows.sort(*rows.columns[:2]).write.parquet(str(self.path / path))
        return Table(table.recent.schema.empty_table(), (path,), following=table.following)

    def _gone(self, name: str, numbers: pa.ChunkedArray) -> tuple[str, ...]:
        return (self._added(name, pa.table({ROW: numbers}), ".gone"),) if len(numbers) else ()

    def _added(self, name: str, rows: pa.Table, kind: str = "") -> str:
        path = f"{name}/{secrets.token_hex(8)}{kind}.parquet"
        with folders.on_disk(self.path / path) as stream:
            pq.write_table(rows, stream)
        return path

    def _sweep(self) -> None:
        """Remove old versions, and files that no version is made of. A process that was killed leaves such."""
        *old, _ = sorted(self._numbers())
        for number in old[: 1 - RETAINED]:
            self._file(number).unlink(missing_ok=True)
        needed: set[str] = set()
        for number in self._numbers():
            for entry in self._manifest(number)["tables"].values():
                needed |= {path for kind in ("base", "files", "gone") for path in entry[kind]}
        for name in self.tables:
            for file in (self.path / name).iterdir():
                if f"{name}/{file.name}" not in needed:
                    with suppress(OSError):
                        shutil.rmtree(file) if file.is_dir() else file.unlink()


def _entry(table: Table) -> dict[str, Any]:
    """A table as it stands in the manifest."""
    paths: dict[str, Sequence[str]] = {"base": table.base, "files": table.files, "gone": table.gone_files}
    schema = table.recent.schema.serialize().to_pybytes().hex()
    return {**{kind: list(of_kind) for kind, of_kind in paths.items()}, "schema": schema, "following": table.following}
