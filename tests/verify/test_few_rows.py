"""The bindings of few pairs, listed without NumPy, are those of many."""

from __future__ import annotations

import random

import numpy as np
import pytest

from triplewire.config import Settings
from triplewire.encode.decode import Decoder
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.verify.bindings import of_few
from verify.columns import Columns, Row
from verify.patterns import TERMS, connected, query_of

IN_SEVERAL_PARTS = [
    "SELECT * { ?a <urn:p> ?b . ?c <urn:q> ?d }",
    "SELECT * { { ?a <urn:p> ?b } UNION { ?a <urn:q> ?b } }",
    "SELECT * { ?a <urn:p> ?b OPTIONAL { ?a <urn:q> ?c } }",
    "SELECT * { ?a <urn:p> ?b FILTER(STRLEN(STR(?b)) > 1) }",
]


def _publications(rng: random.Random) -> list[Publication]:
    nodes = [IRI(text[1:-1]) for text in TERMS]
    return [
        Publication(
            f"p{number}",
            tuple(
                Triple(rng.choice(nodes), IRI(f"urn:{rng.choice('pqr')}"), rng.choice([*nodes, Literal("x")]))
                for _ in range(14)
            ),
        )
        for number in range(3)
    ]


def _listed(columns: Columns) -> list[list[Row]] | None:
    """The bindings of all matches by the way of few; None where it is not theirs."""
    verdict = columns.verdict()
    order = np.argsort(verdict.publication, kind="stable")
    publication, subscription = verdict.publication[order], verdict.subscription[order]
    rows = columns.columnar.few_rows(columns.view, publication, subscription)
    if rows is None:
        return None
    some = [columns.subscriptions[number] for number in subscription.tolist()]
    made = of_few(rows, [() if one.ask else one.select for one in some], Decoder(columns.view.batch).terms)
    again = columns.bindings(verdict)
    assert [[frozenset(row.items()) for row in rows] for rows in made] == [again[place] for place in order.tolist()]
    return again


def _columns(subscriptions: list[Subscription], seed: int, settings: Settings | None = None) -> Columns:
    world = World(settings=settings or Settings())
    return Columns.of(_publications(random.Random(seed)), subscriptions, world)


@pytest.mark.parametrize("seed", range(12))
def test_rows_in_their_order(seed: int) -> None:
    rng = random.Random(seed)
    subscriptions = [query_of(connected(rng, rng.randrange(1, 4)), number) for number in range(30)]
    subscriptions.append(parse("ASK { ?a <urn:p> ?b }", "sparql", id="ask"))
    subscriptions.append(parse("SELECT ?b ?none { ?a <urn:p> ?b }", "sparql", id="unbound"))
    matches = _listed(_columns(subscriptions, seed))
    assert matches is not None
    assert max(map(len, matches)) > 1
    assert [frozenset()] in matches


@pytest.mark.parametrize("query", IN_SEVERAL_PARTS)
def test_what_is_put_together_or_evaluated_is_not_theirs(query: str) -> None:
    columns = _columns([parse(query, "sparql", id="s")], seed=1)
    assert len(columns.verdict().publication)
    assert _listed(columns) is None


@pytest.mark.parametrize("settings", [Settings(max_bindings=1), Settings(max_binding_bytes=50)])
def test_nor_what_is_cut(settings: Settings) -> None:
    columns = _columns([parse("SELECT * { ?a <urn:p> ?b }", "sparql", id="s")], 1, settings)
    assert len(columns.verdict().publication)
    assert _listed(columns) is None
