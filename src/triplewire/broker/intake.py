"""What becomes of what a source brings: publications, and subscriptions that arrive as items of a feed.

An item whose title is exactly `GQL`, or begins with `GQL:`, asks for a subscription (paper 000, section 6): its
description is the query, its id the id. It is never matched as content. From a source that may not subscribe it is
refused; a title that only speaks of GQL is content, wherever it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Row

from triplewire.broker import tickets
from triplewire.broker.accepted import Once, Revision, Taken
from triplewire.broker.publications import Came, link_of, title_of
from triplewire.broker.sources import name_of
from triplewire.broker.subscriptions import ENDED, OF_ID, parts
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal
from triplewire.store.database import now
from triplewire.store.tables import current, publications, subscriptions

if TYPE_CHECKING:
    from triplewire.broker.broker import Broker

_RSS = PREDECLARED["rss"]
_ITEM, _TITLE, _DESCRIPTION = IRI(_RSS + "item"), IRI(_RSS + "title"), IRI(_RSS + "description")
_FORM = re.compile(r"\s*GQL\s*(?:\Z|:\s*)")
_LANGUAGE = "gql"
_FEW = 2  # items that look like others
_COMPARED = 1_000  # publications of the source that were there before


class Asked(NamedTuple):
    """A subscription that an item asks for."""

    title: str
    query: str


@dataclass
class Intake:
    """What became of a document: publications that were accepted, ids of subscriptions that it asked for, and what was
    refused, held back or repaired."""

    taken: list[Taken] = field(default_factory=list)
    subscribed: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def take(
    broker: Broker,
    came: Came,
    rows: Sequence[Row[Any]] = (),
    *,
    source: str = "",
    readers: Iterable[str] | None = None,
    most_new: int | None = None,
    once: Once | None = None,
    revision: Revision | None = None,
) -> Intake:
    """Take over a document; what is accepted is committed and synced. `rows`: the sources that it comes from, where
    they are registered; `source`: else, where it comes from. `most_new`: how many publications of ids that were not
    there before are told at most, and none that came before under other ids; the others are kept as refused. `once`:
    for a request that may come again; `revision`: of the page that it is. Raises what `Broker.publish` raises."""
    done, content = Intake(refusals=list(came.refusals)), list[Publication]()
    for publication in came.publications:
        asked = asked_by(publication)
        if asked is None:
            content.append(publication)
            continue
        trusted = [row for row in rows if row.may_subscribe]
        if not trusted:
            what = "an item with this title asks for a subscription, and its source may not"
            remedy = "let it: PATCH /sources/{id} with may_subscribe, or give the item another title"
            done.refusals.append(Refusal("publication", publication.id, name(rows, source), what, remedy))
        for row in trusted:
            try:
                done.subscribed.append(_subscribe(broker, row, publication, asked))
            except TriplewireError as error:
                done.refusals.append(Refusal.of("subscription", publication.id, error))
    held: Mapping[str, str] = {}
    if most_new is not None:
        held = _held(broker, content, name(rows, source), most_new)
        reasons = ((id, reason) for id, reason in held.items())
        done.refusals += (Refusal("publication", id, name(rows, source), reason) for id, reason in reasons)
    if content:
        done.taken = broker.publish(
            content, source=name(rows, source), readers=readers, held=held, once=once, revision=revision
        )
    return done


def name(rows: Sequence[Row[Any]], source: str) -> str:
    """Where a document comes from, as its publications say."""
    return name_of(rows[0]) if rows else source


def asked_by(publication: Publication) -> Asked | None:
    """The subscription that an item of a feed asks for; None where it is content."""
    graph = publication.graph
    for triple in graph.find(None, RDF_TYPE, _ITEM):
        for title in graph.objects(triple.subject, _TITLE):
            form = _FORM.match(title.lexical) if isinstance(title, Literal) else None
            if form is not None and isinstance(title, Literal):
                texts = (
                    text.lexical for text in graph.objects(triple.subject, _DESCRIPTION) if isinstance(text, Literal)
                )
                return Asked(title.lexical[form.end() :].strip(), next(texts, "").strip())
    return None


def _subscribe(broker: Broker, row: Row[Any], publication: Publication, asked: Asked) -> str:
    """Register the subscription that an item asks for; or, where it was registered, take over another query, and renew
    it. Returns its id. Raises what is wrong with it."""
    from triplewire.broker.broker import LONGEST, Wanted

    if not asked.query:
        raise SubscriptionError("the item has no description, which is the query", source=publication.id)
    id = publication.id
    if not OF_ID.fullmatch(id):  # as an address, which cannot stand in the path of another
        id = f"item-{tickets.digest(id).hex()[:16]}"
    there = broker.find(id, owner=row.owner)
    if there is None:
        wanted = Wanted(asked.query, _LANGUAGE, id, LONGEST, title=asked.title, source=row.number)
        return broker.subscribe(wanted, row.owner).id
    if there.source != row.number:
        raise SubscriptionError(f"the id {id!r} is taken by another subscription", remedy="give the item another id")
    if there.state == ENDED:
        raise SubscriptionError(f"the subscription {id!r} has ended: {there.reason}", remedy="give the item another id")
    changed = {"query": asked.query} if there.query != asked.query else {}
    changed |= {"title": asked.title} if there.title != asked.title else {}
    if changed:
        broker.change(there.number, **changed)
    return id


def renew_all(broker: Broker, row: Row[Any]) -> None:
    """Renew the subscriptions of a source that may subscribe, as often as it is seen that it is there."""
    from triplewire.broker.broker import DAY, LONGEST

    expires = now() + LONGEST
    table = subscriptions
    over = (table.c.source == row.number, table.c.state != ENDED, table.c.expires < expires - DAY)
    with broker.database.reading() as connection:
        if not connection.execute(sa.select(table.c.number).where(*over).limit(1)).first():
            return
    broker.database.write(lambda connection: connection.execute(table.update().where(*over).values(expires=expires)))


def _held(broker: Broker, content: Sequence[Publication], source: str, most_new: int) -> dict[str, str]:
    """Publications whose ids are new, and that are held back, with the reason: where most of them, and more than a few,
    have title, link and date of what the source brought before under other ids, these; and those beyond a number."""
    ids, there = [publication.id for publication in content], set[str]()
    table = publications
    with broker.database.reading() as connection:
        for part in parts(ids):
            there.update(connection.execute(sa.select(current.c.id).where(current.c.id.in_(part))).scalars())
        before = sa.select(table.c.title, table.c.link, table.c.published).where(table.c.source == source)
        rows = connection.execute(before.order_by(table.c.number.desc()).limit(_COMPARED))
        known = {(row.title, row.link, row.published) for row in rows}
    new = {publication.id: publication for publication in content if publication.id not in there}
    again = [id for id, publication in new.items() if _looks(publication) in known]
    held: dict[str, str] = {}
    if len(again) > _FEW and 2 * len(again) > len(new):
        held = dict.fromkeys(again, f"held back: one of {len(again):,} items that came again under new ids")
    others = [id for id in new if id not in held]
    reason = f"held back: its source had {len(others):,} new items at once, of which {most_new:,} are told"
    return held | dict.fromkeys(others[most_new:], reason)


def _looks(publication: Publication) -> tuple[str, str, float | None]:
    """Title, link and date: what an item has in common with itself under another id."""
    date = publication.published.timestamp() if publication.published else None
    return title_of(publication), link_of(publication), date
