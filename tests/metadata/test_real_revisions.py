"""Rules over the documents of Nomisma and all their revisions: the resources that were computed by brute force."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

import pytest

import shared_data
from amounts import IN_FULL
from databases import ON_SPARK
from triplewire.metadata.messages import Change, Put, RuleText, Withdraw
from triplewire.metadata.registry import Registry

BASE = "http://nomisma.org/"
PREFIXES = {
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "nmo": "http://nomisma.org/ontology#",
    "org": "http://www.w3.org/ns/org#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
STEP = 1 if IN_FULL else 100  # of 40,000 rules


def _rules(step: int) -> list[list[object]]:
    """Id, type, text, then number and hash of resources before all revisions, and after them; of some rules."""
    return [json.loads(line) for line in shared_data.lines("10-workloads/mdv-rules-40k.jsonl.gz")][::step]


def _documents() -> list[Change]:
    return [
        Put(BASE + name.removeprefix("./").removeprefix("revisions-base/"), content)
        for name, content in shared_data.members("02-nomisma/revisions-base.tar.gz")
    ]


def _revisions() -> Iterator[Change]:
    for line in shared_data.lines("02-nomisma/revisions.jsonl.gz"):
        event = json.loads(line)
        name = BASE + event["path"]
        yield Withdraw(name) if event["op"] == "delete" else Put(name, event["content"].encode())


def _applied(registry: Registry, changes: list[Change], batch: int) -> int:
    refused = 0
    for start in range(0, len(changes), batch):
        refused += len(registry.apply(changes[start : start + batch]).refused)
    return refused


def _compared(registry: Registry, rules: list[list[object]], first: int) -> None:
    expected = {str(rule[0]): (rule[first], rule[first + 1]) for rule in rules}
    found = {
        name: (len(resources), hashlib.sha256("\n".join(resources).encode()).hexdigest()[:16])
        for _, name, resources in registry.results()
    }
    assert found == expected


@pytest.mark.slow
def test_rules_hold_what_brute_force_found(new_database: Callable[[], str]) -> None:
    """Before the revisions, and, in the full tests, after them; 5 documents cannot be read at first."""
    _held(_rules(STEP), new_database, 100, in_full=IN_FULL)


@pytest.mark.slow
@pytest.mark.skipif(not IN_FULL, reason="half an hour: `make full`")
@pytest.mark.parametrize("new_database", [ON_SPARK], indirect=True)
def test_rules_hold_the_same_on_spark(new_database: Callable[[], str]) -> None:
    _held(_rules(20), new_database, 2_000, in_full=True)


def _held(rules: list[list[object]], new_database: Callable[[], str], batch: int, *, in_full: bool) -> None:
    texts = [RuleText(str(rule[0]), str(rule[2]), PREFIXES) for rule in rules]
    with Registry.open(new_database()) as registry:
        assert len(registry.subscribe("coins", texts[: len(texts) // 2]).ids) == len(texts) // 2
        assert _applied(registry, _documents(), batch) == 5
        registry.subscribe("coins", texts[len(texts) // 2 :])
        _compared(registry, rules, 3)
        if in_full:
            _applied(registry, list(_revisions()), batch)
            _compared(registry, rules, 5)
