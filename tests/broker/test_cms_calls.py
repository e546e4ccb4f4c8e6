"""What the module of a CMS asks of the service (docs/cms-protocol.md), by Python's own XML-RPC client.

A site has users, pages with revisions, dry runs, renewal in bulk, and all of a user is removed.
"""

from __future__ import annotations

import datetime as dt
import xmlrpc.client
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hub_tools import QUERY, TOKEN, Came, Said, ask, served, serving
from standardwebhooks import Webhook

from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
from triplewire.store.tables import metadata
from waiting import until

PAGE = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://site.example/"><title>Site</title><link>http://site.example/</link><description/>
<items><rdf:Seq><rdf:li rdf:resource="{page}"/></rdf:Seq></items></channel>
<item rdf:about="{page}"><title>{title}</title><link>{page}</link></item></rdf:RDF>"""
PAGE_1, PAGE_2 = "http://site.example/1", "http://site.example/2"


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    """A broker."""
    with Broker.open(database_url, b"secret of a test") as broker:
        yield broker


@pytest.fixture
def url(broker: Broker) -> Iterator[str]:
    """Its service."""
    with served(broker) as url:
        yield url


class Site:
    """The module of a site: each method takes the members of its struct."""

    def __init__(self, url: str, token: str) -> None:
        headers = [("Authorization", f"Bearer {token}")]
        self._server = xmlrpc.client.ServerProxy(f"{url}/RPC2", headers=headers, use_builtin_types=True)

    def __getattr__(self, name: str) -> Any:
        return lambda **struct: getattr(self._server, name)(struct)

    def page(self, page: str, title: str, **more: Any) -> list[dict[str, Any]]:
        """Publish a page; what is said of it."""
        content = PAGE.format(page=page, title=title)
        said: list[dict[str, Any]] = self.publish(content=content, page=page, **more)["publications"]
        return said


@pytest.fixture
def site(broker: Broker, url: str) -> Site:
    """A site that is not the owner of the service."""
    return Site(url, broker.new_token("site1"))


def told(notes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(note["type"], note["title"]) for note in notes]


def test_a_site_acts_for_its_users_and_for_nobody_elses(broker: Broker, url: str, site: Site) -> None:
    made = {name: site.subscribe(query=QUERY, user=name, title=f"of {name}") for name in ("ann", "bob")}
    site.subscribe(query=QUERY, id="own")
    assert made["ann"]["user"] == "ann"
    assert {(row["id"], row.get("user")) for row in site.list()} == {
        ("own", None), *((said["id"], name) for name, said in made.items())
    }  # fmt: skip
    assert [row["title"] for row in site.list(user="bob")] == ["of bob"]
    site.page(PAGE_1, "Olympic games 1", readers=["/ann", "/"])
    site.page(PAGE_2, "Olympic games 2")
    seen = {name: told(site.notifications(subscription=said["id"])) for name, said in made.items()}
    assert seen["ann"] == [("matched", "Olympic games 1"), ("matched", "Olympic games 2")]
    assert seen["bob"] == [("matched", "Olympic games 2")]
    everything = site.notifications(after=0)
    assert [(note.get("user"), note["title"][-1]) for note in everything] == [
        ("ann", "1"), (None, "1"), ("ann", "2"), ("bob", "2"), (None, "2")
    ]  # fmt: skip
    assert site.notifications(after=everything[2]["number"]) == everything[3:]
    for other in (Site(url, broker.new_token("site2")), Site(url, broker.new_token("Site1"))):
        assert (other.list(), other.list(user="ann"), other.notifications(after=0)) == ([], [], [])
        for method in (other.renew, other.unsubscribe, other.notifications):
            with pytest.raises(xmlrpc.client.Fault, match="there is no subscription"):
                method(subscription=made["ann"]["id"])
        (refused,) = other.renew(subscriptions=[made["ann"]["id"]])
        assert refused["fault"] == 404
    for name in ("", "a/b", "a\n", "?"):
        with pytest.raises(xmlrpc.client.Fault):
            site.forget(user=name)


def test_revisions_of_a_page_are_taken_in_their_order_once_each(broker: Broker, url: str, site: Site) -> None:
    made = site.subscribe(query=QUERY)
    steps = [(1, "Olympic games"), (1, "Olympic games"), (3, "Olympic games, again"), (2, "Late"), (3, "Other")]
    news = [site.page(PAGE_1, title, revision=revision)[0]["new"] for revision, title in steps]
    assert news == [True, False, True, False, False]
    other = Site(url, broker.new_token("site2"))
    assert other.page(PAGE_2, "Olympic games, too", revision=2**40 - 2**40)[0]["new"]
    gone = site.publish(page=PAGE_1, delete=True, revision=2)["publications"]
    assert [one["new"] for one in gone] == [False]
    for revision, is_new in (("4", True), (4, False)):
        (gone,) = site.publish(page=PAGE_1, delete=True, revision=revision)["publications"]
        assert (gone["publication"], gone["new"], gone.get("matched", 0)) == (PAGE_1, is_new, 0)
    assert site.page(PAGE_1, "Olympic games", revision=5)[0]["matched"] == 1
    assert told(site.notifications(subscription=made["id"])) == [
        ("matched", "Olympic games"), ("changed", "Olympic games, again"), ("matched", "Olympic games, too"),
        ("unmatched", "Olympic games, again"), ("matched", "Olympic games"),
    ]  # fmt: skip
    for wrong in ({"page": PAGE_2}, {"revision": 1}, {"page": "no iri"}):
        with pytest.raises(xmlrpc.client.Fault) as raised:
            site.publish(content=PAGE.format(page=PAGE_1, title="x"), **wrong)
        assert raised.value.faultCode == 400


def test_what_was_taken_away_is_shown_by_no_door(url: str, site: Site) -> None:
    made = site.subscribe(query=QUERY)
    site.page(PAGE_1, "Olympic games of yesterday")
    site.publish(page=PAGE_1, delete=True)
    assert site.__getattr__("try")(query=QUERY, language="sparql")["matched"] == 0
    site.page(PAGE_1, "Olympic games of ann", readers=["/ann"])
    assert site.__getattr__("try")(query=QUERY)["matched"] == 0
    newest = site.__getattr__("try")(query=QUERY, user="ann")["newest"]
    assert [(one["publication"], one["title"]) for one in newest] == [(PAGE_1, "Olympic games of ann")]
    assert newest[0]["bindings"] == [{"title": {"type": "literal", "value": "Olympic games of ann"}}]
    assert any("Olympic games of ann" in line for line in newest[0]["why"]), newest[0]["why"]
    assert told(site.notifications(subscription=made["id"])) == [
        ("matched", "Olympic games of yesterday"), ("unmatched", "Olympic games of yesterday")
    ]  # fmt: skip


@on_sqlite_alone
def test_a_wrong_query_is_a_fault_with_its_place(site: Site) -> None:
    for method in (site.subscribe, site.__getattr__("try")):
        with pytest.raises(xmlrpc.client.Fault, match=r"1:8: .*expected") as raised:
            method(query="SELECT WHERE (?x, title, ?y)", language="gql")
        assert raised.value.faultCode == 400


def test_renewal_in_bulk(site: Site) -> None:
    ids = [site.subscribe(query=QUERY, user=user, seconds=600)["id"] for user in ("ann", "bob", "")]
    before = {row["id"]: row["expires"] for row in site.list()}
    site.unsubscribe(subscription=ids[1])
    answers = site.renew(subscriptions=[*ids, "unknown"], seconds=7200)
    assert [answer["id"] for answer in answers] == [*ids, "unknown"]
    assert ["expires" in answer for answer in answers] == [True, False, True, False]
    assert [answer["fault"] for answer in answers if "fault" in answer] == [404, 404]
    assert "subscribe anew" in answers[1]["text"]
    after = {row["id"]: row["expires"] for row in site.list(state="active")}
    assert all(after[id] > before[id] for id in (ids[0], ids[2]))
    with pytest.raises(xmlrpc.client.Fault, match="seconds"):
        site.renew(subscriptions=ids, seconds=1)


def test_notifications_are_the_feed_of_the_subscription_too(site: Site) -> None:
    made = site.subscribe(query=QUERY, title="Games")
    for number in (1, 2, 3):
        site.page(f"http://site.example/{number}", f"Olympic games {number}")
    by = {"subscription": made["id"], "ticket": made["ticket"]}
    why = [note["why"] for note in site.notifications(**by, after=2, why=True)]
    assert len(why) == 1
    assert any("Olympic games 3" in line for line in why[0]), why[0]
    text = site.notifications(**by, after=1, format="rdf")
    assert [f"Olympic games {number}</title>" in text for number in (1, 2, 3)] == [False, True, True]
    with pytest.raises(xmlrpc.client.Fault, match="no format"):
        site.notifications(**by, format="exe")


def test_calls_of_notify_are_signed_and_name_the_user(broker: Broker, site: Site) -> None:
    calls: list[Came] = []

    def notified(came: Came) -> Said:
        calls.append(came)
        return Said(200, {}, xmlrpc.client.dumps((True,), methodresponse=True).encode())

    with serving(notified) as module, Deliveries(broker, DeliverySettings(allow_private_addresses=True)) as deliveries:
        made = site.subscribe(query=QUERY, user="ann", notify=f"{module.url}/notify", secret="whsec_c2VjcmV0")
        site.page(PAGE_1, "Olympic games")
        deliveries.wake()
        until(lambda: calls)
    at = dt.datetime.fromtimestamp(int(calls[0].headers["webhook-timestamp"]), dt.UTC)
    signed = Webhook("whsec_c2VjcmV0").sign(calls[0].headers["webhook-id"], at, calls[0].body.decode())
    assert calls[0].headers["webhook-signature"] == signed
    (call,), method = xmlrpc.client.loads(calls[0].body)
    assert method == "notify"
    (note,) = site.notifications(subscription=made["id"])
    assert (call["id"], call["sequence"], call["user"]) == (str(note["number"]), 1, "ann")
    assert call["publication"]["link"] == PAGE_1


def test_all_of_a_user_is_removed_and_nothing_of_others(broker: Broker, url: str, site: Site) -> None:
    named = {"secret": "whsec_c2VjcmV0", "notify": "http://127.0.0.1:10001/never"}
    made = {user: site.subscribe(query=QUERY, user=user, title=f"wish of {user}", **named) for user in ("ann", "bob")}
    token = broker.new_token("site1/ann")
    ask(f"{url}/sources", b'{"kind": "push", "id": "desk-of-ann"}', token=token, Content_Type="application/json")
    site.page(PAGE_1, "Olympic games", readers=["/ann", "/bob"])
    site.page(PAGE_2, "Olympic games of ann", readers=["/ann"])
    before = broker.delivery_log.tally()
    assert before["matched"] == 3
    counts = site.forget(user="ann")
    assert counts == {"subscriptions": 1, "events": 2, "deliveries": 2, "sources": 1, "tokens": 1}
    with broker.database.reading() as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(sa.select(table)).all():
                assert not any("site1/ann" in str(value) or "wish of ann" in str(value) for value in row), table.name
    tally = broker.delivery_log.tally()
    assert tally["matched"] == sum(tally[state] for state in ("delivered", "pending", "expired", "dead"))
    assert ask(made["ann"]["feed"]).status == 404
    assert ask(f"{url}/subscriptions", token=token).status == 401
    assert [row["user"] for row in site.list()] == ["bob"]
    numbers = [note["number"] for note in site.notifications(after=0)]
    assert [one["new"] for one in site.page(PAGE_1, "Olympic games", readers=["/bob"])] == [False]
    site.page("http://site.example/3", "Olympic games 3")
    new = [note["number"] for note in site.notifications(after=numbers[-1])]
    assert len(new) == 1
    assert new[0] > 3  # the numbers of what was removed do not come again
    assert site.forget(user="ann") == dict.fromkeys(counts, 0)
    for _ in range(2):
        site.subscribe(query=QUERY, user="ann", **named)
        assert site.forget(user="ann")["subscriptions"] == 1


def test_who_may_remove_an_owner(broker: Broker, url: str, site: Site) -> None:
    tokens = {name: broker.new_token(name) for name in ("site1", "site2", "site1/ann")}
    site.subscribe(query=QUERY, user="ann")

    def remove(name: str, token: str) -> int:
        return ask(f"{url}/owners/{name}", token=token, method="DELETE").status

    assert remove("site1/ann", tokens["site2"]) == 404
    assert remove("site1", tokens["site1/ann"]) == 404
    assert (remove("owner", tokens["site1"]), remove("owner", TOKEN), remove("", TOKEN)) == (404, 403, 404)
    assert len(site.list()) == 1
    assert remove("site1/ann", tokens["site1/ann"]) == 200
    assert remove("site1", TOKEN) == 200
    assert ask(f"{url}/subscriptions", token=tokens["site1"]).status == 401
    assert ask(f"{url}/subscriptions", token=tokens["site2"]).status == 200
