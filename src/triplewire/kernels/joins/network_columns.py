"""Arrays that belong together, as the kernels of the join network take them (`triplewire.kernels.joins.network`)."""

from __future__ import annotations

from typing import Any, NamedTuple

PARENT, SUBJECT, PREDICATE, OBJECT, WIDTH, NEW_WIDTH, TEST, TEST_END = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of `step`. A position of the pattern is a constant, -1 - v for the variable v, or LEAF. `WIDTH`: variables
that have a value before the step; `NEW_WIDTH`: after it. `TEST` .. `TEST_END`: its slice of `tested`."""

COLUMNS = 8
LEAF = -1000  # a variable that stands in no other place of the component: its values are counted, not listed
NO_STEP = -1  # parent of a first step; also the last step of a component that is not in the network
POSITION, NUMBER = 0, 1  # columns of `tested`
RANGED = 3  # added to the POSITION of a range test; these come last in a step


class StepColumns(NamedTuple):
    """The join steps of a segment's clauses, shared by all clauses that begin with them."""

    step: Any  # shape (steps, COLUMNS)
    tested: Any  # shape (tests, 2): the position of the pattern whose value is tested, the test
    component_offset: Any  # clause -> its slice of `last`
    last: Any  # component -> its last step, or NO_STEP
    mark: Any  # clause -> what its solutions say of its subscription (`triplewire.kernels.joins.network`)


class Scratch(NamedTuple):
    """What `decide` works with. It may be used again, for the same steps."""

    constants: Any  # constant -> stamp << 32 | the publication's term
    tests: Any  # test -> stamp << 32 | the set of triples that it holds of
    slots: Any  # hash table: stamp << 32 | the batch's term
    terms: Any  # shape (3, terms of a publication): by slot its term; by term that of the batch, and the constant
    sets: Any  # shape (terms and tests of a publication, 3, WORDS): triples with it as subject, predicate, object
    triples: Any  # shape (3, triples of a publication): their terms
    memo: Any  # shape (steps, 4): stamp, begin in `rows`, number of rows (or TOO_MANY), number of solutions
    rows: Any  # of all steps, one behind the other: number of solutions, then the values of the variables
    path: Any  # steps that are to be solved
    state: Any  # the stamp of the publication at hand, how much of `rows` is used, is `tests` complete, steps solved
