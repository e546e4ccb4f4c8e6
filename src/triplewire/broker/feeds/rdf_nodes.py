"""Publications in RDF/XML, as far as it can name what they say: behind the items of a feed in RSS 1.0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from triplewire.broker.feeds.cleaning import clean, quoted
from triplewire.model.namespaces import RSS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD_STRING, BlankNode, Literal, Term, Triple

MOST = 200
"""Triples of a publication that are written; of one that has more, none: its N-Triples have them."""

_NAME = re.compile(r"(?P<namespace>.+?)(?P<local>[A-Za-z_][\w.-]*)", re.DOTALL | re.ASCII)
_ITEM = IRI(RSS + "item")


def nodes(publication: Publication, scope: str) -> Iterator[str]:
    """A node for each triple. `scope`: what begins the labels of its blank nodes, other than those of others. That
    something is an item is left out: it would be one more of the feed."""
    if len(publication.triples) > MOST:
        return
    for triple in publication.triples:
        name = _NAME.fullmatch(triple.predicate.value)
        if name is None or _is_item(triple) or not all(map(_is_writable, triple)):
            continue
        subject = _reference(triple.subject, scope, "rdf:about")
        yield f"<rdf:Description {subject}>"
        yield _property(name["local"], name["namespace"], triple.object, scope)
        yield "</rdf:Description>"


def _is_item(triple: Triple) -> bool:
    return triple.predicate == RDF_TYPE and triple.object == _ITEM


def _is_writable(term: Term) -> bool:
    text = term.lexical if isinstance(term, Literal) else term.value if isinstance(term, IRI) else ""
    return clean(text) == text and "\r" not in text


def _reference(term: IRI | BlankNode, scope: str, of_iri: str) -> str:
    if isinstance(term, IRI):
        return f"{of_iri}={quoted(term.value)}"
    return f"rdf:nodeID={quoted(scope + re.sub(r'[^A-Za-z0-9_]', lambda odd: f'-{ord(odd[0]):x}-', term.label))}"


def _property(local: str, namespace: str, value: Term, scope: str) -> str:
    declared = f"p:{local} xmlns:p={quoted(namespace)}"
    if not isinstance(value, Literal):
        return f"<{declared} {_reference(value, scope, 'rdf:resource')}/>"
    kind = ""
    if value.language:
        kind = f" xml:lang={quoted(value.language)}"
    elif value.datatype != XSD_STRING:
        kind = f" rdf:datatype={quoted(value.datatype)}"
    return f"<{declared}{kind}>{escape(value.lexical)}</p:{local}>"
