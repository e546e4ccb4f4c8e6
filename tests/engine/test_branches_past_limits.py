"""A branch of a union that holds decides a pair, whatever limit another branch passes: `cases/evaluate/branches.toml`.
A pair is told once, as a match or as a refusal. What passes a limit while it is interpreted is asked again compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from amounts import IN_FULL
from operators.scenes import usual
from triplewire import Engine, Publication, Settings
from triplewire.model.terms import IRI, Literal, Triple

E = "http://e/"
CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "evaluate" / "branches.toml").read_text())["case"]
EDGES = [(f"a{i}", f"b{j}") for i in range(20) for j in range(20)]
STATED = [("x", "q", "1"), ("x", "r", "2"), *(("x", f"q{number}", str(number)) for number in range(30))]


def publication() -> Publication:
    """Two sets of nodes, each linked to all of the other one."""
    edges = [
        Triple(IRI(E + s), IRI(E + "k"), IRI(E + o)) for one, other in EDGES for s, o in ((one, other), (other, one))
    ]
    return Publication("urn:p", (*(Triple(IRI(E + s), IRI(E + p), Literal(o)) for s, p, o in STATED), *edges))


@pytest.mark.parametrize("matcher", ["trie", "everything", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_branch_that_holds_decides(case: dict[str, Any], matcher: str) -> None:
    if matcher not in case.get("matchers", [matcher]):
        return
    settings, operators = Settings(max_steps=case.get("max_steps", 3_000)), usual().operators
    engine = Engine(matcher=matcher, settings=settings, operators=operators)
    engine.subscribe(case["query"], id="s", prefixes={"": E})
    result = engine.match(publication())
    matches, refusals = list(result), list(result.refusals)
    if "bindings" not in case:
        assert not matches
        assert [refusal.subject for refusal in refusals] == ["urn:p s"]
        return
    (match,) = matches
    assert not refusals
    values = [binding["y"] for binding in match.bindings if "y" in binding]
    assert [value.lexical for value in values if isinstance(value, Literal)] == [
        text for text in case["bindings"] if text
    ]
    assert len(match.bindings) == len(case["bindings"])
    assert match.truncated == case.get("truncated", True)


# cliques in a graph of so many nodes that are all linked: nodes of the graph, of the clique, and `max_steps`
CLIQUES = {"six of 12": (12, 6, 20_000), "eight of 40": (40, 8, Settings().max_steps)}
CLIQUE = """
import json, sys
from triplewire import Engine, Publication, Settings
from triplewire.model.terms import IRI, Triple
node_count, clique, most = map(int, sys.argv[1:])
nodes = [IRI(f"urn:{n}") for n in range(node_count)]
triples = tuple(Triple(a, IRI("urn:k"), b) for a in nodes for b in nodes if a != b)
engine = Engine(settings=Settings(max_steps=most, max_bindings=100))
edges = " . ".join(f"?v{i} <urn:k> ?v{j}" for i in range(clique) for j in range(i + 1, clique))
engine.subscribe("SELECT * { %s }" % edges, id="clique")
engine.subscribe("CONSTRUCT { ?v0 <urn:in> ?v1 } WHERE { %s }" % edges, id="graph")
engine.subscribe("SELECT * { ?x <urn:k> <urn:1> }", id="edge")
result = engine.match([Publication("urn:p", triples), Publication("urn:q", triples[:1])])
matches = [(m.publication, m.subscription, m.truncated, len(m.bindings), m.construct is not None and len(m.construct))
           for m in result]
print(json.dumps([matches, [refusal.subject for refusal in result.refusals]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["six of 12", pytest.param("eight of 40", marks=pytest.mark.skipif(not IN_FULL, reason="minutes: make full"))],
)
def test_the_tiers_agree_where_work_runs_out(name: str) -> None:
    """What passes a limit is told once, as a match that is truncated or as a refusal; the rest is answered."""
    told = {}
    for tier in ("auto", "compiled", "interpreted"):
        environment = {**os.environ, "TRIPLEWIRE_TIER": tier}
        command = [sys.executable, "-c", CLIQUE, *map(str, CLIQUES[name])]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        matches, refused = told[tier] = json.loads(done.stdout)
        cut = [subscription for _, subscription, truncated, *_ in matches if truncated]
        assert sorted([*cut, *(pair.partition(" ")[2] for pair in refused)]) == ["clique", "graph"]
        assert [row for row in matches if row[1] == "edge"] == [
            ["urn:p", "edge", False, CLIQUES[name][0] - 1, False],
            ["urn:q", "edge", False, 1, False],
        ]
    assert told["auto"] == told["compiled"]
