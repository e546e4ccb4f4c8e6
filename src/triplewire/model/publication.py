"""Publications: small RDF graphs with an identity (semantics, section 1), and look-ups in their graphs.

`triplewire.read` makes them. `triplewire.ir.evaluation.evaluate` evaluates a query on one.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from triplewire.model.canonical import content_hash
from triplewire.model.terms import IRI, Node, Term, Triple


class Graph:
    """A set of triples, indexed by subject, predicate and object. Never changed once built."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples = tuple(dict.fromkeys(triples))
        self._all = frozenset(self.triples)
        self._by_predicate: dict[Term, list[Triple]] = defaultdict(list)
        self._by_subject: dict[Term, list[Triple]] = defaultdict(list)
        self._by_object: dict[Term, list[Triple]] = defaultdict(list)
        for triple in self.triples:
            self._by_predicate[triple.predicate].append(triple)
            self._by_subject[triple.subject].append(triple)
            self._by_object[triple.object].append(triple)

    def __len__(self) -> int:
        return len(self.triples)

    def __contains__(self, triple: object) -> bool:
        return triple in self._all

    def candidates(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Sequence[Triple]:
        """The shortest list with all triples of the given terms (`None` is any). It may have others too."""
        shortest: Sequence[Triple] = self.triples
        for index, term in ((self._by_subject, subject), (self._by_object, object_), (self._by_predicate, predicate)):
            if term is not None:
                triples = index.get(term, ())
                if len(triples) < len(shortest):
                    shortest = triples
        return shortest

    def find(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Iterator[Triple]:
        """The triples with exactly the given terms; `None` is any."""
        for triple in self.candidates(subject, predicate, object_):
            if (
                (subject is None or triple.subject == subject)
                and (predicate is None or triple.predicate == predicate)
                and (object_ is None or triple.object == object_)
            ):
                yield triple

    def objects(self, subject: Node, predicate: IRI) -> Iterator[Term]:
        """The objects of the triples with this subject and predicate."""
        for triple in self.find(subject, predicate, None):
            yield triple.object


@dataclass(frozen=True)
class Publication:
    """A small RDF graph with an identity. Two publications are equal when all their fields are.

    `id` is an IRI or any string, unique per source; `source` says where it came from (feed URL, file, topic);
    `published` is the instant that the source states, in UTC, or None where it states none (then arrival counts);
    `attachments` are byte strings that operators may read; `notes` says what was repaired while reading.
    """

    id: str
    triples: tuple[Triple, ...]
    source: str = ""
    published: dt.datetime | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def graph(self) -> Graph:
        """The distinct triples, indexed."""
        return Graph(self.triples)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of the graph, independent of its blank node labels: `triplewire.model.canonical`."""
        return content_hash(self.triples)
