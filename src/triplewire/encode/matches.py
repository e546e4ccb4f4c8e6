"""Matches as Arrow columns of the schema `triplewire.encode.schema.MATCHES`, from arrays and texts that rows share."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.bounded_cache import cached_if_short
from triplewire.encode.batch import Ids
from triplewire.encode.schema import INSTANT, MATCHES, PAIRS
from triplewire.encode.strings import TextColumn, of_bools, of_few, of_numbers, of_strings, of_text, utf8
from triplewire.errors import LimitError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
BYTES = 1 << 30  # of the texts of one record batch, unless a single row has more
TEXTS = ("publication", "subscription", "bindings", "content", "revision")
"""The columns of texts that rows share."""

MOST_BYTES = (1 << 31) - 1  # of one column of strings (Arrow Columnar Format, "Variable-size Binary Layout")


def names_of(ids: Sequence[str], numbers: Ids) -> TextColumn:
    """The ids of publications by number. The numbers ascend, so those that do not occur are few."""
    first, last = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (0, -1)
    named = TextColumn.of([utf8(id_) for id_ in ids[first : last + 1]])
    return TextColumn(named.text, named.offset, (numbers - np.int32(first)).astype(np.int32))


@dataclass(frozen=True, slots=True)
class MatchColumns:
    """Matches as columns. `construct` has the graphs of those that have one, by row."""

    publication: TextColumn
    subscription: TextColumn
    bindings: TextColumn
    content: TextColumn
    revision: TextColumn
    truncated: NDArray[np.bool_]
    construct: Mapping[int, bytes]


def batches(columns: MatchColumns, matched_at: dt.datetime) -> Iterator[pa.RecordBatch]:
    """Matches as record batches: one, unless their texts are more than `BYTES`. Raises `LimitError` where the bindings
    of one match are too long for any."""
    length = len(columns.truncated)
    _check_bindings(columns)
    micros = (matched_at - _EPOCH) // dt.timedelta(microseconds=1)  # `pa.scalar` would import pandas
    texts = {name: (_plain_strings(getattr(columns, name)), getattr(columns, name).number) for name in TEXTS}
    sizes = np.zeros(length, np.int64)
    for name, (_, number) in texts.items():
        sizes += np.diff(getattr(columns, name).offset)[number]
    for row, graph in columns.construct.items():
        sizes[row] += len(graph)
    graphs = of_few(columns.construct, length).cast(pa.large_string()) if columns.construct else None
    bounds = np.flatnonzero(np.diff(np.cumsum(sizes) // BYTES)) + 1
    for first, last in zip([0, *bounds.tolist()], [*bounds.tolist(), length], strict=True):
        rows = {name: distinct.take(of_numbers(number[first:last])) for name, (distinct, number) in texts.items()}
        rows["construct"] = pa.nulls(last - first, pa.string()) if graphs is None else graphs[first:last]
        held = {
            name: column if column.type == pa.string() else column.cast(pa.string()) for name, column in rows.items()
        }
        held["truncated"] = of_bools(columns.truncated[first:last])
        held["matched_at"] = of_numbers(np.full(last - first, micros)).view(INSTANT)
        yield pa.RecordBatch.from_arrays([held[name] for name in MATCHES.names], schema=MATCHES)


def pairs(
    publication: tuple[Ids, pa.Array], subscription: tuple[Ids, pa.Array], truncated: NDArray[np.bool_]
) -> pa.RecordBatch:
    """Matches without bindings, of the schema `triplewire.encode.schema.PAIRS`: numbers, and the ids that they name."""
    columns = [
        pa.DictionaryArray.from_arrays(of_numbers(number), ids, safe=False)
        for number, ids in (publication, subscription)
    ]
    return pa.RecordBatch.from_arrays([*columns, of_bools(truncated)], schema=PAIRS)


def _check_bindings(columns: MatchColumns) -> None:
    """Raises `LimitError` before texts are copied that a batch does not hold."""
    sizes = np.diff(columns.bindings.offset)
    if not len(sizes) or int(sizes.max()) <= MOST_BYTES:
        return
    row = int(np.argmax(sizes[columns.bindings.number]))
    publication, subscription = (
        of_text(column.text, column.offset)[int(column.number[row])].as_py().decode("utf-8", "surrogatepass")
        for column in (columns.publication, columns.subscription)
    )
    what = f"the bindings of {subscription!r} have {int(sizes.max()):,} bytes, a batch holds {MOST_BYTES:,}"
    raise LimitError(what, source=publication, remedy="lower max_binding_bytes, or select fewer variables")


def shared(parts: Sequence[tuple[MatchColumns, dt.datetime]], **columns: str) -> pa.Table:
    """Matches, with when they were made, as one table of dictionary-encoded columns: a text that many rows share is
    held once, and Parquet stores it once. `columns` are others of one text, behind those of `MATCHES`."""
    lengths = [len(part.truncated) for part, _ in parts]
    length, ends = sum(lengths), np.cumsum([0, *lengths]).tolist()
    held: dict[str, pa.Array] = {name: _dictionary([getattr(part, name) for part, _ in parts]) for name in TEXTS}
    held["truncated"] = of_bools(np.concatenate([part.truncated for part, _ in parts]))
    instants = [(matched_at - _EPOCH) // dt.timedelta(microseconds=1) for _, matched_at in parts]
    held["matched_at"] = of_numbers(np.repeat(np.array(instants, np.int64), lengths)).view(INSTANT)
    rows = zip(ends, parts, strict=False)
    graphs = {first + row: graph for first, (part, _) in rows for row, graph in part.construct.items()}
    held["construct"] = of_few(graphs, length).cast(pa.large_string()).dictionary_encode()
    first_of_each = of_numbers(np.zeros(length, np.int32))
    for name, text in columns.items():
        held[name] = pa.DictionaryArray.from_arrays(first_of_each, of_strings([utf8(text)]).cast(pa.large_string()))
    return pa.table({name: held[name] for name in (*MATCHES.names, *columns)})


def _dictionary(columns: Sequence[TextColumn]) -> pa.DictionaryArray:
    """Columns one behind the other, each distinct text once."""
    texts = pa.concat_arrays(list(map(strings, columns))).dictionary_encode()
    ends = np.cumsum([0, *(len(column.offset) - 1 for column in columns)])
    numbers = np.concatenate([column.number + end for column, end in zip(columns, ends, strict=False)])
    indices = texts.indices.take(of_numbers(numbers.astype(np.int64)))
    return pa.DictionaryArray.from_arrays(indices, texts.dictionary)


def strings(column: TextColumn) -> pa.LargeStringArray:
    """The distinct strings of a column as Arrow's: where one is not UTF-8, for a lone surrogate, as `utf8` has it."""
    texts = of_text(column.text, column.offset)
    try:
        return texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        valid = [utf8(text.as_py().decode("utf-8", "surrogatepass")) for text in texts]
        return of_strings(valid).cast(pa.large_string())


def _plain_strings(column: TextColumn) -> pa.StringArray | pa.LargeStringArray:
    """The same with offsets of 32 bits, where that is possible."""
    texts = strings(column)
    return texts.cast(pa.string()) if column.offset[-1] - column.offset[0] <= BYTES else texts


def combined(matches: pa.Table) -> pa.RecordBatch:
    """All matches as one batch. Raises `LimitError` where their texts are too long for that."""
    for name, column in zip(matches.schema.names, matches.columns, strict=True):
        if column.nbytes > MOST_BYTES:
            what = f"the column {name!r} of the matches has {column.nbytes:,} bytes, a batch holds {MOST_BYTES:,}"
            raise LimitError(what, remedy="hand over fewer publications at a time")
    parts = matches.combine_chunks().to_batches()
    return parts[0] if parts else pa.RecordBatch.from_pylist([], schema=matches.schema)


# --- Files of matches: rows of any columns; of dictionaries, each text is written out once ---------------------------

SUFFIXES = (".parquet", ".jsonl", ".csv")
STATISTICS = ("publication", "subscription", "matched_at")
"""Columns whose least and greatest values tell readers of Parquet which row groups they need; other texts are long."""

_FEW = 8  # texts that are written one by one, as calls of Arrow take longer
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

        plain = pa.schema(
            [(field.name, pa.string() if pa.types.is_timestamp(field.type) else field.type) for field in schema]
        )
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
    texts: list[pa.LargeBinaryArray] = []  # the texts that occur in a line, and for each row the places of its own
    places: list[NDArray[np.int64]] = []
    before, size = b"{", 0  # what stands before the next value that differs from row to row; how many texts there are
    for number, name in enumerate(rows.schema.names):
        before += f'{", " if number else ""}"{name}": '.encode()
        column = rows.column(number)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        values, place = _json(before, _plain(whole), name in _JSON_TEXTS)
        if len(values) == 1:
            before = values[0].as_py()
        else:
            texts.append(values)
            places.append(place + size)
            before, size = b"", size + len(values)
    texts.append(of_strings([before + b"}\n"]))
    places.append(np.full(rows.num_rows, size))
    taken = pa.concat_arrays(texts).take(of_numbers(np.stack(places, axis=1).ravel()))
    data: bytes = taken.buffers()[2].to_pybytes()  # the texts of all rows, one behind the other
    return data


def _json(before: bytes, column: pa.Array, is_json: bool) -> tuple[pa.LargeBinaryArray, NDArray[np.int64]]:
    """Texts of JSON behind `before`, and for each row the place of its own. Each distinct value is written out once."""
    every = np.arange(len(column))
    if column.null_count == len(column):
        return of_strings([before + b"null"]), 0 * every
    if is_json and not column.null_count and not pa.types.is_dictionary(column.type):
        return _around(before, column.cast(pa.large_binary()), b""), every  # to find equal ones takes longer
    encoded = used_texts(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())
    values = encoded.dictionary
    texts = _around(before, values.cast(pa.large_binary()), b"") if is_json else _quoted(before, values)
    indices, kind = encoded.indices, np.dtype(str(encoded.indices.type))
    if encoded.null_count:
        indices = pc.fill_null(indices, of_numbers(np.array([len(texts)], kind))[0])
        texts = pa.concat_arrays([texts, of_strings([before + b"null"])])
    place = np.frombuffer(indices.buffers()[1], kind, len(indices), indices.offset * kind.itemsize)
    return texts, place.astype(np.int64)


def used_texts(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """A part of a larger column, with the texts that occur in it."""
    if len(column.dictionary) <= len(column):
        return column
    used = pc.unique(column.indices.drop_null())
    return pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), column.dictionary.take(used))


def _quoted(before: bytes, values: pa.Array) -> pa.LargeBinaryArray:
    """Values as JSON: texts at once, where none has a control character, a quotation mark or a backslash."""
    if len(values) > _FEW and not pa.types.is_boolean(values.type):
        encoded = values.cast(pa.large_binary())
        characters = np.frombuffer(pa.concat_arrays([encoded]).buffers()[2] or b"", np.uint8)
        if not ((characters < 32) | (characters == 34) | (characters == 92)).any():
            return _around(before + b'"', encoded, b'"')
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    return of_strings([before + dumps(value).encode() for value in values.to_pylist()])


def _around(before: bytes, texts: pa.LargeBinaryArray, behind: bytes) -> pa.LargeBinaryArray:
    """Texts with what stands before and behind each."""
    return pc.binary_join_element_wise(_same(before), texts, _same(behind), _same(b""))


@cached_if_short(256, 64)
def _same(text: bytes) -> pa.Scalar:
    """The same text for each row; `pa.scalar` would import pandas."""
    return of_strings([text])[0]


def _plain(column: pa.Array) -> pa.Array:
    """A column with instants as texts of ISO 8601 in UTC; formatting them with their zone needs its database."""
    if not pa.types.is_timestamp(column.type):
        return column
    text = column.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(text, " ", "T"), "Z", "")
