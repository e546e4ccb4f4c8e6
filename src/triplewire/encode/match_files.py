"""Rows of matches as files: Parquet, JSON Lines and CSV. The rows are record batches or tables of any columns; those of
texts may be dictionaries, so that a text that many rows share is written out once.

The columns: `triplewire.encode.schema.MATCHES`; those of texts that rows share: `triplewire.encode.matches`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.encode.buffers import of_strings

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".jsonl", ".csv")
STATISTICS = ("publication", "subscription", "matched_at")
"""Columns whose least and greatest values tell readers of Parquet which row groups they need; other texts are long."""

_JSON_TEXTS = frozenset({"bindings"})  # columns whose texts are JSON


@contextmanager
def match_file(file: Path, schema: pa.Schema, suffix: str) -> Iterator[Callable[[pa.RecordBatch], object]]:
    """A new file in the form of this one of `SUFFIXES`: a function that writes batches of the schema to it."""
    if suffix == ".parquet":
        with parquet_writer(file, schema) as writer:
            yield writer.write_batch
    elif suffix == ".jsonl":
        with open(file, "wb") as stream:
            yield lambda rows: stream.write(json_lines(rows))
    else:
        from pyarrow.csv import CSVWriter

        plain = pa.schema([(field.name, pa.string() if _is_instant(field.type) else field.type) for field in schema])
        with CSVWriter(file, plain) as csv:
            yield lambda rows: csv.write_batch(pa.record_batch(list(map(_plain, rows.columns)), schema=plain))


def parquet_writer(
    file: Path | IO[bytes], schema: pa.Schema, statistics: Sequence[str] = STATISTICS
) -> pq.ParquetWriter:
    """A writer of Parquet that any program reads: dictionaries become plain columns, whose texts a row group stores
    once. There are `statistics` of those of these columns that are there."""
    import pyarrow.parquet as pq  # JSON Lines do without it

    names = [name for name in statistics if name in schema.names]
    return pq.ParquetWriter(file, schema, store_schema=False, write_statistics=names)


def json_lines(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Rows as JSON objects, one a line: texts, truth values, and instants as texts of ISO 8601; bindings are JSON
    already."""
    if not rows.num_rows:
        return b""
    pieces: list[pa.Array | pa.Scalar] = []
    for number, name in enumerate(rows.schema.names):
        column = rows.column(number)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        pieces += [_same(f'{", " if number else "{"}"{name}": '.encode()), _json(_plain(whole), name in _JSON_TEXTS)]
    lines = pc.binary_join_element_wise(*pieces, _same(b"}\n"), _same(b""))
    _, offsets, text = lines.buffers()
    whole_text: bytes = text.slice(0, int(np.frombuffer(offsets, np.int64)[len(lines)])).to_pybytes()
    return whole_text


def _json(column: pa.Array, is_json: bool) -> pa.Array:
    """The values of a column as JSON; each distinct one is written out once."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = encoded.dictionary
    if len(texts) > len(encoded):  # a part of a larger column
        used = pc.unique(encoded.indices.drop_null())
        encoded = pa.DictionaryArray.from_arrays(pc.index_in(encoded.indices, used), texts.take(used))
        texts = encoded.dictionary
    if not is_json:
        dumps = json.JSONEncoder(ensure_ascii=False).encode
        texts = of_strings([dumps(value).encode() for value in texts.to_pylist()])
    return pc.fill_null(texts.cast(pa.large_binary()).take(encoded.indices), _same(b"null"))


def _same(text: bytes) -> pa.Scalar:
    """The same text for each row; `pa.scalar` would import pandas."""
    return of_strings([text])[0]


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))


def _plain(column: pa.Array) -> pa.Array:
    """A column with instants as texts of ISO 8601 in UTC; formatting them with their zone needs its database."""
    if not _is_instant(column.type):
        return column
    text = column.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(text, " ", "T"), "Z", "")
