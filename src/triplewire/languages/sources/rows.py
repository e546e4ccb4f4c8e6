"""The rows of subscription files: JSON Lines and Parquet with `id`, `language`, `query`, perhaps `prefixes`, `base`.

A row that is wrong becomes a `Refusal` in its place and the next is read. Which files there are, and what becomes of a
row: `languages.sources.files`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.plugins import registered

_BATCH = 1_024  # rows of a Parquet file held at a time
_SPARE = 1 << 20  # bytes of a line beside its query
_REQUIRED = ("id", "language", "query")
_PREFIX = re.compile(r"(?:[^\W\d][\w.-]*)?")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NO_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20\ud800-\udfff]')
_SURROGATE = re.compile("[\ud800-\udfff]")
_NONE: Mapping[str, str] = {}


@dataclass(slots=True)  # not frozen, as that takes three times as long, and there are millions
class Row:
    """A subscription as written. `source` is the file; `record` its row, from 1, or 0 where the file is one query."""

    id: str
    language: str
    query: str
    prefixes: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    source: str = ""
    record: int = 0

    def refusal(self, error: TriplewireError) -> Refusal:
        """The record of `error`, with the place in the file and in the query."""
        place = ":".join(str(part) for part in (error.line, error.column) if part)
        if self.record:
            where = f"{self.source} (record {self.record})" + (f", query {place}" if place else "")
        else:
            where = f"{self.source}:{place}" if place else self.source
        return Refusal("subscription", self.id, where, error.what, error.remedy)


def json_rows(stream: BinaryIO, source: str, settings: Settings) -> Iterator[Row | Refusal]:
    """The rows of JSON Lines. Raises `SubscriptionError` where the file itself cannot be read on."""
    limit = 8 * settings.max_query_bytes + _SPARE
    for record, line in enumerate(_lines(stream, limit, settings.max_input_bytes), 1):
        if line is None:
            yield refused(source, record, f"the line is longer than {limit:,} bytes", "raise max_query_bytes")
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
        whole = line
        while len(whole) == limit and not whole.endswith(b"\n"):
            whole = stream.readline(limit)
            size += len(whole)
        size += len(line)
        if size > total:
            raise SubscriptionError(f"it has more than {total:,} bytes", remedy="raise max_input_bytes")
        yield line if whole is line else None


def parquet_rows(stream: BinaryIO, source: str) -> Iterator[Row | Refusal]:
    """The rows of a Parquet file. Raises `SubscriptionError` where the file itself cannot be read on."""
    try:
        file = pq.ParquetFile(stream)
        present = file.schema_arrow.names
        missing = [name for name in _REQUIRED if name not in present]
        if missing:
            raise SubscriptionError(f"it has no column {missing[0]!r}", remedy=f"columns: {', '.join(_REQUIRED)}")
        columns = [name for name in (*_REQUIRED, "prefixes", "base") if name in present]
        record = 0
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
            for number in range(batch.num_rows):
                record += 1
                yield _parquet_row(batch, number, source, record)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SubscriptionError(f"it cannot be read as Parquet: {str(error).splitlines()[0][:200]}") from None


def _parquet_row(batch: Any, number: int, source: str, record: int) -> Row | Refusal:
    try:
        value = {name: batch.column(name)[number].as_py() for name in batch.schema.names}
        prefixes = value.get("prefixes")
        if isinstance(prefixes, str):
            value["prefixes"] = json.loads(prefixes) if prefixes else None
        elif isinstance(prefixes, list):  # a map
            value["prefixes"] = dict(prefixes)
    except UnicodeDecodeError:
        return refused(source, record, "the row is no UTF-8")
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
    wrong = (prefixes and _wrong_prefixes(prefixes)) or (base and _wrong_base(base))
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


def _wrong_base(base: Any) -> str:
    if not isinstance(base, str) or _NO_IRI.search(base) or (base and not _ABSOLUTE.match(base)):
        return "the field 'base' is no absolute IRI"
    return ""
