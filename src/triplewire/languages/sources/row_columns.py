"""Rows of subscription files as columns (`RowColumns`), without an object a row.

Arrow reads them from JSON Lines and Parquet. Where one of some rows has not the usual form (prefixes, a base, odd
escapes, whatever is refused), they are read one by one (`triplewire.languages.sources.rows`): of JSON Lines, after the
others have been told apart by halves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.errors import Refusal
from triplewire.kernels.text.json_strings import escape, escaped_offsets
from triplewire.languages.sources.rows import (
    REQUIRED,
    Row,
    line_blocks,
    parquet_batches,
    refusal_of_repeated,
    row_bytes,
    row_of_batch,
    row_of_line,
    sizes_of,
)
from triplewire.languages.sources.tables import kept_line
from triplewire.languages.templates.splitting import PAD, Offsets, Pool, Queries, Texts
from triplewire.plugins import BUILT_IN

FEW = 256  # lines that are read one by one, where they cannot be taken together
_BLOCK = 8 << 20  # bytes of JSON Lines that are read at a time
_ROWS = 1 << 13  # single rows that make columns together
_PIECE = 16 << 20  # bytes of texts of Parquet that make columns together; many rows may have one text


def _array(texts: Sequence[str]) -> pa.LargeStringArray:
    """An array of these texts. `pyarrow.array` and `pyarrow.scalar` would load data frames."""
    pieces = [text.encode() for text in texts]
    offset = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(pieces), pa.py_buffer(offset), pa.py_buffer(b"".join(pieces)))


_NAMES = _array(list(BUILT_IN["language"]))
_USUAL = [(name, "", ()) for name in BUILT_IN["language"]]
_NO_TEXT = b"\0"  # of a query that is no UTF-8, which is parsed in full
_NEWLINE, _RETURN, _BEGIN, _END = b"\n\r{}"
_FIELDS = {**dict.fromkeys(REQUIRED, pa.string()), "prefixes": pa.struct([]), "base": pa.string()}
_FORM = pj.ParseOptions(explicit_schema=pa.schema(_FIELDS.items()), unexpected_field_behavior="error")
_EMPTY_VALUES = {"prefixes": ["", "{}"], "base": [""]}
_AROUND = [
    _array([piece])[0]  # in a kept line
    for piece in ('{"id": "', '", "language": "', '", "query": "', '", "prefixes": {}, "base": ""}\n', "")
]


@dataclass(frozen=True)
class RowColumns:
    """Rows, and `refusals`: those that stand before the row of a number. `lines`: what is kept of each (`kept_line`).
    `objects`: the rows that have not the usual form; others have no prefixes and no base, and are `record`s of the
    `source`."""

    ids: Texts
    queries: Queries
    lines: Texts
    source: str = ""
    record: Offsets = field(default_factory=lambda: np.zeros(0, np.int64))
    objects: Mapping[int, Row] = field(default_factory=dict)
    refusals: Mapping[int, list[Refusal]] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[Row | Refusal]) -> RowColumns:
        """From objects."""
        rows: list[Row] = []
        refusals: dict[int, list[Refusal]] = {}
        for item in items:
            if isinstance(item, Refusal):
                refusals.setdefault(len(rows), []).append(item)
            else:
                rows.append(item)
        stated = [(row.language, row.base, tuple(row.prefixes.items()) if row.prefixes else ()) for row in rows]
        queries = Queries.of([_utf8(row.query) for row in rows], stated)
        ids, lines = Texts.of([row.id.encode() for row in rows]), Texts.of(list(map(kept_line, rows)))
        return cls(ids, queries, lines, "", np.zeros(len(rows), np.int64), dict(enumerate(rows)), refusals)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, number: int) -> Row:
        if (row := self.objects.get(number)) is not None:
            return row
        language = self.queries.environments[self.queries.environment[number]][0]
        id, query = self.ids[number].decode(), self.queries.texts[number].decode()
        return Row(id, language, query, {}, "", self.source, int(self.record[number]))

    def __iter__(self) -> Iterator[Row | Refusal]:
        for number in range(len(self)):
            yield from self.refusals.get(number, ())
            yield self[number]
        yield from self.refusals.get(len(self), ())

    def are_in(self, language: str) -> NDArray[np.bool_]:
        """Which rows are in this language?"""
        is_wanted = [stated[0] == language for stated in self.queries.environments]
        return np.array(is_wanted, np.bool_)[self.queries.environment]

    def where(self, is_taken: NDArray[np.bool_]) -> RowColumns:
        """Some of the rows, and all refusals."""
        if is_taken.all():
            return self
        rows, place = np.flatnonzero(is_taken), np.concatenate(([0], np.cumsum(is_taken)))
        objects = {int(place[number]): row for number, row in self.objects.items() if is_taken[number]}
        refusals: dict[int, list[Refusal]] = {}
        for number, those in sorted(self.refusals.items()):
            refusals.setdefault(int(place[number]), []).extend(those)
        columns = self.ids.take(rows), self.queries.take(rows), self.lines.take(rows), self.source, self.record[rows]
        return RowColumns(*columns, objects, refusals)

    def without_repeated(self, known: Pool) -> RowColumns:
        """The same with a refusal in place of each row whose id is known. All are, from now on."""
        before, numbers = len(known), known.add(self.ids)
        largest = np.maximum.accumulate(np.concatenate(([before - 1], numbers)))  # new ones have ascending numbers
        is_repeated = numbers <= largest[:-1]
        if not is_repeated.any():
            return self
        refusals = {number: list(those) for number, those in self.refusals.items()}
        for number in np.flatnonzero(is_repeated).tolist():  # behind those that stand before it
            refusals.setdefault(number, []).append(refusal_of_repeated(self[number]))
        return replace(self, refusals=refusals).where(~is_repeated)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _NO_TEXT


def together(items: Iterable[Row | Refusal | RowColumns]) -> Iterator[RowColumns]:
    """The same rows and refusals, single ones together."""
    single: list[Row | Refusal] = []
    for item in items:
        is_single = not isinstance(item, RowColumns)
        if isinstance(item, Row | Refusal):
            single.append(item)
        if single and (not is_single or len(single) >= _ROWS):
            yield RowColumns.of(single)
            single = []
        if isinstance(item, RowColumns):
            yield item
    if single:
        yield RowColumns.of(single)


def _usual(rows: pa.RecordBatch | pa.Table, source: str, record: int) -> RowColumns | None:
    """The rows, of which the first is this record; None where one has no id, no language that is known or no query, or
    has prefixes or a base, or where something is no UTF-8."""
    for name, empty_values in _EMPTY_VALUES.items():
        if name in rows.schema.names and not _is_empty(rows.column(name), empty_values):
            return None
    try:
        id, language, query = (_as_text(rows.column(name)) for name in REQUIRED)
    except pa.ArrowException:
        return None
    number, ids, texts = pc.index_in(language, _NAMES), _texts(id), _texts(query)
    if id.null_count or query.null_count or number.null_count or not ids.lengths.all():
        return None
    pieces = _AROUND[0], _escaped(ids), _AROUND[1], language, _AROUND[2], _escaped(texts), *_AROUND[3:]
    lines = _texts(pc.binary_join_element_wise(*pieces))
    environment = np.frombuffer(number.buffers()[1], np.int32, len(number))  # `to_numpy` would load data frames
    queries = Queries(texts, environment, _USUAL)
    return RowColumns(ids, queries, lines, source, np.arange(record, record + len(ids)))


def _is_empty(column: pa.Array, empty_values: list[str]) -> bool:
    """Is every value null, or one of those that stand for none?"""
    if column.null_count == len(column) or column.type == _FIELDS["prefixes"]:
        return True
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    is_empty = pc.or_(pc.is_null(column), pc.is_in(column, _array(empty_values).cast(column.type)))
    return bool(pc.all(is_empty).as_py())


def _as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column of texts. Raises `pa.ArrowException` where it is none, or one of them is no UTF-8."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise pa.ArrowTypeError(column.type)
    column.validate(full=True)
    return column.cast(pa.large_string())


def _texts(column: pa.Array) -> Texts:
    _, offsets, data = column.buffers()
    offset = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[offset[0] : offset[-1]]
    offset = offset - offset[0]
    return Texts(np.concatenate((whole, np.zeros(PAD, np.uint8))), offset[:-1], offset[1:])


def _escaped(texts: Texts) -> pa.Array:
    """As they stand in JSON."""
    offset = np.zeros(len(texts) + 1, np.int64)
    escaped_offsets(texts.text, texts.start, texts.end, offset)
    out = np.empty(offset[-1], np.uint8)
    escape(texts.text, texts.start, texts.end, offset, out)
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offset), pa.py_buffer(out))


def json_columns(
    stream: BinaryIO, source: str, settings: Settings, record: int = 1
) -> Iterator[Row | Refusal | RowColumns]:
    """The rows of JSON Lines, as `rows.json_rows` gives them; `record`: the number of the first. Raises
    `SubscriptionError` where the file itself cannot be read on."""
    limit = row_bytes(settings)
    for block in line_blocks(stream, _BLOCK, limit, settings.max_input_bytes):
        data = np.frombuffer(block + bytes(PAD), np.uint8)
        end = np.flatnonzero(data[: len(block)] == _NEWLINE)
        if not block.endswith(b"\n"):
            end = np.append(end, len(block))
        yield from _of_lines(Texts(data, np.concatenate(([0], end[:-1] + 1)), end), source, record, limit)
        record += len(end)


def _of_lines(lines: Texts, source: str, record: int, limit: int) -> Iterator[Row | Refusal | RowColumns]:
    """The rows of lines that stand one behind the other; `record`: the first one's."""
    together = _usual_lines(lines, source, record, limit)
    if together is not None:
        yield together
    elif len(lines) <= max(FEW, 1):
        each = (row_of_line(lines[n] + b"\n", source, record + n, limit) for n in range(len(lines)))
        yield from filter(None, each)
    else:
        half = len(lines) // 2
        for begin, end in ((0, half), (half, len(lines))):
            part = Texts(lines.text, lines.start[begin:end], lines.end[begin:end])
            yield from _of_lines(part, source, record + begin, limit)


def _usual_lines(lines: Texts, source: str, record: int, limit: int) -> RowColumns | None:
    """The rows of lines; None where one has not the usual form. As each begins with a brace and ends with one, none of
    them is a part of an object: no brace may follow one in an object, and in a string is no line feed."""
    last = lines.end - 1
    last -= lines.text[last] == _RETURN
    is_closed = (lines.text[lines.start] == _BEGIN) & (lines.text[last] == _END)
    if len(lines) <= FEW or not is_closed.all() or lines.lengths.max() >= limit:
        return None
    data = pa.py_buffer(lines.text[lines.start[0] : lines.end[-1]])
    try:
        options = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
        rows = pj.read_json(pa.BufferReader(data), options, _FORM)
    except pa.ArrowException:
        return None
    return _usual(rows, source, record) if len(rows) == len(lines) else None


def parquet_columns(
    stream: BinaryIO, source: str, settings: Settings, groups: range | None = None
) -> Iterator[Row | Refusal | RowColumns]:
    """The rows of a Parquet file, or of some row groups, as `rows.parquet_rows` gives them. Raises as that does."""
    limit = row_bytes(settings)
    for batch, record in parquet_batches(stream, settings, groups):
        sizes = sizes_of(batch)
        piece = np.cumsum(sizes) // _PIECE
        for rows in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(piece)) + 1):
            begin = int(rows[0])
            is_short = sizes[rows].max() <= limit
            together = _usual(batch.slice(begin, len(rows)), source, record + begin) if is_short else None
            if together is not None:
                yield together
                continue
            for number in rows.tolist():
                yield row_of_batch(batch, number, source, record + number, int(sizes[number]), limit)
