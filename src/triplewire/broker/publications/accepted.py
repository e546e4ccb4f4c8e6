"""Accepting publications: what is written of them, and requests that come again.

A publication that is there with the same content is not taken again, unless another source brings it: then its row
names all sources that it came from, and who asks for this one is told (`triplewire.broker.events.matching`). A
revision of a page of a CMS that is not newer than what was taken of it is not taken either. Where documents have no ids
of their own, a request that is sent again is known by its key: `Idempotency-Key`, or source and id of a CloudEvent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire import crash
from triplewire.broker.subscriptions.followed import rows_with
from triplewire.errors import ArgumentError
from triplewire.store.database import DAY, inserted_numbers, now
from triplewire.store.tables import attachments, current, publications, requests, revisions

_KEPT = DAY  # seconds that the answer to a request is kept for


class Taken(NamedTuple):
    """A publication as it was accepted. `is_new`: it was not there with this content, or not from this source."""

    number: int
    id: str
    is_new: bool


class _Newest(NamedTuple):
    """The newest content of a publication, and the sources that brought it, a line each; None where it is not kept."""

    number: int
    content: str
    sources: str | None

    def also_from(self, source: str) -> str:
        """The sources with another one in front; "" where that has brought it before, or nothing is known of them."""
        if self.sources is None or set(source.split("\n")) <= {"", *self.sources.split("\n")}:
            return ""
        return f"{source}\n{self.sources}".rstrip("\n")


class Once(NamedTuple):
    """The key of a request that may come again, and its content: of another content, the key is refused."""

    key: bytes
    content: bytes

    @classmethod
    def of(cls, publisher: str, key: str, content: bytes) -> Once:
        """That of a key which a publisher has chosen."""
        text = json.dumps([publisher, key]).encode()
        return cls(hashlib.sha256(text).digest(), hashlib.sha256(content).digest())


Rows: TypeAlias = Sequence[tuple[dict[str, Any], Mapping[str, bytes]]]
"""Contents of publications as rows of the store, each with its attachments."""

Accepting: TypeAlias = Callable[[Connection, Rows, Once | None], list[Taken]]
"""Writes publications as `accept` does."""


class Revision(NamedTuple):
    """A revision of a page of a CMS, whose id is that of its publication. Those that are not newer than what an owner
    has published are passed over, so that they may be sent again, and in any order."""

    owner: str
    page: str
    number: int

    def is_newer(self, connection: Connection) -> bool:
        """Is it newer than what was taken? Then it counts as taken."""
        here = {"owner": self.owner, "page": self.page}
        newest = connection.execute(sa.select(revisions.c.revision).filter_by(**here)).scalar()
        if newest is None:
            connection.execute(revisions.insert().values(**here, revision=self.number))
        elif newest < self.number:
            connection.execute(revisions.update().filter_by(**here).values(revision=self.number))
        return newest is None or newest < self.number


def accept(connection: Connection, rows: Rows, once: Once | None, revision: Revision | None = None) -> list[Taken]:
    """Write publications that are not there with the same content. Raises `ArgumentError` for the key of another
    request."""
    if revision is not None and not revision.is_newer(connection):
        return [Taken(0, values["id"], False) for values, _ in rows]
    if once is None:
        return _accept(connection, rows)
    at = now()
    connection.execute(requests.delete().where(requests.c.at < at - _KEPT))
    before = connection.execute(sa.select(requests).where(requests.c.key == once.key)).first()
    if before is None:
        taken = _accept(connection, rows)
        answer = json.dumps([entry[:2] for entry in taken])
        connection.execute(requests.insert().values(key=once.key, content=once.content, answer=answer, at=at))
        return taken
    if before.content != once.content:
        what = "the key of this request was used for another content"
        raise ArgumentError(what, remedy="one Idempotency-Key, or id of a CloudEvent, for each")
    return [Taken(number, id, False) for number, id in json.loads(before.answer)]


def _accept(connection: Connection, rows: Rows) -> list[Taken]:
    ids = list({values["id"] for values, _ in rows})
    newest = sa.select(current, publications.c.source).outerjoin_from(
        current, publications, publications.c.number == current.c.publication
    )
    there = {
        row.id: _Newest(row.publication, row.content, row.source)
        for row in rows_with(connection, newest, current.c.id, ids)
    }
    taken: list[Taken] = []
    for portion in _without_repetition(rows):
        new: list[tuple[dict[str, Any], Mapping[str, bytes], str]] = []
        places: list[int] = []
        for values, files in portion:
            id, content = values["id"], values["content"]
            if values["readers"] is not None:
                content = f"{content} for {values['readers']}"  # for others to read, it is told anew
            before = there.get(id)
            if before is not None and before.content == content:
                if not (sources := before.also_from(values["source"])):
                    taken.append(Taken(before.number, id, False))
                    continue
                values = {**values, "source": sources}
            new.append(({"previous": before.number if before is not None else None, **values}, files, content))
            places.append(len(taken))
            taken.append(Taken(0, id, True))
        for place, number, (values, _, content) in zip(places, _insert(connection, new), new, strict=True):
            taken[place] = Taken(number, values["id"], True)
            there[values["id"]] = _Newest(number, content, values["source"])
    crash.point("publish.written")
    return taken


def _without_repetition(rows: Rows) -> Iterator[list[tuple[dict[str, Any], Mapping[str, bytes]]]]:
    """The rows in portions in which no id is there twice."""
    portion: dict[str, tuple[dict[str, Any], Mapping[str, bytes]]] = {}
    for row in rows:
        if row[0]["id"] in portion:
            yield list(portion.values())
            portion = {}
        portion[row[0]["id"]] = row
    yield list(portion.values())


def _insert(connection: Connection, new: Sequence[tuple[dict[str, Any], Mapping[str, bytes], str]]) -> Sequence[int]:
    """Write new contents of publications; returns their numbers."""
    numbers = inserted_numbers(connection, publications, [values for values, _, _ in new])
    first: list[dict[str, Any]] = []
    named: list[dict[str, Any]] = []
    for number, (values, files, content) in zip(numbers, new, strict=True):
        if values["previous"] is None:
            first.append({"id": values["id"], "publication": number, "content": content})
        else:
            changed = current.update().where(current.c.id == values["id"])
            connection.execute(changed.values(publication=number, content=content))
        named += [{"publication": number, "name": name, "content": data} for name, data in files.items()]
    if first:
        connection.execute(current.insert(), first)
    if named:
        connection.execute(attachments.insert(), named)
    return numbers
