"""Writes the committed matches to one file: Parquet, JSON Lines or CSV, by the ending of its name."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from triplewire.encode.buffers import of_strings
from triplewire.errors import TriplewireError
from triplewire.pipeline.output import Output
from triplewire.pipeline.results.committed import check_output, columns_of, committed_files, rows_of

SUFFIXES = (".parquet", ".jsonl", ".csv")
_TRIES, _PAUSE = 20, 0.1  # while a batch run replaces the files; seconds

_JSON_TEXT = {"bindings"}  # columns whose text is JSON


def export(output: Output, file: Path, suffix: str) -> int:
    """Write all committed matches of the output folder to `file`, in the form of this one of `SUFFIXES`; returns how
    many they are.

    Where a batch run replaces the rows meanwhile, the file is begun anew, so that it has all of one run or all of the
    other. Raises `TriplewireError` where the folder is no output of a run.
    """
    check_output(output)
    for _ in range(_TRIES):
        try:
            files = committed_files(output)
            columns = columns_of(files)
            return _WRITERS[suffix](file, columns, rows_of(files, columns))
        except FileNotFoundError as error:
            gone = error
            time.sleep(_PAUSE)
    raise TriplewireError(
        f"its files go away while they are read: {gone}", source=str(output.folder), remedy="try it again"
    ) from gone


def _write_parquet(file: Path, columns: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with pq.ParquetWriter(file, columns) as writer:
        for batch in batches:
            rows += batch.num_rows
            if batch.num_rows:
                writer.write_batch(batch)
    return rows


def _write_csv(file: Path, columns: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    plain = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in columns])
    with pyarrow.csv.CSVWriter(file, plain) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], schema=plain))
    return rows


def _write_json_lines(file: Path, columns: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with open(file, "wb") as stream:
        for batch in batches:
            rows += batch.num_rows
            if batch.num_rows:
                pieces: list[pa.Array | pa.Scalar] = []
                for number, field in enumerate(columns):
                    pieces.append(_same(f'{", " if number else "{"}"{field.name}": '.encode()))
                    pieces.append(_json(batch.column(number), field.name))
                lines = pc.binary_join_element_wise(*pieces, _same(b"}\n"), _same(b""))
                stream.writelines(lines.to_pylist())
    return rows


_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_json_lines}


def _same(text: bytes) -> pa.Scalar:
    """The same text for each row; `pa.scalar` would import pandas."""
    return of_strings([text])[0]


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _plain(column: pa.Array) -> pa.Array:
    """A column with instants as texts of ISO 8601 in UTC; formatting them with their zone needs its database."""
    if not pa.types.is_timestamp(column.type):
        return column
    text = column.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(text, " ", "T"), "Z", "")


def _json(column: pa.Array, name: str) -> pa.Array:
    """The values of a column as JSON: each distinct value is written once."""
    column = _plain(column)
    if name in _JSON_TEXT:
        texts = column.cast(pa.large_binary())
    else:
        encoded = column.dictionary_encode()
        dumps = json.JSONEncoder(ensure_ascii=False).encode
        texts = of_strings([dumps(value).encode() for value in encoded.dictionary.to_pylist()]).take(encoded.indices)
    return pc.fill_null(texts.cast(pa.large_binary()), b"null")
