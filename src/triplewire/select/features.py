"""Which tests of a segment do the terms of a batch satisfy? The bridge from strings to ids.

The tests themselves: `triplewire.select.tests`. What is done with the answers: `triplewire.select.trie` and
`triplewire.verify.columnar`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets


@dataclass(frozen=True, slots=True)
class Features:
    """A batch in the eyes of one segment. A test is satisfied by a term when it is in the term's slice of `test`, or in
    the publication's slice of `node_*`, or is a range test whose interval covers it.

    Range tests: each belongs to a range group and has a rank, the place of its constant among the group's distinct
    constants in ascending order. `low` counts the constants below the term's value, `high` those below or equal;
    both are -1 where the term has no value of the group's kind. So `> c` holds for ranks < low, `>= c` for ranks < high,
    `< c` for ranks >= high, `<= c` for ranks >= low, `= c` for low <= rank < high.
    """

    term: Ids  # batch term -> the segment's term id, or -1
    offset: Offsets  # batch term -> its slice of `test`; one longer than the terms
    test: Ids  # test ids, ascending within a slice; neither range nor lazy tests
    low: NDArray[np.int32]  # shape (groups, terms)
    high: NDArray[np.int32]
    node_offset: Offsets  # publication -> its slice of `node_term` and `node_test`; all zero where no test asks for it
    node_term: Ids  # batch terms, ascending within a slice: what holds of a node in this publication only (classes)
    node_test: Ids  # ascending for each term
