"""Subscription files: one query each (.gql .rq .sparql .rdql .mdv .pred .kw), or many (.jsonl, .parquet; see `rows`).

Each may be gzipped. What is wrong becomes a `Refusal` and the rest goes on. Rows are not kept, with one exception: MDV
rules may name rules that come later, so they are set aside, in a temporary file past some size, until all are known.
Texts that differ in their constants only are parsed once where they are registered: `triplewire.languages.templates`.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config import Settings
from triplewire.errors import Refusal, StoreError, SubscriptionError, TriplewireError
from triplewire.folders import entries_of
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.sources.rows import (
    Row,
    is_storable,
    json_rows,
    parquet_rows,
    refusal_of_repeated,
    refused,
)
from triplewire.languages.sources.tables import SubscriptionSource, SubscriptionTexts
from triplewire.model.operator import Operator

if TYPE_CHECKING:
    from triplewire.languages.sources.row_columns import RowColumns
    from triplewire.languages.templates.splitting import Pool

ReadRows: TypeAlias = "Callable[[BinaryIO, str, Settings], Iterator[Row | Refusal | RowColumns]]"

LANGUAGES = {
    ".gql": "gql",
    ".rq": "sparql",
    ".sparql": "sparql",
    ".rdql": "rdql",
    ".mdv": "mdv",
    ".pred": "predicates",
    ".kw": "keywords",
}
"""The language of a file that holds one query."""

SUFFIXES = (*LANGUAGES, ".jsonl", ".parquet")
"""Of files of subscriptions."""

STDIN = "standard input"
_IN_MEMORY = 64 << 20  # bytes of rules set aside before they go to a file
_BLOCKS = 16  # of rules set aside that are held once they were read
_MOST_NAMES = 1 << 16  # of those looked up that are remembered
GZIP = b"\x1f\x8b"
_BOM_BYTES = 3
_PIECE = 1 << 20


class ParsedRow(NamedTuple):
    """A row with its subscription. `is_plain`: that is what the text gives by itself. That of a rule that names other
    rules is not."""

    row: Row
    subscription: Subscription
    is_plain: bool = True


class RowBatch(NamedTuple):
    """Some rows, and refusals in their places. `parse` parses one, and raises `TriplewireError` where it is refused.
    `rules`: names of MDV rules that are there: a row that names another one is what it is by that one. `by_template`:
    may rows have templates?"""

    rows: Sequence[Row | Refusal] | RowColumns
    parse: Callable[[Row], ParsedRow]
    rules: Container[str] = ()
    by_template: bool = True

    @classmethod
    def of(cls, parsed: Iterable[ParsedRow]) -> RowBatch:
        """Rows that are parsed already."""
        by_id = {its.row.id: its for its in parsed}
        return cls([its.row for its in by_id.values()], lambda row: by_id[row.id], by_template=False)


def read_rows(
    paths: Iterable[SubscriptionSource],
    *,
    operators: Mapping[str, Operator] | None = None,
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None],
) -> Iterator[ParsedRow]:
    """The rows of `read_batches`, parsed in full, each when it is asked for; what is refused goes to `on_refusal`."""
    for batch in read_batches(Reader(operators, settings or Settings(), {}), paths):
        yield from parsed_rows(batch, on_refusal)


def parsed_rows(batch: RowBatch, refuse: Callable[[Refusal], None]) -> Iterator[ParsedRow]:
    """The rows of a batch, parsed in full."""
    for row in batch.rows:
        if isinstance(row, Refusal):
            refuse(row)
            continue
        try:
            parsed = batch.parse(row)
        except TriplewireError as error:
            refuse(row.refusal(error))
        else:
            yield parsed


def read_batches(
    reader: Reader, paths: Iterable[SubscriptionSource], ids: Collection[str] | None = None
) -> Generator[RowBatch, None, None]:
    """The rows of files, of folders (all files below, by path; hidden ones left out), of tables, and of `-`, which is
    JSON Lines from standard input; one by one or, where the reader is columnar, many together, by compiled kernels. MDV
    rules come last; they may name each other, and the MDV rules that are registered already. Of tables, only the rows
    with these `ids` are read, where some are given. The reader cannot be used afterwards.

    A bad file or row is a `Refusal` of kind "subscription". Its subject is the id (the file where none is known), its
    place file, row, and line and column of the query. So is a row whose id was met before.
    """
    with reader:
        if reader.columnar:
            yield from batches_of(reader, reader.items(paths, ids))
        else:
            yield from _single(reader, reader.rows(paths, ids))
        yield from batches_of_rules(reader)


def batches_of_rules(reader: Reader) -> Iterator[RowBatch]:
    """The MDV rules, which were set aside."""
    rules = Rules(reader)
    for of_rules in reader.set_aside_rows():
        yield RowBatch(of_rules, rules.parsed, rules)


def _single(reader: Reader, items: Iterable[Row | Refusal]) -> Iterator[RowBatch]:
    """The rows one by one, but for MDV rules, which are set aside."""
    known: set[str] = set()
    for item in items:
        if isinstance(item, Row) and item.id in known:
            item = refusal_of_repeated(item)
        if isinstance(item, Row):
            known.add(item.id)
            if item.language == "mdv":
                reader.set_aside([item])
                continue
        yield RowBatch([item], reader.parsed)


def batches_of(
    reader: Reader, items: Iterable[Row | Refusal | RowColumns], known: Pool | None = None
) -> Iterator[RowBatch]:
    """The rows as columns, but for MDV rules, which are set aside. `known`: the ids of those before."""
    from triplewire.languages.sources.row_columns import together  # compiled kernels
    from triplewire.languages.templates.splitting import Pool

    known = Pool() if known is None else known
    for columns in together(items):
        rows = columns.without_repeated(known)
        is_rule = rows.are_in("mdv")
        if is_rule.any():
            reader.set_aside(replace(rows.where(is_rule), refusals={}))
        yield RowBatch(rows.where(~is_rule), reader.parsed)


def rows_of_ids(paths: Iterable[str | os.PathLike[str]], ids: Container[str], settings: Settings) -> dict[str, Row]:
    """The first row of each of these ids in files, as for `read_rows`; what cannot be read is passed over."""
    rows: dict[str, Row] = {}
    with Reader(None, settings, {}) as reader:
        for row in reader.rows(paths):
            if isinstance(row, Row) and row.id in ids:
                rows.setdefault(row.id, row)
    return rows


class Reader(AbstractContextManager["Reader"]):
    """Reads rows and compiles them. MDV rules are stored in a temporary file until all are known."""

    def __init__(
        self,
        operators: Mapping[str, Operator] | None,
        settings: Settings,
        registered: Mapping[str, Subscription],
        columnar: bool = False,
    ) -> None:
        self._spool = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115  # see __exit__
        self._operators = operators
        self._settings = settings
        self.registered = registered
        self.columnar = columnar
        self.places: dict[str, tuple[int, int]] = {}  # of each MDV rule, where its rows begin in the spool; its number
        self._begins: list[int] = []
        self._set_aside_at = lru_cache(_BLOCKS)(self._read_set_aside)

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def rows(
        self, sources: Iterable[SubscriptionSource], ids: Collection[str] | None = None
    ) -> Iterator[Row | Refusal]:
        """The rows of all files and tables in order, not compiled; of tables, those with these ids."""
        return (item for item in self.items(sources, ids) if isinstance(item, Row | Refusal))

    def items(
        self, sources: Iterable[SubscriptionSource], ids: Collection[str] | None = None
    ) -> Iterator[Row | Refusal | RowColumns]:
        """The same, many of them as columns where the reader is columnar."""
        for source in sources:
            if not isinstance(source, SubscriptionTexts):
                yield from self._read(source)
                continue
            try:
                yield from source.rows(ids)
            except StoreError as error:
                yield Refusal("subscription", source.name, error.source, error.what, error.remedy)

    def _read(self, path: str | os.PathLike[str]) -> Iterator[Row | Refusal | RowColumns]:
        if os.fspath(path) == "-":
            yield from self._readable_rows(STDIN, ".jsonl", lambda: _unzipped(sys.stdin.buffer, STDIN), "")
            return
        for file, left_out in entries_of(Path(path)):
            if left_out:
                yield refused(str(file), 0, left_out)
                continue
            name = file.name.removesuffix(".gz")
            yield from self._readable_rows(str(file), Path(name).suffix, partial(_opened, file), Path(name).stem)

    def _readable_rows(
        self, source: str, suffix: str, opened: Callable[[], AbstractContextManager[BinaryIO]], stem: str
    ) -> Iterator[Row | Refusal | RowColumns]:
        """The rows of a file. Where it cannot be read to its end, the last item is the refusal of the rest."""
        try:
            with opened() as stream:
                yield from self._rows(stream, source, suffix, stem)
        except (SubscriptionError, OSError, EOFError, zlib.error) as error:
            yield unreadable(source, stem if suffix in LANGUAGES and is_storable(stem) else source, error)

    def _rows(self, stream: BinaryIO, source: str, suffix: str, stem: str) -> Iterator[Row | Refusal | RowColumns]:
        if suffix == ".jsonl":
            yield from self._readers()[0](stream, source, self._settings)
        elif suffix == ".parquet":
            with _seekable(stream, self._settings.max_input_bytes) as file:
                yield from self._readers()[1](file, source, self._settings)
        elif suffix in LANGUAGES:
            if not is_storable(stem):
                raise SubscriptionError("its name, which would be the id, is no UTF-8", remedy="rename it")
            yield Row(stem, LANGUAGES[suffix], self._text(stream), source=source)
        else:
            known = ", ".join(SUFFIXES)
            raise SubscriptionError("no kind of subscription file", remedy=f"known: {known}, each also with .gz")

    def _text(self, stream: BinaryIO) -> str:
        limit = self._settings.max_query_bytes
        data = stream.read(limit + _BOM_BYTES + 1)
        if len(data) > limit + _BOM_BYTES:
            raise SubscriptionError(f"the text is longer than {limit} bytes", remedy="raise max_query_bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SubscriptionError(f"byte {error.start + 1} is no UTF-8", remedy="save it as UTF-8") from None

    def _readers(self) -> tuple[ReadRows, ReadRows]:
        """The readers of JSON Lines and of Parquet."""
        if not self.columnar:
            return json_rows, parquet_rows
        from triplewire.languages.sources.row_columns import json_columns, parquet_columns  # compiled kernels

        return json_columns, parquet_columns

    def set_aside(self, rules: list[Row] | RowColumns) -> None:
        """Store MDV rules until all are known."""
        begin = self._spool.seek(0, io.SEEK_END)
        pickle.dump(rules, self._spool, pickle.HIGHEST_PROTOCOL)
        self._begins.append(begin)
        ids = [row.id for row in rules] if isinstance(rules, list) else rules.ids.decoded()
        self.places.update((id, (begin, number)) for number, id in enumerate(ids))

    def set_aside_rows(self) -> Iterator[list[Row] | RowColumns]:
        """The MDV rules."""
        yield from map(self._set_aside_at, self._begins)

    def _read_set_aside(self, begin: int) -> list[Row] | RowColumns:
        self._spool.seek(begin)
        rules: list[Row] | RowColumns = pickle.load(self._spool)  # a file without a name, which this object has written
        return rules

    def compile(self, row: Row, rules: Mapping[str, Subscription]) -> Subscription:
        """The subscription of a row. Raises what `triplewire.languages.parse` raises."""
        return parse(
            row.query,
            row.language,
            id=row.id,
            prefixes=row.prefixes,
            base=row.base,
            operators=self._operators,
            rules=rules,
            settings=self._settings,
        )

    def parsed(self, row: Row) -> ParsedRow:
        """The same, with its row."""
        return ParsedRow(row, self.compile(row, {}))

    def row(self, id: str) -> Row:
        """The row of an MDV rule."""
        begin, number = self.places[id]
        return self._set_aside_at(begin)[number]


class _Needed(Exception):
    """Raised where a rule names another one that is not compiled yet."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id


class Rules(Mapping[str, Subscription]):
    """All MDV rules of a call, compiled on demand, and those registered before, whose ids none of them can get.

    A rule that another one names is kept, or the reason why it was refused. Asking for a rule that is not compiled yet
    stops the compilation with `_Needed`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._named: dict[str, Subscription] = {}
        self._refused: dict[str, str] = {}
        self._looked_up = False
        self._with_others: set[str] = set()  # those compiled that name other rules
        self._is_there = lru_cache(_MOST_NAMES)(
            lambda name: name in reader.places or name in reader.registered  # most are names of classes
        )

    def __contains__(self, name: object) -> bool:
        return self._is_there(name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._reader.registered, *self._reader.places]))

    def __getitem__(self, id: str) -> Subscription:
        known = self._named.get(id) or self._reader.registered.get(id)
        if known is not None:
            self._looked_up = True
            return known
        if id in self._refused:
            raise SubscriptionError(self._refused[id])
        if id in self._reader.places:
            raise _Needed(id)
        raise KeyError(id)

    def parsed(self, row: Row) -> ParsedRow:
        """A rule. One that names another contains it."""
        compiled = self.compiled(row.id)
        if isinstance(compiled, Subscription):
            return ParsedRow(row, compiled, row.id not in self._with_others)
        raise compiled

    def compiled(self, id: str) -> Subscription | TriplewireError:
        """The rule, or why it is refused. Those that it names are compiled first, without recursion."""
        if id in self._named:
            return self._named[id]
        waiting = {id: None}  # each names the next
        while True:
            last = next(reversed(waiting))
            compiled: Subscription | TriplewireError
            self._looked_up = False
            try:
                compiled = self._reader.compile(self._reader.row(last), self)
            except _Needed as needed:
                if needed.id in waiting:
                    circle = list(waiting)[list(waiting).index(needed.id) :]
                    what = f"rules name each other in a circle: {', '.join([*circle, needed.id])}"
                    self._refused.update((member, what) for member in circle)
                else:
                    waiting[needed.id] = None
                continue
            except TriplewireError as error:
                compiled = error
            if self._looked_up:
                self._with_others.add(last)
            if last == id:
                return compiled
            if isinstance(compiled, Subscription):
                self._named[last] = compiled
            else:
                self._refused.setdefault(last, f"it names the rule {last!r}, which is refused: {compiled.what}")
            del waiting[last]


@contextmanager
def _seekable(stream: BinaryIO, limit: int) -> Iterator[BinaryIO]:
    """The stream itself or, where it is a pipe or is unpacked while it is read, a temporary file with its content."""
    is_packed = isinstance(stream, gzip.GzipFile)
    if not is_packed and stream.seekable():
        yield stream
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        while piece := stream.read(_PIECE):
            if file.write(piece) and file.tell() > limit:
                much = f"it {'unpacks to' if is_packed else 'has'} more than {limit:,} bytes"
                raise SubscriptionError(much, remedy="raise max_input_bytes")
        file.seek(0)
        yield cast("BinaryIO", file)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as stream, _unzipped(stream, path.name) as unzipped:
        yield unzipped


@contextmanager
def _unzipped(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """The stream itself or, where it is gzipped, its content."""
    buffered = io.BufferedReader(cast("io.RawIOBase", stream))
    try:
        if buffered.peek(len(GZIP))[: len(GZIP)] == GZIP:
            with gzip.GzipFile(fileobj=buffered) as unzipped:
                yield cast("BinaryIO", unzipped)
        elif name.endswith(".gz"):
            raise SubscriptionError("it is not gzipped, as its name says")
        else:
            yield buffered
    finally:
        buffered.detach()  # the stream is closed by its owner


def count_rows(paths: Iterable[str | os.PathLike[str]]) -> int:
    """About how many subscriptions there are in files and folders, 0 where that takes more than a look: of what is
    gzipped, or a stream."""
    count = 0
    with suppress(OSError, pa.ArrowException):
        for file in (file for path in paths for file, left_out in entries_of(Path(path)) if not left_out):
            if file.suffix == ".jsonl":
                with open(file, "rb") as stream:
                    count += sum(part.count(b"\n") for part in iter(partial(stream.read, 1 << 20), b""))
            elif file.suffix == ".parquet":
                count += pq.read_metadata(file).num_rows
            elif file.suffix in LANGUAGES:
                count += 1
            else:
                return 0
        return count
    return 0


def unreadable(source: str, subject: str, error: Exception) -> Refusal:
    """The refusal of a file, or of the rest of it, that cannot be read."""
    if isinstance(error, SubscriptionError):
        return Refusal("subscription", subject, source, error.what, error.remedy)
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return Refusal("subscription", subject, source, f"damaged gzip: {error}")
    reason = error.strerror if isinstance(error, OSError) else None
    return Refusal("subscription", subject, source, f"it cannot be read: {reason or error}")
