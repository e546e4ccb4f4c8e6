"""Subscription files: one query each (.gql .rq .sparql .mdv .pred), or many (.jsonl, .parquet; see `languages.rows`).

Each may be gzipped. What is wrong becomes a `Refusal` and the rest goes on. Rows are not kept, with one exception: MDV
rules may name rules that come later, so they are set aside, in a temporary file past some size, until all are known.
Millions of subscriptions: `languages.bulk`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.rows import Row, json_rows, parquet_rows
from triplewire.model.operator import Operator

LANGUAGES = {".gql": "gql", ".rq": "sparql", ".sparql": "sparql", ".mdv": "mdv", ".pred": "predicates"}
"""The language of a file that holds one query."""

STDIN = "standard input"
_IN_MEMORY = 64 << 20  # bytes of rules set aside before they go to a file
_GZIP = b"\x1f\x8b"
_BOM_BYTES = 3
_PIECE = 1 << 20


def read_subscriptions(
    paths: Iterable[str | os.PathLike[str]],
    *,
    operators: Mapping[str, Operator] | None = None,
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None],
) -> Iterator[Subscription]:
    """The subscriptions of files, of folders (all files below, by path; hidden ones left out) and of `-`, which is JSON
    Lines from standard input. MDV rules come last.

    A bad file, row or query becomes a `Refusal` of kind "subscription": its subject is the id (the file where none is
    known), its place file, row, and line and column of the query. So does a row whose id was met before.
    """
    taken: set[str] = set()
    with Reader(operators, settings or Settings()) as reader:
        for row in reader.rows(paths):
            if isinstance(row, Refusal):
                on_refusal(row)
            elif row.id in taken:
                on_refusal(row.refusal(id_is_taken(row)))
            else:
                taken.add(row.id)
                if row.language == "mdv":
                    reader.set_aside(row)
                    continue
                try:
                    compiled = reader.compile(row, {})
                except TriplewireError as error:
                    on_refusal(row.refusal(error))
                else:
                    yield compiled
        rules = Rules(reader)
        for id in reader.places:
            found = rules.compiled(id)
            if isinstance(found, Subscription):
                yield found
            else:
                on_refusal(reader.row(id).refusal(found))


def id_is_taken(row: Row) -> SubscriptionError:
    """Why a row is refused whose id was met before."""
    return SubscriptionError(f"the id {row.id!r} is taken", remedy="give each its own id")


class Reader(AbstractContextManager["Reader"]):
    """The rows of files, their compilation, and the MDV rules that are set aside until all are known."""

    def __init__(self, operators: Mapping[str, Operator] | None, settings: Settings) -> None:
        self._spool = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115  # see __exit__
        self._operators = operators
        self._settings = settings
        self.places: dict[str, int] = {}  # where the row of each MDV rule lies in the spool

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def rows(self, paths: Iterable[str | os.PathLike[str]]) -> Iterator[Row | Refusal]:
        """All rows, as they stand."""
        for path in paths:
            yield from self._read(path)

    def _read(self, path: str | os.PathLike[str]) -> Iterator[Row | Refusal]:
        if os.fspath(path) == "-":
            yield from self._readable_rows(STDIN, ".jsonl", lambda: _unzipped(sys.stdin.buffer, STDIN), "")
            return
        place = Path(path)
        for file in _files_below(place) if place.is_dir() else [place]:
            name = file.name.removesuffix(".gz")
            opened = partial(_opened, file)
            yield from self._readable_rows(str(file), Path(name).suffix, opened, Path(name).stem)

    def _readable_rows(
        self, source: str, suffix: str, opened: Callable[[], AbstractContextManager[BinaryIO]], stem: str
    ) -> Iterator[Row | Refusal]:
        """The rows of a file, and last, where it cannot be read to its end, why."""
        try:
            with opened() as stream:
                yield from self._rows(stream, source, suffix, stem)
        except (SubscriptionError, OSError, EOFError, zlib.error) as error:
            yield _unreadable(source, stem if suffix in LANGUAGES else source, error)

    def _rows(self, stream: BinaryIO, source: str, suffix: str, stem: str) -> Iterator[Row | Refusal]:
        if suffix == ".jsonl":
            yield from json_rows(stream, source, self._settings)
        elif suffix == ".parquet":
            with _seekable(stream, self._settings.max_input_bytes) as file:
                yield from parquet_rows(file, source)
        elif suffix in LANGUAGES:
            yield Row(stem, LANGUAGES[suffix], self._text(stream), source=source)
        else:
            known = ", ".join([*LANGUAGES, ".jsonl", ".parquet"])
            raise SubscriptionError("no kind of subscription file", remedy=f"known: {known}, each also with .gz")

    def _text(self, stream: BinaryIO) -> str:
        limit = self._settings.max_query_bytes
        data = stream.read(limit + _BOM_BYTES + 1)
        if len(data) > limit + _BOM_BYTES:
            raise SubscriptionError(f"the text is longer than {limit} bytes", remedy="raise max_query_bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SubscriptionError(f"byte {error.start + 1} is no UTF-8") from None

    def set_aside(self, row: Row) -> None:
        """Keep an MDV rule until all are known."""
        self.places[row.id] = self._spool.seek(0, io.SEEK_END)
        fields = [row.id, row.language, row.query, dict(row.prefixes), row.base, row.source, row.record]
        self._spool.write(json.dumps(fields).encode() + b"\n")

    def compile(self, row: Row, rules: Mapping[str, Subscription]) -> Subscription:
        """The subscription of a row."""
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

    def row(self, id: str) -> Row:
        """The row of an MDV rule."""
        self._spool.seek(self.places[id])
        return Row(*json.loads(self._spool.readline()))


class _Needed(Exception):
    """A rule cannot be compiled before the one with this id."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id


class Rules(Mapping[str, Subscription]):
    """All MDV rules of a call. One that another rule names is kept, or why it was refused; where neither is known yet,
    asking for it stops the compilation with `_Needed`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._named: dict[str, Subscription] = {}
        self._refused: dict[str, str] = {}
        self._looked_up = False
        self.with_others: set[str] = set()  # those compiled that name other rules

    def __len__(self) -> int:
        return len(self._reader.places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._reader.places)

    def __getitem__(self, id: str) -> Subscription:
        if id in self._named:
            self._looked_up = True
            return self._named[id]
        if id in self._refused:
            raise SubscriptionError(self._refused[id])
        if id in self._reader.places:
            raise _Needed(id)
        raise KeyError(id)

    def compiled(self, id: str) -> Subscription | TriplewireError:
        """The rule, or why it is refused; those that it names are compiled first, however long the chain."""
        if id in self._named:
            return self._named[id]
        waiting = {id: None}  # each names the next
        while True:
            at = next(reversed(waiting))
            found: Subscription | TriplewireError
            self._looked_up = False
            try:
                found = self._reader.compile(self._reader.row(at), self)
            except _Needed as needed:
                if needed.id in waiting:
                    self._refuse_circle(list(waiting), needed.id)
                else:
                    waiting[needed.id] = None
                continue
            except TriplewireError as error:
                found = error
            if self._looked_up:
                self.with_others.add(at)
            if at == id:
                return found
            if isinstance(found, Subscription):
                self._named[at] = found
            else:
                self._refused.setdefault(at, f"it names the rule {at!r}, which is refused: {found.what}")
            del waiting[at]

    def _refuse_circle(self, waiting: list[str], id: str) -> None:
        circle = waiting[waiting.index(id) :]
        what = f"rules name each other in a circle: {', '.join([*circle, id])}"
        self._refused.update((member, what) for member in circle)


def _files_below(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.rglob("*")):
        if entry.is_file() and not any(part.startswith(".") for part in entry.relative_to(folder).parts):
            yield entry


@contextmanager
def _seekable(stream: BinaryIO, limit: int) -> Iterator[BinaryIO]:
    """The stream or, where it is unpacked on the way, a temporary file with its content."""
    if not isinstance(stream, gzip.GzipFile):
        yield stream
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        while piece := stream.read(_PIECE):
            if file.write(piece) and file.tell() > limit:
                raise SubscriptionError(f"it unpacks to more than {limit:,} bytes", remedy="raise max_input_bytes")
        file.seek(0)
        yield cast("BinaryIO", file)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as stream, _unzipped(stream, path.name) as unzipped:
        yield unzipped


@contextmanager
def _unzipped(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """The stream, or what is gzipped in it."""
    buffered = io.BufferedReader(cast("io.RawIOBase", stream))
    try:
        if buffered.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
            with gzip.GzipFile(fileobj=buffered) as unzipped:
                yield cast("BinaryIO", unzipped)
        elif name.endswith(".gz"):
            raise SubscriptionError("it is not gzipped, as its name says")
        else:
            yield buffered
    finally:
        buffered.detach()  # the stream is closed by its owner


def _unreadable(source: str, subject: str, error: Exception) -> Refusal:
    if isinstance(error, SubscriptionError):
        return Refusal("subscription", subject, source, error.what, error.remedy)
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return Refusal("subscription", subject, source, f"damaged gzip: {error}")
    reason = error.strerror if isinstance(error, OSError) else None
    return Refusal("subscription", subject, source, f"it cannot be read: {reason or error}")
