"""Mistakes of newcomers: the message says what to write instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import rdflib

from triplewire import Engine, Publication, TriplewireError, read
from triplewire.operators import built_in_operators

GRAPH = rdflib.Graph().parse(data="<urn:a> <urn:b> 1 .", format="turtle")
SERIALIZE = r"a graph of RDFLib: read\(graph.serialize"


def own_operators() -> None:
    """Those given take the place of the built-in ones."""
    Engine(operators={"near": built_in_operators()["within"]}).subscribe("language(en)", "predicates")


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: list(read(GRAPH)), SERIALIZE),  # type: ignore[arg-type]
    (lambda: Publication("urn:g", GRAPH), SERIALIZE),  # type: ignore[arg-type]
    (lambda: Engine().match(GRAPH), SERIALIZE),  # type: ignore[arg-type]
    (
        lambda: Engine().subscribe("ASK { ?s ex:p ?o }", prefixes={"ex:": "urn:"}),
        "'ex:' is no prefix; leave out the colon",
    ),
    (
        lambda: Engine().subscribe("SELECT ?t WHERE (?s, dc:title, ?t)"),
        "a query in GQL is read where its language is named",
    ),
    (own_operators, "near; it is built in: Engine"),
]


@pytest.mark.parametrize(("mistake", "said"), MISTAKES, ids=[said[:20] for _, said in MISTAKES])
def test_a_mistake(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(TriplewireError, match=said):
        mistake()


def test_a_graph_of_rdflib_is_read_through_n_triples() -> None:
    (publication,) = read(GRAPH.serialize(format="nt", encoding="utf-8"))
    assert len(publication.triples) == 1
