"""A publication: a small RDF graph with an identity (semantics, section 1), and look-ups in that graph.

Where publications come from: `triplewire.read`. What a query asks of one: `triplewire.ir.evaluate`.
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
    """A set of triples that answers triple patterns. Built once a publication, never changed."""

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
        """The shortest list of triples that holds all with the given terms (`None` is any); it may hold others."""
        shortest: Sequence[Triple] = self.triples
        for index, term in (
            (self._by_subject, subject),
            (self._by_object, object_),
            (self._by_predicate, predicate),
        ):
            if term is not None:
                found = index.get(term, ())
                if len(found) < len(shortest):
                    shortest = found
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
        """What `subject` has under `predicate`."""
        for triple in self.find(subject, predicate, None):
            yield triple.object


@dataclass(frozen=True)
class Publication:
    """A small RDF graph with an identity. Two publications are equal when all their fields are.

    `id` is an IRI or any string, unique per source; `source` says where it came from (feed URL, file, topic);
    `published` is the instant that the source states, in UTC, or None where it states none (then arrival counts);
    `attachments` are byte strings that operators may read; `notes` says what was mended while reading.
    """

    id: str
    triples: tuple[Triple, ...]
    source: str = ""
    published: dt.datetime | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def graph(self) -> Graph:
        """The triples, indexed; each once."""
        return Graph(self.triples)

    @cached_property
    def content_hash(self) -> str:
        """What it says, whatever its blank nodes are called, as SHA-256 (hex): `triplewire.model.canonical`."""
        return content_hash(self.triples)
