"""Rows of subscription files as columns: `RowColumns`, read from JSON Lines and Parquet without an object a row.

What has not the usual form (prefixes, a base, odd escapes, whatever is refused) is read by
`triplewire.languages.sources.rows`, and put in its place.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.errors import Refusal
from triplewire.kernels.text import json_rows as kernels
from triplewire.kernels.text.json_strings import escape, escaped_offsets
from triplewire.languages.sources.rows import (
    REQUIRED,
    Row,
    fields_of,
    parquet_batches,
    refusal_of_repeated,
    row_bytes,
    row_of_batch,
    row_of_line,
    sizes_of,
    too_large,
)
from triplewire.languages.sources.tables import kept_line
from triplewire.languages.templates.splitting import PAD, Numbers, Offsets, Pool, Queries, Texts
from triplewire.plugins import BUILT_IN

FEW = 64  # lines of a block that are read one by one, which takes no longer
_BLOCK = 8 << 20  # bytes of JSON Lines that are read at a time
_ROWS = 1 << 13  # single rows that make columns together
_PIECE = 16 << 20  # bytes of texts of Parquet that make columns together; many rows may have one text
_NAMES = tuple(BUILT_IN["language"])
_LANGUAGES = Texts.of([name.encode() for name in _NAMES])
_NAME_OFFSET = np.append(_LANGUAGES.start, _LANGUAGES.end[-1])
_USUAL = [(name, "", ()) for name in _NAMES]
_NO_TEXT = b"\0"  # of a query that is no UTF-8, which is parsed in full
_NONE = kernels.NONE
_NEWLINE = 0x0A


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

    def packed(self) -> RowColumns:
        """The same, without bytes that no row has, and without refusals."""
        queries = replace(self.queries, texts=self.queries.texts.packed())
        return replace(self, ids=self.ids.packed(), queries=queries, lines=self.lines.packed(), refusals={})

    def write(self, file: IO[bytes]) -> None:
        """Write it, without refusals, for `read`."""
        objects = {number: fields_of(row) for number, row in self.objects.items()}
        file.write(json.dumps([self.queries.environments, self.source, objects]).encode() + b"\n")
        arrays: list[NDArray[Any]] = [self.record, self.queries.environment, *self._spans()]
        for array in arrays:
            np.lib.format.write_array(file, array, allow_pickle=False)

    def _spans(self) -> Iterator[NDArray[Any]]:
        for texts in (self.ids, self.queries.texts, self.lines):
            yield from (texts.text, texts.start, texts.end)

    @classmethod
    def read(cls, file: IO[bytes]) -> RowColumns:
        """What was written there."""
        stated, source, objects = json.loads(file.readline())
        environments = [(language, base, tuple(map(tuple, prefixes))) for language, base, prefixes in stated]
        record, environment, *spans = (np.lib.format.read_array(file, allow_pickle=False) for _ in range(11))
        ids, texts, lines = (Texts(*spans[n : n + 3]) for n in (0, 3, 6))
        rows = {int(number): Row(*fields) for number, fields in objects.items()}
        return cls(ids, Queries(texts, environment, environments), lines, source, record, rows)

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


def _mixed(usual: RowColumns, place: Offsets, others: Mapping[int, Row | Refusal]) -> RowColumns:
    """Rows at their places in a file, with others at theirs."""
    if not others:
        return usual
    odd = RowColumns.of(others[number] for number in sorted(others))
    odd_place = np.array([number for number in sorted(others) if isinstance(others[number], Row)], np.int64)
    places = np.concatenate((place, odd_place))
    order = np.argsort(places)
    row = np.searchsorted(places[order], odd_place).tolist()
    refusals: dict[int, list[Refusal]] = {}
    for number in sorted(others):
        if isinstance(item := others[number], Refusal):
            refusals.setdefault(int(np.searchsorted(places[order], number)), []).append(item)
    return RowColumns(
        usual.ids.followed_by(odd.ids).take(order),
        usual.queries.followed_by(odd.queries).take(order),
        usual.lines.followed_by(odd.lines).take(order),
        usual.source,
        np.concatenate((usual.record, odd.record))[order],
        {number: odd[n] for n, number in enumerate(row)},
        refusals,
    )


def _definition_lines(ids: Texts, language: Numbers, queries: Texts) -> Texts:
    """The lines that are kept of rows. `ids`, `queries`: with escapes."""
    size = ids.lengths + queries.lengths + _LANGUAGES.lengths[language] + kernels.KEPT_BYTES
    offset = np.concatenate(([0], np.cumsum(size)))
    out = np.empty(offset[-1] + PAD, np.uint8)
    names = language, _LANGUAGES.text, _NAME_OFFSET
    kernels.kept_lines(ids.text, ids.start, ids.end, *names, queries.text, queries.start, queries.end, offset, out)
    return Texts(out, offset[:-1], offset[1:])


# --- JSON Lines ------------------------------------------------------------------------------------------------------


def json_columns(stream: BinaryIO, source: str, settings: Settings) -> Iterator[Row | Refusal | RowColumns]:
    """The rows of JSON Lines, as `rows.json_rows` gives them. Raises `SubscriptionError` where the file itself cannot
    be read on."""
    record, limit = 0, row_bytes(settings)
    for block in _blocks(stream, limit, settings.max_input_bytes):
        data = np.frombuffer(block + bytes(PAD), np.uint8)
        end = np.flatnonzero(data[: len(block)] == _NEWLINE)
        if not block.endswith(b"\n"):
            end = np.append(end, len(block))
        lines = Texts(data, np.concatenate(([0], end[:-1] + 1)), end)

        def other(number: int, lines: Texts = lines, record: int = record) -> Row | Refusal | None:
            return row_of_line(lines[number] + b"\n", source, record + number + 1, limit)

        if len(lines) < FEW:
            yield from filter(None, map(other, range(len(lines))))
        else:
            usual, place = _usual(lines, source, record, limit, _is_utf8(block))
            odd = np.setdiff1d(np.arange(len(lines)), place, assume_unique=True).tolist()
            yield _mixed(usual, place, {number: item for number in odd if (item := other(number)) is not None})
        record += len(lines)


def _blocks(stream: BinaryIO, limit: int, most: int) -> Iterator[bytes]:
    """The lines, some together; of one that is longer than `limit` bytes, more of it than these. Raises
    `SubscriptionError` past `most` bytes."""
    size, failed = 0, list[Exception]()
    while not failed and (block := _read(stream, failed)):
        skipped = 0
        if not block.endswith(b"\n") and not failed:
            last = len(block) - block.rfind(b"\n") - 1
            rest = stream.readline(max(limit + 1 - last, 1))
            block += rest
            while rest and not rest.endswith(b"\n") and size + len(block) + skipped <= most:
                rest = stream.readline(limit)
                skipped += len(rest)
        size += len(block) + skipped
        if failed or size > most:  # whole lines only
            if whole := block[: block.rfind(b"\n", 0, max(len(block) + skipped - max(size - most, 0), 0)) + 1]:
                yield whole
            raise too_large(most) if size > most else failed[0]
        yield block


def _read(stream: BinaryIO, failed: list[Exception]) -> bytes:
    """Some bytes, none at the end. What cannot be read on goes to `failed`, with what was read before."""
    pieces, size = [], 0
    try:
        while size < _BLOCK and (piece := stream.read1(_BLOCK - size)):  # type: ignore[attr-defined]  # all have it
            pieces.append(piece)
            size += len(piece)
    except (OSError, EOFError, zlib.error) as error:
        failed.append(error)
    return b"".join(pieces)


def _usual(lines: Texts, source: str, record: int, limit: int, is_utf8: bool) -> tuple[RowColumns, Offsets]:
    """The rows of the usual form, and which lines they are."""
    count = len(lines)
    language = np.full(count, _NONE, np.int32)
    id_start, id_end, raw_start, raw_end = spans = np.zeros((4, count), np.int64)
    offset = np.zeros(count + 1, np.int64)
    query = np.empty(len(lines.text), np.uint8)
    if is_utf8:
        out = kernels.JsonRows(language, id_start, id_end, raw_start, raw_end, offset, query)
        kernels.usual_rows(lines.text, lines.start, lines.end, _LANGUAGES.text, _NAME_OFFSET, out)
    place = np.flatnonzero((language >= 0) & (lines.lengths < limit))
    id_start, id_end, raw_start, raw_end = spans[:, place]
    ids, its_language = Texts(lines.text, id_start, id_end), language[place]
    queries = Queries(Texts(query, offset[place], offset[place + 1]), its_language, _USUAL)
    definitions = _definition_lines(ids, its_language, Texts(lines.text, raw_start, raw_end))
    return RowColumns(ids, queries, definitions, source, record + 1 + place), place


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- Parquet ---------------------------------------------------------------------------------------------------------


def parquet_columns(stream: BinaryIO, source: str, settings: Settings) -> Iterator[RowColumns]:
    """The rows of a Parquet file, as `rows.parquet_rows` gives them. Raises as that does."""
    limit = row_bytes(settings)
    for batch, record in parquet_batches(stream, settings):
        sizes, whole = sizes_of(batch), _BatchColumns(batch)
        piece = np.cumsum(sizes) // _PIECE
        for rows in np.split(np.arange(batch.num_rows), np.flatnonzero(np.diff(piece)) + 1):
            usual = rows[whole.is_usual[rows] & (sizes[rows] <= limit)]
            others = {}
            for number in np.setdiff1d(rows, usual, assume_unique=True).tolist():
                others[number] = row_of_batch(batch, number, source, record + number, int(sizes[number]), limit)
            yield _mixed(whole.rows(usual, source, record + usual), usual, others)


class _BatchColumns:
    """The columns of some rows of Parquet. `is_usual`: which rows have an id, a language that is known, and a query,
    all in UTF-8, and no prefixes and no base."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        columns = {name: _encoded(batch.column(name)) for name in batch.schema.names}
        self.is_usual = np.ones(batch.num_rows, np.bool_)
        for name, column in columns.items():
            self.is_usual &= self._are_there(*column) if name in REQUIRED else _are_empty(*column)
        if not self.is_usual.any():
            return
        values, index = columns["language"]
        number = pc.fill_null(pc.index_in(values, pa.array(_NAMES, values.type)), _NONE).to_numpy(zero_copy_only=False)
        self._language = number.astype(np.int32)[index]
        self._ids, self._queries = (_texts(*columns[name]) for name in ("id", "query"))
        self.is_usual &= (self._language >= 0) & (self._ids.lengths > 0) & _are_utf8(self._ids)
        self.is_usual &= _are_utf8(self._queries)

    @staticmethod
    def _are_there(values: pa.Array, index: Offsets) -> NDArray[np.bool_]:
        """Which rows have a text?"""
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)) or not len(values):
            return np.zeros(len(index), np.bool_)
        return np.asarray((index >= 0) & np.asarray(pc.is_valid(values))[index])

    def rows(self, rows: Offsets, source: str, record: Offsets) -> RowColumns:
        """Some of those that are usual."""
        if not len(rows):
            return replace(RowColumns.of(()), source=source)
        language, ids, queries = self._language[rows], self._ids.take(rows), self._queries.take(rows)
        definitions = _definition_lines(_escaped(ids), language, _escaped(queries))
        return RowColumns(ids, Queries(queries, language, _USUAL), definitions, source, record)


def _encoded(column: pa.Array) -> tuple[pa.Array, Offsets]:
    """The values of a column, and of each row the place of its value, -1 for none."""
    if pa.types.is_dictionary(column.type):
        place = pc.fill_null(column.indices.cast(pa.int64()), _NONE)
        return column.dictionary, place.to_numpy(zero_copy_only=False)
    return column, np.arange(len(column))


def _are_empty(values: pa.Array, index: Offsets) -> NDArray[np.bool_]:
    """Which rows have nothing there, or what says nothing?"""
    is_empty = np.append(np.asarray(pc.is_null(values)), True)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        is_empty[:-1] |= np.asarray(pc.fill_null(pc.is_in(values, pa.array(["", "{}"], values.type)), True))
    return is_empty[index]


def _texts(values: pa.Array, index: Offsets) -> Texts:
    """The texts of the rows; those that are not there are empty."""
    offset_type = np.int64 if pa.types.is_large_string(values.type) else np.int32
    _, offsets, data = values.buffers()
    offset = np.frombuffer(offsets, offset_type)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[offset[0] : offset[-1]]
    text, offset = np.concatenate((whole, np.zeros(PAD, np.uint8))), offset - offset[0]
    is_there = index >= 0
    return Texts(text, np.where(is_there, offset[index], 0), np.where(is_there, offset[index + 1], 0))


def _are_utf8(texts: Texts) -> NDArray[np.bool_]:
    """Which texts are UTF-8? None is where one is not, or another value of the column; nor is one that ends in a
    character."""
    if not _is_utf8(texts.text.tobytes()):
        return np.zeros(len(texts), np.bool_)
    return np.asarray((texts.text[texts.start] & 0xC0 != 0x80) & (texts.text[texts.end] & 0xC0 != 0x80))


def _escaped(texts: Texts) -> Texts:
    """As they stand in JSON."""
    offset = np.zeros(len(texts) + 1, np.int64)
    escaped_offsets(texts.text, texts.start, texts.end, offset)
    out = np.empty(offset[-1] + PAD, np.uint8)
    escape(texts.text, texts.start, texts.end, offset, out)
    return Texts(out, offset[:-1], offset[1:])
