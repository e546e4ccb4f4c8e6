"""What happened to a broker that was killed again and again, and whether it kept its promises.

    published, in order  ->  the reference engine  ->  what each subscription has to be told
                                                        is what it was told: all of it, in order, once

`wrong` compares the two. It knows nothing of how the broker works: it reads events as a subscriber does.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from triplewire import Engine, Publication
from triplewire.broker.broker import Broker, Target, Wanted
from triplewire.broker.events.event_log import of_subscription
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.store.database import Database
from triplewire.store.tables import deliveries, publications, subscriptions, targets

TITLE, VALUE = IRI("http://purl.org/rss/1.0/title"), IRI("urn:v:value")
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
QUERIES = {
    "all": f"SELECT ?t {{ ?s <{TITLE.value}> ?t }}",
    "none": f'SELECT ?s {{ ?s <{TITLE.value}> "of nobody" }}',
    **{f"value-{number}": f"SELECT ?t {{ ?s <{VALUE.value}> {number} ; <{TITLE.value}> ?t }}" for number in range(6)},
    "many": f"SELECT ?s {{ ?s <{VALUE.value}> ?v . FILTER(?v > 2) }}",
}
"""The subscriptions of a history."""
WITH_TARGET = ("all", "value-1", "many")
"""Those whose events are delivered somewhere, too."""

Told = Mapping[str, Sequence[tuple[int, int, str, str, str]]]
"""Subscription -> the number, sequence, type, publication and content of each event, as they were read."""


def unit(seed: int, lane: int, number: int) -> list[Publication]:
    """What is published together as the n-th of a lane: one to three publications, some new contents of older ones.
    Lanes, which publish side by side, have publications of their own."""
    chance = random.Random(f"{seed} {lane} {number}")
    made: dict[str, Publication] = {}
    for place in range(chance.randint(1, 3)):
        of = number if chance.random() < 0.7 else chance.randint(max(0, number - 5), number)
        subject = IRI(f"urn:p:{lane}-{of}-{place}")
        title = Triple(subject, TITLE, Literal(f"publication {number}"))
        value = Triple(subject, VALUE, Literal(str(chance.randint(0, 5)), INTEGER))
        made[subject.value] = Publication(subject.value, (title, value))
    return list(made.values())


def subscribe(broker: Broker) -> None:
    """Make the subscriptions of a history."""
    for id, query in QUERIES.items():
        to = [Target("webhook", f"https://receiver.invalid/{id}")] if id in WITH_TARGET else []
        broker.subscribe(Wanted(query, id=id, targets=to), "ann")


@dataclass
class History:
    """What was published and told, as far as it is to be compared."""

    published: list[Publication]  # in the order of commits
    told: Told
    refused: set[str] = field(default_factory=set)  # contents that were given up, each with a record
    owed: Counter[tuple[int, str]] = field(default_factory=Counter)  # event, subscription -> deliveries
    states: set[str] = field(default_factory=set)  # of deliveries


def read(database: Database, given: Iterable[Publication]) -> History:
    """The history of a database whose broker was given these publications, in this order for each id."""
    told: dict[str, list[tuple[int, int, str, str, str]]] = {}
    with database.reading() as connection:
        names = {
            row.number: row.id for row in connection.execute(sa.select(subscriptions.c.number, subscriptions.c.id))
        }
        for number, id in names.items():
            told[id], last = [], 0
            while page := of_subscription(connection, number, last):
                told[id] += [(one.number, one.sequence, one.type, one.publication, one.content) for one in page]
                last = page[-1].sequence
        refused = connection.execute(sa.select(publications.c.content).where(publications.c.state == "refused"))
        of = sa.select(deliveries.c.event, targets.c.subscription, deliveries.c.state).join(
            targets, targets.c.number == deliveries.c.target
        )
        rows = connection.execute(of).all()
        return History(
            list(given),
            told,
            set(refused.scalars()),
            Counter((row.event, names[row.subscription]) for row in rows),
            {row.state for row in rows},
        )


def expected(published: Iterable[Publication]) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Subscription -> publication -> the type and content of each event that the reference makes of it, in order."""
    reference = Engine(matcher="reference")
    for id, query in QUERIES.items():
        reference.subscribe(query, id=id)
    contents: dict[str, str] = {}
    matched: dict[str, set[str]] = {}
    events: dict[str, dict[str, list[tuple[str, str]]]] = {id: defaultdict(list) for id in QUERIES}
    for publication in published:
        if contents.get(publication.id) == publication.content_hash:
            continue
        contents[publication.id] = publication.content_hash
        was = matched.get(publication.id, set())
        now = {match.subscription for match in reference.match(publication)}
        matched[publication.id] = now
        for id in was | now:
            kind = "unmatched" if id not in now else "changed" if id in was else "matched"
            events[id][publication.id].append((kind, publication.content_hash))
    return events


def wrong(history: History) -> list[str]:
    """What of the promises was not kept."""
    found: list[str] = []
    numbers = Counter(number for events in history.told.values() for number, *_ in events)
    found += [f"number {number} is of {count} events" for number, count in numbers.items() if count > 1]
    wanted = expected(one for one in history.published if one.content_hash not in history.refused)
    for id, events in history.told.items():
        if [sequence for _, sequence, *_ in events] != list(range(1, len(events) + 1)):
            found.append(f"{id}: the sequence has a gap, or something twice")
        if [number for number, *_ in events] != sorted(number for number, *_ in events):
            found.append(f"{id}: numbers do not grow")
        told: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for _, _, kind, publication, content in events:
            told[publication].append((kind, content))
        for publication in told.keys() | wanted[id].keys():
            if told[publication] != wanted[id][publication]:
                found.append(f"{id}: {publication}: {wanted[id][publication]} was told as {told[publication]}")
        due = {(number, id) for number, *_ in events} if id in WITH_TARGET else set()
        owed = Counter({key: count for key, count in history.owed.items() if key[1] == id})
        if owed != Counter(due):
            found.append(f"{id}: {len(due)} events with a target have {owed.total()} deliveries")
    if unknown := history.states - {"delivered", "pending", "expired", "dead"}:
        found.append(f"deliveries are neither delivered, pending, expired nor dead: {unknown}")
    return found
