"""Candidates that a count settles: clauses of one star that join nothing. The others go to `triplewire.verify`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.kernels import star_count as kernels
from triplewire.select.features import Features
from triplewire.select.index import Index


@dataclass(frozen=True, slots=True)
class Settled:
    """Matches as columns, and the pairs (publication, clause) that are left."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    left_publication: Ids
    left_clause: Ids


def settle(index: Index, batch: Batch, features: Features, publication: Ids, clause: Ids, cap: int) -> Settled:
    """Of the pairs (publication, clause), those that are matches, those that are none, and those left to be joined.
    `cap` is `max_bindings`."""
    programs, tests, trie = index.programs, index.tests, index.trie
    out = np.empty(len(clause), np.uint8)
    columns = features.offset, features.test, features.node_term, features.node_test, features.low, features.high
    program = (
        programs.pattern_offset, programs.pattern, programs.test_offset, programs.test_variable, programs.test,
    )  # fmt: skip
    triples = batch.offset, batch.subject, batch.predicate, batch.object
    local = np.full(len(index.terms), -1, np.int32)
    found = np.flatnonzero(features.term >= 0)
    local[features.term[found]] = found
    kernels.settle(
        publication, clause, trie.status, index.asks, index.alone, index.width, triples, features.term, local,
        features.node_offset, columns, program, (tests.kind, tests.group, tests.op, tests.rank), cap, out,
    )  # fmt: skip
    sure, left = (out == kernels.ACCEPT) | (out == kernels.CUT), out == kernels.LEAVE
    return Settled(
        publication[sure], trie.owner[clause[sure]], out[sure] == kernels.CUT, publication[left], clause[left]
    )
