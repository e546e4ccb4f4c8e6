"""Triples of any terms that may be there, as generated tests take them."""

from __future__ import annotations

from hypothesis import strategies as st

from triplewire.model.terms import Literal, Node, Triple, made_blank, made_iri, made_literal

TEXTS = st.text(st.characters(codec=None, categories=None), max_size=6)
"""Short texts of any characters, lone surrogates among them."""

_nodes: st.SearchStrategy[Node] = st.one_of(TEXTS.map(made_iri), TEXTS.map(made_blank))
_literals = st.one_of(
    st.builds(made_literal, TEXTS, TEXTS), st.builds(Literal.tagged, TEXTS, st.sampled_from(["en", "a-B"]))
)
TRIPLES = st.builds(Triple, _nodes, TEXTS.map(made_iri), st.one_of(_nodes, _literals))
