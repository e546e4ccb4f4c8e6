"""Arrays that belong together, as the kernels of the join network take them."""

from __future__ import annotations

from typing import Any, NamedTuple

SUBJECT, PREDICATE, OBJECT, TEST, COLUMNS = 0, 1, 2, 3, 4
"""Columns of `step`. A position of the pattern is a constant, -1 - v for the variable v, or LEAF. `TEST`: where its
slice of `tested` begins; it ends where that of the next row begins."""

PARENT, WIDTH, NEW_WIDTH = 0, 1, 2
"""Columns of the row behind a step of a path. `WIDTH`: variables that have a value before the step; `NEW_WIDTH`: after
it."""

LEAF = -1000  # a variable that stands in no other place of the component: its values are counted, not listed
NO_STEP = -1  # parent of a first step; also `last` of a component that is not in the network
APART = -2  # instead of a parent: the step belongs to trees, and is the triples that fit its pattern, as a set
POSITION, NUMBER = 0, 1  # columns of `tested`
RANGED = 3  # added to the POSITION of a range test; these come last in a step


LINK = -1001  # as OBJECT: a step of another kind, with an EDGE and a CHILD
EDGE, CHILD = SUBJECT, PREDICATE
"""Columns of a LINK: the step of a pattern << 1, plus 1 where it leads from object to subject; the node there."""

ALWAYS = 0  # a step that is APART and has all values; it fills up rows of `node`
AT_HAND, MORE, NODE_COLUMNS = 3, 3, 4
"""Columns of `node`: the first steps AT_HAND, which are APART or LINK; where the others begin in `more`. They end where
those of the next row begin."""

MARK, ROOT = 0, 1  # columns of `clause`
SEVERAL = -1 << 30  # as ROOT: the clause has several components, or none


class Owners(NamedTuple):
    """The subscriptions of clauses."""

    owner: Any


class StepColumns(NamedTuple):
    """The join steps and trees of a segment's clauses, shared by all clauses that have them."""

    step: Any  # shape (rows, COLUMNS): a step is one row, or two where it belongs to a path; the last is the end
    tested: Any  # shape (tests, 2): the position of the pattern whose value is tested, the test
    node: Any  # shape (nodes + 1, NODE_COLUMNS)
    more: Any  # steps
    component_offset: Any  # clause -> its slice of `last`
    last: Any  # component -> the root of its tree, or -2 - the last step of its path, or NO_STEP
    clause: Any  # shape (clauses, 2): what its solutions say (`.decide`); `last` of its component, or SEVERAL


class Scratch(NamedTuple):
    """What `decide` works with. It may be used again, for the same network."""

    constants: Any  # constant -> stamp << 32 | the publication's term
    tests: Any  # test -> stamp << 32 | the set of triples that it holds of
    slots: Any  # hash table: stamp << 32 | the batch's term
    terms: Any  # shape (3, terms of a publication): by slot its term; by term that of the batch, and the constant
    sets: Any  # shape (terms and tests of a publication, 3, WORDS): triples with it as subject, predicate, object
    triples: Any  # shape (3, triples of a publication): their terms
    memo: Any  # shape (rows of steps, 4): stamp, begin in `rows`, number of rows (or TOO_MANY), number of solutions
    rows: Any  # of all steps, one behind the other: number of solutions, then the values of the variables
    node_memo: Any  # shape (nodes, 4): stamp, begin in `bits`, solutions for a value at most, in all at most
    counted: Any  # node -> stamp << 32 | where in `rows` are its solutions by value
    bits: Any  # sets of values and of triples; first the one that has all values
    tally: Any  # shape (2, terms of a publication): zeros
    path: Any  # steps or nodes that are to be solved
    state: Any  # the places are those of `triplewire.kernels.joins.network.publication`
