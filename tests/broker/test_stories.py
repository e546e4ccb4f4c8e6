"""Once per story: of reports that are nearly the same, one is told; on both databases, in a batch, after restarts."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from itertools import combinations
from random import Random

import sqlalchemy as sa

import shared_data
from triplewire import Engine
from triplewire.broker.broker import Broker, Target, Wanted
from triplewire.broker.events.event_log import Event
from triplewire.broker.events.stories import signature
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.read import read_document
from triplewire.store.tables import bands, deliveries, stories

RSS = "http://purl.org/rss/1.0/"
QUERY = 'SELECT ?t { ?i rss:title ?t FILTER ftcontains(?t, "lighthouse") }'
WORDS = (
    "The old lighthouse on the northern headland was lit again on Friday evening after eleven years of repairs paid "
    "for by the harbour and four hundred members of its society"
)


def report(number: int, text: str, link: str = "") -> Publication:
    about = IRI(f"urn:item:{number}")
    said = [Triple(about, IRI(RSS + "title"), Literal(f"Lighthouse {number}"))]
    said.append(Triple(about, IRI(RSS + "description"), Literal(text)))
    if link:
        said.append(Triple(about, IRI(RSS + "link"), Literal(link)))
    return Publication(about.value, said)


def opened(url: str) -> Broker:
    return Broker.open(url, b"secret", engine=Engine(matcher="reference"))


def publish(broker: Broker, given: Iterable[Publication]) -> None:
    numbers = [taken.number for taken in broker.publish(given) if taken.is_new]
    assert len(broker.wait(numbers, 300)) == len(numbers)


def told(broker: Broker, subscription: str) -> list[Event]:
    return [event for event in broker.events(None, 0) if event.id == subscription]


def test_one_report_of_a_story_is_told(database_url: str) -> None:
    with opened(database_url) as broker:
        target = Target("webhook", "http://127.0.0.1:9/")
        broker.subscribe(Wanted(QUERY, id="each", targets=[target]), "ann")
        broker.subscribe(Wanted(QUERY, id="once", once_per_story=True, targets=[target]), "ann")
        publish(broker, [report(1, f"{WORDS} said its chair.")])
        publish(broker, [report(2, f"{WORDS} its chair said.")])
        publish(broker, [report(3, "Of quite another thing this report on lighthouses says much, and in other words.")])
    with opened(database_url) as broker:  # a restart forgets nothing
        publish(broker, [report(4, f"{WORDS} as its chair has said.")])
        assert [event.type for event in told(broker, "each")] == ["matched"] * 4
        once = told(broker, "once")
        assert [event.type for event in once] == ["matched", "repeated", "matched", "repeated"]
        assert [event.sequence for event in once] == [1, 2, 3, 4]
        assert [event.first for event in once] == [None, once[0].number, None, once[0].number]
        assert once[1].to_json()["first"] == once[0].number
        with broker.database.reading() as connection:
            delivering = set(connection.execute(sa.select(deliveries.c.event)).scalars())
    each = told_numbers = {event.number for event in once if event.type == "matched"}
    assert delivering & {event.number for event in once} == told_numbers == each
    assert len(delivering) == 6


def test_reports_of_one_batch(database_url: str) -> None:
    with opened(database_url) as broker:
        broker.subscribe(Wanted(QUERY, id="once", once_per_story=True), "ann")
        publish(broker, [report(number, f"{WORDS} version {number}") for number in range(5)])
        assert [event.type for event in told(broker, "once")] == ["matched"] + ["repeated"] * 4
        first = told(broker, "once")[0].number
        assert {event.first for event in told(broker, "once")[1:]} == {first}


def test_a_story_told_to_one_is_new_to_another(database_url: str) -> None:
    with opened(database_url) as broker:
        broker.subscribe(Wanted(QUERY, id="early", once_per_story=True), "ann")
        publish(broker, [report(1, WORDS)])
        broker.subscribe(Wanted(QUERY, id="late", once_per_story=True), "bob")
        publish(broker, [report(2, WORDS)])
        assert [event.type for event in told(broker, "early")] == ["matched", "repeated"]
        assert [event.type for event in told(broker, "late")] == ["matched"]


def test_a_change_of_a_repeated_report_is_quiet(database_url: str) -> None:
    with opened(database_url) as broker:
        broker.subscribe(Wanted(QUERY, id="once", once_per_story=True), "ann")
        publish(broker, [report(1, WORDS), report(2, f"{WORDS} today")])
        publish(broker, [report(2, f"{WORDS} today, again")])
        publish(broker, [report(1, f"{WORDS} and more")])
        assert [event.type for event in told(broker, "once")] == ["matched", "repeated", "repeated", "changed"]


def test_a_shared_address_makes_less_alike_reports_one_story(database_url: str) -> None:
    half = " ".join(WORDS.split()[:16])
    rest = "while the ferry company announced that its boats would sail at night again from next week"
    with opened(database_url) as broker:
        broker.subscribe(Wanted(QUERY, id="once", once_per_story=True), "ann")
        page = "http://example.org/lighthouse"
        publish(broker, [report(1, WORDS, page), report(2, f"{half} {rest}", page)])
        publish(broker, [report(3, f"{half} and {rest.replace('next week', 'Monday on')}", "http://example.org/other")])
        assert [event.type for event in told(broker, "once")][:2] == ["matched", "repeated"]


def test_a_list_of_links_is_compared_by_few_of_them() -> None:
    text = "the harbour of skerry point is closed for a week as the pier is built anew"
    made = []
    for number in (1, 2):
        links = [
            Triple(IRI(f"urn:item:{number}"), IRI("urn:v:link"), IRI(f"http://a.example/{n}")) for n in range(2_000)
        ]
        given = report(number, text)
        made.append(signature(Publication(given.id, [*given.triples, *links])))
    first, second = made
    assert first is not None
    assert second is not None
    assert len(first.links) == 50
    assert first.links == second.links


def test_nothing_is_kept_where_nobody_asks(database_url: str) -> None:
    with opened(database_url) as broker:
        broker.subscribe(Wanted(QUERY, id="each"), "ann")
        broker.subscribe(Wanted(QUERY.replace("lighthouse", "ferry"), id="once", once_per_story=True), "ann")
        publish(broker, [report(1, WORDS), report(2, WORDS)])
        with broker.database.reading() as connection:
            for table in (stories, bands):
                assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0


def alike(one: Publication, other: Publication) -> bool:
    made, with_it = signature(one), signature(other)
    assert made is not None
    assert with_it is not None
    found = bool(set(made.keys) & set(with_it.keys))
    return found and made.is_alike(with_it.minima, bool(made.links & with_it.links))


def abstracts() -> list[Publication]:
    """Items of real feeds, each another paper."""
    items: dict[str, Publication] = {}
    with tarfile.open(shared_data.path("04-feeds/arxiv-derived-feeds.tar.gz")) as archive:
        for member in archive:
            if re.search(r"2019-0[1-4]\.atom\.xml$", member.name):
                content = archive.extractfile(member)
                assert content is not None
                for item in read_document(content.read(), "http://example.org/feed"):
                    items[item.id] = item
    return [item for item in items.values() if signature(item) is not None]


def test_real_items_are_told_apart_and_their_versions_are_not() -> None:
    """Each item is another paper, so no two are one story; a version of it in which one sentence of ten differs is."""
    items = abstracts()
    assert len(items) > 300
    random = Random(61)
    keys: dict[int, list[Publication]] = {}
    for item in items:
        for key in signature(item).keys:  # type: ignore[union-attr]  # has one, see above
            keys.setdefault(key, []).append(item)
    pairs = {(a.id, b.id): (a, b) for same in keys.values() for a, b in combinations(same, 2)}
    wrong = [ids for ids, pair in pairs.items() if alike(*pair)]
    assert len(wrong) <= len(items) / 500  # of the items, told as another one's story
    found = sum(alike(item, version(item, 0.1, random)) for item in items)
    assert found / len(items) >= 0.95


def version(item: Publication, share: float, random: Random) -> Publication:
    """The item with other words in a share of its text, in runs of ten words, under another id."""

    def other(text: str) -> str:
        words = text.split()
        for at in range(0, len(words), 10):
            if random.random() < share:
                words[at : at + 10] = [f"w{random.random()}" for _ in words[at : at + 10]]
        return " ".join(words)

    about, new = IRI(item.id), IRI(item.id + "-again")
    triples = [
        Triple(
            new if triple.subject == about else triple.subject,
            triple.predicate,
            Literal(other(triple.object.lexical)) if isinstance(triple.object, Literal) else triple.object,
        )
        for triple in item.triples
    ]
    return Publication(new.value, triples)
