"""Candidates that a count settles: clauses of one star that join nothing. The others go to `triplewire.verify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.kernels import star_bits as few
from triplewire.kernels import star_count as many
from triplewire.select.features import Features
from triplewire.select.idle import Idle
from triplewire.select.index import Index

_SCRATCH = Idle[Any]()


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
    pairs = len(clause)
    if not pairs:
        return Settled(publication, clause, np.zeros(0, np.bool_), publication, clause)
    verdict, marks = np.empty(pairs, np.uint8), index.marks
    triples = batch.offset, batch.subject, batch.predicate, batch.object
    texts = programs.test_offset, programs.test_variable, programs.test
    stated = programs.pattern_offset, programs.pattern, *texts, tests.op
    seen = features.term, features.offset, features.test, features.node_offset
    with _SCRATCH.one(few.scratch) as work:
        opened = few.settle(publication, clause, trie.owner, marks, stated, triples, seen, cap, work, verdict)
    if opened:
        many.settle(
            publication, clause, marks, *triples, *seen, features.node_term, features.node_test, features.low,
            features.high, programs.pattern_offset, programs.pattern, *texts, tests.group, tests.op, tests.rank, cap,
            verdict,
        )  # fmt: skip
    out, cut, left = np.empty((2, pairs), np.int32), np.empty(pairs, np.bool_), np.empty((2, pairs), np.int32)
    sure, rest = few.write(publication, clause, trie.owner, verdict, out, cut, left)
    return Settled(out[0, :sure], out[1, :sure], cut[:sure], left[0, :rest], left[1, :rest])
