"""The Arrow form of publications and matches: what goes into `Engine.match_batch` and comes out, and what Spark sees.

Terms are written in N-Triples notation (`triplewire.model.terms`); bindings are JSON text, a list of
{variable: term} with terms as in SPARQL 1.1 JSON results. Attachments and notes of a publication stay behind.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator

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

MATCHES = pa.schema(
    [
        pa.field("publication", pa.string(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("bindings", pa.string(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("matched_at", INSTANT),
    ]
)
"""One row a match."""


def to_batch(publications: Iterable[Publication]) -> pa.RecordBatch:
    """Publications as one batch of the schema `PUBLICATIONS`."""
    rows = [
        {
            "id": publication.id,
            "source": publication.source,
            "published": publication.published,
            "triples": [{"s": str(s), "p": str(p), "o": str(o)} for s, p, o in publication.triples],
        }
        for publication in publications
    ]
    return pa.RecordBatch.from_pylist(rows, schema=PUBLICATIONS)


def from_batch(
    batch: pa.RecordBatch, *, settings: Settings | None = None, on_refusal: Callable[[Refusal], None] | None = None
) -> Iterator[Publication]:
    """The publications of a batch whose columns are as in `PUBLICATIONS`; `source` and `published` may be missing.

    A row that is no publication (no id, a term that cannot be read, more triples than `settings.max_triples`) is
    handed to `on_refusal` and left out; without it, the first one is raised as `ReadError`. A batch of other columns
    always raises `ReadError`.
    """
    limit = (settings or Settings()).max_triples
    reader = _Rows(batch)
    for row in range(batch.num_rows):
        try:
            yield reader.publication(row, limit)
        except ReadError as error:
            if on_refusal is None:
                raise
            on_refusal(Refusal.of("publication", reader.name(row), error))


class _Rows:
    """The columns of a batch as Python lists, and each term's text read once."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._ids = _strings(batch, "id")
        self._sources = _strings(batch, "source", optional=True)
        self._published = _instants(batch)
        triples = _column(batch, "triples")
        if not _is_triples(triples.type):
            raise _wrong(f"the column 'triples' is {triples.type}, not list<struct<s, p, o: string>>")
        self._counts: list[int | None] = triples.value_lengths().to_pylist()
        members = triples.flatten()
        parts = members.flatten()
        self._terms: list[list[str | None]] = [
            parts[members.type.get_field_index(name)].cast(pa.string()).to_pylist() for name in "spo"
        ]
        self._starts = [0]
        for count in self._counts:
            self._starts.append(self._starts[-1] + (count or 0))
        self._known: dict[str, Term] = {}

    def name(self, row: int) -> str:
        """What to call a row in a message."""
        return self._ids[row] or "(no id)"

    def publication(self, row: int, limit: int) -> Publication:
        """The publication of a row. Raises `ReadError`."""
        identity, count, published = self._ids[row], self._counts[row], self._published[row]
        if not identity:
            raise ReadError("the publication has no id", record=row + 1)
        if count is None:
            raise ReadError("the publication's triples are null", record=row + 1)
        if count > limit:
            raise ReadError(f"{count} triples, {limit} are allowed", record=row + 1, remedy="raise max_triples")
        start = self._starts[row]
        try:
            triples = tuple(self._triple(at) for at in range(start, start + count))
        except ValueError as error:
            raise ReadError(str(error), record=row + 1) from error
        return Publication(identity, triples, self._sources[row] or "", published)

    def _triple(self, at: int) -> Triple:
        subject, predicate, object_ = (self._term(column[at]) for column in self._terms)
        if isinstance(subject, Literal):
            raise ValueError(f"the subject {subject} is a literal")
        if not isinstance(predicate, IRI):
            raise ValueError(f"the predicate {predicate} is no IRI")
        return Triple(subject, predicate, object_)

    def _term(self, text: str | None) -> Term:
        if text is None:
            raise ValueError("a triple lacks a term")
        term = self._known.get(text)
        if term is None:
            term = self._known[text] = parse_term(text)
        return term


def _wrong(what: str) -> ReadError:
    return ReadError(what, remedy="see triplewire.encode.schema.PUBLICATIONS")


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if batch.schema.names.count(name) != 1:
        raise _wrong(f"the batch has no column {name!r}")
    return batch.column(name)


def _strings(batch: pa.RecordBatch, name: str, optional: bool = False) -> list[str | None]:
    if optional and name not in batch.schema.names:
        return [None] * batch.num_rows
    column = _column(batch, name)
    if not (is_text(column.type) or pa.types.is_null(column.type)):
        raise _wrong(f"the column {name!r} is {column.type}, not string")
    texts: list[str | None] = column.cast(pa.string()).to_pylist()
    return texts


def _instants(batch: pa.RecordBatch) -> list[dt.datetime | None]:
    if "published" not in batch.schema.names:
        return [None] * batch.num_rows
    column = _column(batch, "published")
    try:
        instants: list[dt.datetime | None] = column.cast(INSTANT).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # a text that is no time; a type without a cast
        raise _wrong(f"the column 'published' is no timestamp: {error}") from error
    return [instant and instant.astimezone(dt.UTC) for instant in instants]


def is_text(kind: pa.DataType) -> bool:
    """Is it one of Arrow's types of strings?"""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_triples(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    members = kind.value_type
    return all(
        members.get_field_index(name) >= 0 and is_text(members.field(members.get_field_index(name)).type)
        for name in "spo"
    )
