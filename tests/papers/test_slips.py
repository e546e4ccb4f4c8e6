"""Slips in the papers' algorithms that a faithful implementation must not copy. Each test names the place."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from triplewire.engine import Engine
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term, Triple

BASE = "http://slips.example/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def _term(text: str) -> Term:
    return Literal(text, INTEGER) if text.isdecimal() else IRI(BASE + text)


def _publication(name: str, *edges: str) -> Publication:
    triples = []
    for edge in edges:
        subject, predicate, object_ = edge.split()
        triples.append(Triple(IRI(BASE + subject), IRI(BASE + predicate), _term(object_)))
    return Publication(BASE + name, tuple(triples))


def _answers(queries: Mapping[str, str], *publications: Publication) -> set[tuple[str, str]]:
    """(publication, subscription) for all matches, in one engine that sees the publications one after the other."""
    engine = Engine()
    for name, query in queries.items():
        engine.subscribe(query, "gql", id=name, base=BASE, prefixes={"": BASE})
    return {
        (match.publication.removeprefix(BASE), match.subscription)
        for publication in publications
        for match in engine.match(publication)
    }


def test_a_self_loop_matches() -> None:
    """G-ToPSS, `match`: the completed graph has no edge from a node to itself, so (?x, p, ?x) would be lost."""
    queries = {"loop": "SELECT * WHERE (?x, p, ?x)"}
    assert _answers(queries, _publication("P", "a p a"), _publication("Q", "a p b")) == {("P", "loop")}


def test_as_many_edges_as_asked_for_are_enough() -> None:
    """G-ToPSS, `match`: edgeCount > |edges| would ask for one more."""
    queries = {"two": "SELECT * WHERE (?x, p, ?y), (?y, q, ?z)"}
    assert _answers(queries, _publication("P", "a p b", "b q c")) == {("P", "two")}


def test_rows_of_one_edge_do_not_stand_for_another_edge() -> None:
    """G-ToPSS, `match`: the count is of rows, so three rows of p would hide that q is missing."""
    queries = {"two": "SELECT * WHERE (?x, p, ?y), (?y, q, ?z)"}
    assert _answers(queries, _publication("P", "a p b", "b p c", "c p d")) == set()


def test_publications_do_not_add_up() -> None:
    """G-ToPSS, `match`: binding tables and counters are not cleared, so A's edges would help B to match."""
    queries = {"two": "SELECT * WHERE (?x, p, ?y), (?y, q, ?z)"}
    first, second = _publication("A", "a p b"), _publication("B", "b q c")
    assert _answers(queries, first, second) == _answers(queries, second) == set()


def test_a_match_leaves_nothing_behind() -> None:
    """G-ToPSS, `match`: after a match of A, B alone decides about B."""
    queries = {"two": "SELECT * WHERE (?x, p, ?y), (?y, q, ?z)"}
    full, half = _publication("A", "a p b", "b q c"), _publication("B", "b q c")
    assert _answers(queries, full, half, full, half) == {("A", "two")}


def test_a_row_that_one_subscription_admits_is_not_joined_by_another() -> None:
    """Cluster filter, `match`: a row put into a shared table because of one subscription's constraint."""
    queries = {
        "low": "SELECT * WHERE ((a, p, ?x) SUCHTHAT (?x < 10)), (a, q, c)",
        "high": "SELECT * WHERE ((a, p, ?x) SUCHTHAT (?x > 10)), (a, q, c)",
        "free": "SELECT * WHERE (a, p, ?x), (a, q, c)",
    }
    assert _answers(queries, _publication("P", "a p 5", "a q c")) == {("P", "low"), ("P", "free")}


def test_constraints_on_both_ends_must_both_hold() -> None:
    """Cluster filter, `match`: what two constrained ends admit is united where it should be intersected."""
    query = "SELECT * WHERE (?x, p, ?y), (?x, size, ?n), (?y, size, ?m) SUCHTHAT (?n > 5 AND ?m > 5)"
    both = _publication("both", "a p b", "a size 6", "b size 7")
    left = _publication("left", "a p b", "a size 6", "b size 5")
    right = _publication("right", "a p b", "a size 5", "b size 6")
    assert _answers({"s": query}, both, left, right) == {("both", "s")}


def test_a_root_with_contained_subscriptions_is_told_too() -> None:
    """Cluster filter, `filtering`: the else branch drops a subscription that matches and contains others."""
    queries = {"outer": "SELECT * WHERE (?x, p, ?y)", "inner": "SELECT * WHERE (a, p, ?y)"}
    assert _answers(queries, _publication("P", "a p b")) == {("P", "outer"), ("P", "inner")}


@pytest.mark.parametrize("order", [("first", "second", "third"), ("third", "first", "second")])
def test_the_order_of_registration_decides_nothing(order: tuple[str, ...]) -> None:
    """RTF, section 3: another order makes another trie, and the same answers."""
    queries = {
        "first": "SELECT * WHERE (?x, p, ?y)",
        "second": "SELECT * WHERE (?x, p, b), (?x, q, ?z)",
        "third": "SELECT * WHERE (?x, p, ?y), (?y, q, ?z)",
    }
    found = _answers({name: queries[name] for name in order}, _publication("P", "a p b", "b q c"))
    assert found == {("P", "first"), ("P", "third")}


def test_two_variables_may_take_one_value() -> None:
    """G-ToPSS and the cluster filter say "isomorphic"; what they define and join is homomorphism."""
    queries = {"s": "SELECT * WHERE (?x, p, ?y), (?z, p, ?y)"}
    assert _answers(queries, _publication("P", "a p b")) == {("P", "s")}
