"""What a publication says that counts: by its content a stream knows whether it has told it (docs/streams.md).

Of an item of a feed that is what the item itself says, in whichever syntax, file and channel it came. Of any other
publication it is its whole graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import unquote

from triplewire.model.canonical import graph_hash
from triplewire.model.namespaces import PREDECLARED, RSS
from triplewire.model.references import id_iri
from triplewire.model.terms import IRI, RDF_TYPE, XSD_STRING, BlankNode, Literal, Term, Triple

FORM = 2
"""Changes with what counts as the content of a publication. Form 1 took the channel of an item in."""

ITEM, IS_PART_OF = IRI(RSS + "item"), IRI(PREDECLARED["dcterms"] + "isPartOf")
HAS_FORMAT = IRI(PREDECLARED["dcterms"] + "hasFormat")
NOT_SAID = frozenset(
    {
        IS_PART_OF,
        IRI(PREDECLARED["dcterms"] + "modified"),
        IRI(PREDECLARED["dc"] + "language"),
        IRI("http://www.iana.org/assignments/relation/self"),
    }
)
"""Properties of an item that are no content: its channel, when it was last touched, the language, which most take from
the channel, and where it can be fetched."""
_LINK = IRI(RSS + "link")
_OF_A_LINK = frozenset(
    map(
        IRI,
        (f"{PREDECLARED['dc']}format", f"{PREDECLARED['dcterms']}title", "http://purl.oclc.org/net/rss_2.0/enc#length"),
    )
)


def content_hash(id: str, triples: Sequence[Triple]) -> str:
    """SHA-256 (hex) of the content of a publication: equal for the same item in another file, channel or syntax, and
    for isomorphic graphs."""
    node = item_node(id, triples)
    return graph_hash(triples if node is None else _said(node, triples))


def item_node(id: str, triples: Iterable[Triple]) -> IRI | BlankNode | None:
    """The node of the item that a publication is; None where it is no item of a feed. An item has the type `rss:item`,
    a channel that it is a part of, and the IRI of the publication's id; of RSS 1.0 it may be a blank node, whose link
    is the id."""
    parts, items, links = set(), set(), set()
    for subject, predicate, value in triples:
        if predicate == RDF_TYPE and value == ITEM:
            items.add(subject)
        elif predicate == IS_PART_OF:
            parts.add(subject)
        elif predicate == _LINK and isinstance(value, Literal) and value.lexical == id:
            links.add(subject)
    items &= parts
    if not items:
        return None
    named = IRI(id_iri(id))
    if named in items:
        return named
    blank = [node for node in items & links if isinstance(node, BlankNode)]
    return blank[0] if len(blank) == 1 else None


def _said(item: IRI | BlankNode, triples: Iterable[Triple]) -> list[Triple]:
    """What is said of an item, and of the blank nodes below it, but for what is no content of it: `NOT_SAID`, its link
    once more as a document with a format, and tags of languages, which only RSS 1.0 gives texts."""
    about: dict[Term, list[Triple]] = {}
    for triple in triples:
        about.setdefault(triple.subject, []).append(triple)
    links = {unquote(t.object.lexical) for t in about[item] if t.predicate == _LINK and isinstance(t.object, Literal)}
    left_out = NOT_SAID
    if Triple(item, HAS_FORMAT, item) in about[item]:
        left_out |= _OF_A_LINK
    said, below = [], [item]
    for node in below:
        for triple in about.pop(node, ()):
            _, predicate, value = triple
            if node == item and (
                predicate in left_out
                or (predicate == HAS_FORMAT and isinstance(value, IRI) and unquote(value.value) in links)
            ):
                continue
            if isinstance(value, Literal) and value.language:
                triple = triple._replace(object=replace(value, datatype=XSD_STRING, language=""))
            elif isinstance(value, BlankNode):
                below.append(value)
            said.append(triple)
    return said
