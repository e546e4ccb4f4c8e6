"""Hostile requests: what each is answered, and that the service answers others all the same.

A new case needs no Python: `tests/cases/service/hostile_requests.toml`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from triplewire import Engine
from triplewire.broker.broker import Broker
from triplewire.broker.publications import window
from triplewire.broker.publications.kept_contents import read_body
from triplewire.service import opml
from triplewire.service.app import ServiceSettings, service
from triplewire.store.tables import attachments

pytestmark = pytest.mark.xdist_group("hostile")  # one worker makes what all share
FILE = Path(__file__).resolve().parents[1] / "cases" / "service" / "hostile_requests.toml"
CASES = tomllib.loads(FILE.read_text("utf-8"))["case"]
OWNER = {"Authorization": "Bearer the token of the owner"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("hostile")
    with Broker.open(f"sqlite:///{folder / 'broker.db'}", b"s" * 32, engine=Engine(matcher="reference")) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[TestClient]:
    with TestClient(service(broker, ServiceSettings(token="the token of the owner")), headers=OWNER) as made:
        yield made


def body(case: dict[str, Any]) -> bytes:
    each = "".join(case["each"].replace("{}", str(number)) for number in range(case.get("times", 0)))
    return (case.get("begin", "") + each + case.get("end", "")).encode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_hostile_request(case: dict[str, Any], client: TestClient) -> None:
    answer = client.post(case["path"], content=body({"each": "", **case}), headers={"Content-Type": case["type"]})
    assert (answer.status_code, case["says"] in answer.text) == (case["status"], True), answer.text[:1_000]
    assert client.get("/readiness").status_code == 200


def test_attachments_are_kept_once_for_few_publications(client: TestClient, broker: Broker) -> None:
    graphs = "".join(f'<urn:g{number}> <urn:p> "x" <urn:g{number}> .\n' for number in range(1_000))
    attached = "".join(f"--b\r\nContent-ID: a{number}\r\n\r\nx\r\n" for number in range(900))
    whole = f"--b\r\nContent-Type: application/n-quads\r\n\r\n{graphs}\r\n{attached}--b--".encode()
    answer = client.post("/publish", content=whole, headers={"Content-Type": "multipart/related; boundary=b"})
    assert (answer.status_code, "one by one" in answer.json()["remedy"]) == (413, True)
    with broker.database.reading() as connection:
        of_these = sa.select(sa.func.count()).where(attachments.c.name == "a899")
        assert connection.execute(of_these).scalar_one() <= 1


def clock(seconds: int) -> Any:
    """In place of the module `time`: a clock that runs ahead so much each time somebody looks."""
    ahead = iter(range(0, 10**6, seconds))
    return type("Clock", (), {"monotonic": staticmethod(lambda: next(ahead))})


def test_a_query_that_takes_too_long_is_ended(
    client: TestClient, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    quads = "".join(f'<urn:long{number}> <urn:p> "x" <urn:long{number}> .\n' for number in range(200))
    broker.publish(read_body(quads.encode(), "", broker.settings).publications)
    query = "SELECT ?s { ?s ?p ?o }"

    def answers() -> Iterator[httpx2.Response]:
        yield client.get("/feed", params={"q": query})
        yield client.post("/match", json={"query": query, "publication": quads, "content_type": "application/n-quads"})
        yield client.post("/try", json={"query": query})

    monkeypatch.setattr(window, "time", clock(2))
    feed, dry_run, tried = answers()
    assert [feed.status_code, dry_run.status_code, tried.status_code] == [413, 413, 200]
    assert "125 of 20" in feed.text
    assert "125 of 200 publications were asked in 10 s" in dry_run.text
    assert (tried.json()["of"], tried.json()["count"]) == (25, 25)
    monkeypatch.undo()
    assert [answer.status_code for answer in answers()] == [200, 200, 200]


def test_names_of_a_list_are_looked_up_for_so_long_as_a_client_waits(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f'<outline xmlUrl="http://198.41.0.4/{number}"/>' for number in range(30))
    monkeypatch.setattr(opml, "time", clock(2))
    answers = client.post("/opml", content=f'<opml version="2.0"><body>{text}</body></opml>'.encode()).json()
    said = Counter(answer.get("problem", {}).get("title", answer["what"]) for answer in answers)
    assert said == {"source": 10, "no time was left to look its name up": 20}
    monkeypatch.undo()
    answers = client.post("/opml", content=f'<opml version="2.0"><body>{text}</body></opml>'.encode()).json()
    assert Counter(answer["what"] for answer in answers) == {"there already": 10, "source": 20}
