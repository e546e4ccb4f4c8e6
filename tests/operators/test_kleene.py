"""Failed calls in Kleene's logic, by cases (`tests/cases/operators/kleene.toml`): both matchers, and the reference."""

from __future__ import annotations

import tomllib
from typing import Any

import pyoxigraph
import pytest

from operators.scenes import Counting, E, engine, usual
from shared_data import ROOT
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, Term, Triple, parse_term

FILE = tomllib.loads((ROOT / "tests/cases/operators/kleene.toml").read_text(encoding="utf-8"))
DATA = ":a :p 1 ; :q 2 ."


def given(turtle: str) -> Publication:
    text = f"@prefix : <{E}> . {turtle}"
    quads = pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.TURTLE)
    return Publication("urn:p", tuple(Triple(*map(term, map(str, quad.triple))) for quad in quads))  # type: ignore[arg-type]


def term(text: str) -> Term:
    if text.startswith(":"):
        return IRI(E + text[1:])
    return Literal(text, XSD + "integer") if text.isdecimal() else parse_term(text)


def outcome(answer: Answer) -> str:
    return "undecided" if answer.undecided else "match" if answer.bindings else "none"


def evaluated(query: str, language: str, turtle: str, counting: Counting) -> Answer:
    world = World(operators=counting.operators)
    text = f"PREFIX : <{E}> {query}" if language == "sparql" else query
    return evaluate(parse(text, language, operators=world.operators), given(turtle), world)


@pytest.mark.parametrize(("condition", "wanted"), FILE["tables"].items())
def test_conditions(condition: str, wanted: str) -> None:
    answer = evaluated(f"SELECT ?s {{ ?s :p ?x FILTER({condition}) }}", "sparql", DATA, usual())
    assert outcome(answer) == wanted
    assert bool(answer.failures) == (wanted == "undecided")
    assert not answer.truncated


@pytest.mark.parametrize("case", FILE["case"], ids=lambda case: case["name"])
def test_groups(case: dict[str, Any]) -> None:
    counting = usual()
    answer = evaluated(case["query"], case.get("language", "sparql"), case.get("data", DATA), counting)
    assert outcome(answer) == case["outcome"]
    wanted = [{name: term(text) for name, text in row.items()} for row in case.get("bindings", [])]
    assert sorted(map(repr, answer.bindings)) == sorted(map(repr, wanted))
    assert answer.truncated == case.get("more", False)
    assert bool(answer.failures) == (case["outcome"] == "undecided" or answer.truncated)
    assert set(counting.asked.values()) <= {1}
    if "calls" in case:
        assert len(counting.asked) == case["calls"]


@pytest.mark.parametrize("matcher", ["reference", "trie"])
def test_all_in_one_engine(matcher: str) -> None:
    """All cases and tables beside each other: the matches, and refusals for the undecided pairs only."""
    counting = usual()
    one = engine(matcher, counting)
    publications, wanted = {}, {}
    for number, (condition, expected) in enumerate(FILE["tables"].items()):
        one.subscribe(f"SELECT ?s {{ ?s :p ?x FILTER({condition}) }}", id=f"t{number}", prefixes={"": E})
        wanted[f"t{number}"] = DATA, expected
    for number, case in enumerate(FILE["case"]):
        prefixes = {"": E} if "language" not in case else {}
        one.subscribe(case["query"], case.get("language", "sparql"), id=f"c{number}", prefixes=prefixes)
        wanted[f"c{number}"] = case.get("data", DATA), case["outcome"]
    for number, data in enumerate(dict.fromkeys(data for data, _ in wanted.values())):
        publications[data] = given(data)
        object.__setattr__(publications[data], "id", f"urn:p{number}")
    result = one.match(publications.values())
    assert set(counting.asked.values()) == {1}
    matched = {(match.publication, match.subscription) for match in result}
    refused = {tuple(refusal.subject.split()) for refusal in result.refusals}
    for id_, (data, expected) in wanted.items():
        pair = publications[data].id, id_
        assert ("match" if pair in matched else "undecided" if pair in refused else "none") == expected, pair
    assert not matched & refused
    assert all("failed: RuntimeError: no answer" in refusal.reason for refusal in result.refusals)
