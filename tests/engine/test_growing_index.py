"""A matcher whose index grows by insertion: what is there is not indexed again, and the answers are the reference's."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triplewire import IRI, Engine, Publication, Triple, plugins
from triplewire.extend import Clauses, Selected, View

NODES, EDGES = ([IRI(f"urn:{kind}{number}") for number in range(6)] for kind in "np")


class Postings:
    """Clauses by the first of their constant predicates; -1: those without one."""

    order = None
    proves_constants = False

    def __init__(self, maker: Maker, clauses: Clauses, postings: Mapping[int, list[int]], first: int) -> None:
        self.maker, self.clauses = maker, clauses
        self.postings: dict[int, list[int]] = defaultdict(list, {key: [*held] for key, held in postings.items()})
        table = clauses.table
        for clause in range(int(table.clause_offset[first]), clauses.count):
            patterns = table.pattern[table.pattern_offset[clause] : table.pattern_offset[clause + 1], 1]
            self.postings[next((int(term) for term in patterns if term >= 0), -1)].append(clause)

    def inserted(self, clauses: Clauses, first: int) -> Postings:
        self.maker.inserted += len(clauses.table) - first
        return Postings(self.maker, clauses, self.postings, first)

    def prepare(self, view: View) -> None:
        return None

    def select(self, view: View, prepared: None, most: int, space: object) -> Selected:
        batch, checks = view.batch, []
        for first, last in zip(batch.offset, batch.offset[1:], strict=False):
            terms = {-1, *view.features.term[batch.predicate[first:last]].tolist()}
            checks.append(sorted(clause for term in terms for clause in self.postings.get(term, ())))
        none = np.zeros(len(batch) + 1, np.int64), np.zeros(0, np.int32)
        return Selected(*none, np.cumsum([0, *map(len, checks)]), np.array([*chain.from_iterable(checks)], np.int32))

    def arrays(self) -> dict[str, Any]:
        return {}


class Maker:
    """Counts the subscriptions of which an index was built, and those that were inserted."""

    name = "postings"
    version = 1
    built = inserted = 0

    def build(self, clauses: Clauses) -> Postings:
        self.built += len(clauses.table)
        return Postings(self, clauses, {}, 0)

    def open(self, clauses: Clauses, arrays: Mapping[str, Any]) -> Postings:
        return self.build(clauses)


MAKER = Maker()


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Maker:
    """The maker that the name "postings" stands for, with nothing counted."""
    monkeypatch.setitem(plugins.BUILT_IN["matcher"], "postings", f"{__name__}:MAKER")
    MAKER.built = MAKER.inserted = 0
    return MAKER


def query(chance: random.Random) -> str:
    """Two patterns, of which some have a test."""
    edge, other, node = chance.choice(EDGES), chance.choice([*EDGES, "?e"]), chance.choice(NODES)
    test = chance.choice(["", f" FILTER(?b != {node})", f" FILTER ftcontains(?c, '{chance.choice('abc')}')"])
    return f"SELECT * {{ ?a {edge} ?b . ?b {other} ?c{test} }}"


def publications(chance: random.Random) -> list[Publication]:
    def triple() -> Triple:
        return Triple(chance.choice(NODES), chance.choice(EDGES), chance.choice(NODES))

    return [Publication(f"urn:g{n}", tuple({triple() for _ in range(6)})) for n in range(8)]


def told(engine: Engine, some: Iterable[Publication]) -> list[tuple[str, str]]:
    return sorted((match.publication, match.subscription) for match in engine.match(some))


def test_what_is_there_is_not_indexed_again(maker: Maker) -> None:
    chance = random.Random(5)
    engine, reference, some = Engine(matcher="postings"), Engine(matcher="reference"), publications(chance)
    assert engine.match(some[0]).stats.candidates == 0
    for number in range(300):
        text = query(chance)
        for each in (engine, reference):
            each.subscribe(text, id=f"s{number}")
        found = told(engine, some[:1])
        if number % 50 == 0:
            assert found == told(reference, some[:1])
    matches = told(engine, some)
    assert matches == told(reference, some)
    assert len(matches) > 100
    assert maker.built <= 3, "the first subscription of each delta"
    assert maker.inserted < 3 * 300, "each twice at most: into the index of a delta, and from there into the segment's"


def test_what_is_removed_is_left_behind(maker: Maker, tmp_path: Path) -> None:
    chance = random.Random(6)
    engine, reference, some = Engine(matcher="postings"), Engine(matcher="reference"), publications(chance)
    for number in range(600):
        text, gone = query(chance), f"s{chance.randrange(600)}"
        for each in (engine, reference):
            each.subscribe(text, id=f"s{number}")
            if number % 3 == 0:
                each.unsubscribe(gone)
        if number % 20 == 0:
            assert told(engine, some[:2]) == told(reference, some[:2])
    engine.settle()
    assert told(engine, some) == told(reference, some)
    engine.save(tmp_path)
    assert told(Engine.load(tmp_path), some) == told(reference, some)
