"""Backtest: the matches that subscriptions would have had in an archive of publications, as a batch on Spark.

A worker takes a run of files of the archive, in the order in which `triplewire.read` lists them, and matches them as
`Engine.match_files` does in one process. Its rows carry the place of the run and their own place in it, so that they
can be put in the order that one process gives, however the work was split (`triplewire.cli.matches`).

The day of a publication is the date in the path of its file, below the archive (`2026/05/17/feed.xml`,
`log-2026-05-17.nq`, `20260517T1200.rdf`; the last one counts), because archives are filed by when things came. Where
there is none, it is the day, in UTC, that the publication states itself, as items of feeds do.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.config import Settings
from triplewire.encode.schema import MATCHES, storable_text
from triplewire.encode.strings import of_numbers
from triplewire.engine import Engine, MatchResult
from triplewire.engine.stats import Clock
from triplewire.errors import ReadError, Refusal
from triplewire.folders import entries_of, is_there, reason_left_out
from triplewire.model.publication import Publication
from triplewire.pipeline.filter import IndexFilter
from triplewire.pipeline.output import Output
from triplewire.pipeline.rows import DEAD_LETTERS, columns_of, refused, widened
from triplewire.pipeline.sources import is_remote, local_path, refused_entry, size_of
from triplewire.read import read
from triplewire.read.rdf.contexts import ContextLoader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MATCH = [field.with_nullable(True) for field in MATCHES if field.name != "matched_at"]
ROWS = pa.schema(
    [
        ("place", pa.int64()),
        ("row", pa.int64()),
        *_MATCH,
        ("source", pa.string()),
        ("day", pa.string()),
        pa.field("refusal", pa.struct(list(DEAD_LETTERS))),
        ("publications", pa.int64()),
        ("undated", pa.int64()),
        ("read_seconds", pa.float64()),
        ("match_seconds", pa.float64()),
    ]
)
"""What a worker gives: matches; refusals; and for each run of files a row of what it took. `place` numbers the runs,
`row` the matches of one; `undated` counts publications without a day, where a range of days leaves them out."""

_RUN_FILES, _RUN_BYTES = 256, 64 << 20  # of one run of files, at most
_RUNS_OF_A_TASK = 4  # about, so that the tasks end at about the same time
_TOGETHER = 1_024  # publications that are matched together, where each is looked at before
_NOT_MATCHING = ("load", "read", "other", "hand over")  # stages of the clock

_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_/.]?)(\d\d)\2(\d\d)(?:\d{4}|\d{6})?(?!\d)")


@dataclass(frozen=True)
class Days:
    """The days from `since` to `until`, both with; None is no limit."""

    since: dt.date | None = None
    until: dt.date | None = None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    def __contains__(self, day: dt.date) -> bool:
        return (self.since is None or self.since <= day) and (self.until is None or day <= self.until)


def day_in_path(path: str) -> dt.date | None:
    """The last date in a path, if there is one."""
    day = None
    for match in _DATE.finditer(path):
        try:
            day = dt.date(int(match[1]), int(match[3]), int(match[4]))
        except ValueError:  # of no calendar
            continue
    return day


@dataclass(frozen=True)
class Archive:
    """A folder of publications, or one file. Raises `ReadError` where there is none on this machine, and for the
    output folder of a run; `PermissionError` where that cannot be told."""

    folder: str

    def __post_init__(self) -> None:
        if is_remote(self.folder):
            remedy = "mount it, or copy it: each worker opens the files itself"
            raise ReadError("the archive is a folder that all workers see", source=self.folder, remedy=remedy)
        if not is_there(self.path):
            raise ReadError("there is no such file or folder", source=self.folder)
        if Output(Path(self.path)).last_record() is not None:
            what = "it is the output folder of a pipeline run, which holds no publications"
            raise ReadError(what, source=self.folder, remedy="give the folder of the publications")

    @property
    def path(self) -> str:
        """The absolute path."""
        return local_path(self.folder)

    def runs(self, days: Days, tasks: int) -> list[list[str]]:
        """The files whose day may be one of these, in order, as runs of files that follow one another."""
        files = [str(file) for file, _ in entries_of(Path(self.path))]
        wanted = [file for file in files if (day := self.day(file)) is None or day in days]
        sizes = [size_of(file) for file in wanted]
        runs_in_all = max(tasks * _RUNS_OF_A_TASK, 1)
        most_files = min(_RUN_FILES, -(-len(wanted) // runs_in_all))
        most_bytes = min(_RUN_BYTES, -(-sum(sizes) // runs_in_all))
        runs: list[list[str]] = []
        held = 0
        for file, size in zip(wanted, sizes, strict=True):
            if not runs or len(runs[-1]) >= most_files or held + size > most_bytes:
                runs.append([])
                held = 0
            runs[-1].append(file)
            held += size
        return runs

    def day(self, file: str) -> dt.date | None:
        """The day in the path of a file, below the archive; of an archive of one file, in its name."""
        inside = os.path.relpath(file, self.path)
        return day_in_path(os.path.basename(file) if inside == "." else inside)


@dataclass(frozen=True)
class ArchiveFilter:
    """Matches runs of files in a worker: rows of (place, paths) in, `ROWS` out."""

    filter: IndexFilter
    archive: Archive
    days: Days = field(default_factory=Days)
    split: str = "item"
    as_written: bool = False
    settings: Settings = field(default_factory=Settings)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each run of files."""
        engine = self.filter.opened().server()
        for batch in batches:
            for row in range(batch.num_rows):
                place, paths = (batch.column(name)[row].as_py() for name in ("place", "paths"))
                yield from self._run(engine, place, [os.fsdecode(path) for path in paths])

    def _run(self, engine: Engine, place: int, paths: list[str]) -> Iterator[pa.RecordBatch]:
        clock, undated = Clock(), [0]
        refusals = [refused_entry(path, why) for path in paths if (why := reason_left_out(path))]
        paths = [path for path in paths if not reason_left_out(path)]
        publications = first = 0
        for result in self._results(engine, paths, clock, refusals.append, undated):
            publications += result.publications
            refusals += result.refusals
            with clock("bindings"):
                batches = list(self._matches(result, place, first))
            first += sum(batch.num_rows for batch in batches)
            with clock("hand over"):
                yield from batches
        if refusals:
            yield widened(refused(refusals, ROWS), ROWS, place=of_numbers(np.full(len(refusals), place)))
        seconds = clock.seconds()
        matching = sum(taken for stage, taken in seconds.items() if stage not in _NOT_MATCHING)
        cost: dict[str, float] = {"place": place, "publications": publications, "undated": undated[0]}
        cost |= {"read_seconds": seconds.get("read", 0.0), "match_seconds": matching}
        yield pa.RecordBatch.from_pylist([cost], schema=ROWS)

    def _results(
        self,
        engine: Engine,
        paths: list[str],
        clock: Clock,
        refuse: Callable[[Refusal], None],
        undated: list[int],
    ) -> Iterator[MatchResult]:
        """The results of files, as one process has them."""
        loader = ContextLoader({})
        if not self.days or all(self.archive.day(path) for path in paths):
            yield from engine.match_files(
                *paths, split=self.split, as_written=self.as_written, on_refusal=refuse, clock=clock, loader=loader
            )
            return
        how: dict[str, Any] = {"split": self.split, "as_written": self.as_written, "settings": self.settings}
        each = read(*paths, on_refusal=refuse, loader=loader, **how)
        inside = (publication for publication in each if self._is_inside(publication, undated))
        while True:
            with clock("read"):
                portion = list(islice(inside, _TOGETHER))
            if not portion:
                return
            with clock("match"):
                result = engine.match(portion)
            yield result

    def _is_inside(self, publication: Publication, undated: list[int]) -> bool:
        day = self._day(publication.source, publication.published)
        undated[0] += day is None
        return day is not None and day in self.days

    def _day(self, source: str, published: dt.datetime | None) -> dt.date | None:
        day = self.archive.day(source)
        return day or (published.astimezone(dt.UTC).date() if published is not None else None)

    def _matches(self, result: MatchResult, place: int, first: int) -> Iterator[pa.RecordBatch]:
        """The matches of a result, in its order."""
        for part in result.parts:
            used, number = np.unique(part.publication, return_inverse=True)
            origins = [part.chunk.origin(publication) for publication in used.tolist()]
            days = [self._day(*origin) for origin in origins]
            source = pa.array([storable_text(source) for source, _ in origins], pa.string())
            day = pa.array([day and day.isoformat() for day in days], pa.string())
            for matches in part.batches():
                length = matches.num_rows
                rows, number = of_numbers(number[:length]), number[length:]
                yield widened(
                    matches.drop_columns(["matched_at"]),
                    ROWS,
                    place=of_numbers(np.full(length, place)),
                    row=of_numbers(np.arange(first, first + length)),
                    source=source.take(rows),
                    day=day.take(rows),
                )
                first += length


_HITS = ("publication", "subscription", "bindings", "construct", "content", "revision", "source", "day")


@dataclass(frozen=True)
class Outcome:
    """What a backtest gave. `matches` are the rows of `ROWS` that are matches, in no order; `refusals` are in that of
    the archive; `undated` counts publications that a range of days left out because they have no day. The seconds are
    those of all workers together."""

    matches: pa.Table
    refusals: list[Refusal]
    publications: int = 0
    undated: int = 0
    read_seconds: float = 0.0
    match_seconds: float = 0.0

    @classmethod
    def of(cls, folder: Path) -> Outcome:
        """What the workers wrote."""
        files = sorted(folder.glob("part-*.parquet"))
        if not files:
            return cls(ROWS.empty_table(), [])
        rows = pa.concat_tables(pq.read_table(file, read_dictionary=list(_HITS)) for file in files)
        letters = rows.filter(pc.is_valid(rows["refusal"])).sort_by("place")["refusal"].to_pylist()
        costs = rows.filter(pc.is_valid(rows["publications"])).select(["publications", "undated"])
        seconds = (pc.sum(rows[name]).as_py() or 0.0 for name in ("read_seconds", "match_seconds"))
        counts = (pc.sum(costs[name]).as_py() or 0 for name in ("publications", "undated"))
        hits = rows.filter(pc.is_valid(rows["publication"]))
        return cls(hits, [Refusal(**letter) for letter in letters], *counts, *seconds)

    def by_day(self) -> dict[str, int]:
        """The matches of each day; "" for those without one."""
        counts: Counter[str] = Counter()
        for entry in self.matches["day"].value_counts().to_pylist():
            counts[entry["values"] or ""] += entry["counts"]
        return dict(sorted(counts.items()))


def backtest(spark: SparkSession, archive_filter: ArchiveFilter, folder: Path) -> Outcome:
    """Match an archive. `folder` is a new one that all workers see; their rows go there."""
    tasks = spark.sparkContext.defaultParallelism
    runs = archive_filter.archive.runs(archive_filter.days, tasks)
    if runs:
        # as bytes: the name of a file need not be UTF-8
        paths = pa.array([[os.fsencode(file) for file in run] for run in runs], pa.list_(pa.binary()))
        given = pa.table({"place": pa.array(range(len(runs)), pa.int64()), "paths": paths})
        rows = spark.createDataFrame(given).repartition(min(len(runs), tasks * _RUNS_OF_A_TASK))
        outcomes = rows.mapInArrow(archive_filter, columns_of(ROWS))
        outcomes.write.mode("overwrite").parquet(f"file://{folder}")
    return Outcome.of(folder)


def samples(outcome: Outcome, most: int) -> list[tuple[str, str, str]]:
    """Some of the matches, as (subscription, publication, source): the first of each subscription, by its id, and where
    there are few subscriptions, their next ones."""
    names = ["subscription", "publication", "source"]
    rows = outcome.matches.select(names).cast(pa.schema([(name, pa.string()) for name in names]))
    subscriptions = sorted(pc.unique(rows["subscription"]).to_pylist())[:most]
    picked: list[tuple[int, tuple[str, str, str]]] = []
    for subscription in subscriptions:
        own = rows.filter(pc.equal(rows["subscription"], subscription))
        first = own.take(pc.select_k_unstable(own, most, [(name, "ascending") for name in names]))
        picked += enumerate(tuple(row.values()) for row in first.to_pylist())
    return sorted(sample for _, sample in sorted(picked)[:most])
