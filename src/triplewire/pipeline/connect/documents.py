"""Turns documents that came as messages into publications, in a worker; deals files to tasks; tidies the inbox.

A message never names a file: its content is what it holds, whatever its id looks like. How files become publications:
`triplewire.pipeline.sources`.
"""

from __future__ import annotations

import heapq
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from triplewire.config import Settings
from triplewire.errors import Refusal
from triplewire.model.publication import Publication
from triplewire.model.references import id_iri
from triplewire.pipeline.rows import PUBLICATION_ROWS, publication_rows, refused
from triplewire.read import read_document

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


_GLOB = re.compile(r"([\\{}\[\]*?])")
_OF_A_TASK = 256  # files, at most
_PARTS = 16  # the smallest task is this part of the files that each processor reads: a sixteenth

DOCUMENTS = "id binary, place string, content binary, reason string"
"""The rows that `DocumentReader` takes: the id of the document, null for none; where it came from; what it holds; or
why nothing could be had of it."""

BATCH_PUBLICATIONS, BATCH_TRIPLES = 256, 20_000  # a batch is complete with so many


# --- files that Spark reads ------------------------------------------------------------------------------------------


def escape(path: str) -> str:
    """The path with the characters escaped that Spark would read as a glob."""
    return _GLOB.sub(r"\\\1", path)


def streamed_files(spark: SparkSession, kind: str, columns: str) -> DataStreamReader:
    """Reads the files of a folder, and of those below it, as a stream: each once, however old. `kind` is the name of
    one of Spark's file sources, and `columns` its schema in DDL."""
    reader = spark.readStream.format(kind).schema(columns)
    # Spark silently leaves out files that are older than maxFileAge: no file is so old. Without recursiveFileLookup it
    # reads each file as often as there are files, where the path of the folder is escaped (Spark 4.2)
    return reader.option("maxFileAge", "36500d").option("recursiveFileLookup", "true")


# --- documents -------------------------------------------------------------------------------------------------------


def inbox_documents(spark: SparkSession, folder: str, streaming: bool) -> DataFrame:
    """What is in an inbox (`triplewire.sources.inbox`), as rows of `DOCUMENTS`."""
    if streaming:
        return streamed_files(spark, "parquet", DOCUMENTS).load(escape(folder))
    return spark.read.format("parquet").schema(DOCUMENTS).load(escape(folder))


def batches_of(publications: Iterable[Publication], refusals: list[Refusal]) -> Iterator[pa.RecordBatch]:
    """`PUBLICATION_ROWS` of publications, at most `BATCH_PUBLICATIONS` or about `BATCH_TRIPLES` triples a batch; then
    those of the refusals, to which reading the publications may add."""
    group, triples = list[Publication](), 0
    for publication in publications:
        group.append(publication)
        triples += publication.size
        if len(group) >= BATCH_PUBLICATIONS or triples >= BATCH_TRIPLES:
            yield publication_rows(group)
            group, triples = [], 0
    if group:
        yield publication_rows(group)
    if refusals:
        yield refused(refusals, PUBLICATION_ROWS)


@dataclass(frozen=True)
class DocumentReader:
    """Reads documents in a worker: rows of `DOCUMENTS` in, `PUBLICATION_ROWS` out.

    The id of a document that is one publication is its id as an IRI, or its place where it has none. The source of each
    publication is the place.
    """

    split: str = "item"
    settings: Settings = field(default_factory=Settings)
    as_written: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of publications, and after them what was refused."""
        for batch in batches:
            refusals: list[Refusal] = []
            yield from batches_of(self._publications(batch, refusals), refusals)

    def _publications(self, batch: pa.RecordBatch, refusals: list[Refusal]) -> Iterator[Publication]:
        for row in range(batch.num_rows):
            id, place, content, reason = (
                batch.column(name)[row].as_py() for name in ("id", "place", "content", "reason")
            )
            if not content:
                what = "the message is empty" if content is not None else reason or "the message has no value"
                refusals.append(Refusal("publication", place, place, what))
                continue
            name = id_iri(id) if id else place
            of_document: list[Refusal] = []
            how: dict[str, Any] = {"split": self.split, "settings": self.settings, "as_written": self.as_written}
            for publication in read_document(content, name, on_refusal=of_document.append, **how):
                yield replace(publication, source=place)
            refusals += (replace(refusal, where=_placed(refusal.where, name, place)) for refusal in of_document)


def _placed(where: str, name: str, place: str) -> str:
    """Where something was refused: at a place instead of in a document of this name."""
    return place + where.removeprefix(name) if where.startswith(name) else f"{place} {where}".strip()


# --- the files of tasks ----------------------------------------------------------------------------------------------


def assign_tasks(sizes: Sequence[int], at_a_time: int) -> list[int]:
    """File -> the number of its task; task 0 has most bytes. Files are taken from the largest to the smallest, and each
    goes to the task that has the fewest bytes for its share so far. `at_a_time`: how many tasks Spark does at a
    time."""
    shares = _shares(len(sizes), at_a_time)
    tasks = len(shares)
    task_of, files, load = [0] * len(sizes), [0] * tasks, [0] * tasks
    least = [(0.0, task) for task in range(tasks)]  # a heap of those that have room
    for file in sorted(range(len(sizes)), key=lambda file: -sizes[file]):
        _, task = heapq.heappop(least)
        task_of[file] = task
        files[task] += 1
        load[task] += sizes[file]
        if files[task] < _OF_A_TASK:
            heapq.heappush(least, (load[task] / shares[task], task))
    place = {task: at for at, task in enumerate(sorted(range(tasks), key=lambda task: -load[task]))}
    return [place[task] for task in task_of]


def _shares(files: int, at_a_time: int) -> list[int]:
    """Task -> its share, in files of equal size: half of an even split of the files that are left, so that the last
    tasks are small ("Guided self-scheduling", Polychronopoulos and Kuck, IEEE ToC 36(12), 1987)."""
    shares: list[int] = []
    least = max(1, files // (_PARTS * at_a_time))
    while files:
        share = min(max(-(-files // (2 * at_a_time)), least), _OF_A_TASK, files)
        shares.append(share)
        files -= share
    return shares


# --- the inbox -------------------------------------------------------------------------------------------------------


def prune(inbox: Path, checkpoint: Path, seconds: float) -> int:
    """Remove the files of an inbox that are in a committed micro-batch and older than so many seconds; returns how many
    these were. The last file stays, because names go on from it, and a name that was read is never read again."""
    files = sorted(inbox.glob("[0-9]*.parquet"))[:-1]
    oldest, count = time.time() - seconds, 0
    old = [file for file in files if file.stat().st_mtime < oldest]
    read = read_files(checkpoint) if old else set()
    for file in old:
        if file.name in read:
            file.unlink()
            count += 1
    return count


def read_files(checkpoint: Path) -> set[str]:
    """The names of the files that committed micro-batches have read, by the logs of Spark's file source; none where
    these do not say."""
    try:
        last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
        offset = json.loads((checkpoint / "offsets" / str(last)).read_text(encoding="utf-8").splitlines()[-1])
        until = int(offset["logOffset"])
        names: set[str] = set()
        for log in (checkpoint / "sources" / "0").iterdir():
            if not log.name.removesuffix(".compact").isdecimal():
                continue
            for line in log.read_text(encoding="utf-8").splitlines()[1:]:  # the first is the version of the log
                entry = json.loads(line)
                if int(entry["batchId"]) <= until:
                    names.add(unquote(entry["path"].rpartition("/")[2]))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return set()
    return names
