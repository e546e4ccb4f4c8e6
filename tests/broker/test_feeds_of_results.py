"""The feed of a subscription in RSS 1.0, which says what has matched and why; and loops.

In a loop a service gets again what it has told, in each format, through another service, or from a module of a CMS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import feedparser
import pytest
from hub_tools import TOKEN, ask, served
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.feeds.rdf_nodes import MOST, nodes
from triplewire.broker.publications.kept_contents import TERMS, read_body
from triplewire.broker.tickets import identity
from triplewire.model.namespaces import RSS
from triplewire.read import read_document

GQL = "SELECT ?t WHERE (?x, rdf:type, ?kind) AND (?x, <http://purl.org/dc/elements/1.1/title>, ?t)"
TURTLE = """@prefix dc: <http://purl.org/dc/elements/1.1/> . @prefix : <http://coast.example/> .
<http://coast.example/light/%d> a :Light ; dc:title "A \\"light\\" & <more>"@en ; :height 38.5 ; <urn:x:1> "no name" ;
    :keeper [ :name "Ada" ] ."""


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    with Broker.open(database_url, b"secret of a test") as broker:
        yield broker


@pytest.fixture
def url(broker: Broker) -> Iterator[str]:
    with served(broker) as url:
        yield url


def lights(broker: Broker, *numbers: int) -> None:
    for number in numbers:
        came = read_body((TURTLE % number).encode(), f"http://coast.example/light/{number}", broker.settings)
        broker.wait([taken.number for taken in broker.publish(came.publications)], 300)


def test_the_feed_says_what_was_asked_and_what_has_matched(broker: Broker, url: str) -> None:
    made = broker.subscribe(Wanted(GQL, "gql", title="Lights"), "owner")
    lights(broker, 1, 2)
    address = f"{url}/s/{made.feed_key}.rdf"
    text = ask(address).body
    statements = {tuple(quad)[:3] for quad in parse(text, RdfFormat.RDF_XML)}

    def said(subject: str, name: str) -> list[str]:
        return sorted(o.value for s, p, o in statements if (s.value, p.value) == (subject, TERMS + name))

    assert (said(address, "query"), said(address, "language")) == ([GQL], ["gql"])
    assert said(address, "expires")[0].endswith("Z")
    parsed = feedparser.parse(text)
    assert [entry.title for entry in parsed.entries] == ['A "light" &amp; &lt;more&gt;'] * 2
    for entry, number in zip(parsed.entries, (2, 1), strict=True):
        light = f"http://coast.example/light/{number}"
        assert (said(entry.id, "publication"), said(entry.id, "origin")) == ([light], [identity(broker.secret)])
        assert f"<{light}> rdf:type <http://coast.example/Light>" in said(entry.id, "why")
        title = Literal('A "light" & <more>', language="en")
        assert (NamedNode(light), NamedNode("http://purl.org/dc/elements/1.1/title"), title) in statements
        assert not [s for s, p, _ in statements if p.value == "urn:x:1"]  # RDF/XML has no name for it
        (triples,) = said(entry.id, "triples")
        (publication,) = read_document(ask(triples).body, "urn:light", settings=broker.settings)
        assert len(publication.triples) == 6
        assert '"no name"' in ask(triples).body.decode()
    assert ask(triples.replace(".1.nt", ".9.nt")).status == 404
    assert ask(triples.replace("/s/1", "/s/2")).status == 404


@on_sqlite_alone
def test_what_a_publication_says_makes_no_more_items_of_the_feed(broker: Broker, url: str) -> None:
    made = broker.subscribe(Wanted("SELECT ?t { ?i rss:title ?t }"), "owner")
    body = f'<urn:a:1> a <{RSS}item> ; <{RSS}title> "One" .'.encode()
    broker.wait([taken.number for taken in broker.publish(read_body(body, "", broker.settings).publications)], 300)
    (item,) = read_document(ask(f"{url}/s/{made.feed_key}.rdf").body, url, settings=broker.settings)
    assert item.id.startswith("urn:uuid:")
    long = read_body("".join(f"<urn:a:1> <urn:p:p> {n} .\n" for n in range(MOST + 1)).encode(), "", broker.settings)
    assert list(nodes(long.publications[0], 0)) == []


@pytest.mark.parametrize("form", ["atom", "rss", "rdf", "json"])
@on_sqlite_alone
def test_a_service_refuses_its_own_echo(broker: Broker, url: str, form: str) -> None:
    made = broker.subscribe(Wanted("SELECT ?t { ?i ?p ?t }"), "owner")
    lights(broker, 1)
    feed = ask(f"{url}/s/{made.feed_key}.{form}").body
    said = ask(f"{url}/publish?wait=1", feed, token=TOKEN)
    assert (said.status, b"echo" in said.body) == (400, True)
    assert len(broker.events("owner", 0)) == 1
    assert len(broker.window.of("owner")) == 1


@on_sqlite_alone
def test_two_services_that_poll_each_other_end_after_one_turn(
    new_database: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ExitStack() as stack:
        names, brokers = ("first", "second"), list[Broker]()
        for name in names:
            database = f"sqlite:///{tmp_path_factory.mktemp(name)}/broker.db"
            brokers.append(stack.enter_context(Broker.open(database, f"secret of {name}".encode())))
        urls = [stack.enter_context(served(broker)) for broker in brokers]
        made = [broker.subscribe(Wanted("SELECT ?t { ?i ?p ?t }"), "owner") for broker in brokers]
        lights(brokers[0], 1)
        statuses = []
        for turn in range(4):
            source, target = turn % 2, 1 - turn % 2
            feed = ask(f"{urls[source]}/s/{made[source].feed_key}.rdf").body
            statuses.append(ask(f"{urls[target]}/publish?wait=1", feed, token=TOKEN).status)
        assert statuses == [202, 400, 202, 400]
        assert [len(broker.events("owner", 0)) for broker in brokers] == [1, 1]
