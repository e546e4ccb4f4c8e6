"""The nearest query of a miss: the cases in `tests/cases/nearest`, and pairs of real data.

What is told is matched again, and no fewer of the same edits would do.
"""

from __future__ import annotations

import json
import tomllib
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import pytest

import shared_data
from amounts import usually
from engine.samples import EX
from triplewire import Engine, Literal, Taxonomy, read
from triplewire.engine.explain.edits import Edits, edited
from triplewire.errors import TriplewireError
from triplewire.extend import Argument, Parameter, Verdict
from triplewire.languages.context import Context, Written
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.publication import Publication
from triplewire.model.terms import XSD
from triplewire.plugins import find
from triplewire.read import read_document

CASES = tomllib.loads((Path(__file__).parents[2] / "cases" / "nearest" / "nearest.toml").read_text("utf-8"))
PREFIXES = {**PREDECLARED, "": EX}
TURTLE = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())
TAXONOMY = Taxonomy.build([(low.replace(":", EX), up.replace(":", EX)) for low, up in CASES["taxonomy"]])


class More:
    """more(?n): 60."""

    name = "more"
    parameters = (Parameter("number"),)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """One row."""
        return [(Literal("60", XSD + "integer"),)]


def engine_of(query: str, language: str) -> Engine:
    engine = Engine(matcher="reference", taxonomy=TAXONOMY, operators={"more": More()})
    engine.subscribe(query, language, id="query", prefixes={"": EX} if language == "sparql" else None)
    return engine


def is_match(query: str, language: str, publication: Publication) -> bool:
    return bool(list(engine_of(query, language).match([publication])))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES["case"]])
def test_cases(case: dict[str, Any]) -> None:
    language = case.get("language", "sparql")
    (publication,) = read_document((TURTLE + case["publication"]).encode(), "")
    found = engine_of(case["query"], language).explain("query", publication, nearest=True).nearest
    assert found is not None
    assert (found.query, found.changes, list(found.document)) == (case["nearest"], case["changes"], case["document"])
    assert found.language == language
    assert len(found.edits) <= found.changes
    assert not is_match(case["query"], language, publication)
    assert is_match(found.query, language, publication)
    assert no_fewer(case["query"], language, publication, found.changes)


def no_fewer(query: str, language: str, publication: Publication, changes: int) -> bool:
    """Does no set of edits of fewer parts make a query that matches?"""
    written = Written()
    engine = engine_of(query, language)
    operators = {"more": More()}
    find("language", language)(query, Context(prefixes=PREFIXES, operators=operators, written=written))
    edits = Edits(written, engine.subscriptions[0], publication, TAXONOMY).all
    for count in range(1, changes):
        for some in combinations(edits, count):
            apart = not any(one.overlaps(other) for one, other in combinations(some, 2))
            if apart and sum(edit.cost for edit in some) < changes:
                try:
                    if is_match(edited(written, some), language, publication):
                        return False
                except TriplewireError:
                    continue
    return True


def test_a_match_has_none() -> None:
    (publication,) = read_document((TURTLE + ':a rss:title "x" .').encode(), "")
    engine = engine_of("SELECT ?t { ?s rss:title ?t }", "sparql")
    assert engine.explain("query", publication, nearest=True).nearest is None
    assert "nearest" not in engine.explain("query", publication, nearest=True).to_dict()


def test_what_is_told_matches_again_on_real_pairs() -> None:
    """Full-text queries over DBpedia and feeds: each miss has a nearest query, and it matches."""
    rows = (json.loads(line) for line in shared_data.lines("10-workloads/rtf-queries-100k-ft050.jsonl.gz"))
    queries = [sparql(row[2]) for row in islice(rows, 0, 24_000, usually(2_400, 1_200))]
    stream = list(islice(read(str(shared_data.path("10-workloads/mixed-5000.nq.gz"))), 0, 2_000, 200))
    misses = 0
    for query in queries:
        engine = engine_of(query, "sparql")
        for publication in stream:
            explanation = engine.explain("query", publication, nearest=True)
            if not explanation.matched:
                misses += 1
                assert explanation.nearest is not None
                assert is_match(explanation.nearest.query, "sparql", publication)
    assert misses > len(queries) * len(stream) / 2


def sparql(tuples: list[list[Any]]) -> str:
    filters = [
        f"FILTER ftcontains({row[2]}, {' ftAND '.join(json.dumps(w) for w in row[3])})" for row in tuples if row[3:]
    ]
    return "SELECT * WHERE { " + " ".join([" ".join(row[:3]) + " ." for row in tuples] + filters) + " }"
