"""Real workloads with exact expected results: how many of the publications match, subscription by subscription.

A fixed sample of the ready sets: RTF's queries with 0, 50 and 100 % full text over 5,000 publications, graph
subscriptions with taxonomy over 2,000, MDV rules of all four types over 1,751 documents. Sums and samples differ from
run to run in nothing. How the sets are written in the query languages is said where it is done.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

import pyoxigraph
import pytest

from amounts import usually
from oxigraph_terms import triple_of
from shared_data import lines, members
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Triple

RTF_SAMPLE = usually(8, 20)  # queries of each share
GRAPH_SAMPLE = usually(20, 60)
MDV_SAMPLE = usually(4, 12)  # rules of each type
MDV_PREFIXES = "PREFIX nmo: <http://nomisma.org/ontology#>\n"


def named_graphs(name: str) -> list[Publication]:
    """The publications of an N-Quads file: one a named graph."""
    graphs: dict[str, list[Triple]] = defaultdict(list)
    text = "".join(lines(name)).encode("utf-8")
    for quad in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS):
        assert isinstance(quad.graph_name, pyoxigraph.NamedNode)
        graphs[quad.graph_name.value].append(triple_of(quad))
    return [Publication(graph, tuple(triples)) for graph, triples in graphs.items()]


def answers(
    subscriptions: Iterable[Subscription], publications: Iterable[Publication], world: World
) -> Iterator[tuple[str, Answer]]:
    subscriptions = list(subscriptions)
    for publication in publications:
        for subscription in subscriptions:
            answer = evaluate(subscription, publication, world)
            if answer.bindings:
                yield subscription.id, answer


def counted(found: Iterable[tuple[str, Answer]], wanted: dict[str, int]) -> dict[str, int]:
    counts = dict.fromkeys(wanted, 0)
    for name, _ in found:
        counts[name] += 1
    return counts


# --- RTF: SPARQL with full text -------------------------------------------------------------------------------------


@cache
def mixed() -> list[Publication]:
    return named_graphs("10-workloads/mixed-5000.nq.gz")


def rtf_query(tuples: list[list[object]]) -> str:
    """Tuples of terms in N-Triples notation, variables and `*`; a fourth member lists the words that the object has."""
    patterns, filters = [], []
    for subject, predicate, object_, *words in tuples:
        patterns.append(f"{subject} {predicate} {object_} .")
        for some in words:
            assert isinstance(some, list)
            filters.append(f"FILTER ftcontains({object_}, {' ftAND '.join(json.dumps(word) for word in some)})")
    return f"SELECT * WHERE {{ {' '.join(patterns + filters)} }}"


@pytest.mark.xdist_group("workloads-rtf")
@pytest.mark.parametrize("share", ["ft000", "ft050", "ft100"])
def test_rtf(share: str) -> None:
    rows = [json.loads(line) for line in lines(f"10-workloads/rtf-queries-100k-{share}.jsonl.gz")]
    matching = [row for row in rows if row[1]]
    least = RTF_SAMPLE // 4  # of the sample, some that match nothing
    some = matching[:: len(matching) // (RTF_SAMPLE - least)][: RTF_SAMPLE - least]
    some += [row for row in rows if not row[1]][:least]
    wanted = {str(key): count for key, count, _ in some}
    subscriptions = [parse(rtf_query(tuples), "sparql", id=str(key)) for key, _, tuples in some]
    assert len(wanted) == RTF_SAMPLE
    assert counted(answers(subscriptions, mixed(), World()), wanted) == wanted


# --- graph subscriptions: GQL with a taxonomy -----------------------------------------------------------------------


@cache
def taxonomy() -> Taxonomy:
    """Classes and instances, as IRIs in angle brackets."""
    classes = [line.split() for line in lines("10-workloads/graph-taxonomy-classes.tsv.gz")]
    instances = [line.split() for line in lines("10-workloads/graph-taxonomy-instances.tsv.gz")]
    return Taxonomy.build(
        [(sub[1:-1], super_[1:-1]) for sub, super_ in classes],
        [(node[1:-1], cls[1:-1]) for node, *some in instances for cls in some],
    )


def graph_query(edges: list[list[str]], constraints: list[list[str]]) -> str:
    """Each constraint goes to the first edge that has its variable."""
    left = list(constraints)
    parts = []
    for subject, predicate, object_ in edges:
        mine = [c for c in left if c[0] in (subject, object_)]
        left = [c for c in left if c not in mine]
        text = f"({subject}, {predicate}, {object_})"
        if mine:
            conditions = [
                f"{v} ISA {op} {f'<{value}>' if value.startswith('http') else value}"
                if kind == "isa"
                else f"{v} {op} {value}"
                for v, op, value, kind in mine
            ]
            text = f"({text} SUCHTHAT ({' AND '.join(conditions)}))"
        parts.append(text)
    assert not left
    return f"SELECT * WHERE {' AND '.join(parts)}"


@pytest.mark.xdist_group("workloads-graph")
def test_graph_subscriptions() -> None:
    rows = [json.loads(line) for line in lines("10-workloads/graph-subscriptions-100k.jsonl.gz")]
    half = GRAPH_SAMPLE // 2
    isa = [row for row in rows if row[1] > 1 and row[3]]
    numbers = [row for row in rows if any(kind == "value" for *_, kind in row[3])]
    some = isa[:: len(isa) // half][:half] + numbers[:: len(numbers) // half][:half]
    wanted = {str(key): count for key, count, _, _ in some}
    subscriptions = [parse(graph_query(e, c), "gql", id=str(key)) for key, _, e, c in some]
    assert len(wanted) == GRAPH_SAMPLE
    publications = named_graphs("10-workloads/graph-publications.nq.gz")
    assert counted(answers(subscriptions, publications, World(taxonomy())), wanted) == wanted


# --- MDV rules over RDF/XML documents -------------------------------------------------------------------------------


def documents() -> Iterator[Publication]:
    """The documents that are well-formed RDF/XML; five hold an IRI that is none."""
    malformed = []
    for name, data in members("02-nomisma/revisions-base.tar.gz"):
        if name.endswith(".rdf"):
            try:
                quads = list(pyoxigraph.parse(data, pyoxigraph.RdfFormat.RDF_XML, base_iri="http://example.org/"))
            except SyntaxError:
                malformed.append(name)
                continue
            yield Publication(name, tuple(map(triple_of, quads)))
    assert len(malformed) == 5


@pytest.mark.xdist_group("workloads-mdv")
def test_mdv_rules() -> None:
    rows = [json.loads(line) for line in lines("10-workloads/mdv-rules-40k.jsonl.gz")]
    some = []
    for kind in ("OID", "COMP", "PATH", "JOIN"):
        mine = [row for row in rows if row[1] == kind and row[3]]
        some += mine[:: len(mine) // MDV_SAMPLE][:MDV_SAMPLE]
    assert len(some) == 4 * MDV_SAMPLE
    subscriptions = [parse(MDV_PREFIXES + row[2], "mdv", id=str(row[0])) for row in some]
    registered: dict[str, set[str]] = {str(row[0]): set() for row in some}
    for name, answer in answers(subscriptions, documents(), World()):
        registered[name] |= {value.value for row in answer.bindings for value in row.values() if isinstance(value, IRI)}
    wanted = {str(row[0]): (row[3], row[4]) for row in some}
    assert {name: (len(iris), digest(iris)) for name, iris in registered.items()} == wanted


def digest(iris: set[str]) -> str:
    """The first 16 digits of SHA-256 over the sorted IRIs, joined by line feeds."""
    return hashlib.sha256("\n".join(sorted(iris)).encode("utf-8")).hexdigest()[:16]
