"""The door of XML-RPC, asked by Python's own client, and by hand."""

from __future__ import annotations

import datetime as dt
import random
import tomllib
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_tools import ITEM, QUERY, TOKEN, ask, served

from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker, Wanted
from triplewire.store.tables import events

CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "xml_rpc" / "hostile.toml").read_text("utf-8"))["case"]


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    """A broker."""
    with Broker.open(database_url, b"secret of a test") as broker:
        yield broker


@pytest.fixture
def url(broker: Broker) -> Iterator[str]:
    """Its service."""
    with served(broker, most_body=1 << 22) as url:
        yield url


def client(url: str, token: str = TOKEN) -> xmlrpc.client.ServerProxy:
    """Python's client with a token."""
    headers = [("Authorization", f"Bearer {token}")] if token else []
    return xmlrpc.client.ServerProxy(f"{url}/RPC2", headers=headers, use_builtin_types=True)


def fault(url: str, body: bytes, **headers: str) -> tuple[int, str]:
    """The fault that a body is answered with."""
    said = ask(f"{url}/RPC2", body, Content_Type="text/xml", **headers)
    assert said.status == 200
    with pytest.raises(xmlrpc.client.Fault) as raised:
        xmlrpc.client.loads(said.body)
    return raised.value.faultCode, raised.value.faultString


@pytest.mark.parametrize("prefix", ["", "pubsub."])
def test_a_subscription_from_its_beginning_to_its_end(url: str, prefix: str) -> None:
    server, anybody = client(url), client(url, "")

    def call(on: Any, name: str, **given: Any) -> Any:
        return getattr(on, prefix + name)(given)

    made = call(server, "subscribe", query=QUERY, language="sparql", seconds=3600, title="Games & <b>")
    assert made["feed"].startswith(url)
    assert made["expires"] > dt.datetime.now(dt.UTC).replace(tzinfo=None)
    by = {"subscription": made["id"], "ticket": made["ticket"]}
    for content in (ITEM.format(n=1), ITEM.format(n=2).encode()):
        told = call(server, "publish", content=content, content_type="application/rss+xml")
        assert [one["matched"] for one in told["publications"]] == [1]
    notes = call(anybody, "notifications", **by, after=0)
    assert [(note["sequence"], note["publication"]) for note in notes] == [(1, "urn:item:1"), (2, "urn:item:2")]
    assert notes[0]["bindings"] == [{"title": {"type": "literal", "value": "Olympic games 1"}}]
    assert [note["sequence"] for note in call(anybody, "notifications", **by, after=1)] == [2]
    renewed = call(anybody, "renew", **by, seconds=7200)
    assert renewed["expires"] > made["expires"]
    (listed,) = call(server, "list")
    assert (listed["id"], listed["title"]) == (made["id"], "Games & <b>")
    assert call(anybody, "unsubscribe", **by) is True
    call(server, "publish", content=ITEM.format(n=3), content_type="application/rss+xml")
    assert len(call(anybody, "notifications", **by)) == 2


def test_a_wrong_ticket_is_a_fault_whoever_has_it(url: str, broker: Broker) -> None:
    server, other = client(url), client(url, broker.new_token("bob"))
    made = server.subscribe({"query": QUERY})
    foreign = other.subscribe({"query": QUERY})
    for ticket in ("wrong", foreign["ticket"], made["ticket"][:-1], ""):
        given = {"subscription": made["id"], "ticket": ticket}
        for on in (server, other, client(url, "")):
            for method in (on.renew, on.unsubscribe, on.notifications):
                with pytest.raises(xmlrpc.client.Fault, match="there is no subscription"):
                    method(given)
    with pytest.raises(xmlrpc.client.Fault, match="there is no subscription"):
        other.notifications({"subscription": made["id"]})
    assert server.notifications({"subscription": made["id"]}) == []


@on_sqlite_alone
def test_a_fault_says_where_a_query_is_wrong(url: str) -> None:
    with pytest.raises(xmlrpc.client.Fault, match=r":1:8: .*expected") as raised:
        client(url).subscribe({"query": "SELECT WHERE {"})
    assert raised.value.faultCode == 400
    with pytest.raises(xmlrpc.client.Fault, match="seconds"):
        client(url).subscribe({"query": QUERY, "seconds": 5})
    with pytest.raises(xmlrpc.client.Fault, match="no publication in it"):
        client(url).publish({"content": "<rss><channel/", "content_type": "application/rss+xml"})
    with pytest.raises(xmlrpc.client.Fault, match="9:16: not well-formed XML"):
        client(url).publish({"content": "\x01"})  # which Python's client sends as it is


def test_readers_are_respected(url: str, broker: Broker) -> None:
    made = {name: client(url, broker.new_token(name)) for name in ("ann", "bob")}
    ids = {name: on.subscribe({"query": QUERY})["id"] for name, on in made.items()}
    client(url).publish({"content": ITEM.format(n=1), "readers": ["ann"]})
    seen = {name: len(on.notifications({"subscription": ids[name]})) for name, on in made.items()}
    assert seen == {"ann": 1, "bob": 0}


def test_what_xml_cannot_say_spoils_no_answer(url: str, broker: Broker) -> None:
    made = broker.subscribe(Wanted(QUERY, id="s", title="a\x07\ufffeb"), "owner")
    big = events.insert().values(
        number=2**40,
        subscription=made.number,
        sequence=2**40,
        type="matched",
        at=0.0,
        bindings='[{"\ufffe": "\\u0000"}]',
    )
    broker.database.write(lambda connection: connection.execute(big))
    (listed,) = client(url).list()
    assert listed["title"] == "ab"
    (note,) = client(url).notifications({"subscription": "s"})
    assert (note["sequence"], note["bindings"]) == (float(2**40), [{"": ""}])


@on_sqlite_alone
def test_methods_tell_of_themselves(url: str) -> None:
    system = client(url, "").system
    names = system.listMethods()
    assert "system.multicall" not in names
    assert {"subscribe", "pubsub.renew", "unsubscribe", "publish", "notifications", "list"} < set(names)
    for name in names:
        assert system.methodHelp(name)
        assert all(isinstance(kind, str) for kind in system.methodSignature(name)[0])
    assert system.methodSignature("subscribe") == [["struct", "struct"]]
    with pytest.raises(xmlrpc.client.Fault, match="no method"):
        system.methodHelp("nothing")


@on_sqlite_alone
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_no_call_is_a_fault(url: str, case: dict[str, Any]) -> None:
    code, text = fault(url, case["body"].encode())
    assert code == case["code"]
    assert case["text"] in text


@on_sqlite_alone
def test_limits(url: str) -> None:
    def call(depth: int) -> bytes:
        nested = "<array><data><value>" * depth + "</value></data></array>" * depth
        parameters = f"<params><param><value>{nested}</value></param></params>"
        return f"<methodCall><methodName>list</methodName>{parameters}</methodCall>".encode()

    assert fault(url, call(9))[0] == -32602  # 4 + 3 * 9 elements
    code, text = fault(url, call(10))
    assert (code, "deeper than 32" in text) == (-32700, True)
    assert fault(url, call(20_000))[0] == -32700
    long = b"<methodCall><methodName>list</methodName>" + b" " * ((1 << 20) - 54) + b"</methodCall>"
    assert len(long) == 1 << 20
    assert fault(url, long)[0] == 401
    assert fault(url, long + b" ")[0] == 413
    assert fault(url, call(1), Content_Encoding="gzip")[0] == 415
    digits = call(1).replace(b"<array><data><value></value></data></array>", b"<int>%s</int>" % (b"9" * 5_000))
    assert fault(url, digits)[0] == -32600


@on_sqlite_alone
def test_a_thousand_broken_calls_are_faults(url: str) -> None:
    given = {"query": QUERY, "seconds": 3600, "language": "sparql", "prefixes": {"a": "http://a.example/"}}
    whole, chance = xmlrpc.client.dumps((given,), "subscribe").encode(), random.Random(5)
    for _ in range(1_000):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(body))
            piece = chance.choice([b"", b"<", b"&", b"<int>", bytes([chance.randrange(256)])])
            body[at : at + chance.randint(0, 9)] = piece
        fault(url, bytes(body))  # without a token, so that none can be right
