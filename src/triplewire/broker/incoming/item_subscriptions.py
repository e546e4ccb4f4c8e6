"""Subscriptions that arrive as items of a feed (paper 000, section 6).

An item whose title is exactly `GQL`, or begins with `GQL:`, asks for a subscription: its description is the query,
without markup, its id the id, what follows `GQL:` the title. Another description is a new revision. An item that is not
there any more changes nothing, unless each document of its source names all that it asks for (`full_sync`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker import tickets
from triplewire.broker.owners import NAME_IN_PATH
from triplewire.broker.subscriptions.followed import ACTIVE, ENDED, rows_with
from triplewire.broker.subscriptions.registration import LONGEST, Wanted, validity
from triplewire.errors import LanguageError, Refusal, SubscriptionError, TriplewireError
from triplewire.languages import parse
from triplewire.model.namespaces import PREDECLARED, RSS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal
from triplewire.store.database import DAY, now
from triplewire.store.tables import changes, subscriptions

if TYPE_CHECKING:
    from triplewire.broker.broker import Broker

_ITEM, _TITLE, _DESCRIPTION = IRI(RSS + "item"), IRI(RSS + "title"), IRI(RSS + "description")
_WRITTEN = IRI(PREDECLARED["content"] + "encoded")  # where the description has markup
_FORM = re.compile(r"\s*GQL\s*(?:\Z|:\s*)")
_LANGUAGE = "gql"
_FORMATS = re.compile(
    r"</?(?:p|br|div|span|pre|code|tt|blockquote|b|i|em|strong|a|font)(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_GONE = "its feed does not ask for it any more"


class Asked(NamedTuple):
    """A subscription that an item asks for. `item`: the item's own id."""

    item: str
    title: str
    query: str

    @property
    def id(self) -> str:
        """The id of the subscription: that of the item, or, of an address, which cannot stand in the path of another,
        its digest."""
        return self.item if NAME_IN_PATH.fullmatch(self.item) else f"item-{tickets.digest(self.item).hex()[:16]}"


def asked_by(publication: Publication) -> Asked | None:
    """The subscription that an item of a feed asks for; None where it is content."""
    graph = publication.graph
    for triple in graph.find(None, RDF_TYPE, _ITEM):
        for title in graph.objects(triple.subject, _TITLE):
            form = _FORM.match(title.lexical) if isinstance(title, Literal) else None
            if form is not None and isinstance(title, Literal):
                texts = (text for name in (_WRITTEN, _DESCRIPTION) for text in graph.objects(triple.subject, name))
                query = _query_in([text.lexical.strip() for text in texts if isinstance(text, Literal)])
                return Asked(publication.id, title.lexical[form.end() :].strip(), query)
    return None


def _query_in(texts: Sequence[str]) -> str:
    """The query among the texts of an item: its description as it is written, where labels may look like markup, as
    `<title>` does; else without the markup of formats; else without all. Where none is a query, the last."""
    candidates = [*texts[:1], *(html.unescape(_FORMATS.sub(" ", text)).strip() for text in texts[:1]), *texts[1:]]
    for text in candidates:
        with suppress(LanguageError):
            parse(text, _LANGUAGE)
            return text
    return candidates[-1] if candidates else ""


def take_over(
    broker: Broker, row: Row[Any], asked: Sequence[Asked], *, is_whole: bool
) -> tuple[list[str], list[Refusal]]:
    """Register the subscriptions that a document of a source asks for; of those that are registered, take over another
    query or title. `is_whole`: the document was read without loss, so that who is missing is missing. Returns the ids
    of those that are there now, and what was refused."""
    there = _registered(broker, row, asked)
    subscribed: list[str] = []
    refusals: list[Refusal] = []
    new = [wish for wish in asked if wish.query and wish.id not in there]
    wanted = [Wanted(wish.query, _LANGUAGE, wish.id, LONGEST, title=wish.title, source=row.number) for wish in new]
    made = dict(zip(map(id, new), broker.subscribe_all(wanted, row.owner) if wanted else (), strict=True))
    for wish in asked:
        try:
            if id(wish) not in made:
                _change(broker, row, there.get(wish.id), wish)
            elif isinstance(refused := made[id(wish)], TriplewireError):
                raise refused
            subscribed.append(wish.id)
        except TriplewireError as error:
            refusals.append(Refusal.of("subscription", wish.item, error))
    if row.full_sync and is_whole and asked:
        _end_missing(broker, row, {wish.id for wish in asked})
    return subscribed, refusals


def _registered(broker: Broker, row: Row[Any], asked: Iterable[Asked]) -> dict[str, Row[Any]]:
    """The subscriptions of the source's owner that have these ids."""
    of_owner, ids = sa.select(subscriptions).where(subscriptions.c.owner == row.owner), [wish.id for wish in asked]
    with broker.database.reading() as connection:
        return {there.id: there for there in rows_with(connection, of_owner, subscriptions.c.id, ids)}


def _change(broker: Broker, row: Row[Any], there: Row[Any] | None, wish: Asked) -> None:
    """Take over what an item asks for where its subscription is registered. Raises what is wrong with it."""
    if there is None or not wish.query:
        raise SubscriptionError("the item has no description, which is the query", source=wish.item)
    if there.source != row.number:
        raise SubscriptionError(
            f"the id {wish.id!r} is taken by another subscription", remedy="give the item another id"
        )
    if there.state == ENDED:
        if there.reason != _GONE:
            what = f"the subscription {wish.id!r} has ended: {there.reason}"
            raise SubscriptionError(what, remedy="give the item another id")
        broker.database.write(lambda connection: _revive(connection, there.number))
        broker.followed.follow()
    changed = {"query": wish.query} if there.query != wish.query else {}
    changed |= {"title": wish.title} if there.title != wish.title else {}
    if changed:
        broker.change(there.number, **changed)


def _revive(connection: Connection, number: int) -> None:
    values = {"state": ACTIVE, "reason": "", **validity(now(), LONGEST)}
    connection.execute(subscriptions.update().where(subscriptions.c.number == number).values(values))
    connection.execute(changes.insert().values(subscription=number))


def _end_missing(broker: Broker, row: Row[Any], ids: set[str]) -> None:
    """End what a source has asked for and does not ask for any more."""
    table = subscriptions
    here = sa.select(table.c.number, table.c.id).where(table.c.source == row.number, table.c.state != ENDED)
    for registered in broker.database.rows(here):
        if registered.id not in ids:
            broker.unsubscribe(registered.number, _GONE)


def renew_all(broker: Broker, row: Row[Any]) -> None:
    """Renew the subscriptions of a source that may subscribe, as often as it is seen that it is there."""
    at, table = now(), subscriptions
    over = (table.c.source == row.number, table.c.state != ENDED, table.c.expires < at + LONGEST - DAY)
    if broker.database.value(sa.select(table.c.number).where(*over).limit(1)) is not None:
        broker.database.execute(table.update().where(*over).values(validity(at, LONGEST)))
