"""The schemas of rows between the steps of the pipeline, for Arrow and for Spark.

A refused input is a row too: its `refusal` is set and the other columns are null. The schemas of publications and
matches without refusals: `triplewire.encode.schema`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import pyarrow as pa

from triplewire.encode.schema import FILE_BESIDE, INSTANT, MATCHES, PUBLICATIONS, WHY, storable_text, to_batch
from triplewire.errors import Refusal
from triplewire.model.attachments import FilesBeside
from triplewire.model.publication import Publication

REFUSAL_FIELDS = ("kind", "subject", "where", "reason", "remedy")
DEAD_LETTERS = pa.schema([(name, pa.string()) for name in REFUSAL_FIELDS])
"""The dead-letter output: a row for each refused publication, subscription or pair."""

_REFUSAL = pa.field("refusal", pa.struct(list(DEAD_LETTERS)))


def _with_refusals(schema: pa.Schema, *more: pa.Field) -> pa.Schema:
    return pa.schema([*(field.with_nullable(True) for field in schema), *more, _REFUSAL])


PUBLICATION_ROWS = _with_refusals(PUBLICATIONS, FILE_BESIDE)
"""The rows of `sources`: publications with the file that each was read from, and refusals."""

OUTCOME_ROWS = _with_refusals(MATCHES, WHY, pa.field("source", pa.string()))
"""The rows of `filter`: matches with the source of their publication, and refusals."""


FILE_ROWS = pa.schema([("path", pa.binary()), ("length", pa.int64()), ("content", pa.binary())])
"""The rows of `sources.files`. A path is bytes, as the name of a file need not be UTF-8. Files of this machine have no
content: a worker opens them itself."""

INDEX_VERSION = "index_version"
MATCH_ROWS = pa.schema([*(field.with_nullable(True) for field in MATCHES), pa.field(INDEX_VERSION, pa.string()), WHY])
"""The rows of the output: matches, the version of the subscriptions that gave the row, and why it is a match, where
that was asked for."""


def columns_of(schema: pa.Schema) -> str:
    """A schema in Spark's DDL."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_spark_type(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    return _PLAIN[kind]


_PLAIN = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    INSTANT: "timestamp",
}


def widened(batch: pa.RecordBatch, schema: pa.Schema, **more: pa.Array) -> pa.RecordBatch:
    """The batch with all columns of `schema`: its own, those given, and null for the others."""
    held = {name: batch.column(name) for name in batch.schema.names} | more
    columns = [held[field.name] if field.name in held else pa.nulls(batch.num_rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def publication_rows(publications: Sequence[Publication]) -> pa.RecordBatch:
    """Publications as `PUBLICATION_ROWS`. Raises what `to_batch` raises."""
    attached = [publication.attachments for publication in publications]
    files = [os.fsencode(each.file) if isinstance(each, FilesBeside) else None for each in attached]
    beside = {FILE_BESIDE.name: pa.array(files, FILE_BESIDE.type)}
    return widened(to_batch(publications), PUBLICATION_ROWS, **beside)


def refused(refusals: Iterable[Refusal], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of `schema` with a row for each refusal."""
    return pa.RecordBatch.from_pylist([{"refusal": storable(refusal)} for refusal in refusals], schema=schema)


def storable(refusal: Refusal) -> dict[str, str]:
    """A row of `DEAD_LETTERS`."""
    return {name: storable_text(value) for name, value in asdict(refusal).items()}
