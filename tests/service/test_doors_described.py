"""The description of all doors, their policies, and what Prometheus reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from prometheus_client.parser import text_string_to_metric_families

from service.serving import TOKEN, serving
from triplewire.broker.broker import Broker
from triplewire.config import ServiceSettings
from triplewire.errors import TriplewireError
from triplewire.service.access import OWNER, Policy, allowed, check_policies, doors
from triplewire.service.app import service


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with Broker.open(f"sqlite:///{tmp_path / 'broker.db'}", b"secret") as broker:
        yield service(broker, ServiceSettings(token=TOKEN, wait_seconds=300.0))


def test_each_door_is_described(app: FastAPI) -> None:
    said = app.openapi()
    assert said["openapi"].startswith("3.1")
    described = [door for door in doors(app.routes) if isinstance(door, APIRoute) and door.include_in_schema]
    assert len(described) > 10, "hardly a door was found: this test is blind"
    for door in described:
        policy = door.endpoint.__dict__["policy"]
        for method in door.methods or ():
            operation: dict[str, Any] = said["paths"][door.path_format][method.lower()]
            content = operation["responses"]["default"]["content"]
            assert content["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert ("security" in operation) == (policy not in (Policy.ANYBODY, Policy.KEY))
            assert ({} in operation.get("security", ())) == (policy in (Policy.PUBLISHER, Policy.WATCHER))
            assert operation["description"]
    assert "requestBody" in said["paths"]["/publish"]["post"]
    assert "ValidationError" not in str(said)


def test_a_door_without_a_policy_stops_the_start() -> None:
    inner, outer, app = APIRouter(), APIRouter(), FastAPI(docs_url=None, redoc_url=None)

    @outer.get("/with")
    @allowed(OWNER)
    def with_policy() -> None: ...

    @inner.get("/without")
    def without() -> None: ...

    app.include_router(outer)
    check_policies(app)
    outer.include_router(inner)
    app.include_router(outer)
    with pytest.raises(TriplewireError, match="the door /without has no policy"):
        check_policies(app)


def test_what_prometheus_reads(tmp_path: Path) -> None:
    query = "SELECT ?t { ?i <urn:title> ?t }"
    with serving(tmp_path / "data") as served:
        for id in ("a", "b", "c"):
            assert served.ask("POST", "/subscriptions", {"query": query, "id": id})[0] == 201
        assert served.ask("DELETE", "/subscriptions/c")[0] == 204
        for _ in range(2):
            assert served.ask("POST", "/publish?wait=1", b"<urn:s> <urn:title> 'x' .")[0] == 202
        status, text = served.get("/metrics")
    assert status == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    found = [sample for family in families.values() for sample in family.samples]
    samples = {(sample.name, *sample.labels.values()): sample.value for sample in found}
    wanted = {
        ("triplewire_publications_total", "accepted"): 1,
        ("triplewire_publications_total", "repeated"): 1,
        ("triplewire_publications_total", "matched"): 1,
        ("triplewire_events_total", "matched"): 2,
        ("triplewire_subscriptions", "active"): 2,
        ("triplewire_subscriptions", "ended"): 1,
        ("triplewire_match_duration_seconds_count",): 1,
        ("triplewire_deadletter_depth", "delivery"): 0,
        ("triplewire_deadletter_depth", "publication"): 0,
        ("triplewire_delivery_lag_seconds",): 0,
        ("triplewire_publications_waiting",): 0,
    }
    assert {name: samples.get(name) for name in wanted} == wanted
    assert {f"triplewire_{name}" for name in _METRICS} < set(families)
    labels = {label for sample in found for label in sample.labels}
    assert labels <= {"outcome", "type", "channel", "state", "kind", "le"}


_METRICS = ("publications", "events", "notifications", "documents", "outbox_depth", "match_duration_seconds")
_KINDS = {"integer": int, "string": str, "number": int | float, "boolean": bool, "object": dict, "array": list}


def fits(value: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> bool:
    """Is the value what the schema says? As much of JSON Schema as the description of our answers has."""
    if "$ref" in schema:
        return fits(value, schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return any(fits(value, part, schemas) for part in schema["anyOf"])
    if not isinstance(value, _KINDS[schema["type"]]):
        return False
    if isinstance(value, list):
        return all(fits(item, schema["items"], schemas) for item in value)
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties", {})
    return set(schema.get("required", ())) <= set(value) and all(
        fits(value[name], part, schemas) for name, part in properties.items() if name in value
    )


def test_answers_are_as_described(tmp_path: Path) -> None:
    query, document = {"query": "SELECT ?t { ?i <urn:title> ?t }", "id": "a"}, "<urn:s> <urn:title> 'x' ."
    dry = {"publication": document, "content_type": "text/turtle"}
    with serving(tmp_path / "data") as served:
        said = json.loads(served.get("/openapi.json")[1])
        asked: list[tuple[str, str, Any]] = [
            ("post", "/subscriptions", query),
            ("post", "/subscriptions", [{**query, "id": "b"}, {"query": "SELECT {"}, {**query, "id": "a"}]),
            ("get", "/subscriptions", None),
            ("get", "/subscriptions/{id}", None),
            ("patch", "/subscriptions/{id}", {"title": "T"}),
            ("post", "/subscriptions/{id}/renew", {"seconds": 100}),
            ("post", "/publish", document.encode()),
            ("post", "/publish", b"<urn:g> { <urn:s> <urn:title> 'x' } <urn:h> { <urn:s> <urn:title> 'y' }"),
            ("post", "/match", {"query": query["query"], **dry}),
            ("post", "/explain", {"subscription": "a", **dry}),
        ]
        for method, path, body in asked:
            status, answer = served.ask(method.upper(), path.replace("{id}", "a"), body)
            schema = said["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
            assert fits(json.loads(answer), schema, said["components"]["schemas"]), (path, answer)
            assert not fits([{"id": 1}], schema, said["components"]["schemas"]), "this test is blind"
