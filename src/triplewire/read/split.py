"""From statements to publications: by document and named graph, or by subject (semantics, section 1).

Feeds are split where they are mapped: `triplewire.read.feeds`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.terms import BlankNode, Node, Triple

_COPIES = 10  # how many times its size a document may grow when it is split by subject

Statement: TypeAlias = tuple[Node | None, Triple]
"""A graph name (None is the default graph) and a triple."""


def by_graph(statements: Iterable[Statement], document: str, source: str, settings: Settings) -> list[Publication]:
    """One publication a named graph, and one for the default graph where it is not empty."""
    graphs: dict[Node | None, dict[Triple, None]] = {}
    for graph, triple in statements:
        triples = graphs.setdefault(graph, {})
        triples[triple] = None
        if len(triples) > settings.max_triples:
            raise too_many(settings)
    return [Publication(graph_id(graph, document), tuple(triples), source) for graph, triples in graphs.items()]


def too_many(settings: Settings) -> ReadError:
    """The refusal of a publication that holds more triples than one may."""
    return ReadError(f"a publication has more than {settings.max_triples:,} triples", remedy="raise max_triples")


def graph_id(graph: Node | None, document: str) -> str:
    """The id of a graph's publication: its name, or the document's IRI and the label of a blank name."""
    if graph is None:
        return document
    return f"{document}#{graph.label}" if isinstance(graph, BlankNode) else graph.value


def by_subject(triples: Iterable[Triple], document: str, source: str, settings: Settings) -> list[Publication]:
    """One publication a subject IRI, in order of first occurrence.

    Blank nodes go with every subject that refers to them; those that none refers to stand for themselves, under the
    document's IRI and their label. Raises `ReadError` where copies of shared blank nodes blow the document up.
    """
    about: dict[Node, list[Triple]] = defaultdict(list)
    for triple in dict.fromkeys(triples):
        about[triple.subject].append(triple)
    referred = {
        t.object for own in about.values() for t in own if isinstance(t.object, BlankNode) and t.object != t.subject
    }
    roots = [node for node in about if not isinstance(node, BlankNode) or node not in referred]
    seen: set[Node] = set()
    publications = []
    left = settings.max_triples + _COPIES * sum(map(len, about.values()))
    for root in roots + [node for node in about if isinstance(node, BlankNode)]:
        if root in seen:
            continue
        own = closure(root, about)
        left -= len(own)
        if len(own) > settings.max_triples:
            raise too_many(settings)
        if left < 0:
            raise ReadError(
                f"split by subject, shared blank nodes make it more than {_COPIES} times as large",
                remedy="name the shared nodes by IRIs",
            )
        seen.update(t.subject for t in own if t.subject == root or isinstance(t.subject, BlankNode))
        publications.append(Publication(graph_id(root, document), own, source))
    return publications


def closure(root: Node, about: dict[Node, list[Triple]]) -> tuple[Triple, ...]:
    """The triples of `root` and of the blank nodes that it leads to."""
    waiting, seen, found = [root], {root}, []
    while waiting:
        for triple in about.get(waiting.pop(), ()):
            found.append(triple)
            if isinstance(triple.object, BlankNode) and triple.object not in seen:
                seen.add(triple.object)
                waiting.append(triple.object)
    return tuple(found)
