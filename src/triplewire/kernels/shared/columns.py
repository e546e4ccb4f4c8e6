"""Arrays that belong together, as kernels take them: named tuples, which Numba sees as such.

What the columns mean is said where they are made: `triplewire.encode.batch`, `triplewire.clauses.features`,
`triplewire.clauses.table`, `triplewire.clauses.node_tests.table`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.lending import Field


class Triples(NamedTuple):
    """The triples of a batch, by publication, subject, predicate and object."""

    offset: Any  # publication -> its slice; one longer than the publications
    subject: Any
    predicate: Any
    object: Any


class BatchColumns(NamedTuple):
    """All columns of a batch."""

    offset: Any
    subject: Any
    predicate: Any
    object: Any
    text: Any
    start: Any
    end: Any
    kind: Any
    suffix: Any
    suffix_text: Any  # the suffixes one behind the other
    suffix_offset: Any
    hash: Any
    number: Any
    number_state: Any
    word_offset: Any
    word_ids: Any
    word_text: Any
    word_start: Any
    word_end: Any
    word_hash: Any


class TermFeatures(NamedTuple):
    """What a batch is to a segment (`triplewire.clauses.features.Features`)."""

    term: Any  # batch term -> the segment's term id, or -1
    offset: Any  # batch term -> its slice of `test`
    test: Any
    node_offset: Any  # publication -> its slice of `node_term` and `node_test`
    node_term: Any
    node_test: Any
    low: Any  # shape (range groups, terms)
    high: Any


class ClauseColumns(NamedTuple):
    """The patterns and tests of clauses (`triplewire.clauses.table.ClauseTable`)."""

    pattern_offset: Any  # clause -> its slice of `pattern`
    pattern: Any  # shape (patterns, 3): a term, or -1 - v for the variable v
    test_offset: Any  # clause -> its slice of `test_variable` and `test`
    test_variable: Any
    test: Any


RESIDUAL, INDEXED, RANGE_TEST = 0, 1, 2
"""Kinds of tests: evaluated for each node; in the node's slice of tests; told by ranks."""


class TestColumns(NamedTuple):
    """The tests (`triplewire.clauses.node_tests.table.Tests`)."""

    kind: Any
    group: Any
    op: Any  # of a range test (`triplewire.kernels.shared.ranks`), else 0
    rank: Any


TEST_FIELDS = (Field(np.uint8), Field(np.int32), Field(np.uint8), Field(np.int32))
"""What they hold (`triplewire.kernels.shared.lending`)."""


def fixed(*arrays: Any) -> Any:
    """The arrays, mapped from files or not, as a tuple of contiguous views that cannot be written to: to the compiler
    they are of one type then, so a kernel is compiled once."""
    return tuple([fixed_array(array) for array in arrays])


def fixed_array(array: Any) -> Any:
    """One array as `fixed` gives it. Most are plain and contiguous, and a publication alone has some fifty of them."""
    if type(array) is not np.ndarray or not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).view(np.ndarray)
    elif not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view
