"""Matches whose bindings, graphs and identities are looked up when they are asked for.

They are some of a result, one behind the other, and hold on to the publications and the subscriptions that were
matched, not to the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from triplewire.engine.chunk import Chunk, Details, Rows, Snapshot, Template
from triplewire.forks import new_lock
from triplewire.ir.nodes import Label, PatternTerm, Variable
from triplewire.model.match import Binding, Match, matches_of, term_bytes
from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple, made_iri

if TYPE_CHECKING:
    import datetime as dt

_LISTED = 1 << 16  # bindings that are kept for the matches of one block


class ChunkOrigin:
    """What the matches of one publication of a chunk were made from (`triplewire.model.match.Origin`)."""

    __slots__ = ("_chunk", "_number", "snapshot")

    def __init__(self, chunk: Chunk, number: int, snapshot: Snapshot) -> None:
        self._chunk, self._number, self.snapshot = chunk, number, snapshot

    @property
    def content(self) -> str:
        """See `Origin`."""
        return self._chunk.contents(np.array([self._number]))[0]

    def revision(self, subscription: str) -> str:
        """See `Origin`."""
        return self.snapshot.revision(subscription)


class MatchBlock:
    """The source of some matches (`triplewire.model.match.MatchSource`). What is asked of one is listed for all of them
    at once, unless that is much. Any number of threads may ask.

    `rows` are theirs, in their order. The terms in a graph of a CONSTRUCT query have at most `most_bytes`
    (`Settings.max_binding_bytes`). `cut` is told the rows that turn out to be truncated.
    """

    def __init__(
        self,
        chunk: Chunk,
        snapshot: Snapshot,
        rows: Rows,
        matched_at: dt.datetime,
        most_bytes: int,
        cut: Callable[[NDArray[np.int64]], None],
    ) -> None:
        self.matched_at: dt.datetime | None = matched_at
        self._chunk, self._snapshot, self._rows, self._most_bytes, self._cut = chunk, snapshot, rows, most_bytes, cut
        self._details: Details | None = None
        self._known: list[tuple[Binding, ...] | None] = [None] * len(rows)  # bindings of the rows around one asked for
        self._graph: tuple[int, tuple[Triple, ...]] = -1, ()  # the one made last, and its row
        self._lock = new_lock()  # held by who lists bindings

    @property
    def count(self) -> int | None:
        """About how many bindings the matches have together; None where nobody has asked for any yet."""
        return None if self._details is None else self._details.count

    def __iter__(self) -> Iterator[Match]:
        # an iterator of a list sees what is put there later: once one has its bindings, those that follow are made so
        return matches_of(self, self._snapshot.ids(self._rows.subscription), self._known)

    # --- what matches ask

    def publication(self, row: int) -> str:
        """See `MatchSource`."""
        return self._chunk.ids[int(self._rows.publication[row])]

    def bindings(self, row: int) -> tuple[Binding, ...]:
        """See `MatchSource`."""
        with self._lock:
            known = self._known[row]
            if known is None:
                details, size = self._listed(), len(self._known)
                first, last = 0, size
                if details.count > _LISTED:
                    first, last = row, min(row + max(_LISTED * size // details.count, 1), size)
                    details = self._snapshot.details(self._chunk, self._rows, np.arange(first, last))
                    self._known[:] = repeat(None, size)
                self._known[first:last] = details.bindings
                known = self._known[row]
        assert known is not None
        return known

    def truncated(self, row: int, bindings: tuple[Binding, ...]) -> bool:
        """See `MatchSource`."""
        self.construct(row, bindings)
        return bool(self._rows.truncated[row])

    def construct(self, row: int, bindings: tuple[Binding, ...]) -> tuple[Triple, ...] | None:
        """See `MatchSource`."""
        with self._lock:
            templates = self._listed().templates
        if row not in templates:
            return None
        number, graph = self._graph
        if number != row:
            graph, is_cut = construct(templates[row], bindings, self._most_bytes)
            if is_cut:
                self._mark(np.array([row]))
            self._graph = row, graph
        return graph

    def origin(self, row: int) -> ChunkOrigin:
        """See `MatchSource`."""
        return ChunkOrigin(self._chunk, int(self._rows.publication[row]), self._snapshot)

    def _listed(self) -> Details:
        """The bindings of all matches, which are made when they are read."""
        if self._details is None:
            self._details = self._snapshot.details(self._chunk, self._rows, np.arange(len(self._rows)))
            self._mark(self._details.cut)
        return self._details

    def _mark(self, rows: NDArray[np.int64]) -> None:
        """These matches turn out to be truncated."""
        self._rows.truncated[rows] = True
        self._cut(rows)


def construct(template: Template, bindings: Iterable[Binding], most_bytes: int) -> tuple[tuple[Triple, ...], bool]:
    """The graph of a CONSTRUCT query (SPARQL 1.1, 16.2): its template once for each binding, as a set of triples in the
    order of their making, up to the first with which their terms have more than `most_bytes` together; and whether
    there was one.

    A triple with an unbound variable, a literal subject or a predicate that is no IRI is left out. A hidden variable
    is a blank node of the template: a new one for each binding, of a label that no blank node of the bindings has.
    """
    bindings = tuple(bindings)
    taken = {term.label for binding in bindings for term in binding.values() if isinstance(term, BlankNode)}
    stem = "c"
    while any(label.startswith(stem) for label in taken):
        stem += "c"
    triples: dict[Triple, None] = {}
    sizes: dict[Term, int] = {}
    total = 0
    for number, binding in enumerate(bindings):
        for row in template:
            subject, predicate, object_ = (_instance(term, binding, f"{stem}{number}") for term in row)
            if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and object_ is not None:
                triple = Triple(subject, predicate, object_)
                if triple in triples:
                    continue
                for term in triple:
                    if term not in sizes:
                        sizes[term] = term_bytes(term)
                    total += sizes[term]
                if total > most_bytes:
                    return tuple(triples), True
                triples[triple] = None
    return tuple(triples), False


def _instance(term: PatternTerm, binding: Binding, stem: str) -> Term | None:
    if isinstance(term, Variable):
        return BlankNode(stem + term.name.replace(".", "_")) if term.hidden else binding.get(term.name)
    if isinstance(term, Label):
        return made_iri(term.iri) if term.iri else Literal(term.text)
    return term if isinstance(term, IRI | Literal) else None
