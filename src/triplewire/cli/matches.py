"""The rows of matches as JSON Lines, Parquet or a table, as they come, without an object a match but in a table.

Rows are record batches whose columns of texts are dictionaries: a text that many rows share is there once. They come
from results (`rows_of`) and, in any order of runs, from the workers of a backtest (`rows_in_order`). Which bytes a file
has depends on the rows and their order alone, not on how they came. Files that nobody sees half of, and tables:
`triplewire.cli.output`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import inverse
from triplewire.cli import output
from triplewire.encode.matches import names_of, strings
from triplewire.encode.strings import TextColumn, of_bools, of_few, of_numbers, of_strings
from triplewire.engine.result import Part

PAIR = ("publication", "subscription", "truncated")
COLUMNS = ("publication", "subscription", "bindings", "truncated", "construct", "content", "revision")
GROUP_ROWS = 1 << 20, 1 << 13  # rows of one Parquet row group, without bindings and with them
BYTES = 1 << 25
"""Bytes of texts of the rows that are put together at once, if these are several."""

_JSON = "bindings"  # the column whose texts are JSON
_NAMES = pa.dictionary(pa.int32(), pa.large_string())


class Writer(Protocol):
    """Takes the rows of a run, in their order."""

    def write(self, part: Part) -> None:
        """Write the matches of a part of a result."""


# --- rows ------------------------------------------------------------------------------------------------------------


def rows_of(part: Part, *, bindings: bool) -> Iterator[pa.RecordBatch]:
    """The matches of a part, some at a time: the columns `COLUMNS`, or `PAIR` without bindings."""
    if not bindings:
        ids = part.snapshot.id_column(part.subscription)
        columns = [_shared(names_of(part.publications, part.publication)), _shared(ids), of_bools(part.truncated)]
        yield pa.RecordBatch.from_arrays(columns, names=list(PAIR))
        return
    for matches in part.columns():
        held: dict[str, pa.Array] = {name: _shared(getattr(matches, name)) for name in COLUMNS if name in _SHARED}
        held["truncated"] = of_bools(matches.truncated)
        graphs = of_few(matches.construct, len(matches.truncated))
        held["construct"] = graphs.cast(pa.large_string()).dictionary_encode()
        yield pa.RecordBatch.from_arrays([held[name] for name in COLUMNS], names=list(COLUMNS))


_SHARED = frozenset(COLUMNS) - {"truncated", "construct"}


def _shared(column: TextColumn) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(of_numbers(column.number), strings(column))


def rows_in_order(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The matches of a backtest, in the order in which one process has them.

    The table has the columns `COLUMNS`, those of texts as dictionaries, and `place` and `row`: numbers of the run of
    files and of the match in it. Matches of a run that follow one another in the table are in order.
    """
    runs: list[tuple[int, int, pa.RecordBatch]] = []
    for batch in table.to_batches():
        place, row = (_numbers(batch.column(name)) for name in ("place", "row"))
        begins = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 1)).tolist()
        rows = batch.select(list(COLUMNS))
        for begin, end in zip(begins, [*begins[1:], len(place)], strict=True):
            runs.append((int(place[begin]), int(row[begin]), rows.slice(begin, end - begin)))
    runs.sort(key=lambda run: run[:2])
    return (rows for _, _, rows in runs)


def _bytes_of(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """The bytes of the texts of each row."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        if pa.types.is_dictionary(column.type):
            lengths = np.append(_numbers(pc.binary_length(column.dictionary)), 0)  # the last one is that of no text
            sizes += lengths[_numbers(column.indices, instead_of_null=len(lengths) - 1)]
    return sizes


def _numbers(column: pa.Array, instead_of_null: int = 0) -> NDArray[np.integer]:
    """Numbers, as an array of NumPy; `to_numpy` would import pandas."""
    kind = np.dtype(str(column.type))
    if column.null_count:
        column = pc.fill_null(column, of_numbers(np.array([instead_of_null], kind))[0])
    return np.frombuffer(column.buffers()[1], kind)[column.offset :][: len(column)]


def _end_of_portion(sizes: NDArray[np.int64], most_rows: int) -> int:
    """How many of these rows go together: so many, or fewer with `BYTES` bytes, but one at least."""
    return max(1, int(np.searchsorted(np.cumsum(sizes[:most_rows]), BYTES, "right")))


# --- JSON Lines ------------------------------------------------------------------------------------------------------


class JsonLines:
    """Writes one JSON object a line, as the README describes it. A line is handed on at once."""

    def __init__(self, stream: IO[str], *, bindings: bool) -> None:
        self._stream, self._bindings = stream, bindings
        stream.flush()  # what comes before stays before
        self._bytes: IO[bytes] | None = getattr(stream, "buffer", None)  # nothing is encoded anew

    def write(self, part: Part) -> None:
        """See `Writer`."""
        for rows in rows_of(part, bindings=self._bindings):
            self.write_rows(rows)
        self._stream.flush()

    def write_rows(self, rows: pa.RecordBatch) -> None:
        """Write rows whose columns are in the order of the names in a line."""
        sizes = _bytes_of(rows)
        while rows.num_rows:
            end = _end_of_portion(sizes, rows.num_rows)
            lines = json_lines(rows.slice(0, end))
            if self._bytes is None:
                self._stream.write(lines.decode())
            else:
                self._bytes.write(lines)
            rows, sizes = rows.slice(end), sizes[end:]


def json_lines(rows: pa.RecordBatch) -> bytes:
    """Rows as JSON objects, one a line: columns of texts as dictionaries, and of truth values."""
    pieces: list[pa.Array | pa.Scalar] = []
    for number, name in enumerate(rows.schema.names):
        pieces += [_same(f'{", " if number else "{"}"{name}": '.encode()), _json(rows.column(number), name == _JSON)]
    lines = pc.binary_join_element_wise(*pieces, _same(b"}\n"), _same(b""))
    end = np.frombuffer(lines.buffers()[1], np.int64)[len(lines)]
    text: bytes = lines.buffers()[2].slice(0, end).to_pybytes()
    return text


def _same(text: bytes) -> pa.Scalar:
    """The same text for each row; `pa.scalar` would import pandas."""
    return of_strings([text])[0]


def _json(column: pa.Array, is_json: bool) -> pa.Array:
    """The values of a column as JSON; `is_json`: its texts are JSON already. Each text is written once."""
    if pa.types.is_boolean(column.type):
        return of_strings([b"false", b"true"]).take(column.cast(pa.int8()))
    column = _used(column)
    texts = column.dictionary if is_json else _quoted(column.dictionary)
    return pc.fill_null(texts.cast(pa.large_binary()).take(column.indices), _same(b"null"))


def _used(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """A part of a larger column, with the texts that occur in it."""
    if len(column.dictionary) <= len(column):
        return column
    used = pc.unique(column.indices.drop_null())
    return pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), column.dictionary.take(used))


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings."""
    encoded = texts.cast(pa.large_binary())
    characters = pa.concat_arrays([encoded]).buffers()[2]
    held = np.frombuffer(characters or b"", np.uint8)
    if not ((held < 32) | (held == 34) | (held == 92)).any():  # no control character, quotation mark or backslash
        return pc.binary_join_element_wise(_same(b'"'), encoded, _same(b'"'), _same(b""))
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    return of_strings([dumps(text).encode() for text in texts.to_pylist()])


# --- Parquet ---------------------------------------------------------------------------------------------------------


class Parquet:
    """Writes the same columns; the bindings are JSON text, and `construct` is N-Quads. Equal texts of a row group are
    stored once."""

    def __init__(self, file: Path | IO[bytes], *, bindings: bool) -> None:
        import pyarrow.parquet as pq  # JSON Lines do without it

        self._bindings, self._most = bindings, GROUP_ROWS[bindings]
        kinds = dict.fromkeys(COLUMNS, _NAMES) | {"truncated": pa.bool_(), "construct": pa.large_string()}
        self._schema = pa.schema([(name, kinds[name]) for name in (COLUMNS if bindings else PAIR)])
        # without Arrow's own schema in it, the names are read back as plain strings
        self._writer = pq.ParquetWriter(file, self._schema, store_schema=False, write_statistics=["publication"])
        self._rows: list[pa.RecordBatch] = []  # that are not written
        self._sizes: list[NDArray[np.int64]] = []  # of these

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        self._write_groups(last=True)
        self._writer.close()

    def write(self, part: Part) -> None:
        """See `Writer`."""
        for rows in rows_of(part, bindings=self._bindings):
            self.write_rows(rows)

    def write_rows(self, rows: pa.RecordBatch) -> None:
        """Write rows of these columns."""
        self._rows.append(rows)
        self._sizes.append(_bytes_of(rows))
        if sum(map(len, self._sizes)) > self._most or sum(int(sizes.sum()) for sizes in self._sizes) > BYTES:
            self._write_groups(last=False)

    def _write_groups(self, *, last: bool) -> None:
        """Write the row groups that are full, and with `last` what there is."""
        sizes = np.concatenate([np.zeros(0, np.int64), *self._sizes])
        while len(sizes):
            end = _end_of_portion(sizes, self._most)
            if end == len(sizes) and not last:
                break
            self._write_group(end)
            sizes = sizes[end:]
        self._sizes = [sizes]

    def _write_group(self, count: int) -> None:
        """Write the next rows as one row group."""
        taken: list[pa.RecordBatch] = []
        while count:
            rows = self._rows.pop(0)
            if rows.num_rows > count:
                self._rows.insert(0, rows.slice(count))
                rows = rows.slice(0, count)
            taken.append(rows)
            count -= rows.num_rows
        columns = []
        for name, kind in zip(self._schema.names, self._schema.types, strict=True):
            pieces = [rows.column(name) for rows in taken]
            if pa.types.is_dictionary(kind):
                columns.append(_dictionary(pieces))
            else:
                plain = [x.dictionary_decode() if pa.types.is_dictionary(x.type) else x for x in pieces]
                columns.append(pa.concat_arrays([x.cast(kind) for x in plain]))
        rows = pa.record_batch(columns, schema=self._schema)
        self._writer.write_batch(rows, max(rows.num_rows, 1))


def _dictionary(pieces: list[pa.DictionaryArray]) -> pa.DictionaryArray:
    """Columns one behind the other. Equal texts become one, since a dictionary with equal values is not written as one
    to Parquet; they are in the order of the rows, so that the file does not depend on how rows came together."""
    pieces = list(map(_used, pieces))
    starts = np.cumsum([0, *(len(piece.dictionary) for piece in pieces)])
    number = np.concatenate([_numbers(piece.indices) + start for piece, start in zip(pieces, starts, strict=False)])
    encoded = pa.concat_arrays([piece.dictionary.cast(pa.large_string()) for piece in pieces]).dictionary_encode()
    used, first, place = np.unique(_numbers(encoded.indices)[number], return_index=True, return_inverse=True)
    order = np.argsort(first)
    indices = inverse(order)[place].astype(np.int32)
    return pa.DictionaryArray.from_arrays(of_numbers(indices), encoded.dictionary.take(of_numbers(used[order])))


# --- where they go ---------------------------------------------------------------------------------------------------


class Table:
    """Collects the rows of a table, which is shown at the end: its columns are as wide as what is in them."""

    def __init__(self, *, bindings: bool) -> None:
        self.columns = ("publication", "subscription", "bindings")[: 2 + bindings]
        self.rows: list[tuple[str, ...]] = []

    def write(self, part: Part) -> None:
        """See `Writer`."""
        if len(self.columns) > 2:
            self.rows += ((match.publication, match.subscription, output.bindings_short(match)) for match in part)
        else:
            ids, names = part.snapshot.ids(part.subscription), part.publications
            self.rows += ((names[number], id_) for number, id_ in zip(part.publication.tolist(), ids, strict=True))


@contextmanager
def file_writer(file: Path, *, bindings: bool) -> Iterator[JsonLines | Parquet]:
    """A writer to a file of the kind that its name says. The file is there when the block ends without an error."""
    if file.suffix == ".parquet":
        with output.seekable_file(file) as aside:
            writer = Parquet(aside, bindings=bindings)
            yield writer
            with output.named(file):
                writer.close()
    else:
        with output.text_output(file) as stream:
            yield JsonLines(stream, bindings=bindings)


def write_file(file: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows with the columns `COLUMNS` to a file of the kind that its name says."""
    with file_writer(file, bindings=True) as writer:
        for rows in batches:
            with output.named(file):
                writer.write_rows(rows)
