"""The tasks of a run: files or rows of publications in, written files out (`triplewire.pipeline.written`).

One task reads, matches and writes, so that neither publications nor matches go through Spark in between. Where
subscriptions are spread over nodes, there are two stages: stage 1 matches every publication against the part of the
server and says which nodes it has to go to; stage 2 matches what comes to a node against its shard (001, section 4.5).
The matches of both are those of one engine. A pair that stage 1 could not decide is routed as if it had matched. No
Spark here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.encode.schema import FILE_BESIDE, PUBLICATIONS
from triplewire.engine import Engine
from triplewire.errors import Refusal
from triplewire.folders import reason_left_out
from triplewire.pipeline.filter import IndexFilter, matched, parted
from triplewire.pipeline.index.open_version import OpenVersion
from triplewire.pipeline.rows import FILE_ROWS, widened
from triplewire.pipeline.sources import FileReader, local_path
from triplewire.pipeline.written import REPORTS, Target, TaskFiles

NODE, ROUTED, REPORT = "node", "routed", "report"

ROUTED_ROWS = pa.schema(
    [
        pa.field(NODE, pa.int32()),
        pa.field(ROUTED, pa.struct([field.with_nullable(True) for field in (*PUBLICATIONS, FILE_BESIDE)])),
        pa.field(REPORT, pa.struct(list(REPORTS))),
    ]
)
"""The rows of stage 1: publications for nodes, and a report, which goes to a node as well and is passed on there."""


@dataclass(frozen=True)
class OneStage:
    """Matches and writes in one stage. `reader`: the rows are files, which it reads; None: they are publications
    (`rows.PUBLICATION_ROWS`)."""

    filter: IndexFilter
    target: Target
    reader: FileReader | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The report of the task (`REPORTS`)."""
        engine = self.filter.opened().server()
        files = TaskFiles(self.target, self.filter.calling.why)
        self.filter.calling.begin(engine)
        for batch in batches:
            if self.reader is None:
                _match_rows(engine, [batch], files)
            else:
                _match_files(engine, self.reader, batch, files)
        yield from files.reports(engine)


def reports_of_files(stage: OneStage, tasks: Iterable[Sequence[tuple[str, int]]]) -> Iterator[dict[str, Any]]:
    """The reports of tasks (`REPORTS`), as dictionaries, for files of this machine, without data frames: planning one
    takes Spark longer than the task. A task: the path and size in bytes of each file."""
    for task in tasks:
        rows = [{"path": os.fsencode(f"file:{path}"), "length": length} for path, length in task]
        for report in stage([pa.RecordBatch.from_pylist(rows, schema=FILE_ROWS)]):
            yield from report.to_pylist()


@dataclass(frozen=True)
class FirstStage:
    """Writes the matches at the server, and says to which nodes publications have to go; the rows as for `OneStage`."""

    filter: IndexFilter
    target: Target
    reader: FileReader | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Publications for nodes, and the report of the task (`ROUTED_ROWS`)."""
        version, files = self.filter.opened(), TaskFiles(self.target, self.filter.calling.why)
        self.filter.calling.begin(version.server())
        for publications in _publications(batches if self.reader is None else self.reader(batches), files):
            yield from _route(version, publications, files)
        for report in files.reports(version.server()):
            as_struct = pa.StructArray.from_arrays(report.columns, fields=list(REPORTS))
            yield widened(pa.record_batch({NODE: pa.array([0], pa.int32()), REPORT: as_struct}), ROUTED_ROWS)


@dataclass(frozen=True)
class SecondStage:
    """Writes the matches at the nodes. Rows: `node`, the columns of a publication, `report`. Those that are no
    publication were refused in stage 1, and are passed over."""

    filter: IndexFilter
    target: Target

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The reports of stage 1 that came here, and that of the task (`REPORTS`)."""
        version, files, engines = (
            self.filter.opened(),
            TaskFiles(self.target, self.filter.calling.why),
            dict[int, Engine](),
        )
        for batch in batches:
            is_report = pc.is_valid(batch.column(REPORT))
            reports = batch.column(REPORT).filter(is_report)
            if len(reports):
                yield pa.RecordBatch.from_arrays(reports.flatten(), schema=REPORTS)
            rows = batch.filter(pc.invert(is_report)).drop_columns([REPORT])
            nodes, publications = rows.column(NODE), rows.drop_columns([NODE])
            for node in pc.unique(nodes).to_pylist():
                if node not in engines:
                    engines[node] = version.node(node)
                    self.filter.calling.begin(engines[node])
                failed: list[Refusal] = []
                to_node = publications.filter(pc.equal(nodes, node))
                for _, matches in matched(engines[node], to_node, failed, files.count, why=files.why):
                    files.add_rows(matches)
                # stage 1 has told of rows that are no publications
                files.refuse(each for each in failed if each.kind != "publication" or "(record " not in each.where)
        yield from files.reports(*engines.values())


def _publications(batches: Iterable[pa.RecordBatch], files: TaskFiles) -> Iterator[pa.RecordBatch]:
    """The publications of batches (`rows.PUBLICATION_ROWS`); the inputs among them that were refused are written."""
    for batch in batches:
        refusals, publications = parted(batch)
        files.refuse(Refusal(**row["refusal"]) for row in refusals.to_pylist())
        files.counts["publications"] += publications.num_rows
        yield publications


def _match_rows(engine: Engine, batches: Iterable[pa.RecordBatch], files: TaskFiles) -> None:
    for publications in _publications(batches, files):
        failed: list[Refusal] = []
        for _, matches in matched(engine, publications, failed, files.count, why=files.why):
            files.add_rows(matches)
        files.refuse(failed)


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
        files.counts["publications"] += result.publications
        files.count(result.stats)
        files.refuse(result.refusals)
        for part in result.parts:
            files.add(engine, part)
        files.refuse(refusals)
        refusals.clear()
    files.refuse(refusals)


# --- stage 1 ---------------------------------------------------------------------------------------------------------


def _route(version: OpenVersion, publications: pa.RecordBatch, files: TaskFiles) -> Iterator[pa.RecordBatch]:
    """Write the matches of publications at the server, without those of routers, and give the rows for the nodes."""
    failed: list[Refusal] = []
    for rows, matches in matched(version.server(), publications, failed, files.count, why=files.why):
        for node, to_node in _routed(version, rows, matches, failed):
            yield _for_node(node, to_node)
        if len(version.routers):
            matches = matches.filter(pc.invert(pc.is_in(matches.column("subscription"), version.routers)))
        files.add_rows(matches)
    routers = version.version.plan.routers
    pairs = ((each, _pairs(each)) for each in failed)
    files.refuse(refusal for refusal, named in pairs if not any(id in routers for _, id in named))


def _routed(
    version: OpenVersion, rows: pa.RecordBatch, matches: pa.RecordBatch, failed: Sequence[Refusal]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The nodes that publications have to go to, each with those."""
    everywhere = version.version.content.everywhere
    yield from ((node, rows) for node in everywhere)
    if len(everywhere) == version.nodes:
        return
    ids, leads = version.leading
    place = pc.index_in(matches.column("subscription"), value_set=ids)
    is_led = pc.is_valid(place)
    led = leads[place.filter(is_led).to_numpy()]
    names = matches.column("publication").filter(is_led)
    undecided = _undecided(failed, ids, leads)
    for node in sorted(set(range(version.nodes)).difference(everywhere)):
        to_node = names.filter(pa.array(led[:, node])).unique()
        open_ones = [name for name, leads_to in undecided if leads_to[node]]
        if len(to_node) or open_ones:
            wanted = pa.chunked_array([to_node, pa.array(open_ones, to_node.type)]).combine_chunks()
            chosen = rows.filter(pc.is_in(pc.cast(rows.column("id"), wanted.type), value_set=wanted))
            if chosen.num_rows:
                yield node, chosen


def _undecided(
    failed: Sequence[Refusal], ids: pa.Array, leads: NDArray[np.bool_]
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Publications that stage 1 could not decide for an id that leads to nodes, and to which nodes."""
    pairs = [pair for refusal in failed for pair in _pairs(refusal)]
    row = {id: number for number, id in enumerate(ids.to_pylist())} if pairs else {}
    return [(publication, leads[row[id]]) for publication, id in pairs if id in row]


def _pairs(refusal: Refusal) -> list[tuple[str, str]]:
    """The publication and the subscription that a pair may be of: both may have spaces in their ids."""
    subject = refusal.subject if refusal.kind == "pair" else ""
    spaces = (place for place, character in enumerate(subject) if character == " ")
    return [(subject[:place], subject[place + 1 :]) for place in spaces]


def _for_node(node: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Publications as rows of `ROUTED_ROWS`."""
    routed = pa.schema(ROUTED_ROWS.field(ROUTED).type)
    wide = widened(rows.select([name for name in rows.schema.names if name in routed.names]), routed)
    struct = pa.StructArray.from_arrays(wide.columns, fields=list(routed))
    nodes = pa.array(np.full(rows.num_rows, node, np.int32))
    return widened(pa.RecordBatch.from_arrays([nodes, struct], names=[NODE, ROUTED]), ROUTED_ROWS)
