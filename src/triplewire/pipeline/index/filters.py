"""What runs on Spark's workers for an index: one version, in one stage or in two. No Spark here.

Where subscriptions are spread over nodes, stage 1 matches every publication against the part of the server and says
which nodes it has to go to; stage 2 matches what comes to a node against its shard (001, section 4.5). The matches of
both are those of one engine. A pair that stage 1 could not decide is routed as if it had matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.encode.schema import PUBLICATIONS
from triplewire.errors import Refusal, StoreError
from triplewire.operators.files import OperatorFile
from triplewire.pipeline.calling import Calling
from triplewire.pipeline.filter import OnStats, bounded, matched, outcomes_of, parted, sources_of
from triplewire.pipeline.index.open_version import OpenVersion, opened
from triplewire.pipeline.rows import OUTCOME_ROWS, refused, widened

NODE, ROUTED = "node", "routed"

ROUTED_ROWS = pa.schema(
    [
        *OUTCOME_ROWS,
        pa.field(NODE, pa.int32()),
        pa.field(ROUTED, pa.struct([f.with_nullable(True) for f in PUBLICATIONS])),
    ]
)
"""The rows of stage 1: outcomes, and publications (`routed`) for nodes."""


@dataclass(frozen=True)
class IndexFilter:
    """A version of an index, ready to travel: a path, which all workers see. Called in a worker, it matches.

    `nodes` is the number of shards of stage 2; with 0 there is one stage, which is a call of this object. `sha256` is
    the hash of the manifest: of a version that has taken the place of another one, nothing is matched.
    """

    directory: str
    version: str
    nodes: int = 0
    operators: tuple[OperatorFile, ...] = field(default=(), repr=False)
    calling: Calling = field(default_factory=Calling, repr=False, compare=False)
    sha256: str = field(default="", repr=False)

    def opened(self) -> OpenVersion:
        """The version, opened once a process. Raises `StoreError`."""
        version = opened(self.directory, self.version, self.operators, self.calling.kind)
        if self.sha256 not in ("", version.version.sha256):
            raise StoreError(
                f"the version {self.version} is another one than when the micro-batch began", source=self.directory
            )
        return version

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outcomes (`OUTCOME_ROWS`) of publications. A refused input (`PUBLICATION_ROWS`) is passed on as it is."""
        engine = self.opened().server()
        with self.calling.task(engine):
            yield from outcomes_of(engine, batches)


@dataclass(frozen=True)
class StageOne:
    """Publications to their matches at the server, and to the nodes that they have to go to (`ROUTED_ROWS`)."""

    filter: IndexFilter
    on_stats: OnStats = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of both kinds for batches of publications and refused inputs."""
        version = self.filter.opened()
        with self.filter.calling.task(version.server()):
            yield from self._rows(version, batches)

    def _rows(self, version: OpenVersion, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            refusals, publications = parted(batch)
            if refusals is not None:
                yield widened(refusals, ROUTED_ROWS)
            failed: list[Refusal] = []
            for rows, matches in matched(version.server(), publications, failed, self.on_stats):
                for node, own in _routed(version, rows, matches, failed):
                    yield _for_node(node, own)
                told = matches
                if len(version.routers):
                    told = matches.filter(pc.invert(pc.is_in(matches.column("subscription"), version.routers)))
                yield from bounded(widened(told, ROUTED_ROWS, source=sources_of(rows, told)))
            own_failures = [refusal for refusal in failed if not _is_of(refusal, version.version.plan.routers)]
            yield refused(own_failures, ROUTED_ROWS)


@dataclass(frozen=True)
class StageTwo:
    """Publications with their nodes (`node`, and the columns of a publication) to the matches there."""

    filter: IndexFilter
    on_stats: OnStats = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outcomes (`OUTCOME_ROWS`). Rows that are no publication were refused in stage 1, and are passed over."""
        version = self.filter.opened()
        with ExitStack() as tasks:
            yield from self._rows(version, batches, tasks)

    def _rows(
        self, version: OpenVersion, batches: Iterable[pa.RecordBatch], tasks: ExitStack
    ) -> Iterator[pa.RecordBatch]:
        begun: set[int] = set()
        for batch in batches:
            nodes = batch.column(NODE)
            publications = batch.select([name for name in batch.schema.names if name != NODE])
            for node in pc.unique(nodes).to_pylist():
                if node not in begun:
                    tasks.enter_context(self.filter.calling.task(version.node(node)))
                    begun.add(node)
                own = publications.filter(pc.equal(nodes, node))
                failed: list[Refusal] = []
                for rows, matches in matched(version.node(node), own, failed, self.on_stats):
                    yield from bounded(widened(matches, OUTCOME_ROWS, source=sources_of(rows, matches)))
                yield refused([refusal for refusal in failed if not _is_of_row(refusal)], OUTCOME_ROWS)


def _routed(
    version: OpenVersion, rows: pa.RecordBatch, matches: pa.RecordBatch, failed: Sequence[Refusal]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The nodes that publications have to go to, each with those."""
    if version.version.content.everywhere:
        yield from ((node, rows) for node in range(version.nodes))
        return
    ids, leads = version.leading
    place = pc.index_in(matches.column("subscription"), value_set=ids)
    is_led = pc.is_valid(place)
    led = leads[place.filter(is_led).to_numpy()]
    names = matches.column("publication").filter(is_led)
    undecided = _undecided(failed, ids, leads)
    for node in range(version.nodes):
        to_node = names.filter(pa.array(led[:, node])).unique()
        more = [name for name, own in undecided if own[node]]
        if len(to_node) or more:
            wanted = pa.chunked_array([to_node, pa.array(more, to_node.type)]).combine_chunks()
            own = rows.filter(pc.is_in(pc.cast(rows.column("id"), wanted.type), value_set=wanted))
            if own.num_rows:
                yield node, own


def _undecided(
    failed: Sequence[Refusal], ids: pa.Array, leads: NDArray[np.bool_]
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Publications that stage 1 could not decide for an id that leads to nodes, and to which nodes."""
    pairs = [refusal for refusal in failed if refusal.kind == "pair"]
    if not pairs:
        return []
    row = {id: number for number, id in enumerate(ids.to_pylist())}
    return [
        (publication, leads[row[id]]) for refusal in pairs for publication, id in _splits(refusal.subject) if id in row
    ]


def _splits(subject: str) -> Iterator[tuple[str, str]]:
    """A publication and a subscription: both may have spaces in their ids."""
    at = subject.find(" ")
    while at >= 0:
        yield subject[:at], subject[at + 1 :]
        at = subject.find(" ", at + 1)


def _is_of(refusal: Refusal, ids: frozenset[str]) -> bool:
    """Is it about a pair with one of these ids?"""
    return refusal.kind == "pair" and any(id in ids for _, id in _splits(refusal.subject))


def _is_of_row(refusal: Refusal) -> bool:
    """Is it about a row that is no publication? Stage 1 has told of it."""
    return refusal.kind == "publication" and "(record " in refusal.where


def _for_node(node: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Publications as rows of `ROUTED_ROWS`."""
    wide = widened(rows.select([name for name in rows.schema.names if name in PUBLICATIONS.names]), PUBLICATIONS)
    struct = pa.StructArray.from_arrays(wide.columns, fields=list(ROUTED_ROWS.field(ROUTED).type))
    nodes = pa.array(np.full(rows.num_rows, node, np.int32))
    return widened(pa.RecordBatch.from_arrays([nodes, struct], names=[NODE, ROUTED]), ROUTED_ROWS)
