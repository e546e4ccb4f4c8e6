"""What crosses a link: the document of a publication, once, beside the first event that names it.

    {"number": 7, "type": "matched", "subscription": "net.5e1f....", ..., "document": {"nquads": "<s> <p> <o> <g> .\\n",
     "attachments": {}, "published": null, "readers": null, "origin": ["5e1f...", 12]}}

`origin` is the broker that has accepted it first, and its number there, which grows: so a publication that comes back
is dropped by its origin, and one that was overtaken on another way by its number.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker.events.event_log import UNMATCHED, Event, of_owner
from triplewire.broker.publications.kept_contents import restored
from triplewire.broker.publications.window import may_see
from triplewire.config import Settings
from triplewire.errors import ReadError, TriplewireError
from triplewire.model.publication import Publication
from triplewire.read.documents import read_document
from triplewire.read.names import to_nquads
from triplewire.store.database import Database, fact, made_once
from triplewire.store.tables import attachments, current, events, facts, origins, publications

MOST_BYTES = 8 << 20
"""Bytes of documents after which a page ends, with the next event."""


class Origin(NamedTuple):
    """The broker where a publication was accepted first, and its number there."""

    broker: str
    number: int


class Crossing(NamedTuple):
    """A publication that has come over a link, the owners who may see it (None: all), its origin, and why it cannot be
    matched: then it has no triples."""

    publication: Publication
    readers: tuple[str, ...] | None
    origin: Origin
    refused: str = ""


def identity_of(database: Database) -> str:
    """What a broker is called in its network: made once, and kept as long as its database."""
    return made_once(database, facts, "broker", lambda: secrets.token_hex(6))


def page_of(connection: Connection, me: str, owner: str, after: int, prefix: str) -> Iterator[dict[str, Any]]:
    """The events of an owner's subscriptions whose ids begin with `prefix`, behind a number, in order: as objects of
    JSON, with documents in place of bindings. `me`: the identity of this broker. A publication that the event of this
    number names was given before, with that event."""
    given = set(connection.execute(sa.select(events.c.publication).where(events.c.number == after)).scalars())
    first = fact(connection, facts, "first_number") or "1"
    size = 0
    for event in of_owner(connection, owner, after, prefix=prefix):
        told = {name: value for name, value in event.to_json().items() if name != "bindings"}
        hidden = _hidden(connection, event) if event.type == UNMATCHED else None
        number = hidden or event.publication_number
        if number is not None and number not in given:
            if size > MOST_BYTES:
                return
            given.add(number)
            # numbers of publications may come again in a database that was put back from a copy: `first_number` grows
            told["document"] = _document(connection, event, Origin(f"{me}.{first}", number), hidden is not None)
            size += len(told["document"]["nquads"])
        yield told


def _hidden(connection: Connection, event: Event) -> int | None:
    """The number of the newest content of a publication that matches no more, where the owner may not see that: the
    event is about the content before."""
    table = publications
    newest = sa.select(table.c.number, table.c.readers).join(current, current.c.publication == table.c.number)
    row = connection.execute(newest.where(current.c.id == event.publication)).first()
    return None if row is None or may_see(event.owner, row.readers) else int(row.number)


def _document(connection: Connection, event: Event, here: Origin, is_hidden: bool) -> dict[str, Any]:
    """The publication of an event, of which nothing is said where it is hidden. `here`: as it was accepted here."""
    row = connection.execute(sa.select(publications).where(publications.c.number == event.publication_number)).one()
    origin = connection.execute(sa.select(origins).where(origins.c.publication == here.number)).first()
    files = sa.select(attachments).where(attachments.c.publication == row.number)
    contents = {} if is_hidden else {file.name: file.content for file in connection.execute(files)}
    return {
        "nquads": "" if is_hidden else to_nquads(restored(row.body, row.id, row.source)),
        "attachments": {name: base64.b64encode(content).decode() for name, content in contents.items()},
        "published": row.published,
        "readers": None if row.readers is None else json.loads(row.readers),
        "origin": [here.broker, here.number] if origin is None else [origin.broker, origin.number],
    }


def crossing_of(told: Mapping[str, Any], limits: Settings) -> Crossing:
    """The publication that an event brings. Raises `ReadError` where nothing can be made of it."""
    try:
        document, id, source = told["document"], str(told["publication"]), str(told["source"])
        broker, number = document["origin"]
        origin = Origin(str(broker), int(number))
        if not 0 <= origin.number < 2**63:
            raise ValueError(f"{number} is no number of a publication")
        readers = None if document["readers"] is None else tuple(map(str, document["readers"]))
        files = {str(name): base64.b64decode(text) for name, text in document["attachments"].items()}
        text, published = str(document["nquads"]), document["published"]
        at = None
        if published is not None:
            with suppress(OverflowError, OSError):
                at = dt.datetime.fromtimestamp(float(published), dt.UTC)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"the event has no document that can be read: {type(error).__name__}: {error}"
        raise ReadError(what, remedy="is the upstream a Triplewire that knows networks?") from None
    triples, refused = [], ""
    if text:
        try:
            read = read_document(text.encode("utf-8", "surrogatepass"), "", split="document", settings=limits)
            triples = [triple for publication in read for triple in publication.triples]
        except TriplewireError as error:
            refused = str(error)
    return Crossing(Publication(id, triples, source, at, files), readers, origin, refused)


def newest_seen(connection: Connection, crossings: Sequence[Crossing]) -> dict[tuple[str, str], int]:
    """Of each id and broker of these crossings, the greatest number that has come before."""
    seen: dict[tuple[str, str], int] = {}
    for id, broker in {(crossing.publication.id, crossing.origin.broker) for crossing in crossings}:
        here = sa.select(sa.func.max(origins.c.number)).where(origins.c.id == id, origins.c.broker == broker)
        seen[id, broker] = connection.execute(here).scalar() or 0
    return seen
