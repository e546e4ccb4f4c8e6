"""Matchers from outside that decide by themselves, or verify by themselves: they pay for no join network."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triplewire import IRI, Engine, Publication, Triple, plugins
from triplewire.extend import Clauses, Selected, Verified, VerifierInput, View, evaluate
from triplewire.model.match import Match
from triplewire.verify.batch_verifier import BatchVerifier

NODES, EDGES = [IRI(f"urn:n{n}") for n in range(6)], [IRI(f"urn:p{n}") for n in range(3)]


class Joiner:
    """Joins the patterns of each clause by brute force, and accepts what has a solution; a clause with tests, or one of
    several, is left to be checked."""

    order = None
    proves_constants = False

    def __init__(self, clauses: Clauses, accepts: bool) -> None:
        self.clauses = clauses
        self.accepts = accepts

    def prepare(self, view: View) -> None:
        return None

    def arrays(self) -> dict[str, Any]:
        return {}

    def _rows(self, clause: int, known: list[int], edges: list[tuple[int, ...]]) -> int:
        table, rows = self.clauses.table, [dict[int, int]()]
        for pattern in table.pattern[table.pattern_offset[clause] : table.pattern_offset[clause + 1]].tolist():
            joined = []
            for row in rows:
                for edge in edges:
                    new = dict(row)
                    pairs = zip(pattern, edge, strict=True)
                    if all(
                        known[term] == code if code >= 0 else new.setdefault(code, term) == term for code, term in pairs
                    ):
                        joined.append(new)
            rows = joined
        return len(rows)

    def select(self, view: View, prepared: None, most: int, space: Any) -> Selected:
        table, batch, known = self.clauses.table, view.batch, view.features.term.tolist()
        accepted: list[list[int]] = []
        checked: list[list[int]] = []
        for p in range(len(batch)):
            part = slice(batch.offset[p], batch.offset[p + 1])
            columns = (column[part].tolist() for column in (batch.subject, batch.predicate, batch.object))
            edges = list(zip(*columns, strict=True))
            accepted.append([])
            checked.append([])
            for s in range(len(table)):
                clauses = range(table.clause_offset[s], table.clause_offset[s + 1])
                is_plain = len(clauses) == 1 and table.flags[s] & 1 and not np.diff(table.test_offset)[clauses[0]]
                if not is_plain or not self.accepts:
                    checked[-1] += clauses
                elif 0 < (count := self._rows(clauses[0], known, edges)) <= most:
                    accepted[-1].append(s)
                elif count:
                    checked[-1] += clauses
        ends, check_ends = np.cumsum([0, *map(len, accepted)]), np.cumsum([0, *map(len, checked)])
        rows, places = (np.array([*chain.from_iterable(found)], np.int32) for found in (accepted, checked))
        return Selected(ends, rows, check_ends, places)


class Deciding:
    name, version = "deciding", 1

    def build(self, clauses: Clauses) -> Joiner:
        return Joiner(clauses, accepts=True)

    def open(self, clauses: Clauses, arrays: Mapping[str, Any]) -> Joiner:
        return self.build(clauses)


class Asking(BatchVerifier):
    """Evaluates each candidate; bindings are listed by the default."""

    def __init__(self, given: VerifierInput) -> None:
        super().__init__(given)
        self.given = given

    def verify(self, view: View, publication: Any, place: Any, content: Any) -> Verified:
        pairs = sorted(set(zip(publication.tolist(), self.given.clauses.facts.owner[place].tolist(), strict=True)))
        answers = [evaluate(self.given.subscription(s), content.publication(p), self.given.world) for p, s in pairs]
        found = [(*pair, answer.truncated) for pair, answer in zip(pairs, answers, strict=True) if answer.bindings]
        columns = [np.array([row[k] for row in found], kind) for k, kind in enumerate((np.int32, np.int32, np.bool_))]
        return Verified(columns[0], columns[1], columns[2])


class Verifying(Deciding):
    name = "verifying"

    def build(self, clauses: Clauses) -> Joiner:
        return Joiner(clauses, accepts=False)

    def verifier(self, given: VerifierInput) -> Asking:
        return Asking(given)


DECIDING, VERIFYING = Deciding(), Verifying()


@pytest.fixture(autouse=True)
def their_matchers(monkeypatch: pytest.MonkeyPatch) -> None:
    for maker in (DECIDING, VERIFYING):
        monkeypatch.setitem(plugins.BUILT_IN["matcher"], maker.name, f"{__name__}:{maker.name.upper()}")


def _publications() -> list[Publication]:
    chance, edges = random.Random(3), []
    for _ in range(12):
        edges.append({Triple(chance.choice(NODES), chance.choice(EDGES), chance.choice(NODES)) for _ in range(12)})
    return [Publication(f"urn:g{number}", tuple(triples)) for number, triples in enumerate(edges)]


def _engine(matcher: str, *more: str) -> Engine:
    chance, engine = random.Random(5), Engine(matcher=matcher)
    for number in range(12):
        first, second, third = (f"<urn:p{chance.randrange(3)}>" for _ in range(3))
        text = f"SELECT * {{ ?a {first} ?b . ?b {second} ?c . ?c {third} <urn:n{chance.randrange(6)}> }}"
        engine.subscribe(text, id=f"s{number}")
    for text in more:
        engine.subscribe(text, id=text)
    engine.settle()
    return engine


def _same(one: Match, other: Match) -> bool:
    return (one.publication, one.subscription, one.bindings) == (other.publication, other.subscription, other.bindings)


def test_what_decides_by_itself_has_no_network_until_bindings_are_asked_for(tmp_path: Path) -> None:
    publications, engine = _publications(), _engine("deciding")
    expected = list(_engine("reference").match(publications))
    engine.save(tmp_path / "before")
    for one in (engine, Engine.load(tmp_path / "before")):
        result = one.match(publications)
        assert (len(result), result.stats.verified, result.stats.network_rows) == (len(expected), 0, 0)
        assert all(map(_same, result, expected))  # which lists the bindings
        assert one.match(publications).stats.network_rows > 0
    one.save(tmp_path / "after")
    loaded = Engine.load(tmp_path / "after").match(publications)
    assert (loaded.stats.verified, len(loaded)) == (0, len(expected))
    assert loaded.stats.network_rows > 0  # as it was saved
    sizes = [sum(file.stat().st_size for file in (tmp_path / name).iterdir()) for name in ("before", "after")]
    assert sizes[0] < sizes[1]


def test_the_network_is_made_when_something_is_left() -> None:
    publications = _publications()
    text = "SELECT ?a { ?a <urn:p0> ?b FILTER(STRLEN(STR(?b)) > 3) }"
    result = _engine("deciding", text).match(publications)
    assert result.stats.verified > 0
    assert result.stats.network_rows > 0
    expected = list(_engine("reference", text).match(publications))
    assert len(result) == len(expected)
    assert all(map(_same, result, expected))


def test_the_trie_says_how_large_its_network_is() -> None:
    publications, engine = _publications(), _engine("trie")
    rows = engine.match(publications).stats.network_rows
    assert 12 < rows == engine.match(publications[:1]).stats.to_json()["network_rows"]


def test_a_matcher_brings_its_own_verifier() -> None:
    publications, engine = _publications(), _engine("verifying")
    result, expected = engine.match(publications), list(_engine("reference").match(publications))
    assert (len(result), result.stats.network_rows) == (len(expected), 0)
    assert result.stats.verified == 12 * len(publications)
    assert all(map(_same, result, expected))
