"""How many requests accounts and networks may make, and what who makes more is told.

Cases of who is counted with whom need no Python: `tests/cases/service/rates.toml`.
"""

from __future__ import annotations

import tomllib
import xmlrpc.client
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.bodies import body
from service.serving import serving
from triplewire import Engine
from triplewire.broker.broker import Broker
from triplewire.service import rates
from triplewire.service.app import ServiceSettings, service
from triplewire.service.rates import Rates, network_of

pytestmark = pytest.mark.xdist_group("rates")  # one worker makes what all share
FILE = Path(__file__).resolve().parents[1] / "cases" / "service" / "rates.toml"
CASES = tomllib.loads(FILE.read_text("utf-8"))["case"]
TOKEN, MOST = "the token of the owner", 3
TURTLE = "<urn:a> <urn:b> <urn:c> ."
QUERY = "SELECT ?s { ?s ?p ?o }"
CALL = xmlrpc.client.dumps(({"query": QUERY, "language": "sparql"},), "try").encode()

DRY_RUNS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/match", {"json": {"query": QUERY, "publication": TURTLE}}),
    ("POST", "/explain", {"json": {"subscription": "one", "publication": TURTLE}}),
    ("POST", "/try", {"json": {"query": QUERY}}),
    ("GET", "/feed", {"params": {"q": QUERY}}),
    ("GET", "/sparql", {"params": {"query": QUERY}}),
    ("POST", "/sparql", {"content": QUERY, "headers": {"Content-Type": "application/sparql-query"}}),
    ("QUERY", "/sparql", {"content": QUERY, "headers": {"Content-Type": "application/sparql-query"}}),
    ("POST", "/RPC2", {"content": CALL, "headers": {"Content-Type": "text/xml"}}),
]
OF_THE_PAGE = ["/page/new", "/page/subscriptions/1/edit", "/page/subscriptions/1/why/1"]


@dataclass
class Asking:
    """A service whose clock stands still, and the headers of who asks it."""

    app: FastAPI
    heads: Mapping[str, Mapping[str, str]]
    at: list[float] = field(default_factory=lambda: [1_000.0])

    def limit(self, requests: float = MOST, dry_runs: float = 1_000.0) -> None:
        """Begin anew with these limits."""
        new = ServiceSettings(requests_per_minute=requests, dry_runs_per_minute=dry_runs)
        self.app.state.rates = Rates(new, lambda: self.at[0])

    def ask(self, method: str, path: str, come_from: str = "198.51.100.7", who: str = "", **sent: Any) -> Any:
        """The answer to a request."""
        head = {**self.heads.get(who, {}), **sent.pop("headers", {})}
        client = TestClient(self.app, client=(come_from, 5_000), follow_redirects=False, raise_server_exceptions=False)
        return client.request(method, path, headers=head, **sent)

    def is_refused(self, answer: Any) -> bool:
        """Is a request one too many?"""
        is_fault = "<int>429</int>" in answer.text
        assert (answer.status_code == 429 or is_fault) == ("retry-after" in answer.headers), answer.text
        return answer.status_code == 429 or is_fault


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    folder = tmp_path_factory.mktemp("rates")
    with Broker.open(f"sqlite:///{folder / 'broker.db'}", b"s" * 32, engine=Engine(matcher="reference")) as broker:
        app = service(broker, ServiceSettings(token=TOKEN, wait_seconds=300.0))
        tokens = {name: broker.new_token(name) for name in ("ann", "bob", "eve", "owner")}
        tokens |= {"owner's other": tokens.pop("owner"), "owner": TOKEN, "nobody": "tw_api_nobody"}
        tokens["ann's other"] = broker.new_token("ann")
        heads = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
        for name, whose in (("page", "ann"), ("owner's page", "owner")):
            page = TestClient(app, follow_redirects=False).post("/sign-in", data={"token": tokens[whose]})
            heads[name] = {"Cookie": page.headers["set-cookie"].partition(";")[0]}
        made = Asking(app, heads)
        made.limit(1_000)
        new = {"query": QUERY, "id": "one"}
        assert made.ask("POST", "/subscriptions", who="ann", json=new).status_code == 201
        sent = {"content": TURTLE, "headers": {"Content-Type": "text/turtle"}}
        assert made.ask("POST", "/publish?wait=1", who="ann", **sent).json()["matched"] == 1
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_who_is_counted_with_whom(case: dict[str, Any], asking: Asking) -> None:
    asking.limit()
    answered = [
        sum(not asking.is_refused(asking.ask("GET", "/subscriptions", come_from, who)) for _ in range(times))
        for come_from, who, times, _ in case["asked"]
    ]
    assert answered == [wanted for *_, wanted in case["asked"]]


def test_who_waits_as_long_as_it_says_goes_on(asking: Asking) -> None:
    asking.limit(2)
    for _ in range(2):
        assert asking.ask("GET", "/sparql").status_code == 401
    refused = asking.ask("GET", "/sparql")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    asking.at[0] += 29
    assert asking.ask("GET", "/sparql").headers["retry-after"] == "1"
    asking.at[0] += 1
    assert [asking.ask("GET", "/sparql").status_code for _ in range(2)] == [401, 429]
    asking.at[0] += 10_000  # no more than the requests of a minute are saved up
    assert [asking.ask("GET", "/sparql").status_code for _ in range(3)] == [401, 401, 429]


def test_each_door_refuses_in_its_own_words_and_others_are_answered(asking: Asking) -> None:
    schema = asking.app.openapi()
    doors = [(method.upper(), path) for path, operations in schema["paths"].items() for method in operations]
    assert len(doors) > 40
    for method, path in [
        *doors,
        ("GET", "/"),
        ("POST", "/page/new"),
        ("GET", "/no/such/door"),
        ("GET", "/static/page.css"),
    ]:
        asking.limit(1)
        assert not asking.is_refused(asking.ask("GET", "/openapi.json"))
        content = schema["paths"].get(path, {}).get(method.lower(), {}).get("requestBody", {}).get("content", {})
        wanted = content.get("application/json")
        answer = asking.ask(method, path, json=body(wanted["schema"], schema, "one") if wanted else None)
        kind, text = answer.headers["content-type"], answer.text
        assert asking.is_refused(answer) == (path not in ("/liveness", "/readiness")), (method, path)
        if path == "/RPC2":
            with pytest.raises(xmlrpc.client.Fault, match=r"more than 1 requests .*; wait 60 s") as fault:
                xmlrpc.client.loads(answer.content)
            assert (answer.status_code, fault.value.faultCode, kind) == (200, 429, "text/xml; charset=utf-8")
        elif path == "/hub":
            assert (kind, text.count("\n")) == ("text/plain; charset=utf-8", 1)
        elif asking.is_refused(answer):
            assert (kind, answer.json()["status"]) == ("application/problem+json", 429)
            assert answer.json()["title"] == "more than 1 requests in a minute come from this network"
            assert "TRIPLEWIRE_REQUESTS_PER_MINUTE" in answer.json()["remedy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert asking.ask("GET", "/subscriptions", "198.51.100.99", "ann").status_code == 200


@pytest.mark.parametrize("case", DRY_RUNS, ids=lambda case: f"{case[0]} {case[1]}")
def test_dry_runs_are_counted_by_themselves(case: tuple[str, str, dict[str, Any]], asking: Asking) -> None:
    method, path, sent = case
    asking.limit(1_000, 2)
    for _ in range(2):
        answer = asking.ask(method, path, who="ann", **sent)
        assert (answer.status_code, "fault" in answer.text) == (200, False), answer.text
    refused = asking.ask(method, path, who="ann", **sent)
    assert asking.is_refused(refused) or "<int>429</int>" in refused.text
    assert "more than 2 dry runs in a minute" in refused.text
    for other_method, other, others in DRY_RUNS:  # one limit for all of them
        assert "more than 2 dry runs" in asking.ask(other_method, other, "198.51.100.8", "ann", **others).text
        assert "dry runs" not in asking.ask(other_method, other, "198.51.100.9", "owner", **others).text
    assert asking.ask("GET", "/subscriptions", who="ann").status_code == 200


@pytest.mark.parametrize("path", OF_THE_PAGE)
def test_dry_runs_of_the_page(path: str, asking: Asking) -> None:
    asking.limit(1_000, 1)
    first, second = (asking.ask("GET", path, who="page") for _ in range(2))
    assert (first.status_code, second.status_code, second.headers["retry-after"]) == (200, 429, "60")
    assert second.headers["content-type"].startswith("text/html")
    assert asking.ask("GET", "/", who="page").status_code == 200


def test_what_is_remembered_is_bounded(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MOST", 50)
    asking.limit(1)
    for number in range(60):
        assert not asking.is_refused(asking.ask("GET", "/openapi.json", f"2001:db8:{number:x}::1"))
    assert len(asking.app.state.rates) == 50
    assert asking.is_refused(asking.ask("GET", "/openapi.json", "2001:db8:3b::1")), "those of late are remembered"
    assert network_of("2001:db8:3b::1") == "2001:db8:3b::/64"


def test_a_database_that_does_not_answer_is_told_by_the_door(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(token: str) -> str:
        raise rates.TriplewireError("it does not answer")

    asking.limit()
    monkeypatch.setattr(asking.app.state, "owner_of", fail)
    statuses = [asking.ask("GET", "/subscriptions", who="ann").status_code for _ in range(MOST + 1)]
    assert statuses == [*[400] * MOST, 429]


def test_a_service_that_runs_counts_who_is_behind_a_proxy(tmp_path: Path) -> None:
    """What is too much is refused without a look at its body, which is longer than what lies between the two."""
    with serving(tmp_path / "data", "--requests-per-minute", "3", "--most-body", "20000000") as served:
        behind = {"X-Forwarded-For": "2001:db8::7"}
        document = b"<urn:a> <urn:b> <urn:c> ." + b" " * 16_000_000
        statuses = [served.ask("POST", "/publish", document, token="nobody", headers=behind)[0] for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        assert [served.ask("GET", "/subscriptions", token="nobody")[0] for _ in range(6)] == [401] * 6
        assert [served.ask("GET", "/subscriptions", headers=behind)[0] for _ in range(6)] == [200] * 6
