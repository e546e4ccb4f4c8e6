"""The tasks of a run: files or rows of publications in, written files out (`triplewire.pipeline.results.written`).

One task reads, matches and writes, so that neither publications nor matches go through Spark in between; in two stages,
what a node has to look at does. No Spark here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.engine import Engine
from triplewire.errors import Refusal
from triplewire.folders import reason_left_out
from triplewire.pipeline.filter import PackedEngine, outcomes_of, parted
from triplewire.pipeline.index.filters import NODE, ROUTED, ROUTED_ROWS, IndexFilter, StageOne, StageTwo
from triplewire.pipeline.results.written import REPORTS, Target, TaskFiles
from triplewire.pipeline.rows import FILE_ROWS, OUTCOME_ROWS, widened
from triplewire.pipeline.sources import FileReader, local_path

REPORT = "report"
ROUTED_REPORTS = pa.schema(
    [ROUTED_ROWS.field(NODE), ROUTED_ROWS.field(ROUTED), pa.field(REPORT, pa.struct(list(REPORTS)))]
)
"""The rows of stage 1: publications for nodes, and a report, which goes to a node as well and is passed on there."""


@dataclass(frozen=True)
class OneStage:
    """Matches and writes in one stage. `reader`: the rows are files, which it reads; None: they are publications
    (`rows.PUBLICATION_ROWS`)."""

    filter: PackedEngine | IndexFilter
    target: Target
    reader: FileReader | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The report of the task (`REPORTS`)."""
        engine = self.filter.opened().server() if isinstance(self.filter, IndexFilter) else self.filter.engine()
        files = TaskFiles(self.target)
        with self.filter.calling.task(engine):
            for batch in batches:
                if self.reader is None:
                    _match_rows(engine, [batch], files)
                else:
                    _match_files(engine, self.reader, batch, files)
        yield from files.reports()


@dataclass(frozen=True)
class OneStageOfFiles:
    """`OneStage` for the files of this machine, without data frames: planning one takes Spark longer than the task."""

    stage: OneStage

    def __call__(self, tasks: Iterable[Sequence[tuple[str, int]]]) -> Iterator[dict[str, Any]]:
        """The reports of tasks (`REPORTS`), as dictionaries. A task: the path and size in bytes of each file."""
        for task in tasks:
            rows = [{"path": os.fsencode(f"file:{path}"), "length": length} for path, length in task]
            for report in self.stage([pa.RecordBatch.from_pylist(rows, schema=FILE_ROWS)]):
                yield from report.to_pylist()


@dataclass(frozen=True)
class FirstStage:
    """Stage 1 with its matches written; the rows as for `OneStage`."""

    filter: IndexFilter
    target: Target
    reader: FileReader | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Publications for nodes, and the report of the task (`ROUTED_REPORTS`)."""
        files = TaskFiles(self.target)
        read = batches if self.reader is None else self.reader(batches)
        for rows in StageOne(self.filter, files.count)(_counted(read, files)):
            is_routed = pc.is_valid(rows.column(NODE))
            files.add_rows(rows.filter(pc.invert(is_routed)).select(OUTCOME_ROWS.names))
            routed = rows.filter(is_routed)
            if routed.num_rows:
                yield widened(routed.select([NODE, ROUTED]), ROUTED_REPORTS)
        for report in files.reports():
            own = pa.StructArray.from_arrays(report.columns, fields=list(REPORTS))
            yield widened(pa.record_batch({NODE: pa.array([0], pa.int32()), REPORT: own}), ROUTED_REPORTS)


@dataclass(frozen=True)
class SecondStage:
    """Stage 2 with its matches written. Rows: `node`, the columns of a publication, `report`."""

    filter: IndexFilter
    target: Target

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The reports of stage 1 that came here, and that of the task (`REPORTS`)."""
        files, passed = TaskFiles(self.target), list[pa.RecordBatch]()
        for rows in StageTwo(self.filter, files.count)(_without_reports(batches, passed)):
            files.add_rows(rows)
        yield from passed
        yield from files.reports()


def _counted(batches: Iterable[pa.RecordBatch], files: TaskFiles) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        files.publications += parted(batch)[1].num_rows
        yield batch


def _without_reports(batches: Iterable[pa.RecordBatch], passed: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        is_report = pc.is_valid(batch.column(REPORT))
        reports = batch.column(REPORT).filter(is_report)
        if len(reports):
            passed.append(pa.RecordBatch.from_arrays(reports.flatten(), schema=REPORTS))
        yield batch.filter(pc.invert(is_report)).drop_columns([REPORT])


def _match_rows(engine: Engine, batches: Iterable[pa.RecordBatch], files: TaskFiles) -> None:
    for rows in outcomes_of(engine, _counted(batches, files), files.count):
        files.add_rows(rows)


def _match_files(engine: Engine, reader: FileReader, batch: pa.RecordBatch, files: TaskFiles) -> None:
    """Local files go from bytes to columns where they can; what they give is what the reader gives."""
    names = list(map(os.fsdecode, batch.column("path").to_pylist()))
    # the reader refuses what is left out of a folder, which is here so that it is told
    is_local = pa.array([name.startswith("file:") and not reason_left_out(local_path(name)) for name in names])
    direct, others = batch.slice(0, 0), batch
    if reader.settings == engine.settings:
        direct, others = batch.filter(is_local), batch.filter(pc.invert(is_local))
    if others.num_rows:
        _match_rows(engine, reader([others]), files)
    refusals: list[Refusal] = []
    paths = [local_path(os.fsdecode(path)) for path in direct.column("path").to_pylist()]
    if not paths:
        return
    for result in engine.match_files(
        *paths, split=reader.split, as_written=reader.as_written, on_refusal=refusals.append
    ):
        files.publications += result.publications
        files.count(result.stats)
        files.refuse(result.refusals)
        for part in result.parts:
            files.add(engine, part)
        files.refuse(refusals)
        refusals.clear()
    files.refuse(refusals)
