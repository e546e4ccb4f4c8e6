"""Subscriptions whose texts stay in a table of a database, and are read from there, by their ids, when they are needed.

An engine that has loaded a table keeps a pointer to each row of it, {"id", "table", "revision"}, in place of a row of
a subscription file; so does a saved engine. The revision (`triplewire.ir.subscription.revision_of`) tells a row that
has changed. `TableTexts` takes any driver of Python's DB-API 2.0; another kind of store can follow `SubscriptionTexts`.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from triplewire.errors import ArgumentError, Refusal, StoreError
from triplewire.forks import forget_in_children
from triplewire.ir.subscription import revision_of

if TYPE_CHECKING:
    from triplewire.languages.sources.rows import Row

T = TypeVar("T")

AT_ONCE = 500  # rows of one query: SQLite takes 999 parameters, where it is old
_encode = json.JSONEncoder(ensure_ascii=False).encode
_NAME = re.compile(r"[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*")


SubscriptionSource: TypeAlias = "str | os.PathLike[str] | SubscriptionTexts"
"""A file or folder of subscriptions, or a table."""


@runtime_checkable
class SubscriptionTexts(Protocol):
    """Texts of subscriptions that are kept outside of the engine, by id. Any thread may ask."""

    @property
    def name(self) -> str:
        """What pointers call it; another one for each store of an engine."""

    def rows(self, ids: Collection[str] | None = None) -> Iterator[Row | Refusal]:
        """The rows of the subscriptions with these ids, as far as they are there, or of all, in an order of its own.
        Each names this store as its `table`. Raises `StoreError` where they cannot be read."""


class TableTexts:
    """The subscriptions of a table, one a row.

    `connect` makes a connection of a DB-API driver: `lambda: sqlite3.connect("service.db")`. It is called once in each
    thread that asks, and again where the connection has failed. The other arguments name the table and its columns:
    `id` is the primary key, or has an index of its own, of texts, integers or UUIDs. Without a column of languages all
    texts are SPARQL; prefixes are a JSON object, as text or as the driver gives it. `placeholder` is how the driver
    writes a parameter: "?" for SQLite and DuckDB, "%s" for PostgreSQL and MySQL.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        table: str = "subscriptions",
        *,
        id: str = "id",
        query: str = "query",
        language: str | None = "language",
        prefixes: str | None = None,
        base: str | None = None,
        placeholder: str = "?",
    ) -> None:
        named = {"id": id, "language": language, "query": query, "prefixes": prefixes, "base": base}
        columns = {field: column for field, column in named.items() if column is not None}
        for name in (table, *columns.values()):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                what = f"{name!r} is no name of a table or column"
                raise ArgumentError(what, source="TableTexts", remedy='letters, digits and "_", such as public.queries')
        if placeholder not in ("?", "%s"):
            raise ArgumentError(f"{placeholder!r} is no placeholder", source="TableTexts", remedy='known: "?", "%s"')
        self._connect = connect
        self._table = table
        self._fields = tuple(columns)
        self._id = id
        self._select = f"SELECT {', '.join(columns.values())} FROM {table}"
        self._placeholder = placeholder
        self._mine = threading.local()  # the connection of each thread
        forget_in_children(self)

    @property
    def name(self) -> str:
        """The table."""
        return self._table

    def rows(self, ids: Collection[str] | None = None) -> Iterator[Row | Refusal]:
        """The rows with these ids, or all, in the order of the database. Raises `StoreError`."""
        portions = self._all() if ids is None else map(self._rows_of_ids, _portions(ids))
        for portion in portions:
            yield from map(self._row, portion)

    def _all(self) -> Iterator[list[Sequence[Any]]]:
        """All rows in portions, each of which begins behind the last key of the one before: no query stays open."""
        order = f"ORDER BY {self._id} LIMIT {AT_ONCE}"
        portion = self._rows_of(f"{self._select} {order}", ())
        while portion:
            yield portion
            portion = self._rows_of(f"{self._select} WHERE {self._id} > {self._placeholder} {order}", portion[-1][:1])

    def _rows_of_ids(self, ids: Sequence[str]) -> list[Sequence[Any]]:
        places = ", ".join([self._placeholder] * len(ids))
        return self._rows_of(f"{self._select} WHERE {self._id} IN ({places}) ORDER BY {self._id}", ids)

    def _rows_of(self, query: str, parameters: Sequence[Any]) -> list[Sequence[Any]]:
        """What the database answers; a connection that was there before, and fails, is replaced once."""
        while True:
            held: _Held | None = getattr(self._mine, "held", None)
            is_new = held is None
            try:
                if held is None:
                    held = self._mine.held = _Held(self._connect())
                return held.answer(query, parameters)
            except Exception as error:  # each driver has errors of its own
                self._mine.held = None
                if is_new:
                    what = f"the texts of subscriptions cannot be read: {type(error).__name__}: {error}"
                    remedy = "see that the database can be reached and has the table and its columns"
                    raise StoreError(what, source=f"the table {self._table}", remedy=remedy) from error

    def _row(self, values: Sequence[Any]) -> Row | Refusal:
        from triplewire.languages.sources.rows import Row, row_of_columns  # they bring Arrow along

        fields = {"language": "sparql", **dict(zip(self._fields, values, strict=True))}
        is_text = not isinstance(fields["id"], bytes | float | None)
        fields["id"] = str(fields["id"]) if is_text else None  # which is refused
        row = row_of_columns(fields, f"the table {self._table}", 0)
        if isinstance(row, Row):
            row.table = self._table
        return row

    def forget(self) -> None:
        """In the child of a fork: the connections are those of the parent."""
        self._mine = threading.local()


class _Held:
    """A connection, which is closed when nobody holds it any more, in the process that opened it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._process = os.getpid()

    def answer(self, query: str, parameters: Sequence[Any]) -> list[Sequence[Any]]:
        """The rows of a query. No transaction is left open."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(query, tuple(parameters))
            rows: list[Sequence[Any]] = cursor.fetchall()
        finally:
            cursor.close()
        self._connection.rollback()
        return rows

    def __del__(self) -> None:
        if self._process == os.getpid():
            with suppress(Exception):  # it may have failed already, or refuse another thread
                self._connection.close()


def _portions(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """The items, `AT_ONCE` at a time."""
    each = iter(items)
    while portion := tuple(islice(each, AT_ONCE)):
        yield portion


def is_pointer(row: Mapping[str, Any]) -> bool:
    """Does the row of a subscription say where its text is, and not the text?"""
    return "table" in row


def pointer_to(row: Row) -> dict[str, str]:
    """The pointer to a row of a table."""
    return {"id": row.id, "table": row.table, "revision": _revision(row)}


def line_of(row: Mapping[str, object]) -> bytes:
    """The row as a line of a subscription file. Lone surrogates stay what they are."""
    return _encode(row).encode("utf-8", "surrogatepass") + b"\n"


def kept_line(row: Row) -> bytes:
    """What is kept of a row of a subscription file: all of it as a line, or where its text stays."""
    if row.table:
        return line_of(pointer_to(row))
    prefixes = dict(sorted(row.prefixes.items())) if row.prefixes else {}
    stated = {"id": row.id, "language": row.language, "query": row.query, "prefixes": prefixes, "base": row.base}
    return line_of(stated)


def _revision(row: Row) -> str:
    return revision_of(row.language, row.query, row.prefixes, row.base)


def whole_rows(
    rows: Iterable[Mapping[str, Any]], tables: Mapping[str, SubscriptionTexts]
) -> Iterator[Mapping[str, Any]]:
    """The rows, in place of each pointer what the table has now, read in portions. Raises `StoreError` for a table
    that is not there, and for a row that is gone or has changed."""
    for portion in _portions(rows):
        ids: dict[str, list[str]] = {}
        for row in filter(is_pointer, portion):
            ids.setdefault(row["table"], []).append(row["id"])
        row_by_place: dict[tuple[str, str], Row] = {}  # table and id -> row
        for name, those in ids.items():
            for row_there in table_of(tables, name).rows(those):
                if not isinstance(row_there, Refusal):
                    row_by_place[name, row_there.id] = row_there
        for row in portion:
            yield _whole(row, row_by_place.get((row["table"], row["id"]))) if is_pointer(row) else row


def table_of(tables: Mapping[str, SubscriptionTexts], name: str) -> SubscriptionTexts:
    """The table of this name. Raises `StoreError` where it is not given."""
    table = tables.get(name)
    if table is None:
        remedy = f"give it: Engine.load(path, tables=TableTexts(connect, {name!r}))"
        raise StoreError("the texts of subscriptions are in a table that is not given", source=name, remedy=remedy)
    return table


def _whole(pointer: Mapping[str, Any], row: Row | None) -> Mapping[str, Any]:
    source, remedy = pointer["id"], "unsubscribe it; load_subscriptions(table, ids=[id]) takes what is there"
    if row is None:
        what = f"its row in the table {pointer['table']} is gone, or no subscription any more"
        raise StoreError(what, source=source, remedy=remedy)
    if _revision(row) != pointer["revision"]:
        what = f"its row in the table {pointer['table']} has changed since it was registered"
        raise StoreError(what, source=source, remedy=remedy)
    return {"id": row.id, "language": row.language, "query": row.query, "prefixes": row.prefixes, "base": row.base}
