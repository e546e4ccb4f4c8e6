"""The rows of subscription files: JSON Lines and Parquet with `id`, `language`, `query`, perhaps `prefixes`, `base`;
and the set of ids met so far.

A row that is wrong becomes a `Refusal` in its place and the next is read. Which files there are, and what becomes of a
row: `languages.sources.files`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.model.references import has_scheme
from triplewire.plugins import registered

if TYPE_CHECKING:
    from triplewire.languages.templates.splitting import Pool

_BATCH = 1_024  # rows of a Parquet file held at a time, at most
_BATCH_BYTES = 1 << 28  # of texts in them that the file holds only in part
_SPARE = 1 << 20  # bytes of a line beside its query
_REQUIRED = ("id", "language", "query")
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


class JsonRow(Row):
    """A row of JSON Lines in the usual form, of which nothing is decoded before somebody asks. `utf8`: the query;
    `line`: the whole row, as `json.dumps` writes it."""

    __slots__ = ("_id", "_raw", "utf8")

    def __init__(self, id: bytes, language: str, raw: bytes, source: str, record: int) -> None:
        self.id, self.language, self.prefixes, self.base = id.decode(), language, _NONE, ""
        self.source, self.record, self.table = source, record, ""
        self._id, self._raw = id, raw
        quotes_only = raw.replace(b'\\"', b'"') if b"\\" in raw else raw
        self.utf8 = quotes_only if b"\\" not in quotes_only else json.loads(b'"%b"' % raw).encode()

    @property
    def query(self) -> str:  # type: ignore[override]  # it is only read
        """The text."""
        return self.utf8.decode()

    @property
    def line(self) -> bytes:
        """The row as a line."""
        stated = self._id, self.language.encode(), self._raw
        return b'{"id": "%b", "language": "%b", "query": "%b", "prefixes": {}, "base": ""}\n' % stated


_USUAL = re.compile(
    rb'\{"id" ?: ?"([^"\\\x00-\x1f]++)", ?"language" ?: ?"(\w++)"'
    rb', ?"query" ?: ?"((?:[^"\\\x00-\x1f]++|\\["\\nrtbf])*+)"'
    rb'(?:, ?"prefixes" ?: ?\{\})?(?:, ?"base" ?: ?"")?\}[ \t\r\n]*+'
)


def _usual_row(line: bytes, source: str, record: int) -> JsonRow | None:
    """The row of a line, if that has the usual form."""
    usual = _USUAL.fullmatch(line)
    if usual is None:
        return None
    try:
        if not line.isascii():
            line.decode()
        return JsonRow(usual[1], registered("language", usual[2].decode()), usual[3], source, record)
    except UnicodeDecodeError:
        return None


def too_large(limit: int) -> SubscriptionError:
    """The error of a file that has more bytes, when it is unpacked."""
    return SubscriptionError(f"it has more than {limit:,} bytes", remedy="raise max_input_bytes")


def row_bytes(settings: Settings) -> int:
    """How long a row may be: a byte of its query may be an escape of JSON."""
    return 8 * settings.max_query_bytes + _SPARE


def json_rows(stream: BinaryIO, source: str, settings: Settings) -> Iterator[Row | Refusal]:
    """The rows of JSON Lines. Raises `SubscriptionError` where the file itself cannot be read on."""
    limit = row_bytes(settings)
    for record, line in enumerate(_lines(stream, limit, settings.max_input_bytes), 1):
        if line is None:
            yield refused(source, record, f"the line is longer than {limit:,} bytes", "raise max_query_bytes")
            continue
        usual = _usual_row(line, source, record)
        if usual is not None:
            yield usual
            continue
        try:
            text = line.decode("utf-8-sig" if record == 1 else "utf-8")
            if text.strip():
                yield _row(json.loads(text), source, record)
        except UnicodeDecodeError as error:
            yield refused(source, record, f"byte {error.start + 1} of the line is no UTF-8")
        except json.JSONDecodeError as error:
            yield refused(source, record, f"no JSON: {error.msg} at character {error.pos + 1}")
        except RecursionError:
            yield refused(source, record, "no JSON that can be read: nested too deeply")
        except ValueError as error:
            yield refused(source, record, f"no JSON that can be read: {error}")


def _lines(stream: BinaryIO, limit: int, total: int) -> Iterator[bytes | None]:
    """The lines; None for each that is longer than `limit` bytes. Raises `SubscriptionError` past `total` bytes."""
    size = 0
    while line := stream.readline(limit):
        piece = line
        size += len(line)
        while size <= total and len(piece) == limit and not piece.endswith(b"\n"):
            piece = stream.readline(limit)
            size += len(piece)
        if size > total:
            raise too_large(total)
        yield line if piece is line else None


def parquet_rows(stream: BinaryIO, source: str, settings: Settings) -> Iterator[Row | Refusal]:
    """The rows of a Parquet file. Raises `SubscriptionError` where the file itself cannot be read on.

    Texts are read as dictionaries, so that one which many rows have is in memory once.
    """
    limit = row_bytes(settings)
    try:
        about = pq.read_metadata(stream)
        schema = about.schema.to_arrow_schema()
        missing = [name for name in _REQUIRED if name not in schema.names]
        if missing:
            raise SubscriptionError(f"it has no column {missing[0]!r}", remedy=f"columns: {', '.join(_REQUIRED)}")
        columns = [name for name in (*_REQUIRED, "prefixes", "base") if name in schema.names]
        groups = map(about.row_group, range(about.num_row_groups))
        in_all = (chunk for group in groups for chunk in map(group.column, range(group.num_columns)))
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
        record = 0
        for batch in file.iter_batches(batch_size=at_once, columns=columns):
            sizes = _sizes(batch)
            for number in range(batch.num_rows):
                record += 1
                if sizes[number] > limit:
                    yield refused(source, record, f"the row is longer than {limit:,} bytes", "raise max_query_bytes")
                    continue
                try:
                    value = {name: batch.column(name)[number].as_py() for name in batch.schema.names}
                except UnicodeDecodeError:
                    yield refused(source, record, "the row is no UTF-8")
                else:
                    yield row_of_columns(value, source, record)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SubscriptionError(f"it cannot be read as Parquet: {str(error).splitlines()[0][:200]}") from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _sizes(batch: pa.RecordBatch) -> list[int]:
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
    return sizes.tolist()  # type: ignore[no-any-return]  # NumPy's types do not say of what


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
        name = next(name for name in _REQUIRED if not isinstance(value.get(name), str))
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


FEW = 64
"""Up to this number of ids a Python set is used, so that small files need no compiled kernel."""


class Ids:
    """A set of ids that only grows, of files with millions of them: about 40 bytes an id, where a Python set takes more
    than 100. For one thread at a time."""

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._set: set[str] = set()
        self._pool: Pool | None = None

    def __len__(self) -> int:
        return len(self._pool or self._set)

    def add(self, ids: Sequence[str]) -> list[bool]:
        """Add ids, which hold no lone surrogates. Returns for each whether it was there before."""
        known = self._set
        if self._pool is None and len(known) + len(ids) > self._few:
            from triplewire.languages.templates.splitting import Pool  # compiled kernels, which small sets do without

            self._pool = Pool()
            self._insert(tuple(known))
            known.clear()
        if self._pool is not None:
            return self._insert(ids)
        was_there = []
        for id in ids:
            was_there.append(id in known)
            known.add(id)
        return was_there

    def _insert(self, ids: Sequence[str]) -> list[bool]:
        from triplewire.languages.templates.splitting import Texts

        assert self._pool is not None
        before = len(self._pool)
        numbers = self._pool.add(Texts.of([id.encode() for id in ids]))
        largest = np.maximum.accumulate(np.concatenate(([before - 1], numbers)))  # new ones have ascending numbers
        return (numbers <= largest[:-1]).tolist()  # type: ignore[no-any-return]  # NumPy's types do not say of what
