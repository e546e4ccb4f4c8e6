"""Who gets through which door: every door of the application, found by itself, with the rights of somebody else.

Each attack is tried on a weakened build as well, where it has to succeed: else it would prove nothing.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute

from amounts import usually
from service.bodies import body
from triplewire import Engine
from triplewire.broker import tickets
from triplewire.broker.broker import Broker, Made, Wanted
from triplewire.errors import TriplewireError
from triplewire.service import metrics
from triplewire.service.access import Policy, check_policies, doors
from triplewire.service.app import ServiceSettings, service
from triplewire.store.tables import metadata

SECRET = b"s" * 32
MARK = "only-for-bob"
ENDLESS = ("/s/{key}/events",)
"""Doors whose answer ends when the client goes: with the right key they would never be left."""
QUERY = f'SELECT ?s {{ ?s <urn:v:mark> "{MARK}" }}'
TURTLE = f'<urn:p:bob> <urn:v:mark> "{MARK}" .'


@dataclass
class Setting:
    """A service with two owners, and what each of them has."""

    app: FastAPI
    broker: Broker
    doors: TestClient
    bobs: Made
    anns: Made
    tokens: dict[str, str]
    said: list[str] = field(default_factory=list)

    def credentials(self) -> Mapping[str, str]:
        """What somebody who is not bob may come with."""
        return {
            "the token of ann": self.tokens["ann"],
            "the ticket of ann": self.anns.ticket,
            "another ticket of bob": self.tokens["bob's other ticket"],
            "a ticket of bob that was changed": changed(self.bobs.ticket, random.Random(1)),
            "the key of bob's feed": self.bobs.feed_key,
        }


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    url = f"sqlite:///{tmp_path / 'broker.db'}"
    with Broker.open(url, SECRET, engine=Engine(matcher="reference")) as broker:
        tokens = {owner: broker.new_token(owner) for owner in ("ann", "bob")}
        bobs = broker.subscribe(Wanted(QUERY, id="of-bob", title=MARK), "bob")
        tokens["bob's other ticket"] = broker.subscribe(Wanted(QUERY, id="other"), "bob").ticket
        anns = broker.subscribe(Wanted("SELECT ?s { ?s a <urn:x> }", id="of-ann"), "ann")
        app = service(broker, ServiceSettings(token="the token of the service", owner="owner", wait_seconds=300.0))
        client = TestClient(app, raise_server_exceptions=False, follow_redirects=False)
        made = Setting(app, broker, client, bobs, anns, tokens)
        head = {"Authorization": f"Bearer {tokens['bob']}", "Content-Type": "text/turtle"}
        answer = client.post("/publish?wait=1&readers=bob", content=TURTLE, headers=head)
        assert answer.json()["matched"] == 2
        yield made


def test_a_page_and_a_picture_are_published_as_any_document(setting: Setting) -> None:
    rdf = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'"
    packet = f"<rdf:RDF {rdf}><r:x rdf:about='urn:y' xmlns:r='urn:'/></rdf:RDF>"
    for kind, content in (
        ("text/html", b'<!doctype html><script type="application/ld+json">{"@id": "", "@type": "urn:x"}</script>'),
        ("image/jpeg", b"\xff\xd8\xff\xe1 " + packet.encode() + b"\xff\xd9"),
    ):
        head = {"Authorization": f"Bearer {setting.tokens['ann']}", "Content-Type": kind}
        answer = setting.doors.post("/publish?wait=1&readers=ann", content=content, headers=head).json()
        assert answer["matched"] == 1, (kind, answer)


def found_doors(app: FastAPI) -> list[tuple[str, str, Any]]:
    """The method, the path and the route of each door."""
    return [
        (method, route.path, route)
        for route in doors(app.routes)
        if isinstance(route, Route)
        for method in sorted(route.methods or ())
        if method != "HEAD"
    ]


def asked(of: Setting, method: str, path: str, token: str, *, ours: bool = False) -> Any:
    """The answer of a door that is asked for something of bob, or, if it is `ours`, of whoever asks."""
    ours = ours and path not in ENDLESS
    made = of.anns if ours else of.bobs
    named = {"id": made.id, "key": made.feed_key if ours else changed(made.feed_key, random.Random(2)), "form": "atom"}
    address = re.sub(r"{(\w+)(?::\w+)?}", lambda part: named.get(part[1], str(made.number)), path)
    schema = of.app.openapi()
    operation = schema["paths"].get(path, {}).get(method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    head = {"Authorization": f"Bearer {token}"} if token else {}
    if content is None:
        return of.doors.request(method, address, headers={**head, "Content-Type": "text/turtle"}, content=TURTLE)
    return of.doors.request(method, address, headers=head, json=body(content["schema"], schema, made.id))


def kept(broker: Broker) -> list[str]:
    """All rows of bob's subscriptions, and of his token."""
    with broker.database.reading() as connection:
        rows = connection.execute(sa.text("SELECT * FROM subscriptions WHERE owner = 'bob' ORDER BY number")).all()
        return [str(row) for row in rows]


def leaks(of: Setting) -> list[str]:
    """What somebody with rights of another gets, or changes, of bob's."""
    found = []
    before = kept(of.broker)
    for method, path, route in found_doors(of.app):
        policy = getattr(route.endpoint, "policy", Policy.ANYBODY)
        for name, token in of.credentials().items():
            answer = asked(of, method, path, token)
            where = f"{method} {path} with {name}: {answer.status_code}"
            if answer.status_code >= 500:
                found.append(f"{where} is a fault")
            if MARK in answer.text:
                found.append(f"{where} tells of bob's")
            if kept(of.broker) != before:
                found.append(f"{where} changes what is bob's")
                before = kept(of.broker)
            if "{" in path and answer.status_code not in refusals(policy, name):
                found.append(f"{where} is neither 404 nor a refusal of who comes")
    return found


def refusals(policy: Policy, who: str) -> tuple[int, ...]:
    """How a door answers who is not bob: as if there was nothing; or who he is, where it is asked for a token."""
    if policy in (Policy.KEY, Policy.ANYBODY, Policy.OWNER_OR_TICKET) or who == "the token of ann":
        return (404,) if policy.name != "PAGE" else (303, 401, 403, 404)
    return (401, 303, 403)


# --- who gets through ------------------------------------------------------------------------------------------------


def test_nobody_gets_what_is_of_another(setting: Setting) -> None:
    assert leaks(setting) == []


def test_a_door_that_does_not_ask_whose_it_is_would_be_found(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    find = Broker.find
    monkeypatch.setattr(
        Broker, "find", lambda self, id, **_: find(self, id, owner="bob") or find(self, id, owner="ann")
    )
    assert len(leaks(setting)) > 5


def test_a_ticket_of_one_is_not_of_all(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of the kinds of tickets alone would be found."""
    monkeypatch.setattr(tickets, "digest", lambda ticket: ticket[:6].encode())
    rows = sa.text("UPDATE subscriptions SET ticket = :ticket")
    setting.broker.database.write(lambda connection: connection.execute(rows, {"ticket": b"tw_ctl"}))
    assert leaks(setting)


def test_without_a_token_no_door_opens(setting: Setting) -> None:
    """But those that are for anybody, and those whose address has the key."""
    opened = []
    for method, path, route in found_doors(setting.app):
        policy = getattr(route.endpoint, "policy", Policy.ANYBODY)
        for token in ("", "another text", tickets.new_ticket(tickets.API)):
            answer = asked(setting, method, path, token, ours=True)
            is_open = answer.status_code < 300 and "faultCode" not in answer.text  # XML-RPC refuses with 200
            if policy not in (Policy.ANYBODY, Policy.KEY) and is_open:
                opened.append(f"{method} {path} ({policy.value}): {answer.status_code}")
            assert MARK not in answer.text
    assert opened == []


def test_who_has_the_right_gets_through(setting: Setting) -> None:
    """What is sent above is what doors take: it is the rights that are missing."""
    through = ("/subscriptions", "/subscriptions/{id}", "/subscriptions/{id}/renew", "/match", "/explain", "/publish")
    for method, path, _ in sorted(found_doors(setting.app), key=lambda door: door[0] == "DELETE"):
        if path in (*through, "/events") and (method, path) != ("DELETE", "/publish"):  # which asks for a page
            answer = asked(setting, method, path, setting.tokens["ann"], ours=True)
            assert 200 <= answer.status_code < 300, (method, path, answer.text)


# --- doors without a policy ------------------------------------------------------------------------------------------


def nothing() -> dict[str, Any]:
    """A door that somebody has forgotten to protect."""
    return {}


def test_a_door_without_a_policy_stops_the_start(setting: Setting) -> None:
    metrics.router.add_api_route("/by-oversight", nothing)
    try:
        with pytest.raises(TriplewireError, match="by-oversight has no policy"):
            service(setting.broker, ServiceSettings())
    finally:
        metrics.router.routes.pop()
    service(setting.broker, ServiceSettings())


@pytest.mark.parametrize("kind", ["route", "in a router", "in a router of a router", "plain", "mounted", "websocket"])
def test_each_kind_of_door_needs_a_policy(setting: Setting, kind: str) -> None:
    app, inner, outer = service(setting.broker, ServiceSettings()), APIRouter(), APIRouter(prefix="/outer")
    inner.add_api_route("/by-oversight", nothing)
    if kind == "route":
        app.add_api_route("/by-oversight", nothing)
    elif kind == "in a router":
        app.include_router(inner)
    elif kind == "in a router of a router":
        outer.include_router(inner)
        app.include_router(outer)
    elif kind == "plain":
        app.router.routes.append(Route("/by-oversight", lambda request: PlainTextResponse("")))
    elif kind == "mounted":
        app.router.routes.append(Mount("/by-oversight", FastAPI()))
    else:
        app.router.routes.append(WebSocketRoute("/by-oversight", lambda socket: None))
    with pytest.raises(TriplewireError, match="by-oversight"):
        check_policies(app)


# --- tickets ---------------------------------------------------------------------------------------------------------


def changed(ticket: str, chance: random.Random) -> str:
    """A ticket with one change."""
    place = chance.randrange(len(ticket))
    one, other = ticket[place], chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    if one == other:
        other = "x" if one != "x" else "y"
    made = chance.choice(
        [
            ticket[:place] + other + ticket[place + 1 :],
            ticket[:place] + ticket[place + 1 :],
            ticket[:place] + other + ticket[place:],
            ticket[:place] + chr(ord(one) + 0xFEE0) + ticket[place + 1 :],  # full width: it looks the same
            ticket[place:] + ticket[:place],
            ticket.swapcase(),
            ticket[: -1 - place % 7],
            f"{ticket} ",
            ticket.replace("_ctl_", "_api_").replace("_pub_", "_ctl_"),
        ]
    )
    return made if made != ticket else ticket[:-1]


def test_tickets_that_were_changed_are_not_accepted(setting: Setting) -> None:
    chance, right = random.Random(61), setting.bobs.ticket
    row = setting.broker.find("of-bob", ticket=right)
    assert row is not None
    texts = [changed(right, chance) for _ in range(usually(100_000, 1_000_000))]
    assert sum(tickets.digest(text) == row.ticket for text in texts) == 0
    assert sum(tickets.digest(text[:20]) == tickets.digest(right[:20]) for text in texts) > 0, "they are near"
    for text in texts[:1_000]:
        assert setting.broker.find("of-bob", ticket=text) is None
        assert setting.broker.owner_of(text) is None
    api = setting.tokens["bob"]
    assert setting.broker.owner_of(api) == "bob"
    for _ in range(1_000):
        assert setting.broker.owner_of(changed(api, chance)) is None


def test_keys_of_feeds_that_were_changed_are_not_accepted() -> None:
    chance, right = random.Random(62), tickets.feed_key(7, SECRET)
    assert tickets.number_of(right, SECRET) == 7
    for _ in range(usually(20_000, 200_000)):
        assert tickets.number_of(changed(right, chance), SECRET) is None
    assert tickets.number_of(right, b"x" * 32) is None


def test_one_kind_of_ticket_is_not_taken_for_another(setting: Setting) -> None:
    for token in (setting.bobs.ticket, setting.bobs.feed_key):
        head = {"Authorization": f"Bearer {token}"}
        assert setting.doors.get("/subscriptions", headers=head).status_code == 401
        assert setting.doors.get("/events", headers=head).status_code == 401
    head = {"Authorization": f"Bearer {setting.bobs.feed_key}"}
    assert setting.doors.delete("/subscriptions/of-bob", headers=head).status_code == 404


def test_no_secret_is_kept_or_logged(setting: Setting, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = [setting.bobs.ticket, setting.anns.ticket, setting.bobs.feed_key, *setting.tokens.values()]
    for method, path, _ in found_doors(setting.app):
        for token in secrets:
            asked(setting, method, path, token, ours=True)
    with setting.broker.database.reading() as connection:
        dump = [str(row) for table in metadata.sorted_tables for row in connection.execute(sa.select(table))]
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert MARK.encode() in files
    for secret in secrets:
        assert not any(secret in row for row in dump)
        assert secret.encode() not in files
        assert secret not in caplog.text


# --- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_is_limited_by_counting(setting: Setting, declared: bool) -> None:
    most = 2_000
    app = service(setting.broker, ServiceSettings(token="the token of the service", most_body=most))
    client = TestClient(app, raise_server_exceptions=False)
    head = {"Authorization": "Bearer the token of the service"}
    for method, path, _ in found_doors(app):
        if method in ("GET", "DELETE", "OPTIONS") or "{" in path or path.startswith(("/sign-", "/page")):
            continue
        for size in (most, most + 1, 10 * most):
            text = json.dumps({"query": "x" * most * 10}).encode()[:size]
            content = text if declared else (text[place : place + 300] for place in range(0, size, 300))
            answer = client.request(method, path, content=content, headers=head | {"Content-Type": "application/json"})
            if answer.status_code == 403:  # a form without its code is refused before it is read
                continue
            assert (answer.status_code == 413) == (size > most), (method, path, size, answer.text)
            if size > most:
                assert answer.headers["content-type"] == "application/problem+json"
