"""The status of public SPARQL endpoints, hour by hour for three years.

Services come, change, go, now and then all of them vanish and return. What is registered, and what a cache has, is what
each whole snapshot of the source says.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator

import pytest

import shared_data
from amounts import IN_FULL
from metadata.naive import Cache
from triplewire.metadata.messages import Change, Put, RuleText, Told, Withdraw
from triplewire.metadata.provider import Provider
from triplewire.read import read_document

SD, SCHEMA = "http://www.w3.org/ns/sparql-service-description#", "https://schema.org/"
BATCH = 200
WHERE = {
    "all": "",
    "online": "where s.schema:serverStatus = schema:Online",
    "acm": "where s.sd:endpoint = <http://acm.rkbexplorer.com/sparql/>",
    "down since": "where s.schema:dateModified < '2020-07-01' and s.schema:serverStatus != schema:Online",
    "later": "where s.schema:dateModified >= '2020-07-01T00:00:00Z'",
}
RULES = [
    RuleText(name, f"search sd:Service s register s {where}", {"sd": SD, "schema": SCHEMA})
    for name, where in WHERE.items()
]
Statements = set[tuple[str, str]]


def _snapshots() -> Iterator[tuple[int, dict[str, Statements]]]:
    """Number of the commit, and what the source says then: the statements of each service."""
    for name, content in shared_data.members("08-streams/sparql-endpoint-status-snapshots.tar.gz"):
        (publication,) = read_document(content, "http://snapshot.example/", split="document")
        services: dict[str, Statements] = {}
        for s, p, o in publication.triples:
            services.setdefault(s.value, set()).add((p.value, str(o)))
        yield int(name.removeprefix("./").split("_")[0]), services


def _changes() -> Iterator[tuple[int, Change]]:
    """Number of the commit and the change of a document, one for each service."""
    for line in shared_data.lines("08-streams/sparql-endpoint-status-events.jsonl.gz"):
        event = json.loads(line)
        document = event["s"].removesuffix("#this")
        if event["op"] == "delete":
            yield event["n"], Withdraw(document)
            continue
        text = f"""@prefix schema: <{SCHEMA}> . @prefix sd: <{SD}> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        <{event["s"]}> a sd:Service ; sd:endpoint <{event["endpoint"]}> ; schema:serverStatus {event["status"]} ;
            schema:dateModified "{event["modified"]}"^^xsd:dateTime ."""
        yield event["n"], Put(document, text.encode())


def _held(services: dict[str, Statements]) -> dict[str, list[str]]:
    """What each rule holds, by its words."""

    def of(statements: Statements, name: str) -> str:
        return next(value for property_, value in statements if property_ == name)

    online = {name for name, says in services.items() if of(says, f"{SCHEMA}serverStatus") == f"<{SCHEMA}Online>"}
    later = {name for name, says in services.items() if of(says, f"{SCHEMA}dateModified")[1:11] >= "2020-07-01"}
    acm = {
        name for name, says in services.items() if of(says, f"{SD}endpoint") == "<http://acm.rkbexplorer.com/sparql/>"
    }
    held = {"all": set(services), "online": online, "acm": acm, "down since": set(services) - online - later}
    return {rule: sorted(names) for rule, names in (held | {"later": later}).items()}


def _told(provider: Provider) -> dict[str, set[str]]:
    """What a new cache would have: statements by resources."""
    return {told.resource: set(told.statements) for told in provider.snapshot("north").items if isinstance(told, Told)}


@pytest.mark.slow
def test_the_state_is_that_of_each_snapshot(new_database: Callable[[], str]) -> None:
    """Of the first snapshots; in the full tests, of all, and in the end all events have come."""
    changes, cache, place, compared = list(_changes()), Cache(), 0, 0
    with Provider.open(new_database()) as provider:
        registry = provider.registry

        def apply(last: int) -> int:
            """Apply what comes up to a commit."""
            until = bisect_right(changes, last, key=lambda change: change[0])
            for start in range(place, until, BATCH):
                applied = registry.apply([change for _, change in changes[start : min(start + BATCH, until)]])
                assert not [refusal for refusal in applied.refused if not refusal.is_warning]
                cache.follow(applied.notices.get("north", ()))
            return until

        cache.follow(registry.subscribe("north", RULES).notices.get("north", ()))
        for number, services in _snapshots():
            place = apply(number)
            now = _told(provider)
            assert now == services, number
            assert {name: set(says) for name, says in cache.content().items()} == now
            expected = _held(services)
            assert {name: held for _, name, held in registry.results()} == expected
            assert cache.results() == {name: held for name, held in expected.items() if held}
            compared += 1
            if not IN_FULL and compared == 3:
                break
        if IN_FULL:
            assert apply(changes[-1][0]) == 51_368
            assert {name: set(says) for name, says in cache.content().items()} == _told(provider)
    assert compared == (10 if IN_FULL else 3)
