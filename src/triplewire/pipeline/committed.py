"""The committed matches of an output folder, without Spark, also while a run writes to it.

A micro-batch is committed by one rename, of `matches/batch=N`, and is never replaced after that. A batch run replaces
`matches` as a whole; the one before lies in `_replaced` for the moment in which neither is in place. How they are
written: `triplewire.pipeline.output`.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.encode.matches import match_file
from triplewire.errors import BusyError, TriplewireError
from triplewire.folders import replace_text
from triplewire.pipeline.output import DEAD_LETTER, MATCHES, Output, Totals, last_batch, last_counts, number_of
from triplewire.pipeline.rows import MATCH_ROWS, widened
from triplewire.sources.feed_states import FeedStatus, feeds_of
from triplewire.state_file import connected

METRICS = "_metrics.prom"
_TRIES, _PAUSE = 20, 0.1  # while a batch run replaces the files that are exported; seconds


def check_output(output: Output) -> None:
    """Raises `TriplewireError` where the folder is none that a run or a stream writes to."""
    begins = output.folder.is_dir() and (output.folder / "_lock").exists() and not (output.folder / MATCHES).exists()
    if not begins and output.last_record() is None:
        what = "it is no output folder of a run" if output.folder.is_dir() else "there is no such folder"
        raise TriplewireError(
            what, source=str(output.folder), remedy="give the folder that `pipeline run --output` named"
        )


def committed_files(output: Output) -> list[Path]:
    """The Parquet files of the committed matches: by number of their micro-batch, then by name."""
    while True:
        folders = _present(output)
        if folders or not _present(output):  # a run may have put it in place between two looks
            break
    files: list[Path] = []
    for folder in folders:
        # a folder that is replaced at this moment holds nothing here; reading its files tells (`columns_of`)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".parquet") and name[0] not in "._")
        files += [folder / name for name in names]
    return files


def _present(output: Output) -> list[Path]:
    """The folders with committed matches; those that are in place come before those that they replace."""
    where: dict[str, Path] = {}
    for place in (output.replaced / MATCHES, output.folder / MATCHES):
        try:
            names = os.listdir(place)
        except FileNotFoundError:
            continue
        parts = [name for name in names if number_of(name) is not None]
        where |= {name: place / name for name in parts}
        if not parts and names:
            where[""] = place
    return [where[name] for name in sorted(where, key=lambda name: number_of(name) or 0)]


def columns_of(files: list[Path]) -> pa.Schema:
    """`MATCH_ROWS`, and what more the files have: rows of earlier versions of this program have fewer columns."""
    schemas = [MATCH_ROWS, *(pq.read_schema(file).remove_metadata() for file in files)]
    return pa.unify_schemas(schemas, promote_options="permissive")


def rows_of(files: list[Path], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the files in their order, with null for a column that a file does not have."""
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches():
                there = pa.schema([columns.field(name) for name in batch.schema.names])
                yield widened(batch.cast(there), columns)


# --- status ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Status:
    """The state of an output folder. The counts are those of all committed micro-batches (1 for a batch run); `refused`
    has what starts of a stream refused beside them, too.

    `waiting` are the files that were seen and are in no committed micro-batch, `oldest_seconds` how long the first of
    them has waited; None for a batch run, and for files of another file system, which Spark looks for itself. `version`
    is that of the subscriptions of the last start; `index_version` that of the index of the last micro-batch. `feeds`
    are those that were polled.
    """

    streaming: bool
    running: bool
    batches: int = 0
    publications: int = 0
    matches: int = 0
    refused: int = 0
    repeats: int = 0
    candidates: int = 0
    waiting: int | None = None
    oldest_seconds: float | None = None
    version: str = ""
    index_version: str | int | None = None
    last_batch: int | None = None
    last_committed: str = ""
    last_seconds: float = 0.0
    last_publications: int = 0
    last_matches: int = 0
    last_candidates: int = 0
    feeds: list[FeedStatus] = field(default_factory=list)

    @classmethod
    def of(cls, output: Output) -> Status:
        """Of an output folder. Raises `TriplewireError` where it is none."""
        check_output(output)
        record = output.last_record() or {}
        streaming = record.get("streaming") is True
        matches = output.folder / MATCHES
        if not matches.exists():  # a batch run was killed as it took the place of the one before
            matches = output.replaced / MATCHES
        figures: dict[str, Any] = {}
        counts = last_counts(matches)
        if counts is not None:
            figures |= asdict(counts.total) | {"last_committed": counts.committed, "last_seconds": counts.seconds}
            figures |= {f"last_{name}": getattr(counts.own, name) for name in ("publications", "matches", "candidates")}
            figures |= {"index_version": counts.more.get("index_version")}
        beside = (output.folder / DEAD_LETTER).glob("batch=-*/driver-*.parquet")  # what starts of a stream refused
        kinds = (kind for file in beside for kind in pq.read_table(file, columns=["kind"])["kind"].to_pylist())
        figures["refused"] = figures.get("refused", 0) + sum(kind != "warning" for kind in kinds)
        number = last_batch(matches)
        if streaming and record.get("remote") is not True:
            figures["waiting"], figures["oldest_seconds"] = _waiting(output, number)
        version = record.get("subscriptions")
        return cls(
            streaming, _is_running(output), version=version if isinstance(version, str) else "", last_batch=number,
            feeds=feeds_of(output.inbox), **figures,
        )  # fmt: skip

    def as_metrics(self) -> str:
        """In the text format of Prometheus."""
        counters = {
            f"{field.name}_total": (f"{field.name}, of all micro-batches", getattr(self, field.name))
            for field in fields(Totals)
        }
        gauges = {
            "waiting_files": ("files seen and not yet matched", self.waiting),
            "oldest_waiting_seconds": ("how long the first of them has waited", self.oldest_seconds),
            "last_batch_seconds": ("how long the last micro-batch took", self.last_seconds),
            "last_batch_publications": ("publications of the last micro-batch", self.last_publications),
            "last_batch_matches": ("matches of the last micro-batch", self.last_matches),
            "last_batch_candidates": ("candidates of the last micro-batch", self.last_candidates),
            "written_timestamp_seconds": ("when this was written", round(time.time(), 3)),
        }
        lines: list[str] = []
        for kind, metrics in (("counter", counters), ("gauge", gauges)):
            for name, (what, value) in metrics.items():
                head = f"# HELP triplewire_{name} {what}\n# TYPE triplewire_{name} {kind}\n"
                lines += [f"{head}triplewire_{name} {value}\n"] if value is not None else []
        return "".join(lines)


def write_metrics(output: Output) -> None:
    """Write `_metrics.prom`, so that nobody reads half of it."""
    replace_text(output.folder / METRICS, Status.of(output).as_metrics())


def _is_running(output: Output) -> bool:
    """Does a process hold the folder? A start that comes in this moment waits for us (`output.Output.prepare`)."""
    try:
        with open(output.folder / "_lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _waiting(output: Output, number: int | None) -> tuple[int, float | None]:
    """The files that were taken for micro-batches after this one, and how long the first of them has waited."""
    if not output.arrivals.exists():
        return 0, None
    with connected(output.arrivals) as connection:
        query = "SELECT count(*), min(taken) FROM files WHERE batch > ?"
        waiting, taken = connection.execute(query, (-1 if number is None else number,)).fetchone()
    return waiting, round(max(time.time() - taken, 0.0), 3) if waiting else None


# --- export ----------------------------------------------------------------------------------------------------------


def export(output: Output, file: Path, suffix: str) -> int:
    """Write all committed matches of the output folder to `file`, in the form of this one of
    `triplewire.encode.matches.SUFFIXES`; returns how many they are.

    Where a batch run replaces the rows meanwhile, the file is begun anew, so that it has all of one run or all of the
    other. Raises `TriplewireError` where the folder is no output of a run.
    """
    check_output(output)
    for _ in range(_TRIES):
        try:
            files = committed_files(output)
            columns, count = columns_of(files), 0
            with match_file(file, columns, suffix) as write:
                for rows in rows_of(files, columns):
                    write(rows)
                    count += rows.num_rows
            return count
        except FileNotFoundError as error:
            gone = error
            time.sleep(_PAUSE)
    raise BusyError(
        f"its files go away while they are read: {gone}", source=str(output.folder), remedy="try it again"
    ) from gone
