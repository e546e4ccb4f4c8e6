"""Figures 12 and 13 of paper 000, end to end.

A feed that subscribes and a feed of news are posted by a bare client of XML-RPC, and what matches comes back as RSS
over XML-RPC. And kill -9 while revisions of a page are published.
"""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import xmlrpc.client
from functools import partial
from pathlib import Path

import feedparser
import pytest
from hub_tools import TOKEN, ask, served

from broker.killed import forked
from broker.serving import on_sqlite_alone
from triplewire.broker.broker import LONGEST, Broker, Wanted
from triplewire.broker.incoming.item_subscriptions import asked_by, renew_all
from triplewire.broker.incoming.registered_sources import WantedSource
from triplewire.broker.publications.accepted import Revision, accept
from triplewire.broker.publications.kept_contents import read_body
from triplewire.read import read_document
from triplewire.store.database import DAY, now
from triplewire.store.tables import subscriptions

CASES = Path(__file__).parents[1] / "cases" / "cms"
FOLDERS = Path(__file__).parents[1], Path(__file__).parent  # of modules that this one imports
SECRET = b"secret of a test"
POINTS = ("publish.received:1", "publish.written:2", "publish.committed:3", "matching.begun:1", "events.written:2")
"""Each ends another revision: one that has ended two processes in matching would be refused."""
REVISIONS = 6
PAGE = "http://site.example/1"


def test_a_feed_subscribes_and_what_matches_comes_back_as_rss(database_url: str) -> None:
    with Broker.open(database_url, SECRET) as broker, served(broker) as url:
        headers = [("Authorization", f"Bearer {TOKEN}")]
        server = xmlrpc.client.ServerProxy(f"{url}/RPC2", headers=headers, use_builtin_types=True)
        wanted = json.dumps({"kind": "push", "id": "requests", "may_subscribe": True}).encode()
        assert ask(f"{url}/sources", wanted, token=TOKEN, Content_Type="application/json").status == 201
        said = server.publish({"content": (CASES / "figure-12.rdf").read_text(), "source": "requests"})
        (id,) = said["subscribed"]
        (listed,) = server.list({})
        assert (listed["id"], listed["language"]) == (id, "gql")
        assert listed["query"] == 'SELECT ?x, ?y WHERE (?x, <title>, ?y) SUCHTHAT (?y CONTAINS "RDF")'
        said = server.publish({"content": (CASES / "figure-13.rdf").read_bytes()})
        matched = {one["publication"]: one["matched"] for one in said["publications"]}
        news = "http://xml.com/pub/2000/08/09/"
        assert matched == {f"{news}xslt/xslt.html": 0, f"{news}rdfdb/index.html": 1}
        text = server.notifications({"subscription": id, "format": "rdf"})
        parsed = feedparser.parse(text)
        assert [(entry.title, entry.link) for entry in parsed.entries] == [
            ("Putting RDF to Work", f"{news}rdfdb/index.html")
        ]
        assert parsed.version == "rss10"


def test_what_its_source_renews_is_not_told_to_end_soon(database_url: str) -> None:
    with Broker.open(database_url, SECRET) as broker:
        row, _ = broker.sources.add(WantedSource("http://a.example/feed", may_subscribe=True), "owner")
        made = broker.subscribe(Wanted("ASK { ?s ?p ?o }", seconds=LONGEST, source=row.number), "owner")
        later = {"expires": now() + DAY / 2, "warns": now() - DAY / 2}
        broker.database.execute(subscriptions.update().values(later))
        renew_all(broker, row)
        broker.expire()
        assert broker.events_of(made.number, 0) == []
        broker.database.execute(subscriptions.update().values(later))  # its feed is away
        broker.expire()
        assert [event.type for event in broker.events_of(made.number, 0)] == ["expiring"]


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("SELECT * WHERE (?x,<title>,?y)", "SELECT * WHERE (?x,<title>,?y)"),
        ("<p>SELECT * WHERE (?x,<title>,?y)</p>", "SELECT * WHERE (?x,<title>,?y)"),
        ("<p>SELECT * WHERE (?x,&lt;title&gt;,?y)</p>", "SELECT * WHERE (?x,<title>,?y)"),
        ("<h1>SELECT * WHERE (?x, title, ?y)</h1>", "SELECT * WHERE (?x, title, ?y)"),
        ("SELECT * WHERE (?x,<b>,?y)", "SELECT * WHERE (?x,<b>,?y)"),
    ],
)
def test_the_query_of_an_item_is_its_text_without_markup(written: str, query: str) -> None:
    item = f"<item><guid>urn:a:1</guid><title>GQL</title><description>{html.escape(written)}</description></item>"
    body = f"<rss version='2.0'><channel><title>c</title><link>http://a.example/</link>{item}</channel></rss>"
    (publication,) = read_document(body.encode(), "http://a.example/feed")
    asked = asked_by(publication)
    assert asked is not None
    assert asked.query == query


# --- kill -9 ---------------------------------------------------------------------------------------------------------


def publish_all(url: str) -> None:
    """Publish all revisions of a page, as a module does that sends from the first again whenever it has no answer."""
    with Broker.open(url, SECRET) as broker:
        for number in range(1, REVISIONS + 1):
            body = f'<{PAGE}> <http://purl.org/rss/1.0/title> "Revision {number}" .'.encode()
            came = read_body(body, PAGE, broker.settings)
            taken = broker.publish(
                came.publications, accepting=partial(accept, revision=Revision("site", PAGE, number))
            )
            broker.wait([entry.number for entry in taken if entry.is_new], 300)


def publish_with_kills(url: str) -> None:
    """Publish all in one process after the other, of which each but the last is killed at another point."""
    for point in [*POINTS, ""]:
        _, status = os.waitpid(forked(partial(publish_all, url), point), 0)
        assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if point else 0), point


@on_sqlite_alone
def test_revisions_of_a_page_are_told_once_each_in_order_whatever_is_killed(database_url: str) -> None:
    with Broker.open(database_url, SECRET) as broker:
        broker.subscribe(Wanted("SELECT ?t { ?x rss:title ?t }"), "owner")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, FOLDERS)), "TRIPLEWIRE_TIER": "interpreted"}
    program = f"from broker.test_paper_feeds import publish_with_kills; publish_with_kills({database_url!r})"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    with Broker.open(database_url, SECRET) as broker:
        told = [(event.type, event.title) for event in broker.events("owner", 0)]
    numbers = range(1, REVISIONS + 1)
    assert told == [("matched" if number == 1 else "changed", f"Revision {number}") for number in numbers]
