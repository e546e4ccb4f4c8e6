"""Terms and triples as pyoxigraph has them, and back: for tests that ask it what is right."""

from __future__ import annotations

import pyoxigraph

from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple, made_blank, made_iri, made_literal


def theirs(term: Term) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    if isinstance(term, IRI):
        return pyoxigraph.NamedNode(term.value)
    if isinstance(term, BlankNode):
        return pyoxigraph.BlankNode(term.label)
    if term.language:
        return pyoxigraph.Literal(term.lexical, language=term.language)
    return pyoxigraph.Literal(term.lexical, datatype=pyoxigraph.NamedNode(term.datatype))


def ours(term: object) -> Term:
    if isinstance(term, pyoxigraph.NamedNode):
        return made_iri(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return made_blank(term.value)
    assert isinstance(term, pyoxigraph.Literal)
    if term.language:
        return Literal.tagged(term.value, term.language)
    return made_literal(term.value, term.datatype.value)


def triple_of(quad: pyoxigraph.Quad | pyoxigraph.Triple) -> Triple:
    subject, predicate, object_ = ours(quad.subject), ours(quad.predicate), ours(quad.object)
    assert not isinstance(subject, Literal)
    assert isinstance(predicate, IRI)
    return Triple(subject, predicate, object_)
