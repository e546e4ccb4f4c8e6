"""A version of an index, called as Spark's workers call it; what Spark does between the stages is done here."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.encode.schema import to_batch
from triplewire.model.publication import Publication
from triplewire.pipeline.filter import Calling, IndexFilter
from triplewire.pipeline.index.versions import Version
from triplewire.pipeline.rows import PUBLICATION_ROWS, widened
from triplewire.pipeline.tasks import NODE, REPORT, ROUTED, FirstStage, OneStage, SecondStage
from triplewire.pipeline.written import Target

CASES = Path(__file__).resolve().parents[2] / "cases" / "index"

Row = tuple[str, ...]


def row_of(row: dict[str, Any]) -> Row:
    """A match as it can be compared: without the time."""
    names = "publication", "subscription", "bindings", "truncated", "construct", "content", "revision"
    return tuple(str(row[name]) for name in names)


def rows_of(publications: Sequence[Publication]) -> list[pa.RecordBatch]:
    """Two batches of publications, as Spark hands them over."""
    half = len(publications) // 2
    return [widened(to_batch(part), PUBLICATION_ROWS) for part in (publications[:half], publications[half:])]


def filter_of(version: Version) -> IndexFilter:
    nodes = len(version.content.parts) - 1
    return IndexFilter(str(version.directory), version.name, nodes, calling=Calling(why=True))


def answers(version: Version, batches: Sequence[pa.RecordBatch]) -> tuple[list[Row], list[str], int]:
    """The matches of a version as its tasks write them, what it refused, and how often a publication went to a node."""
    chosen, routed = filter_of(version), []
    with tempfile.TemporaryDirectory() as folder:
        target = Target(folder, version.name)
        if chosen.nodes:
            for rows in FirstStage(chosen, target)(batches):
                struct = rows.column(ROUTED)
                names = [NODE, *(field.name for field in struct.type), REPORT]
                columns = [rows.column(NODE), *struct.flatten(), rows.column(REPORT)]
                routed.append(pa.RecordBatch.from_arrays(columns, names=names))
            list(SecondStage(chosen, target)(routed))
        else:
            list(OneStage(chosen, target)(batches))
        found, letters = (
            [row for file in Path(folder, kind).glob("*") for row in pq.read_table(file).to_pylist()]
            for kind in ("matches", "dead-letter")
        )
    assert {row["index_version"] for row in found} <= {version.name}
    assert all(json.loads(row["why"]) for row in found)
    refused = sorted(f"{row['kind']} {row['subject']}" for row in letters)
    return (
        sorted(map(row_of, found)),
        refused,
        sum(rows.num_rows - len(rows.column(REPORT).drop_null()) for rows in routed),
    )
