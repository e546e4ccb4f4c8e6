"""The Arrow form of publications and matches: what goes into `Engine.match_batch` and comes out, and what Spark sees.

Terms are written in N-Triples notation (`triplewire.model.terms`); bindings are JSON text, a list of
{variable: term} with terms as in SPARQL 1.1 JSON results. Attachments that a program gave, and notes, stay behind.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term, Triple, parse_term

INSTANT = pa.timestamp("us", tz="UTC")
TRIPLE = pa.struct([("s", pa.string()), ("p", pa.string()), ("o", pa.string())])

PUBLICATIONS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("published", INSTANT),
        pa.field("triples", pa.list_(TRIPLE), nullable=False),
    ]
)
"""One row a publication."""

FILE_BESIDE = pa.field("file_beside", pa.binary())
"""Of a publication that was read from a file of this machine: its path, as bytes. What it names beside that
is attached to it (`triplewire.model.attachments`). A batch may do without this column."""

MATCHES = pa.schema(
    [
        pa.field("publication", pa.string(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("bindings", pa.string(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("matched_at", INSTANT),
        pa.field("construct", pa.string()),
        pa.field("content", pa.string(), nullable=False),
        pa.field("revision", pa.string(), nullable=False),
    ]
)
"""One row a match. `construct` is the graph of a CONSTRUCT query as canonical N-Quads, null for other queries;
`content` is the content hash of the publication; `revision` changes with the text of the subscription."""

WHY = pa.field("why", pa.string())
"""Why a row is a match, where that is asked for: a JSON list of sentences."""


_IDS = pa.dictionary(pa.int32(), pa.large_string())
PAIRS = pa.schema(
    [
        pa.field("publication", _IDS, nullable=False),
        pa.field("subscription", _IDS, nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
    ]
)
"""One row a match, without bindings: `truncated` says what is known without them."""


def to_batch(publications: Iterable[Publication]) -> pa.RecordBatch:
    """Publications as one batch of the schema `PUBLICATIONS`. Raises `ReadError` for the first whose id holds a lone
    surrogate, which Arrow has no text for."""
    rows = [
        {
            "id": publication.id,
            "source": storable_text(publication.source),
            "published": publication.published,
            "triples": [{"s": str(s), "p": str(p), "o": str(o)} for s, p, o in publication.triples],
        }
        for publication in publications
    ]
    try:
        return pa.RecordBatch.from_pylist(rows, schema=PUBLICATIONS)
    except UnicodeEncodeError:
        for record, row in enumerate(rows, 1):
            _check_storable(row, record)
        raise


def _check_storable(row: dict[str, Any], record: int) -> None:
    try:
        pa.RecordBatch.from_pylist([row], schema=PUBLICATIONS)
    except UnicodeEncodeError:
        what = "its id holds a lone surrogate, which UTF-8 cannot hold"
        remedy = "leave it out, or hand the publications to Engine.match"
        raise ReadError(what, source=storable_text(row["id"]), record=record, remedy=remedy) from None


def storable_text(text: str) -> str:
    """The text without the lone surrogates that UTF-8 cannot hold, as in names of files that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def from_batch(
    batch: pa.RecordBatch,
    *,
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None] | None = None,
    first_record: int = 1,
) -> Iterator[Publication]:
    """The publications of a batch whose columns are as in `PUBLICATIONS`; `source` and `published` may be missing.

    A row that is no publication (no id, a text that is not UTF-8, a term that cannot be read, no date, more triples
    than `settings.max_triples`) is handed to `on_refusal` and left out; without it, the first one is raised as
    `ReadError`. Its record number counts the rows from `first_record`. A batch of other columns, or one whose memory is
    damaged, always raises `ReadError`.
    """
    limit = (settings or Settings()).max_triples
    reader = _Rows(batch)
    for row in range(batch.num_rows):
        try:
            yield reader.publication(row, limit)
        except ReadError as error:
            error.record = first_record + row
            if on_refusal is None:
                error.remedy = error.remedy or "with on_refusal it is left out, and the other rows are read"
                raise
            on_refusal(Refusal.of("publication", reader.name(row), error))


class _Rows:
    """The columns of a batch as Python lists, and each term's text read once."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._ids = _strings(batch, "id")
        self._sources = _strings(batch, "source", optional=True)
        self._published = _instants(batch)
        self._files = _files(batch)
        triples = _column(batch, "triples")
        if not _is_triples(triples.type):
            raise _wrong(f"the column 'triples' is {triples.type}, not list<struct<s, p, o: string>>")
        if not pa.types.is_large_list(triples.type):
            triples = triples.cast(pa.large_list(triples.type.value_type))
        self._present: list[bool] = triples.is_valid().to_pylist()
        self._bounds: list[int] = triples.offsets.to_pylist()
        self._length = len(triples.values)
        inside = [bound for bound in self._bounds if 0 <= bound <= self._length]
        self._first = min(inside, default=0)  # of a slice, only what belongs to it
        members = triples.values.slice(self._first, max(inside, default=0) - self._first)
        parts = members.flatten()
        self._terms = [_texts(parts[members.type.get_field_index(name)], f"triples.{name}") for name in "spo"]
        self._known: dict[str, Term] = {}

    def name(self, row: int) -> str:
        """What to call a row in a message."""
        identity = self._ids[row]
        return (identity.decode("utf-8", "backslashreplace") if isinstance(identity, bytes) else identity) or "(no id)"

    def publication(self, row: int, limit: int) -> Publication:
        """The publication of a row. Raises `ReadError`."""
        identity, source, published = self._ids[row], self._sources[row], self._published[row]
        try:
            if not identity:
                raise ValueError("the publication has no id")
            if isinstance(published, Exception):
                raise ValueError(f"the publication's date cannot be read: {published}")
            triples = self._triples(row, limit)
            publication = Publication(_utf8(identity, "id"), triples, _utf8(source or "", "source"), published)
            file = self._files[row]
            return publication.with_files_beside(os.fsdecode(file)) if file else publication
        except ValueError as error:
            raise ReadError(str(error)) from error

    def _triples(self, row: int, limit: int) -> tuple[Triple, ...]:
        """The triples of a row. Raises `ValueError`, and `ReadError` where they are too many."""
        start, end = self._bounds[row], self._bounds[row + 1]
        if not self._present[row]:
            raise ValueError("the publication's triples are null")
        if not 0 <= start <= end <= self._length:
            raise ValueError(f"the list of triples goes from {start} to {end}, and there are {self._length}")
        if end - start > limit:
            raise ReadError(f"{end - start} triples, {limit} are allowed", remedy="raise max_triples")
        return tuple(self._triple(at) for at in range(start - self._first, end - self._first))

    def _triple(self, at: int) -> Triple:
        subject, predicate, object_ = (self._term(column[at]) for column in self._terms)
        if isinstance(subject, Literal):
            raise ValueError(f"the subject {subject} is a literal")
        if not isinstance(predicate, IRI):
            raise ValueError(f"the predicate {predicate} is no IRI")
        return Triple(subject, predicate, object_)

    def _term(self, text: str | bytes | None) -> Term:
        if text is None:
            raise ValueError("a triple lacks a term")
        text = _utf8(text, "term")
        if text not in self._known:
            self._known[text] = parse_term(text)
        return self._known[text]


def _wrong(what: str) -> ReadError:
    return ReadError(what, remedy="see triplewire.encode.schema.PUBLICATIONS")


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if batch.schema.names.count(name) != 1:
        raise _wrong(f"the batch has no column {name!r}")
    column = batch.column(name)
    try:
        column.validate()
    except pa.ArrowInvalid as error:
        raise _damaged(name, error) from error
    return column


def _damaged(name: str, error: pa.ArrowInvalid) -> ReadError:
    return ReadError(f"the column {name!r} is damaged: {error}", remedy="write the batch anew")


def _strings(batch: pa.RecordBatch, name: str, optional: bool = False) -> list[str | bytes | None]:
    if optional and name not in batch.schema.names:
        return [None] * batch.num_rows
    column = _column(batch, name)
    if not (is_text(column.type) or pa.types.is_null(column.type)):
        raise _wrong(f"the column {name!r} is {column.type}, not string")
    return _texts(column, name)


def _files(batch: pa.RecordBatch) -> list[bytes | None]:
    if FILE_BESIDE.name not in batch.schema.names:
        return [None] * batch.num_rows
    column = _column(batch, FILE_BESIDE.name)
    if not (pa.types.is_binary(column.type) or pa.types.is_null(column.type)):
        raise _wrong(f"the column {FILE_BESIDE.name!r} is {column.type}, not binary")
    files: list[bytes | None] = column.to_pylist()
    return files


def _texts(column: pa.Array, name: str) -> list[str | bytes | None]:
    """The texts of a column. What is not UTF-8 stays bytes. Raises `ReadError` where the memory is damaged."""
    try:
        column.validate(full=True)
        texts: list[str | bytes | None] = column.to_pylist()
        return texts
    except pa.ArrowInvalid:
        raw = as_bytes(column)
    try:
        raw.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _damaged(name, error) from error
    return [_text(data) for data in raw.to_pylist()]


def _text(data: bytes | None) -> str | bytes | None:
    try:
        return data and data.decode()
    except UnicodeDecodeError:
        return data


def _utf8(text: str | bytes, what: str) -> str:
    """The text. Raises `ValueError` where it is not UTF-8."""
    if isinstance(text, str):
        return text
    shown = text[:80].decode("utf-8", "backslashreplace")
    raise ValueError(f"the {what} '{shown}' is not UTF-8 (a lone surrogate, or another encoding)")


def _instants(batch: pa.RecordBatch) -> list[dt.datetime | Exception | None]:
    """The dates of the publications, or why one is none."""
    return _read_instants(_column(batch, "published")) if "published" in batch.schema.names else [None] * batch.num_rows


def _read_instants(column: pa.Array) -> list[dt.datetime | Exception | None]:
    try:
        instants: list[dt.datetime | None] = as_instants(column).to_pylist()
        return [instant and instant.astimezone(dt.UTC) for instant in instants]
    except pa.ArrowNotImplementedError as error:  # a type without a cast
        raise _wrong(f"the column 'published' is {column.type}, no timestamp") from error
    except (pa.ArrowInvalid, ValueError, OverflowError) as error:  # a text that is no time, a year beyond 9999
        if len(column) == 1:
            return [error]
        return [instant for row in range(len(column)) for instant in _read_instants(column.slice(row, 1))]


def as_instants(column: pa.Array) -> pa.Array:
    """A column of dates as `INSTANT`s; nanoseconds are cut. Raises what Arrow's cast does."""
    nanoseconds = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    return column.cast(INSTANT, safe=not nanoseconds)


def as_bytes(column: pa.Array) -> pa.Array:
    """A column of strings as bytes, which need not be UTF-8. The memory is shared."""
    return column.cast(_BINARY[column.type])


def is_text(kind: pa.DataType) -> bool:
    """Is it one of Arrow's types of strings?"""
    return kind in _BINARY


_BINARY = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
"""Types of strings, and those of the same bytes."""

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def _is_triples(kind: pa.DataType) -> bool:
    if not any(is_kind(kind) for is_kind in _LISTS) or not pa.types.is_struct(kind.value_type):
        return False
    places = [kind.value_type.get_field_index(name) for name in "spo"]
    return min(places) >= 0 and all(is_text(kind.value_type.field(place).type) for place in places)
