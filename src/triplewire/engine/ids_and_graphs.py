"""The ids of matched subscriptions, and the graphs that CONSTRUCT queries make of bindings (SPARQL 1.1, 16.2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.engine.chunk import Snapshot, Template
from triplewire.ir.nodes import Label, PatternTerm, Variable
from triplewire.model.match import Binding, term_bytes
from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple

_KEPT = 1 << 16  # ids that are kept for the next matches
_SPARSE = 16  # with more than so many subscriptions per match, the cache takes longer than making the ids


class SubscriptionIds:
    """The ids of subscriptions, made each time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @classmethod
    def of(cls, snapshot: Snapshot, numbers: Ids) -> SubscriptionIds:
        """A cache of ids, or none where that is faster, for matches of the subscriptions with these numbers."""
        size = int(numbers.max()) + 1
        return cls(snapshot) if size > _SPARSE * len(numbers) else _Kept(snapshot, size, min(len(numbers), _KEPT))

    def texts(self, numbers: Ids) -> NDArray[np.object_]:
        """The ids of these."""
        made = np.empty(len(numbers), object)
        made[:] = self._snapshot.ids(numbers)
        return made


class _Kept(SubscriptionIds):
    """The ids of subscriptions with numbers below `size`: made when they first occur. At most `most` are kept."""

    def __init__(self, snapshot: Snapshot, size: int, most: int) -> None:
        super().__init__(snapshot)
        self._place = np.full(size, -1, np.int32)  # in `_made`
        self._made = np.empty(most, object)
        self._count = 0

    def texts(self, numbers: Ids) -> NDArray[np.object_]:
        """The ids of these."""
        new = self._each_once(numbers[self._place[numbers] < 0])
        if self._count + len(new) > len(self._made):  # begin anew
            self._place[:], self._count = -1, 0
            new = self._each_once(numbers)
        if len(new) > len(self._made):
            self._place[:] = -1
            return super().texts(numbers)
        if len(new):
            end = self._count + len(new)
            self._made[self._count : end] = self._snapshot.ids(new)
            self._place[new] = np.arange(self._count, end)
            self._count = end
        return self._made[self._place[numbers]]

    def _each_once(self, numbers: Ids) -> Ids:
        """The distinct numbers. Overwrites their entries in `_place`."""
        every = np.arange(len(numbers))
        self._place[numbers] = every
        each: Ids = numbers[self._place[numbers] == every]
        return each


def construct(template: Template, bindings: Iterable[Binding], most_bytes: int) -> tuple[tuple[Triple, ...], bool]:
    """The template once for each binding, as a set of triples in the order of their making, up to the first with which
    their terms have more than `most_bytes` together; and whether there was one.

    A triple with an unbound variable, a literal subject or a predicate that is no IRI is left out. A hidden variable
    is a blank node of the template: a new one for each binding, of a label that no blank node of the bindings has.
    """
    bindings = tuple(bindings)
    taken = {term.label for binding in bindings for term in binding.values() if isinstance(term, BlankNode)}
    stem = "c"
    while any(label.startswith(stem) for label in taken):
        stem += "c"
    made: dict[Triple, None] = {}
    sizes: dict[Term, int] = {}
    total = 0
    for number, binding in enumerate(bindings):
        for row in template:
            subject, predicate, object_ = (_instance(term, binding, f"{stem}{number}") for term in row)
            if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and object_ is not None:
                triple = Triple(subject, predicate, object_)
                if triple in made:
                    continue
                for term in triple:
                    if term not in sizes:
                        sizes[term] = term_bytes(term)
                    total += sizes[term]
                if total > most_bytes:
                    return tuple(made), True
                made[triple] = None
    return tuple(made), False


def _instance(term: PatternTerm, binding: Binding, stem: str) -> Term | None:
    if isinstance(term, Variable):
        return BlankNode(stem + term.name.replace(".", "_")) if term.hidden else binding.get(term.name)
    if isinstance(term, Label):
        return IRI(term.iri) if term.iri else Literal(term.text)
    return term if isinstance(term, IRI | Literal) else None
