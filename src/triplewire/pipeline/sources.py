"""Reads publications on Spark: from files, Kafka and data frames. How a file becomes publications: `triplewire.read`.

Local files of a batch are listed here, and a worker opens each itself, as `triplewire.read.read` does, so that ids,
sources and refusals are the same. Spark lists the files of other file systems, and gives a worker their content; in a
stream it lists, and records which ones it has seen. A file is read by one task, whatever its size: split large N-Quads
files to read them with many cores.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.folders import LINK, entries_of, named_by, reason_left_out
from triplewire.model.publication import Publication
from triplewire.model.references import is_url
from triplewire.net.addresses import KAFKA, WEBHOOK, Connections, address, kind_of, shown
from triplewire.pipeline.connect import kafka
from triplewire.pipeline.connect.documents import (
    DocumentReader,
    assign_tasks,
    batches_of,
    escape,
    inbox_documents,
    streamed_files,
)
from triplewire.pipeline.filter import check_reading, check_rows, check_session
from triplewire.pipeline.output import LOCAL_FILES
from triplewire.pipeline.rows import FILE_ROWS, PUBLICATION_ROWS, columns_of
from triplewire.read import read, read_document
from triplewire.sources.inbox import PREFIX as INBOX
from triplewire.sources.lists import is_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = "path string, modificationTime timestamp, length long, content binary"  # Spark's "binaryFile"
SPARK_BYTES = 2**31 - 1024  # a value in Spark has less than 2 GiB


def publications(
    spark: SparkSession,
    path: str | Path | DataFrame,
    streaming: bool = False,
    *,
    split: str = "item",
    settings: Settings | None = None,
    as_written: bool = False,
    connections: Connections | None = None,
) -> DataFrame:
    """Rows of publications and refused inputs: id, source, published, triples, refusal.

    `path` is a file, a folder (all files below it), a glob, or a URL of a file system that Spark knows; files may be
    gzipped. Or it is a topic (`kafka://HOST:PORT/TOPIC`: `triplewire.pipeline.connect.kafka`), for which `connections`
    has what is needed to reach it; what was polled of feeds (`inbox:DIR`); or a data frame with the columns id and
    triples (and source, published, refusal), which gets those that it does not have.

    A row with a `refusal` (struct kind, subject, where, reason, remedy) holds no publication. `split` is "item",
    "document" or "subject", and `as_written` leaves the texts of feeds without types, as for `triplewire.read.read`. A
    refusal of kind "warning" is about a file that was read although it is ill-formed.

    A stream gives each file once, as it is when Spark first sees it, under the name it was first seen by. It passes
    over what Spark's streams do: hidden files, names that begin with `_`, end in `._COPYING_` or are not UTF-8, and
    empty files, which are not read later either. `triplewire.pipeline.run` does more: `connect.arrivals`.

    Raises `ReadError` when there is nothing at `path`.
    """
    check_session("publications(spark)", spark)
    if hasattr(path, "mapInArrow"):
        check_rows("publications(path)", path)
        rows, columns = cast("DataFrame", path), []
        for column in PUBLICATION_ROWS:  # with null for those that the rows do not have
            kind = columns_of(pa.schema([column])).partition(" ")[2]
            is_there = column.name in rows.columns
            columns.append(f"`{column.name}`" if is_there else f"CAST(NULL AS {kind}) AS `{column.name}`")
        return rows.selectExpr(*columns)
    check_reading(path, split, settings)
    settings = settings or Settings()
    reader: FileReader | DocumentReader = DocumentReader(split, settings, as_written)
    if kind_of(str(path)) == KAFKA:
        rows = kafka.documents_from(spark, address(str(path), connections), streaming)
    elif str(path).startswith(INBOX):
        rows = inbox_documents(spark, str(path).removeprefix(INBOX), streaming)
    elif is_list(str(path)):
        what, remedy = "a list of feeds is polled by a stream", "triplewire pipeline run --streaming"
        raise ReadError(what, source=str(path), remedy=remedy)
    else:
        rows, reader = files(spark, path, streaming, settings), FileReader(split, settings, as_written)
    return rows.mapInArrow(reader, columns_of(PUBLICATION_ROWS))


def files(spark: SparkSession, path: str | Path, streaming: bool, settings: Settings) -> DataFrame:
    """The same before they are read: path, length, and of files of other machines the content, for `FileReader`."""
    remote = is_remote(path)
    if not (remote or streaming):
        return files_of_tasks(spark, _dealt_files(path, spark.sparkContext.defaultParallelism))
    if streaming:
        roots = [str(path)] if remote else local_roots(path)
        where = str(path) if remote or roots != [local_path(path)] else escape(roots[0])
        listed = streamed_files(spark, "binaryFile", FILES).load(where)
    else:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(str(path))
    listed = listed.withColumn("path", listed.path.cast("binary"))
    without_content = "path", "length", "binary(null) AS content"
    if not remote:
        return listed.selectExpr(*without_content)
    limit = min(settings.max_input_bytes, SPARK_BYTES)  # Spark does not read those that are larger
    small = listed.where(f"length <= {limit}").select("path", "length", "content")
    return small.union(listed.where(f"length > {limit}").selectExpr(*without_content))


def files_of_tasks(spark: SparkSession, tasks: Sequence[Sequence[tuple[str, int]]]) -> DataFrame:
    """Rows of `FILE_ROWS` for files of this machine: the path and size in bytes of each, task by task."""
    listed = spark.sparkContext.parallelize(tasks, max(len(tasks), 1))
    rows = listed.flatMap(lambda task: [(os.fsencode(f"file:{path}"), size, None) for path, size in task])
    return spark.createDataFrame(rows, columns_of(FILE_ROWS))


def _dealt_files(path: str | Path, at_a_time: int) -> list[list[tuple[str, int]]]:
    """The files that a local path or glob names, task by task, with what is left out of a folder, which a worker
    refuses as `triplewire.read` does. What a glob of all depths names through a link that is left out is not among
    them."""
    entries: dict[Path, str] = {}
    for root in map(Path, local_roots(path)):
        entries.update(entries_of(root))
    links = {file for file, left_out in entries.items() if left_out == LINK}
    named = [(str(file), size_of(file)) for file in entries if not links or links.isdisjoint(file.parents)]
    tasks: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for file, task in zip(named, assign_tasks([size for _, size in named], at_a_time), strict=True):
        tasks[task].append(file)
    return [tasks[task] for task in sorted(tasks)]


@dataclass(frozen=True)
class FileReader:
    """Reads files in a worker: rows of (path, length, content) in, `PUBLICATION_ROWS` out."""

    split: str = "item"
    settings: Settings = field(default_factory=Settings)
    as_written: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of publications, and the refusals of each file after them."""
        for batch in batches:
            for row in range(batch.num_rows):
                path, length, content = (batch.column(name)[row].as_py() for name in ("path", "length", "content"))
                refusals: list[Refusal] = []
                yield from batches_of(self._read(os.fsdecode(path), length, content, refusals), refusals)

    def _read(self, path: str, length: int, content: bytes | None, refusals: list[Refusal]) -> Iterable[Publication]:
        how: dict[str, Any] = {"split": self.split, "settings": self.settings, "as_written": self.as_written}
        if not path.startswith("file:") and content is not None:
            return read_document(content, path, on_refusal=refusals.append, **how)
        file = local_path(path)
        if not path.startswith("file:"):
            error = ReadError(f"it has {length:,} bytes", source=path, remedy="cut it, or raise max_input_bytes")
            refusals.append(Refusal.of("publication", path, error))
        elif why := reason_left_out(file):
            refusals.append(refused_entry(file, why))
        else:
            return read(file, on_refusal=refusals.append, **how)
        return ()


# --- names -----------------------------------------------------------------------------------------------------------


def local_path(path: str | Path) -> str:
    """The absolute path of a local file, also of Spark's spelling `file:/folder/name` (which escapes nothing)."""
    text = str(path)
    return os.path.abspath("/" + text.removeprefix("file:").lstrip("/") if text.startswith("file:") else text)


def local_roots(path: str | Path) -> list[str]:
    """The files and folders that a local path or glob names. Raises `ReadError` when there are none, and
    `PermissionError` where that cannot be told."""
    roots = named_by(local_path(path))
    if not roots:
        raise ReadError("there is no such file or folder", source=str(path))
    return roots


def is_remote(path: str | Path) -> bool:
    """Is it a URL of another file system than the local one?"""
    return is_url(str(path)) and not str(path).startswith("file:")


def has_files(source: str) -> bool:
    """Is it read file by file, and not a topic, or feeds and what was polled of them?"""
    return kind_of(source) != KAFKA and not source.startswith(INBOX) and not is_list(source)


def read_by_stream(source: str) -> str:
    """What a stream reads, in words, as far as its progress depends on it: files may lie elsewhere at the next start, a
    broker may have another address, and a list may name other feeds."""
    if kind_of(source) == KAFKA:
        return f"the topic {address(source).name} of Kafka"
    if source.startswith(INBOX):
        return "feeds"
    return "files elsewhere" if is_remote(source) else LOCAL_FILES


def refused_entry(path: str, why: str) -> Refusal:
    """The refusal of what is left out of a folder, which reached a worker so that it is told."""
    return Refusal.of("publication", path, ReadError(why, source=path))


def check_source(path: str, connections: Connections | None = None) -> None:
    """Raises `ReadError` when a local path names nothing, and `TriplewireError` where an address is wrong."""
    if kind_of(path) == KAFKA:
        address(path, connections)
    elif kind_of(path) == WEBHOOK:
        remedy = "write it on a line of a file, as mine.feeds, and give that: feeds are polled"
        what = "it is the address of a feed or a document, which Spark does not fetch"
        raise ReadError(what, source=shown(path), remedy=remedy)
    elif not is_remote(path):
        local_roots(path)


def size_of(file: str | Path) -> int:
    """The size of a file in bytes; 0 where it was removed or cannot be seen: opening it fails, and is reported."""
    try:
        return os.path.getsize(file)
    except OSError:
        return 0
