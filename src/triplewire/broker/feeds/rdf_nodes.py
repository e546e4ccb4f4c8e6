"""Publications in RDF/XML, as far as it can name what they say: behind the items of a feed in RSS 1.0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from triplewire.broker.feeds.cleaning import clean
from triplewire.model.namespaces import RSS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD_STRING, BlankNode, Literal, Term, Triple

MOST = 200
"""Triples of a publication that are written; of one that has more, none: its N-Triples have them."""

_NAME = re.compile(r"(?P<namespace>.+?)(?P<local>[A-Za-z_][\w.-]*)", re.DOTALL | re.ASCII)
_ITEM = IRI(RSS + "item")


class Node(NamedTuple):
    """A triple as RDF/XML writes it: attributes that name the subject, the parts of the predicate, and attributes and
    text of its element."""

    subject: Mapping[str, str]
    namespace: str
    local: str
    attributes: Mapping[str, str]
    text: str


def nodes(publication: Publication, number: int) -> Iterator[Node]:
    """A node for each triple. `number`: of the publication in its document; it begins the labels of its blank nodes.
    That something is an item is left out: it would be one more of the feed."""
    for triple in publication.triples if len(publication.triples) <= MOST else ():
        name = _NAME.fullmatch(triple.predicate.value)
        if name is None or _is_item(triple) or not all(map(_is_writable, triple)):
            continue
        subject, value = _reference(triple.subject, number, "rdf:about"), triple.object
        if not isinstance(value, Literal):
            yield Node(subject, name["namespace"], name["local"], _reference(value, number, "rdf:resource"), "")
            continue
        about = {"xml:lang": value.language} if value.language else {"rdf:datatype": value.datatype}
        about = {} if value.datatype == XSD_STRING else about
        yield Node(subject, name["namespace"], name["local"], about, value.lexical)


def _is_item(triple: Triple) -> bool:
    return triple.predicate == RDF_TYPE and triple.object == _ITEM


def _is_writable(term: Term) -> bool:
    if isinstance(term, BlankNode):
        return True
    text, in_attributes = (term.value, term.value) if isinstance(term, IRI) else (term.lexical, term.datatype)
    return clean(text) == text and "\r" not in text and not re.search(r"\s", in_attributes)


def _reference(term: IRI | BlankNode, number: int, of_iri: str) -> dict[str, str]:
    if isinstance(term, IRI):
        return {of_iri: term.value}
    label = re.sub(r"[^A-Za-z0-9_]", lambda odd: f"-{ord(odd[0]):x}-", term.label)
    return {"rdf:nodeID": f"b{number}.{label}"}
