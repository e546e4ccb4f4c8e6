"""Triples of any terms that may be there, as generated tests take them."""

from __future__ import annotations

from hypothesis import strategies as st

from triplewire.model.terms import IRI, BlankNode, Literal, Node, Triple

TEXTS = st.text(st.characters(codec=None, categories=None), max_size=6)
"""Short texts of any characters, lone surrogates among them."""

_nodes: st.SearchStrategy[Node] = st.one_of(TEXTS.map(IRI), TEXTS.map(BlankNode))
_literals = st.one_of(
    st.builds(Literal, TEXTS, TEXTS), st.builds(Literal.tagged, TEXTS, st.sampled_from(["en", "a-B"]))
)
TRIPLES = st.builds(Triple, _nodes, TEXTS.map(IRI), st.one_of(_nodes, _literals))
