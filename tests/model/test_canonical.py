"""Canonical labels and the content hash: the labels are pyoxigraph's RDFC-1.0, and poisonous graphs end soon."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from oxigraph_terms import theirs
from triplewire.model.canonical import canonical_labels, canonical_lines
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal, Triple

P, Q = IRI("urn:p"), IRI("urn:q")


def blank(name: object) -> BlankNode:
    return BlankNode(f"x{name}")


nodes = st.integers(0, 5).map(blank)
subjects = st.one_of(nodes, nodes, nodes, st.just(IRI("urn:s")))
objects = st.one_of(nodes, nodes, nodes, st.sampled_from([IRI("urn:s"), Literal("v"), Literal.tagged("v", "en")]))
graphs = st.lists(st.builds(Triple, subjects, st.sampled_from([P, P, Q]), objects), max_size=12)


def oxigraph_lines(triples: list[Triple]) -> list[str]:
    """The same graph, canonicalized by pyoxigraph."""
    dataset = ox.Dataset(ox.Quad(*map(theirs, triple)) for triple in triples)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return sorted(f"{quad} .\n" for quad in dataset)


@pytest.mark.slow
@settings(max_examples=examples(1_500), deadline=None)
@given(graphs)
def test_the_lines_are_those_of_oxigraph(triples: list[Triple]) -> None:
    assert canonical_lines(triples) == oxigraph_lines(triples)


def test_every_character_is_written_as_rdfc_asks() -> None:
    characters = "".join(map(chr, [*range(0x180), 0x2028, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1FFFE]))
    triples = [Triple(IRI("urn:é"), P, Literal(characters)), Triple(IRI("urn:s"), Q, Literal("1", "urn:type"))]
    assert canonical_lines(triples) == oxigraph_lines(triples)


@pytest.mark.slow
@given(graphs, st.randoms(use_true_random=False))
def test_the_hash_is_of_the_graph(triples: list[Triple], shuffled: random.Random) -> None:
    """Other labels, another order, a triple twice: the same hash. One triple more: another."""
    names = {node: blank(f"y{number}") for number, node in enumerate(map(blank, shuffled.sample(range(6), 6)))}
    other = [Triple(names.get(s, s), p, names.get(o, o)) for s, p, o in [*triples, *triples[:1]]]  # type: ignore[call-overload]  # keys are the blank nodes among the terms
    shuffled.shuffle(other)
    assert Publication("a", tuple(triples)).content_hash == Publication("b", tuple(other)).content_hash
    more = Triple(IRI("urn:new"), P, Literal("new"))
    assert Publication("a", tuple(triples)).content_hash != Publication("a", (*triples, more)).content_hash


def test_graphs_that_differ_in_their_shape_differ_in_their_hash() -> None:
    """Each blank node has one edge in and one out, in a ring of six as in two rings of three."""
    six = [Triple(blank(n), P, blank((n + 1) % 6)) for n in range(6)]
    threes = [Triple(blank(n), P, blank(n // 3 * 3 + (n + 1) % 3)) for n in range(6)]
    assert Publication("a", tuple(six)).content_hash != Publication("a", tuple(threes)).content_hash


def test_the_hash_of_nothing_and_of_a_known_line() -> None:
    """From outside: `printf '' | sha256sum`, and the same of `<urn:s> <urn:p> "v" .` with its line feed."""
    assert (
        Publication("urn:none", ()).content_hash == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    one = Publication("urn:none", (Triple(IRI("urn:s"), P, Literal("v")),))
    assert one.content_hash == "f4662222918e7a253e407f8f2caa2b8ee1ec095f7ddcc63244fe5618fb0466ad"


POISON = {
    "cliques": lambda n: [Triple(blank(i), P, blank(j)) for i in range(n) for j in range(n) if i != j],
    "rings": lambda n: [Triple(blank(i), P, blank((i + 1) % n)) for i in range(n)],
    "chains": lambda n: [Triple(blank(i), P, blank(i + 1)) for i in range(n)],
    "two stars": lambda n: [Triple(blank(f"hub{hub}"), P, blank(f"{hub}-{i}")) for hub in range(2) for i in range(n)],
    "grids": lambda n: [Triple(blank(i), P, blank(f"o{j}")) for i in range(n) for j in range(n)],
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", POISON)
@pytest.mark.parametrize("size", [7, 40, 250])
def test_a_poisonous_graph_is_labelled_within_the_budget(shape: str, size: int) -> None:
    triples = POISON[shape](size)
    labels = canonical_labels(triples)
    found = {term.label for triple in triples for term in triple if isinstance(term, BlankNode)}
    assert labels.keys() == found
    assert set(labels.values()) == {f"c14n{number}" for number in range(len(found))}
    assert labels == canonical_labels(triples), "the same triples in the same order give the same labels"


@pytest.mark.slow
def test_past_the_budget_the_first_occurrence_decides() -> None:
    clique = POISON["cliques"](12)
    assert canonical_labels(clique) == {f"x{number}": f"c14n{number}" for number in range(12)}
    distinct = [Triple(blank("z"), Q, Literal("told apart")), *clique]
    assert canonical_labels(distinct)["xz"] == "c14n0", "what its own triples tell apart keeps its RDFC-1.0 label"


@pytest.mark.slow
def test_a_long_chain_needs_no_deep_stack() -> None:
    """Within a large budget, too: 3,000 blank nodes in a row that only their distance from the end tells apart."""
    chain = POISON["chains"](3_000)
    assert len(canonical_labels(chain, budget=3_000_000)) == 3_001


SAME_VALUES = {
    "a list": lambda n: [
        *(Triple(blank(i), P, Literal("1")) for i in range(n)),
        *(Triple(blank(i), Q, blank(i + 1) if i < n - 1 else IRI("urn:nil")) for i in range(n)),
        Triple(IRI("urn:s"), Q, blank(0)),
    ],
    "a tree": lambda n: [Triple(blank(i // 2), P, blank(i + 1)) for i in range(n)],
    **POISON,
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SAME_VALUES)
def test_labels_do_not_count_past_the_budget(shape: str) -> None:
    triples = SAME_VALUES[shape](30 if shape in ("grids", "cliques") else 200)
    chance = random.Random(shape)
    names = list(dict.fromkeys(term for triple in triples for term in triple if isinstance(term, BlankNode)))
    others = dict(
        zip(names, chance.sample([blank(f"y{number}") for number in range(len(names))], len(names)), strict=True)
    )
    copy = [Triple(others.get(s, s), p, others.get(o, o)) for s, p, o in chance.sample(triples, len(triples))]
    first, second = (Publication("a", tuple(graph)).graph_hash for graph in (triples, copy))
    assert first == second
    assert Publication("a", tuple(triples[1:])).graph_hash != first


def test_a_list_of_one_value_is_another_with_one_more() -> None:
    """Nor does the place in the list where the other value stands get lost."""
    same = SAME_VALUES["a list"](300)
    other = [[*same[:n], Triple(blank(n), P, Literal("2")), *same[n + 1 :]] for n in (40, 41)]
    assert len({Publication("a", tuple(graph)).graph_hash for graph in (same, *other)}) == 3


@pytest.mark.slow
def test_a_long_list_of_one_value_has_a_hash_soon() -> None:
    """Colours cost what the graph is large, not its square: this list would take minutes."""
    assert len(Publication("a", tuple(SAME_VALUES["a list"](20_000))).graph_hash) == 64
