"""The rows of matches as JSON Lines, Parquet or a table, as they come, without an object a match but in a table.

Rows are record batches whose columns of texts are dictionaries: a text that many rows share is there once. They come
from results (`rows_of`) and, in any order of runs, from the workers of a backtest (`rows_in_order`). Which bytes a file
has depends on the rows and their order alone, not on how they came. Files that nobody sees half of, and tables:
`triplewire.cli.output`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, compress
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.cli import output
from triplewire.encode.matches import json_lines, names_of, parquet_writer, strings
from triplewire.encode.strings import TextColumn, of_bools, of_few, of_numbers
from triplewire.engine.result import Part
from triplewire.model.same import Same

PAIR = ("publication", "subscription", "truncated")
COLUMNS = ("publication", "subscription", "bindings", "truncated", "construct", "content", "revision")
GROUP_ROWS = 1 << 20, 1 << 13  # rows of one Parquet row group, without bindings and with them
BYTES = 1 << 25
"""Bytes of texts of the rows that are put together at once, if these are several."""

_NAMES = pa.dictionary(pa.int32(), pa.large_string())


def rows_of(part: Part, *, bindings: bool, wanted: NDArray[np.bool_] | None = None) -> Iterator[pa.RecordBatch]:
    """The matches of a part, or those `wanted`, some at a time: the columns `COLUMNS`, or `PAIR` without bindings."""
    if wanted is None:
        yield from _rows_of(part, bindings)
        return
    first = 0
    for rows in _rows_of(part, bindings):
        yield rows.filter(of_bools(wanted[first : (first := first + rows.num_rows)]))


def _rows_of(part: Part, bindings: bool) -> Iterator[pa.RecordBatch]:
    if not bindings:
        ids = part.snapshot.id_column(part.subscription)
        columns = [_shared(names_of(part.publications, part.publication)), _shared(ids), of_bools(part.truncated)]
        yield pa.RecordBatch.from_arrays(columns, names=list(PAIR))
        return
    for matches in part.columns():
        graphs = of_few(matches.construct, len(matches.truncated)).cast(pa.large_string()).dictionary_encode()
        others = {"truncated": of_bools(matches.truncated), "construct": graphs}
        columns = [others[name] if name in others else _shared(getattr(matches, name)) for name in COLUMNS]
        yield pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


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


class JsonLines:
    """Writes one JSON object a line, as `docs/formats.md` describes it. A line is handed on at once."""

    def __init__(self, stream: IO[str], *, bindings: bool) -> None:
        self._stream, self._bindings = stream, bindings
        stream.flush()  # what comes before stays before
        self._bytes: IO[bytes] | None = getattr(stream, "buffer", None)  # nothing is encoded anew

    def write(self, part: Part, wanted: NDArray[np.bool_] | None = None) -> None:
        """See `Writer`."""
        for rows in rows_of(part, bindings=self._bindings, wanted=wanted):
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


class Parquet:
    """Writes the same columns; the bindings are JSON text, and `construct` is N-Quads. Equal texts of a row group are
    stored once."""

    def __init__(self, file: Path | IO[bytes], *, bindings: bool) -> None:
        self._bindings, self._most = bindings, GROUP_ROWS[bindings]
        kinds = dict.fromkeys(COLUMNS, _NAMES) | {"truncated": pa.bool_(), "construct": pa.large_string()}
        self._schema = pa.schema([(name, kinds[name]) for name in (COLUMNS if bindings else PAIR)])
        self._writer = parquet_writer(file, self._schema, ["publication"])
        self._rows: list[pa.RecordBatch] = []  # that are not written
        self._sizes: list[NDArray[np.int64]] = []  # of these

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        self._write_groups(last=True)
        self._writer.close()

    def write(self, part: Part, wanted: NDArray[np.bool_] | None = None) -> None:
        """See `Writer`."""
        for rows in rows_of(part, bindings=self._bindings, wanted=wanted):
            self.write_rows(rows)

    def write_rows(self, rows: pa.RecordBatch) -> None:
        """Write rows of these columns."""
        self._rows.append(rows)
        self._sizes.append(_bytes_of(rows))
        if sum(map(len, self._sizes)) > self._most or sum(int(sizes.sum()) for sizes in self._sizes) > BYTES:
            self._write_groups(last=False)

    def _write_groups(self, *, last: bool) -> None:
        """Write the row groups that are full, and with `last` what there is."""
        if not self._rows:
            return
        rows, sizes = pa.Table.from_batches(self._rows), np.concatenate(self._sizes)
        while len(sizes):
            end = _end_of_portion(sizes, self._most)
            if end == len(sizes) and not last:
                break
            self._writer.write_table(self._group(rows.slice(0, end)), end)
            rows, sizes = rows.slice(end), sizes[end:]
        self._rows, self._sizes = rows.to_batches(), [sizes]

    def _group(self, rows: pa.Table) -> pa.Table:
        """Rows with each text once, in the order of the rows: so the file does not depend on how rows came together."""
        kinds = {field.name: field.type for field in self._schema}
        texts = {name: kind.value_type if kind == _NAMES else kind for name, kind in kinds.items()}
        whole = rows.cast(pa.schema(texts.items())).combine_chunks()
        columns = [whole[name].dictionary_encode() if kind == _NAMES else whole[name] for name, kind in kinds.items()]
        return pa.table(columns, schema=self._schema)


class Table:
    """Collects the rows of a table, which is shown at the end: its columns are as wide as what is in them."""

    def __init__(self, *, bindings: bool) -> None:
        self.columns = ("publication", "subscription", "bindings")[: 2 + bindings]
        self.rows: list[tuple[str, ...]] = []

    def write(self, part: Part, wanted: NDArray[np.bool_] | None = None) -> None:
        """See `Writer`."""
        rows: Iterable[tuple[str, ...]]
        if len(self.columns) > 2:
            rows = ((match.publication, match.subscription, output.bindings_short(match)) for match in part)
        else:
            ids, names = part.snapshot.ids(part.subscription), part.publications
            rows = ((names[number], id_) for number, id_ in zip(part.publication.tolist(), ids, strict=True))
        self.rows += rows if wanted is None else compress(rows, wanted.tolist())


class Writer(Protocol):
    """Takes the rows of a run, in their order."""

    def write(self, part: Part, wanted: NDArray[np.bool_] | None = None) -> None:
        """Write the matches of a part of a result, or the `wanted` of them."""


class Once:
    """Writes of the matches of a run each once, by this rule, or all. `repeats` counts the others."""

    def __init__(self, writer: Writer, same: Same | None) -> None:
        self._writer, self._same = writer, same
        self._told: set[bytes] = set()
        self.repeats = 0

    def write(self, part: Part) -> None:
        """Write what is not told yet of a part of a result."""
        self._writer.write(part, None if self._same is None else self._new(part, self._same))

    def _new(self, part: Part, same: Same) -> NDArray[np.bool_]:
        from triplewire.pipeline.written import told  # with what Spark's workers import

        is_new = np.ones(len(part), np.bool_)
        columns = (told(pa.Table.from_batches([rows]), same) for rows in rows_of(part, bindings=True))
        for place, identity in enumerate(chain.from_iterable(columns)):
            is_new[place] = identity not in self._told
            self._told.add(identity)
        self.repeats += len(part) - int(is_new.sum())
        return is_new


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
