"""Publications as graphs of rdflib, and terms back again, for the libraries that work on such graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from triplewire.model.terms import IRI, XSD_STRING, BlankNode, Literal, Term, Triple


def graph_of(triples: Iterable[Triple]) -> Any:
    """A graph of these triples. Lexical forms stay as they are written."""
    from rdflib import Graph

    graph = Graph(bind_namespaces="none")
    for subject, predicate, value in triples:
        graph.add((_node(subject), _node(predicate), _node(value)))
    return graph


def _node(term: Term) -> Any:
    import rdflib

    if isinstance(term, IRI):
        return rdflib.URIRef(term.value)
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.label)
    if term.language:
        return rdflib.Literal(term.lexical, lang=term.language)
    # a plain literal and an xsd:string are one term, but two to rdflib
    datatype = None if term.datatype == XSD_STRING else rdflib.URIRef(term.datatype)
    return rdflib.Literal(term.lexical, datatype=datatype, normalize=False)


def triple_of(edge: Any) -> Triple:
    """The triple of three nodes of rdflib, of which only the last may be a literal."""
    return Triple._make(map(_term, edge))


def _term(node: Any) -> Term:
    """The term of a node of rdflib."""
    import rdflib

    if isinstance(node, rdflib.Literal):
        if node.language:
            return Literal.tagged(str(node), node.language)
        return Literal(str(node), str(node.datatype or XSD_STRING))
    return BlankNode(str(node)) if isinstance(node, rdflib.BNode) else IRI(str(node))


def read_graph(text: str, syntax: str) -> Any:
    """A graph of a text in "turtle", "nt" or "xml". Raises `ValueError` where it is none."""
    from rdflib import Graph

    try:
        return Graph(bind_namespaces="none").parse(data=text, format=syntax)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except Exception as error:  # parsers of rdflib raise many kinds
        reason = " ".join(str(error).split())
        raise ValueError(f"it cannot be read as {syntax}: {reason:.200}") from None
