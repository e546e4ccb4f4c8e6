"""The rows of subscription files: JSON Lines and Parquet with `id`, `language`, `query`, perhaps `prefixes`, `base`.

A row that is wrong becomes a `Refusal` in its place and the next is read. Which files there are, and what becomes of a
row: `languages.sources.files`. Many rows as columns: `languages.sources.row_columns`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.model.references import has_scheme
from triplewire.plugins import registered

_AT_ONCE = 1 << 14  # bytes of JSON Lines that are read one by one
_BATCH = 1_024  # rows of a Parquet file held at a time, at most
_BATCH_BYTES = 1 << 28  # of texts in them that the file holds only in part
_SPARE = 1 << 20  # bytes of a line beside its query
REQUIRED = ("id", "language", "query")
_PREFIX = re.compile(r"(?:[^\W\d][\w.-]*)?")
_NO_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20\ud800-\udfff]')
_SURROGATE = re.compile("[\ud800-\udfff]")
_NONE: Mapping[str, str] = {}


@dataclass(slots=True)  # not frozen, as that takes three times as long, and there are millions
class Row:
    """A subscription as written. `source` is the file; `record` its row, from 1, or 0 where the file is one query.
    `table`: the table in which the text stays (`triplewire.languages.sources.tables`), "" for none."""

    id: str
    language: str
    query: str
    prefixes: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    source: str = ""
    record: int = 0
    table: str = ""

    def refusal(self, error: TriplewireError) -> Refusal:
        """The record of `error`, with the place in the file and in the query."""
        place = ":".join(str(part) for part in (error.line, error.column) if part)
        if self.record:
            where = f"{self.source} (record {self.record})" + (f", query {place}" if place else "")
        else:
            where = f"{self.source}:{place}" if place else self.source
        return Refusal("subscription", self.id, where, error.what, error.remedy)


def too_large(limit: int) -> SubscriptionError:
    """The error of a file that has more bytes, when it is unpacked."""
    return SubscriptionError(f"it has more than {limit:,} bytes", remedy="raise max_input_bytes")


def row_bytes(settings: Settings) -> int:
    """How long a row may be: a byte of its query may be an escape of JSON."""
    return 8 * settings.max_query_bytes + _SPARE


def json_rows(stream: BinaryIO, source: str, settings: Settings) -> Iterator[Row | Refusal]:
    """The rows of JSON Lines. Raises `SubscriptionError` where the file itself cannot be read on."""
    record, limit = 0, row_bytes(settings)
    for block in line_blocks(stream, _AT_ONCE, limit, settings.max_input_bytes):
        for line in block.removesuffix(b"\n").split(b"\n"):
            record += 1
            if (item := row_of_line(line + b"\n", source, record, limit)) is not None:
                yield item


def line_blocks(stream: BinaryIO, at_once: int, limit: int, most: int) -> Iterator[bytes]:
    """The lines, about `at_once` bytes of them together; of one that is longer than `limit` bytes, more than these.
    Raises `SubscriptionError` past `most` bytes."""
    size, failed = 0, list[Exception]()
    while not failed and (block := read_some(stream, min(at_once, most - size + 1), failed)):
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


def read_some(stream: BinaryIO, count: int, failed: list[Exception]) -> bytes:
    """So many bytes, or fewer at the end. What cannot be read on goes to `failed`, with what was read before."""
    pieces, size = [], 0
    try:
        while size < count and (piece := stream.read1(count - size)):  # type: ignore[attr-defined]  # all have it
            pieces.append(piece)
            size += len(piece)
    except (OSError, EOFError, zlib.error) as error:
        failed.append(error)
    return b"".join(pieces)


def row_of_line(line: bytes, source: str, record: int, limit: int) -> Row | Refusal | None:
    """The row of a line, or its refusal; None for a blank line."""
    if len(line) > limit:
        return refused(source, record, f"the line is longer than {limit:,} bytes", "raise max_query_bytes")
    try:
        text = line.decode("utf-8-sig" if record == 1 else "utf-8")
        return _row(json.loads(text), source, record) if text.strip() else None
    except UnicodeDecodeError as error:
        return refused(source, record, f"byte {error.start + 1} of the line is no UTF-8")
    except json.JSONDecodeError as error:
        return refused(source, record, f"no JSON: {error.msg} at character {error.pos + 1}")
    except RecursionError:
        return refused(source, record, "no JSON that can be read: nested too deeply")
    except ValueError as error:
        return refused(source, record, f"no JSON that can be read: {error}")


def parquet_rows(stream: BinaryIO, source: str, settings: Settings) -> Iterator[Row | Refusal]:
    """The rows of a Parquet file. Raises `SubscriptionError` where the file itself cannot be read on."""
    limit = row_bytes(settings)
    for batch, record in parquet_batches(stream, settings):
        for number, size in enumerate(sizes_of(batch).tolist()):
            yield row_of_batch(batch, number, source, record + number, size, limit)


def row_of_batch(batch: pa.RecordBatch, number: int, source: str, record: int, size: int, limit: int) -> Row | Refusal:
    """A row of a batch of Parquet, whose texts have `size` bytes; or its refusal."""
    if size > limit:
        return refused(source, record, f"the row is longer than {limit:,} bytes", "raise max_query_bytes")
    try:
        value = {name: batch.column(name)[number].as_py() for name in batch.schema.names}
    except UnicodeDecodeError:
        return refused(source, record, "the row is no UTF-8")
    return row_of_columns(value, source, record)


def parquet_batches(
    stream: BinaryIO, settings: Settings, groups: range | None = None
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The rows of a Parquet file, or of some of its row groups, some at a time, and the number of the first of them,
    from 1. Raises `SubscriptionError` where the file itself cannot be read on.

    Texts are read as dictionaries, so that one which many rows have is in memory once.
    """
    try:
        about = pq.read_metadata(stream)
        schema = about.schema.to_arrow_schema()
        missing = [name for name in REQUIRED if name not in schema.names]
        if missing:
            raise SubscriptionError(f"it has no column {missing[0]!r}", remedy=f"columns: {', '.join(REQUIRED)}")
        columns = [name for name in (*REQUIRED, "prefixes", "base") if name in schema.names]
        all_groups = list(map(about.row_group, range(about.num_row_groups)))
        in_all = (chunk for group in all_groups for chunk in map(group.column, range(group.num_columns)))
        named = [(chunk.path_in_schema.partition(".")[0], chunk) for chunk in in_all]
        chunks = [(name, chunk) for name, chunk in named if name in columns]
        delta = {name for name, chunk in chunks if any(encoding.startswith("DELTA") for encoding in chunk.encodings)}
        shared = [name for name in columns if name not in delta and _is_text(schema.field(name).type)]
        size = sum(chunk.total_uncompressed_size for _, chunk in chunks)
        if size > settings.max_input_bytes:
            raise too_large(settings.max_input_bytes)
        # what is not shared may be as long in each row as all that is written: "Delta Strings" of Parquet are parts of
        # the one before
        longest = max((chunk.total_uncompressed_size for name, chunk in chunks if name not in shared), default=1)
        at_once = max(min(_BATCH, _BATCH_BYTES // max(longest, 1)), 1)
        stream.seek(0)
        file = pq.ParquetFile(stream, read_dictionary=shared)
        wanted = range(len(all_groups)) if groups is None else groups
        record = 1 + sum(group.num_rows for group in all_groups[: wanted.start])
        for group in wanted:  # so that no row is lost with a group behind its own that cannot be read
            for batch in file.iter_batches(batch_size=at_once, row_groups=[group], columns=columns):
                yield batch, record
                record += batch.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SubscriptionError(f"it cannot be read as Parquet: {str(error).splitlines()[0][:200]}") from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def sizes_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """How many bytes the texts of each row have."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
        elif _is_text(column.type):
            lengths = pc.binary_length(column)
        else:
            continue
        sizes += np.array(pc.fill_null(lengths, 0), np.int64)
    return sizes


def row_of_columns(value: dict[str, Any], source: str, record: int) -> Row | Refusal:
    """The row of these values of columns, in which prefixes may be a map, a list of pairs, or JSON; or its refusal."""
    prefixes = value.get("prefixes")
    try:
        if isinstance(prefixes, str):
            value["prefixes"] = json.loads(prefixes) if prefixes else None
        elif isinstance(prefixes, list):
            value["prefixes"] = dict(prefixes)
    except (ValueError, TypeError, RecursionError) as error:
        return refused(source, record, f"the field 'prefixes' is no map from names to IRIs: {error}")
    return _row(value, source, record)


def refused(source: str, record: int, what: str, remedy: str = "", id: str = "") -> Refusal:
    """The refusal of a row. Without an id its subject is the file."""
    where = f"{source} (record {record})" if record else source
    return Refusal("subscription", id or source, where, what, remedy)


def refusal_of_repeated(row: Row) -> Refusal:
    """The refusal of a row whose id an earlier one has."""
    return row.refusal(SubscriptionError(f"an earlier row has the id {row.id!r}", remedy="give each its own id"))


def is_storable(id: str) -> bool:
    """Has the id no lone surrogates, which UTF-8 cannot hold?"""
    return id.isascii() or not _SURROGATE.search(id)


def _row(value: Any, source: str, record: int) -> Row | Refusal:
    """The row of a JSON value, or its refusal."""
    form = 'a row is {"id": ..., "language": ..., "query": ...}'
    if not isinstance(value, dict):
        return refused(source, record, "the row is no object", form)
    id, language, query = value.get("id"), value.get("language"), value.get("query")
    known = id if isinstance(id, str) and is_storable(id) else ""
    if not (isinstance(id, str) and isinstance(language, str) and isinstance(query, str)):
        name = next(name for name in REQUIRED if not isinstance(value.get(name), str))
        what = "is missing" if value.get(name) is None else "is no text"
        return refused(source, record, f"the field {name!r} {what}", form, known)
    if not known:
        return refused(source, record, "the id is empty" if id == "" else "the id holds a lone surrogate")
    prefixes, base = value.get("prefixes") or _NONE, value.get("base") or ""
    wrong = _wrong_prefixes(prefixes) if prefixes else ""
    if not wrong and base and (not isinstance(base, str) or _NO_IRI.search(base) or not has_scheme(base)):
        wrong = "the field 'base' is no absolute IRI"
    if wrong:
        return refused(source, record, wrong, id=known)
    return Row(known, registered("language", language), query, prefixes, base, source, record)


def _wrong_prefixes(prefixes: Any) -> str:
    if not isinstance(prefixes, dict):
        return "the field 'prefixes' is no map from names to IRIs"
    for name, iri in prefixes.items():
        if not isinstance(name, str) or not _PREFIX.fullmatch(name):
            return f"in the field 'prefixes': {name!r} is no prefix"
        if not isinstance(iri, str) or not iri or _NO_IRI.search(iri):
            return f"in the field 'prefixes': the value of {name!r} is no IRI"
    return ""
