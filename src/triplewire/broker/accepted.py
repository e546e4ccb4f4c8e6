"""Accepting publications: what is written of them, and requests that come again.

A publication that is there with the same content is not taken again. Where documents have no ids of their own, a
request that is sent again is known by its key: `Idempotency-Key`, or source and id of a CloudEvent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.errors import ArgumentError
from triplewire.store.database import inserted_number, now
from triplewire.store.tables import attachments, current, publications, requests

_KEPT = 86_400.0  # seconds that the answer to a request is kept for


class Taken(NamedTuple):
    """A publication as it was accepted. `is_new`: it was not there with this content."""

    number: int
    id: str
    is_new: bool


class Once(NamedTuple):
    """The key of a request that may come again, and its content: of another content, the key is refused."""

    key: bytes
    content: bytes

    @classmethod
    def of(cls, publisher: str, key: str, content: bytes) -> Once:
        """That of a key which a publisher has chosen."""
        text = json.dumps([publisher, key]).encode()
        return cls(hashlib.sha256(text).digest(), hashlib.sha256(content).digest())


def accept(
    connection: Connection, rows: Sequence[tuple[dict[str, Any], Mapping[str, bytes]]], once: Once | None
) -> list[Taken]:
    """Write publications that are not there with the same content. Raises `ArgumentError` for the key of another
    request."""
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


def _accept(connection: Connection, rows: Sequence[tuple[dict[str, Any], Mapping[str, bytes]]]) -> list[Taken]:
    ids = list({values["id"] for values, _ in rows})
    there: dict[str, tuple[int, str]] = {}
    for begin in range(0, len(ids), 500):
        here = sa.select(current).where(current.c.id.in_(ids[begin : begin + 500]))
        there.update((row.id, (row.publication, row.content)) for row in connection.execute(here))
    taken: list[Taken] = []
    for values, files in rows:
        id, content = values["id"], values["content"]
        before = there.get(id)
        if before is not None and before[1] == content:
            taken.append(Taken(before[0], id, False))
            continue
        previous = before[0] if before is not None else None
        number = inserted_number(connection, publications, {"previous": previous, **values})
        there[id] = number, content
        if before is None:
            connection.execute(current.insert().values(id=id, publication=number, content=content))
        else:
            changed = current.update().where(current.c.id == id)
            connection.execute(changed.values(publication=number, content=content))
        if files:
            named = [{"publication": number, "name": name, "content": data} for name, data in files.items()]
            connection.execute(attachments.insert(), named)
        taken.append(Taken(number, id, True))
    return taken
