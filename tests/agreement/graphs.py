"""Graphs for the oracle tests: small random ones that make terms meet, and real publications.

Both engines must hold the same graph. pyoxigraph's store rewrites numbers and dates to canonical form, so a real triple
that it would rewrite is left out.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from functools import cache

import pyoxigraph

from agreement.queries import Vocabulary
from oxigraph_terms import theirs, triple_of
from shared_data import lines
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Node, Term, Triple

E = "http://e/"


def typed(datatype: str, *lexicals: str) -> list[Literal]:
    return [Literal(lexical, XSD + datatype) for lexical in lexicals]


PREDICATES = [IRI(E + name) for name in "pqr"]
NODES: list[Node] = [IRI(E + name) for name in "abcd"]
BLANKS: list[Node] = [BlankNode(f"n{number}") for number in range(2)]
LITERALS = [
    *map(Literal, ("", "a", "b", "ab", "A b", "1", "x\ny", "é")),
    Literal.tagged("a", "en"),
    Literal.tagged("ab", "fr"),
    Literal.tagged("c", "en-gb"),
    *typed("integer", "-1", "0", "1", "2", "10"),
    *typed("decimal", "0.5", "-2.5"),
    *typed("double", "1.5", "0.25", "100"),
    *typed("float", "1.5", "0.375"),
    *typed("boolean", "true", "false"),
    *typed(
        "dateTime",
        "2020-02-29T10:11:12Z",
        "2020-02-29T12:11:12+02:00",
        "1999-12-31T23:59:59.5",
        "-0044-03-15T12:00:00Z",
    ),
    *typed("date", "2020-02-29", "2021-01-01Z", "1999-12-31"),
    *typed("gYear", "2020", "-0027"),
    *typed("time", "10:11:12", "23:00:00"),
    *typed("dayTimeDuration", "P1D", "P1DT12H"),
    Literal("not a number", XSD + "integer"),
    Literal("u", E + "unknown"),
    Literal("v", E + "unknown"),
]

VOCABULARY = Vocabulary(
    tuple(map(str, PREDICATES)), tuple(str(node) for node in NODES), tuple(str(literal) for literal in LITERALS)
)


def random_publication(chance: random.Random, number: int) -> Publication:
    """Up to 28 triples over a few nodes, predicates and literals."""
    triples = []
    for _ in range(chance.choice((0, 4, 8, 12, 16, 20, 24, 28))):
        object_: Term = chance.choice(chance.choice((NODES + BLANKS, NODES, LITERALS)))  # type: ignore[arg-type]
        triples.append(Triple(chance.choice(NODES + BLANKS), chance.choice(PREDICATES), object_))
    return Publication(f"urn:random:{number}", tuple(dict.fromkeys(triples)))


@cache
def real_publications(limit: int) -> list[Publication]:
    """Real publications of 2 to 40 triples, `limit` of each of two sets, without the terms that a store rewrites."""
    found = []
    for name in ("10-workloads/mixed-5000.nq.gz", "10-workloads/graph-publications.nq.gz"):
        graphs: dict[str, list[Triple]] = defaultdict(list)
        for line in lines(name):
            graph = line.rsplit(" ", 2)[-2]
            if len(graphs) > 3 * limit and graph not in graphs:
                break
            graphs[graph] += (triple_of(quad) for quad in pyoxigraph.parse(line.encode(), pyoxigraph.RdfFormat.N_QUADS))
        kept = [(name, tuple(filter(_is_stable, triples))) for name, triples in graphs.items() if len(triples) <= 40]
        found += [Publication(name, triples) for name, triples in kept if len(triples) > 1][:limit]
    return found


def _is_stable(triple: Triple) -> bool:
    store = store_of([triple])
    return [triple_of(quad) for quad in store] == [triple]


def vocabulary_of(publication: Publication, chance: random.Random) -> Vocabulary:
    """What the publication's triples hold, a few terms of it, and some of our own."""
    triples = publication.triples
    predicates = sorted({str(triple.predicate) for triple in triples})
    nodes = sorted({str(term) for t in triples for term in (t.subject, t.object) if isinstance(term, IRI)})
    literals = sorted({str(t.object) for t in triples if isinstance(t.object, Literal) and len(t.object.lexical) < 200})
    return Vocabulary(
        tuple(chance.sample(predicates, min(4, len(predicates)))),
        tuple(chance.sample(nodes, min(4, len(nodes)))) or VOCABULARY.nodes,
        tuple(chance.sample(literals, min(4, len(literals)))) + tuple(chance.sample(VOCABULARY.literals, 6)),
    )


# --- pyoxigraph's terms and ours -----------------------------------------------------------------------------------


def store_of(triples: Iterable[Triple]) -> pyoxigraph.Store:
    store = pyoxigraph.Store()
    for triple in triples:
        quad = pyoxigraph.Quad(theirs(triple.subject), theirs(triple.predicate), theirs(triple.object))  # type: ignore[arg-type]
        store.add(quad)
    return store
