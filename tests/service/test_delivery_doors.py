"""The doors of targets, of the log of deliveries, and of dead letters."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from broker.receivers import QUERY, published, serving
from triplewire.broker.broker import Broker
from triplewire.broker.events import removal
from triplewire.broker.tickets import grant_key, opened
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
from triplewire.service.app import ServiceSettings, service
from triplewire.store.tables import hosts, publications
from waiting import until

SECRET = "not-to-be-seen"


class Setting:
    """A service that delivers, its client with the owner's token, and a subscription."""

    def __init__(self, broker: Broker, doors: TestClient) -> None:
        self.broker, self.doors = broker, doors
        made = doors.post("/subscriptions", json={"query": QUERY, "id": "games"})
        assert made.status_code == 201
        self.path = "/subscriptions/games"


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    how = DeliverySettings(base_url="http://testserver", allow_private_addresses=True, schedule=(0.0, 0.0))
    with Broker.open(f"sqlite:///{tmp_path}/broker.db", b"s" * 32) as broker, Deliveries(broker, how) as delivering:
        app = service(
            broker, ServiceSettings(token="t" * 32, allow_private_addresses=True, wait_seconds=300.0), delivering
        )
        with TestClient(app, headers={"Authorization": "Bearer " + "t" * 32}) as doors:
            yield Setting(broker, doors)
        tally = broker.delivery_log.tally()
        assert tally["matched"] == sum(tally.values()) - tally["matched"]


def test_targets(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    doors, path = setting.doors, setting.path
    with serving() as server:
        address = f"{server.url}?token={SECRET}"
        made = doors.post(f"{path}/targets", json={"address": address, "secret": SECRET, "ordered": True})
        assert made.status_code == 201
        target = made.json()
        assert (target["kind"], target["state"], target["signed"], target["ordered"]) == (
            "webhook",
            "active",
            True,
            True,
        )
        assert doors.get(f"{path}/targets").json() == [target]
        tested = doors.post(f"{made.headers['Location']}/test").json()
        assert tested == {"delivered": True, "answer": "200 OK"}
        assert json.loads(server.requests[0].body)["test"] is True
        assert server.requests[0].headers["ce-id"].startswith("test-")
        published(setting.broker, 1)
        until(lambda: setting.broker.delivery_log.tally()["delivered"] == 1)
        sent = 'triplewire_notifications_total{channel="webhook",outcome="delivered"} 1.0'
        until(lambda: sent in doors.get("/metrics").text)
        (entry,) = doors.get(f"{path}/deliveries").json()
        assert (entry["state"], entry["tries"], entry["answer"], entry["sequence"]) == ("delivered", 1, "200 OK", 1)
        answers = [made.text, doors.get(f"{path}/targets").text, doors.get(f"{path}/deliveries").text]
        assert doors.delete(made.headers["Location"]).status_code == 204
        published(setting.broker, 2)
        assert setting.broker.delivery_log.tally()["matched"] == 1
        again = doors.post(f"{path}/targets", json={"address": address, "secret": SECRET}).json()
        assert (again["number"], again["state"], again["ordered"]) == (target["number"], "active", False)
        assert not any(SECRET in text for text in (*answers, caplog.text))
        row = setting.broker.targets.of(1)[0]
        assert SECRET not in row.secret, "the store keeps it sealed"
        assert opened(row.secret, setting.broker.secret) == SECRET


ALLOWED = {"WebHook-Allowed-Origin": "testserver", "WebHook-Allowed-Rate": "90"}


@pytest.mark.parametrize("allows", [None, {"WebHook-Allowed-Origin": "other.example"}, {}, ALLOWED])
def test_receivers_are_asked_before(setting: Setting, allows: dict[str, str] | None) -> None:
    """Who has the token vouches for a receiver; of one that a ticket names, the receiver decides (CloudEvents)."""
    made = setting.doors.post("/subscriptions", json={"query": QUERY, "id": "second"}).json()
    ticket = {"Authorization": f"Bearer {made['ticket']}"}
    with serving() as server:
        server.allows = allows
        by_owner = setting.doors.post(f"{setting.path}/targets", json={"address": server.url})
        by_ticket = setting.doors.post("/subscriptions/second/targets", json={"address": server.url}, headers=ticket)
        assert by_owner.json()["state"] == "active"
        assert by_ticket.json()["state"] == ("active" if allows is ALLOWED else "pending")
        asked = server.asked[1].headers
        assert (asked["webhook-request-origin"], asked["webhook-request-rate"]) == ("testserver", "60")
        with setting.broker.database.reading() as connection:
            rates = connection.execute(sa.select(hosts.c.per_minute)).scalars().all()
        assert rates == [90.0 if allows is ALLOWED else None]
        published(setting.broker, 1)
        until(lambda: setting.broker.delivery_log.tally()["delivered"] == (2 if allows is ALLOWED else 1))
        callback = asked["webhook-request-callback"]
        nobody = {"Authorization": ""}
        changed = callback[:-1] + ("b" if callback.endswith("a") else "a")
        assert setting.doors.get(changed, headers=nobody).status_code == 404
        assert setting.doors.post(callback, headers={**nobody, "WebHook-Allowed-Rate": "7"}).status_code == 200
        assert setting.doors.get(by_ticket.headers["Location"].rpartition("/")[0]).json()[0]["state"] == "active"
        with setting.broker.database.reading() as connection:
            assert connection.execute(sa.select(hosts.c.per_minute)).scalars().all() == [7.0]
        published(setting.broker, 2)
        until(lambda: setting.broker.delivery_log.tally()["delivered"] == (4 if allows is ALLOWED else 3))


def test_a_webhook_of_a_new_subscription_is_asked(setting: Setting) -> None:
    with serving() as server:
        setting.doors.post("/subscriptions", json={"query": QUERY, "webhook": server.url})
        assert [came.headers["webhook-request-origin"] for came in server.asked] == ["testserver"]
        assert not server.requests


def test_what_is_muted_waits(setting: Setting) -> None:
    doors, path = setting.doors, setting.path
    with serving() as server:
        doors.post(f"{path}/targets", json={"address": server.url})
        until_when = doors.post(f"{path}/mute", json={}).json()["until"]
        assert [target["until"] for target in doors.get(f"{path}/targets").json()] == [until_when]
        published(setting.broker, 1, 2)
        until(lambda: {entry["due"] for entry in doors.get(f"{path}/deliveries").json()} == {until_when})
        assert len(setting.broker.events(None, 0)) == 2, "the feed has them"
        assert not server.requests
        assert doors.post(f"{path}/mute", json={"seconds": -1}).status_code == 422
        assert doors.post(f"{path}/mute", json={"seconds": 0}).status_code == 200
        until(lambda: setting.broker.delivery_log.tally()["delivered"] == 2)
        assert len(server.ids) == 2


def test_tests_are_few(setting: Setting) -> None:
    with serving() as server:
        made = setting.doors.post(f"{setting.path}/targets", json={"address": server.url})
        statuses = [setting.doors.post(f"{made.headers['Location']}/test").status_code for _ in range(8)]
        assert statuses == [200] * 6 + [503] * 2
        assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("address", "status"),
    [("ftp://e.x/", 400), ("http://user:pw@e.x/", 400), ("mailto:a@e.x", 400), ("kafka://e.x:1/t", 400)],
)
def test_addresses_that_are_no_targets(setting: Setting, address: str, status: int) -> None:
    refused = setting.doors.post(f"{setting.path}/targets", json={"address": address})
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/problem+json"
    assert "pw" not in refused.text


def test_dead_letters(setting: Setting) -> None:
    doors = setting.doors
    with serving(500) as server:
        doors.post(f"{setting.path}/targets", json={"address": server.url})
        published(setting.broker, 1, 2)
        until(lambda: setting.broker.delivery_log.tally()["dead"] == 2)
        letters = doors.get("/deadletters").json()
        assert [letter["answer"] for letter in letters] == ["500 Internal Server Error"] * 2
        assert letters[0]["subscription"] == "games"
        ann = {"Authorization": f"Bearer {setting.broker.new_token('ann')}"}
        assert doors.get("/deadletters", headers=ann).json() == []
        for path in (letters[0]["number"], 1998, 3, 0, -2, 2**70):
            assert doors.post(f"/deadletters/{path}/resend", headers=ann).status_code == 404
            assert doors.delete(f"/deadletters/{path}", headers=ann).status_code == 404
        server.answer = lambda came: (200, {}, b"")
        assert doors.post(f"/deadletters/{letters[0]['number']}/resend").status_code == 202
        until(lambda: setting.broker.delivery_log.tally()["delivered"] == 1)
        assert doors.delete(f"/deadletters/{letters[1]['number']}").status_code == 204
        assert doors.get("/deadletters").json() == []
        log = doors.get(f"{setting.path}/deliveries").json()
        assert {entry["answer"] for entry in log} == {"200 OK", "dropped by its owner"}


def test_dead_letters_of_users_are_those_of_who_acts_for_them(setting: Setting) -> None:
    site, other = ({"Authorization": f"Bearer {setting.broker.new_token(name)}"} for name in ("site", "site2"))
    with serving(500) as server:
        wanted = {"query": QUERY, "id": "of-ann", "user": "ann", "webhook": server.url}
        assert setting.doors.post("/subscriptions", json=wanted, headers=site).status_code == 201
        published(setting.broker, 1)
        until(lambda: setting.broker.delivery_log.tally()["dead"] == 1)
    (letter,) = setting.doors.get("/deadletters", headers=site).json()
    assert letter["subscription"] == "of-ann"
    assert setting.doors.delete(f"/deadletters/{letter['number']}", headers=other).status_code == 404
    assert setting.doors.delete(f"/deadletters/{letter['number']}", headers=site).status_code == 204


def test_a_receiver_that_allows_what_was_removed_is_told_so(setting: Setting) -> None:
    for name in "ab":
        setting.doors.post(f"{setting.path}/targets", json={"address": f"http://127.0.0.1:10009/{name}"})
    numbers = [target["number"] for target in setting.doors.get(f"{setting.path}/targets").json()]
    callbacks = [f"/webhooks/{grant_key(number, b's' * 32)}" for number in numbers]
    assert [setting.doors.get(callback).status_code for callback in callbacks] == [200, 200]
    removal.forget(setting.broker.database, "owner")  # the row of the newest target stays, and is empty
    assert [setting.doors.get(callback).status_code for callback in callbacks] == [404, 404]


@pytest.mark.parametrize("name", ["query", "language", "prefixes", "title", "state", "once_per_story"])
def test_nothing_is_changed_to_null(setting: Setting, name: str) -> None:
    refused = setting.doors.patch(setting.path, json={name: None})
    assert (refused.status_code, refused.json()["errors"][0]["where"]) == (422, name)


@pytest.mark.parametrize("id", ["日本", "münchen", "a b", "a\\b", "a;b", "...", "x\x85y", "\u2028"])
def test_an_id_of_any_letters_has_an_address(setting: Setting, id: str) -> None:
    made = setting.doors.post("/subscriptions", json={"query": QUERY, "id": id})
    assert made.status_code == 201
    path = made.headers["Location"]
    assert setting.doors.get(path).json()["id"] == id
    target = setting.doors.post(f"{path}/targets", json={"address": "http://127.0.0.1:10009/"})
    assert target.status_code == 201
    assert setting.doors.delete(target.headers["Location"]).status_code == 204


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_leads_elsewhere_in_an_address_is_none(setting: Setting, name: str) -> None:
    for path, wanted in (("subscriptions", {"query": QUERY}), ("sources", {"kind": "push"})):
        assert setting.doors.post(f"/{path}", json=wanted | {"id": name}).status_code == 400
        assert setting.doors.post(f"/{path}", json=wanted | {"user": name}).status_code == 400


def test_a_dead_letter_of_a_target_that_is_gone(setting: Setting) -> None:
    with serving(410) as server:
        setting.doors.post(f"{setting.path}/targets", json={"address": server.url})
        published(setting.broker, 1)
        until(lambda: setting.broker.delivery_log.tally()["dead"] == 1)
        (letter,) = setting.doors.get("/deadletters").json()
        refused = setting.doors.post(f"/deadletters/{letter['number']}/resend")
        assert refused.status_code == 400
        assert "add it again" in refused.json()["remedy"]


def test_refused_publications(setting: Setting) -> None:
    published(setting.broker, 1)
    refuse = publications.update().values(state="refused", reason="it ended the process")
    setting.broker.database.write(lambda connection: connection.execute(refuse))
    (letter,) = setting.doors.get("/deadletters").json()
    assert (letter["kind"], letter["publication"], letter["answer"]) == (
        "publication",
        "urn:item:1",
        "it ended the process",
    )
    assert setting.doors.post(f"/deadletters/{letter['number']}/resend").status_code == 202

    def state() -> str:
        with setting.broker.database.reading() as connection:
            return str(connection.execute(sa.select(publications.c.state)).scalar_one())

    until(lambda: state() == "matched")
    assert setting.doors.get("/deadletters").json() == []
    setting.broker.database.write(lambda connection: connection.execute(refuse))
    assert setting.doors.delete(f"/deadletters/{letter['number']}").status_code == 204
    assert state() == "dropped"


def test_a_notification_that_was_too_long_is_behind_its_link(setting: Setting) -> None:
    with serving() as server:
        setting.doors.post(f"{setting.path}/targets", json={"address": server.url})
        published(setting.broker, 1, title="Olympic games " + "x" * 30_000)
        until(lambda: setting.broker.delivery_log.tally()["delivered"] == 1)
        said = json.loads(server.requests[0].body)
        whole = setting.doors.get(said["link"], headers={"Authorization": ""})
        assert len(whole.json()["bindings"][0]["title"]["value"]) > 30_000
        wrong = said["link"].replace("/events/1", "/events/2")
        assert setting.doors.get(wrong).status_code == 404
        assert setting.doors.get(said["link"].replace("/s/", "/s/9")).status_code == 404
