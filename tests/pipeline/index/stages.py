"""A version of an index, called as Spark's workers call it; what Spark does between the stages is done here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.encode.schema import to_batch
from triplewire.model.publication import Publication
from triplewire.pipeline.index.filters import NODE, ROUTED, IndexFilter, StageOne, StageTwo
from triplewire.pipeline.index.versions import Version
from triplewire.pipeline.rows import PUBLICATION_ROWS, widened

CASES = Path(__file__).resolve().parents[2] / "cases" / "index"

Row = tuple[str, ...]


def row_of(row: dict[str, Any]) -> Row:
    """A match as it can be compared: without the time."""
    names = "publication", "subscription", "bindings", "truncated", "construct", "content", "revision", "source"
    return tuple(str(row[name]) for name in names)


def rows_of(publications: Sequence[Publication]) -> list[pa.RecordBatch]:
    """Two batches of publications, as Spark hands them over."""
    half = len(publications) // 2
    return [widened(to_batch(part), PUBLICATION_ROWS) for part in (publications[:half], publications[half:])]


def filter_of(version: Version) -> IndexFilter:
    return IndexFilter(str(version.directory), version.name, len(version.content.parts) - 1)


def answers(version: Version, batches: Sequence[pa.RecordBatch]) -> tuple[list[Row], list[str], int]:
    """The matches of a version, what it refused, and how often a publication went to a node."""
    chosen = filter_of(version)
    told, routed = [], []
    if not chosen.nodes:
        told = list(chosen(batches))
    else:
        for rows in StageOne(chosen)(batches):
            told.append(rows.filter(pc.is_null(rows.column(NODE))).drop_columns([NODE, ROUTED]))
            to_nodes = rows.filter(pc.is_valid(rows.column(NODE)))
            struct = to_nodes.column(ROUTED)
            names = [NODE, *(field.name for field in struct.type)]
            routed.append(pa.RecordBatch.from_arrays([to_nodes.column(NODE), *struct.flatten()], names=names))
        told += StageTwo(chosen)(routed)
    rows = [row for batch in told for row in batch.to_pylist()]
    matches = sorted(row_of(row) for row in rows if row["refusal"] is None)
    refused = sorted(f"{row['refusal']['kind']} {row['refusal']['subject']}" for row in rows if row["refusal"])
    return matches, refused, sum(batch.num_rows for batch in routed)
