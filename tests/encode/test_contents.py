"""Content hashes from a batch are those of the publications' graphs, whatever their terms look like."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_encode_publications import ALIKE

from triplewire.encode import decode as contents
from triplewire.encode.decode import Decoder, content_hashes
from triplewire.encode.publications import encode
from triplewire.model.namespaces import PREDECLARED, RSS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal, Triple, made_iri, made_literal

# characters that are escaped in a literal, in an IRI, in both, or that begin with the same byte as such ones
ODD = 'a b"\\\n\t\x00\x1f\x7f<>{}^`é\ud800\udfff\ud7ff\ufffd\ufffe\uffff\U0001f600'
texts = st.text(st.sampled_from(ODD), max_size=4)
iris = texts.map(made_iri)
nodes = st.one_of(iris, st.sampled_from([BlankNode("x"), BlankNode("y")]))
literals = st.one_of(
    texts.map(Literal),
    st.builds(made_literal, texts, st.sampled_from(["", XSD + "int", "urn:a b"])),
    st.builds(Literal.tagged, texts, st.sampled_from(["en", "en-us"])),
)
graphs = st.lists(st.builds(Triple, nodes, iris, nodes | literals), max_size=6)


@pytest.mark.parametrize("few", [0, 1_000])
@pytest.mark.parametrize("together", [1, 4, 1 << 17])
@given(st.lists(graphs, max_size=5), st.randoms(use_true_random=False))
def test_those_of_the_graphs(few: int, together: int, some: list[list[Triple]], chance: random.Random) -> None:
    publications = [Publication(str(number), tuple(triples)) for number, triples in enumerate(some)]
    batch = encode(publications)
    numbers = np.array(chance.sample(range(len(some)), chance.randint(0, len(some))), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "_TOGETHER", together)
        patch.setattr(contents, "_FEW", few)
        found = content_hashes(batch, numbers, Decoder(batch))
    assert found == [publications[number].content_hash for number in numbers.tolist()]


def test_terms_that_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_FEW", 0)
    some = [Publication(str(n), (Triple(IRI("a:s"), IRI("a:p"), term),)) for n, term in enumerate(ALIKE)]
    batch = encode(some)
    found = content_hashes(batch, np.arange(len(some)), Decoder(batch))
    assert found == [one.content_hash for one in some]
    assert len(set(found)) == len(ALIKE)


@pytest.mark.slow
def test_past_the_work_budget_the_order_of_triples_does_not_count() -> None:
    """A batch has the triples in another order than the file."""
    names = [BlankNode(f"n{number}") for number in range(12)]
    clique = [Triple(a, IRI("a:p"), b) for a in names for b in names if a != b]
    one = Publication("clique", tuple(random.Random(3).sample(clique, len(clique))))
    batch = encode([one])
    assert content_hashes(batch, np.array([0]), Decoder(batch)) == [one.content_hash]


ODD_NODE = IRI("http://e/50%")  # a node with the text of an id that is no IRI
NAMED = [IRI("http://e/1"), ODD_NODE, IRI("urn:triplewire:id:p%201"), IRI("http://e/feed")]
NODES = [*NAMED, BlankNode("x"), BlankNode("y")]
PROPERTIES = [
    IRI(iri)
    for iri in (
        RSS + "link",
        RSS + "title",
        PREDECLARED["dcterms"] + "isPartOf",
        PREDECLARED["dcterms"] + "modified",
        PREDECLARED["dcterms"] + "hasFormat",
        PREDECLARED["dc"] + "format",
        PREDECLARED["dc"] + "language",
        "http://www.iana.org/assignments/relation/self",
    )
]
TEXTS = [Literal("http://e/1"), Literal("p 1"), Literal("a"), Literal.tagged("a", "en")]
OF_ITEMS = st.lists(
    st.one_of(
        st.builds(Triple, st.sampled_from(NODES), st.just(RDF_TYPE), st.sampled_from([IRI(RSS + "item"), IRI("a:c")])),
        st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from([*NODES, *TEXTS])),
    ),
    max_size=12,
)


ODD_ITEM = [Triple(ODD_NODE, RDF_TYPE, IRI(RSS + "item")), Triple(ODD_NODE, PROPERTIES[2], NODES[0])]


@example([("http://e/50%", ODD_ITEM)])
@given(st.lists(st.tuples(st.sampled_from(["http://e/1", "http://e/50%", "p 1", "http://e/"]), OF_ITEMS), max_size=5))
def test_those_of_items_of_feeds(some: list[tuple[str, list[Triple]]]) -> None:
    publications = [Publication(id, tuple(triples)) for id, triples in some]
    batch = encode(publications)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "_FEW", 0)
        found = content_hashes(batch, np.arange(len(some)), Decoder(batch))
    assert found == [publication.content_hash for publication in publications]
