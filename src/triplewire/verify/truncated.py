"""Which bindings does a truncated match keep? The first that the search finds in its publication, written in order.

The terms of the publication are numbered in the order of `triplewire.model.match.term_key`, and its triples are in the
order of these numbers. The clauses of one pair are searched in that, and nothing else: so what is kept depends on the
publication and the clauses alone, not on the batch, the thread, or other subscriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from triplewire.clauses.features import Features
from triplewire.clauses.node_tests.columns import inverse, slices
from triplewire.clauses.view import View
from triplewire.encode.batch import Ids
from triplewire.encode.buffers import of_text
from triplewire.encode.decode import Decoder
from triplewire.encode.names import strings_at
from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.outcomes import MATCH, TRUNCATED
from triplewire.verify.evaluated import Content
from triplewire.verify.json_texts import term_order
from triplewire.verify.rows import bindings_of
from triplewire.verify.solve import Pairs, Searched, Solver


class FirstRows:
    """For matches of one batch. A publication in order is kept for its next match."""

    def __init__(self, view: View, content: Content, solver: Solver, most: int) -> None:
        self._view = view
        self._content = content
        self._solver = solver
        self._most = most
        self._decoder = Decoder(view.batch)
        self._ordered: dict[int, _Ordered] = {}

    def rows(self, pairs: Pairs, pair: int) -> Ids | None:
        """The first `most` rows of a pair that has more, as terms of the batch, -1 for unbound. None where the search
        does not find them."""
        number = int(pairs.publication[pair])
        ordered = self._ordered.get(number)
        if ordered is None:
            ordered = self._ordered[number] = _Ordered.of(self._view, number, self._decoder)
        alone = replace(pairs.take(np.array([pair])), publication=np.zeros(1, np.int32))
        solved = self._solver.solve(
            ordered.searched, alone, True, lambda _: self._content.publication(number), matched=True
        )
        if solved.outcome[0] not in (MATCH, TRUNCATED):
            return None
        bindings = bindings_of(solved, alone, self._most)
        start, size = int(bindings.start[0]), int(bindings.count[0] * bindings.width[0])
        return ordered.ids.take(bindings.rows[start : start + size]) if bindings.more[0] else None


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A publication alone, in order."""

    ids: Ids  # term -> the same in the batch; one more is -1, so that ids[-1] is unbound
    searched: Searched

    @classmethod
    def of(cls, view: View, number: int, decoder: Decoder) -> _Ordered:
        """The publication with this number."""
        batch, features, terms = view.batch, view.features, view.batch.terms
        stated = slice(int(batch.offset[number]), int(batch.offset[number + 1]))
        columns = np.stack([column[stated] for column in (batch.subject, batch.predicate, batch.object)])
        used, place = np.unique(columns, return_inverse=True)
        order = term_order(
            terms, used.astype(np.int64), of_text(*strings_at(terms.text, terms.start[used], terms.end[used]))
        )
        rank, ids = inverse(order), used[order]
        triples = rank[place].reshape(columns.shape)
        triples = triples[:, np.lexsort(triples[::-1])]
        offset, tests = slices(features.offset, ids)
        in_publication = slice(int(features.node_offset[number]), int(features.node_offset[number + 1]))
        node_term, node_test = features.node_term[in_publication], features.node_test[in_publication]
        node_term = rank[np.searchsorted(used, node_term)]
        nodes = np.lexsort((node_test, node_term))
        own = Features(
            features.term[ids],
            offset,
            features.test[tests],
            np.take(features.low, ids, axis=1),
            np.take(features.high, ids, axis=1),
            np.array([0, len(nodes)]),
            node_term[nodes],
            node_test[nodes],
        )
        subject, predicate, object_ = np.ascontiguousarray(triples)
        ends = np.array([0, len(subject)])
        ordered = Triples(ends, subject, predicate, object_)
        searched = Searched.of(ordered, own, np.zeros(1, np.int32), lambda term: decoder.term(int(ids[term])))
        return cls(np.append(ids, -1).astype(np.int32), searched)
