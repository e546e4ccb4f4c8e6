"""The doors of feeds: what a subscription's address answers, page by page, and whether it is new."""

from __future__ import annotations

import base64
import hashlib
import re

import feedparser
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from broker.serving import OWNER, QUERY, broker_at, published, subscribed
from triplewire.broker.broker import DAY, Broker
from triplewire.broker.feeds.formats import FORMATS
from triplewire.store.database import now
from triplewire.store.tables import events, publications, subscriptions

ITEMS = [(f"urn:item:{number}", f"Item {number}") for number in range(1, 131)]


def change(broker: Broker, table: sa.Table, **values: object) -> None:
    broker.database.write(lambda connection: connection.execute(table.update().values(values)))


def titles(text: str) -> list[str]:
    return [entry.title for entry in feedparser.parse(text).entries]


def test_each_format_says_what_it_is_and_where(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made = subscribed(broker, title="Games & more")
        published(broker, ("urn:item:1", "Olympic games"), text="The torch")
        client = TestClient(app)
        for form, (_, kind, _) in FORMATS.items():
            address = f"http://testserver/s/{made.feed_key}.{form}"
            answer = client.get(address)
            assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
            assert f'<{address}>; rel="self"' in answer.headers["link"]
            assert '<http://testserver/hub>; rel="hub"' in answer.headers["link"]
            assert answer.headers["cache-control"].startswith("private")
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert form == "opml" or "Olympic games" in answer.text
            assert form in ("opml", "ndjson") or "The torch" in answer.text
            assert form == "ndjson" or "Games &amp; more" in answer.text or '"Games & more"' in answer.text
            head = client.head(address)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["etag"] == answer.headers["etag"]


def test_a_digest_has_an_entry_for_each_period_that_is_over(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made = subscribed(broker)
        published(broker, *ITEMS[:6])
        midnight = now() // DAY * DAY
        for sequence, at in enumerate((-86_000, -43_000, -86_401, -86_400 * 3, 0, 1), 1):  # seconds from midnight
            moved = events.update().where(events.c.sequence == sequence).values(at=midnight + at)
            broker.database.write(lambda connection, moved=moved: connection.execute(moved))
        client = TestClient(app)
        for form, (_, kind, _) in FORMATS.items():
            answer = client.get(f"/s/{made.feed_key}.{form}?digest=daily")
            assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
            assert f"/s/{made.feed_key}.{form}?digest=daily" in answer.headers["link"]
        daily = feedparser.parse(client.get(f"/s/{made.feed_key}.atom?digest=daily").text)
        assert [re.findall(r"Item \d+", entry.content[0].value) for entry in daily.entries] == [
            ["Item 2", "Item 1"], ["Item 3"], ["Item 4"],
        ]  # fmt: skip
        assert daily.entries[0].title.startswith("2 events, ")
        hourly = feedparser.parse(client.get(f"/s/{made.feed_key}.atom?digest=hourly").text)
        assert len(hourly.entries) >= 4, "and those of today, where their hour is over"
        assert not {entry.id for entry in daily.entries} & {entry.id for entry in hourly.entries}
        again = client.get(f"/s/{made.feed_key}.atom?digest=daily", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 200, "another format has another tag"
        assert client.get(f"/s/{made.feed_key}.atom?digest=weekly").status_code == 404


def test_the_page_allows_its_own_style_alone(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        answer = TestClient(app).get(f"/s/{subscribed(broker).feed_key}.html")
        (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
        code = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = answer.headers["content-security-policy"]
        assert f"style-src 'sha256-{code}';" in policy
        assert "unsafe" not in policy


def test_what_there_is_not(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        key, client = subscribed(broker).feed_key, TestClient(app)
        for path in (f"/s/{key}x.atom", "/s/1-abc.atom", f"/s/{key}.exe", f"/s/{key}x/events", "/s/²-a.rss"):
            assert client.get(path).status_code == 404, path
        for path in (f"/s/{key}.atom?before=0", f"/s/{key}.atom?before={2**80}", f"/s/{key}/events?after=-1"):
            assert client.get(path).status_code == 422, path
        assert client.get(f"/s/{key}/events?format=xml").status_code == 400
        for path in ("/feed?q=x", "/subscriptions.opml"):
            assert client.get(path).status_code == 401, path
        assert client.post("/opml", content=b"<opml/>").status_code == 401


def test_a_feed_that_is_known_is_not_sent_again(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made, client = subscribed(broker), TestClient(app)
        published(broker, ("urn:item:1", "One"))
        change(broker, events, at=1e9)
        change(broker, subscriptions, created=1e9 - 5)
        first = client.get(f"/s/{made.feed_key}.atom")
        assert first.headers["last-modified"] == "Sun, 09 Sep 2001 01:46:40 GMT"

        def again(**headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return client.get(f"/s/{made.feed_key}.atom", headers=named).status_code

        tag = first.headers["etag"]
        assert again(if_none_match=tag) == again(if_none_match=f'"other", W/{tag}') == again(if_none_match="*") == 304
        assert again(if_modified_since=first.headers["last-modified"]) == 304
        assert again(if_modified_since="Sun, 09 Sep 2001 01:46:39 GMT") == again(if_modified_since="no date") == 200
        assert again(if_none_match='"other"', if_modified_since=first.headers["last-modified"]) == 200
        published(broker, ("urn:item:2", "Two"))
        answer = client.get(f"/s/{made.feed_key}.atom", headers={"if-none-match": tag})
        assert titles(answer.text) == ["Two", "One"]
        assert "last-modified" not in answer.headers  # another entry may still have the same second
        tags = {answer.headers["etag"]}
        for change_it in (
            lambda: broker.change(made.number, title="Another title"),
            lambda: broker.renew(made.number, 2 * DAY),
            lambda: broker.change(made.number, state="paused"),
            lambda: broker.unsubscribe(made.number),
        ):
            change_it()
            tags.add(client.get(f"/s/{made.feed_key}.atom").headers["etag"])
        assert len(tags) == 5
        assert again(if_modified_since="Fri, 01 Jan 2100 00:00:00 GMT") == 200


def test_pages_hold_each_entry_once_for_ever(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made, client = subscribed(broker), TestClient(app)
        published(broker, *ITEMS[:117])

        def pages() -> list[feedparser.FeedParserDict]:
            found, address = [], f"/s/{made.feed_key}.rss"
            while address:
                found.append(feedparser.parse(client.get(address).text))
                links = {link.rel: link.href for link in found[-1].feed.links}
                assert links.get("next") == links.get("prev-archive")
                address = links.get("next", "")
            return found

        before = pages()
        assert [title for page in before for title in (entry.title for entry in page.entries)] == [
            title for _, title in reversed(ITEMS[:117])
        ]
        assert [len(page.entries) for page in before] == [67, 50]
        published(broker, *ITEMS[117:120])
        after = pages()
        assert [entry.id for entry in after[1].entries] == [entry.id for entry in before[1].entries]
        ids = [entry.id for page in after for entry in page.entries]
        assert len(set(ids)) == len(ids) == 120
        said = client.get(f"/s/{made.feed_key}.json").json()
        older = client.get(said["next_url"]).json()
        assert [item["title"] for item in said["items"] + older["items"]] == [t for _, t in reversed(ITEMS[:120])]
        assert "next_url" not in older
        page = client.get(f"/s/{made.feed_key}.html").text
        assert "?before=51" in page
        assert not re.search("<script|<img", page)


def test_what_changes_ends_or_is_told_again(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made, client = subscribed(broker, seconds=3 * DAY), TestClient(app)
        published(broker, ("urn:item:1", "One"))
        published(broker, ("urn:item:1", "One, corrected"))
        address = f"/s/{made.feed_key}"
        entries = feedparser.parse(client.get(f"{address}.atom").text).entries
        assert [(entry.title, [tag.term for tag in entry.get("tags", [])]) for entry in entries] == [
            ("One, corrected", ["changed"]),
            ("One", []),
        ]
        change(broker, subscriptions, warns=1.0)
        for _ in range(2):  # once more tells nothing more; the broker does the same by itself meanwhile
            broker.expire()
        assert "expired" not in client.get(f"{address}.json").json()
        change(broker, subscriptions, expires=1.0)
        broker.expire()
        told = client.get(f"{address}.json").json()
        assert told["expired"] is True
        types = [item["_triplewire"]["type"] for item in told["items"]]
        assert types == ["expired", "expiring", "changed", "matched"]
        assert titles(client.get(f"{address}.rss").text)[:2] == [
            "The subscription has ended",
            "The subscription ends within a day: renew it to keep it",
        ]


@pytest.mark.parametrize(("seconds", "renewed", "is_told"), [(DAY, DAY, 0), (DAY, 2 * DAY, 1), (2 * DAY, DAY, 0)])
def test_who_lasts_for_a_day_is_not_told_each_day(
    database_url: str, seconds: float, renewed: float, is_told: int
) -> None:
    with broker_at(database_url) as (broker, _):
        made = subscribed(broker, seconds=seconds)
        broker.renew(made.number, renewed)
        row = broker.by_number(made.number)
        assert row is not None
        assert (row.warns is not None) == bool(is_told)


def test_other_reports_are_listed_under_the_first(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made, client = subscribed(broker), TestClient(app)
        published(broker, ("urn:item:1", "A storm"), ("urn:item:2", "The same storm"), ("urn:item:3", "Calm"))
        first = broker.events("owner", 0)[0].number
        again = events.update().where(events.c.sequence == 2).values(type="repeated", first=first)
        broker.database.write(lambda connection: connection.execute(again))
        entries = feedparser.parse(client.get(f"/s/{made.feed_key}.atom").text).entries
        assert [entry.title for entry in entries] == ["Calm", "A storm"]
        assert "The same storm" in entries[1].content[0].value
        lines = client.get(f"/s/{made.feed_key}/events?format=ndjson").text.splitlines()
        assert len(lines) == 3


def test_a_content_that_is_damaged_leaves_the_entry(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made, client = subscribed(broker), TestClient(app)
        published(broker, ("urn:item:1", "One"), ("urn:item:2", "Two\x00\x0b"), text="a text")
        change(broker, publications, body=b"\0\0\0\1x")
        assert titles(client.get(f"/s/{made.feed_key}.atom").text) == ["Two", "One"]


def test_a_query_is_a_feed_of_what_is_kept(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        client = TestClient(app)
        published(broker, ("urn:item:1", "Puffins"), ("urn:item:2", "Terns"))
        published(broker, ("urn:item:1", "Puffins again"), ("urn:item:3", "Not for you"), readers=["ann"])
        published(broker, ("urn:item:2", "Terns again"), readers=["ann", "owner"])
        ann = {"Authorization": f"Bearer {broker.new_token('ann')}"}
        assert titles(client.get("/feed", params={"q": QUERY}, headers=OWNER).text) == ["Terns again", "Puffins"]
        answer = client.get("/feed", params={"q": QUERY, "format": "json"}, headers=ann).json()
        assert [item["title"] for item in answer["items"]] == ["Terns again", "Not for you", "Puffins again"]
        wrong = client.get("/feed", params={"q": "SELECT {"}, headers=OWNER)
        assert (wrong.status_code, wrong.json()["line"]) == (400, 1)
        assert client.get("/feed", params={"q": QUERY, "format": "exe"}, headers=OWNER).status_code == 404
        assert broker.subscriptions_of("owner") == []
