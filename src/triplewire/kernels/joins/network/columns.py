"""Arrays that belong together, as the kernels of the join network take them."""

from __future__ import annotations

from typing import Any, NamedTuple

PARENT, SUBJECT, PREDICATE, OBJECT, WIDTH, NEW_WIDTH, TEST, TEST_END = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of `step`. A position of the pattern is a constant, -1 - v for the variable v, or LEAF. `WIDTH`: variables
that have a value before the step; `NEW_WIDTH`: after it. `TEST` .. `TEST_END`: its slice of `tested`."""

COLUMNS = 8
LEAF = -1000  # a variable that stands in no other place of the component: its values are counted, not listed
NO_STEP = -1  # parent of a first step; also `last` of a component that is not in the network
APART = -2  # parent of a step that belongs to trees: the triples that fit its pattern, as a set
POSITION, NUMBER = 0, 1  # columns of `tested`
RANGED = 3  # added to the POSITION of a range test; these come last in a step


LINK = -3  # parent of a step of another kind: its EDGE and CHILD
EDGE, CHILD = SUBJECT, PREDICATE
"""Columns of a LINK: the step of a pattern << 1, plus 1 where it leads from object to subject; the node there."""

ALWAYS = 0  # a step that is APART and has all values; it fills up rows of `node`
AT_HAND, MORE, MORE_END, NODE_COLUMNS = 6, 6, 7, 8
"""Columns of `node`: the first steps AT_HAND, which are APART or LINK; the others as a slice of `more`, or what kind of
direct node it is (`triplewire.kernels.joins.network.direct`)."""

MARK, ROOT, SECOND, OWNER = 0, 1, 2, 3
"""Columns of `clause`: what its solutions say (`.decide`); what stands in `last` for its first component, and for its
second one; its subscription."""

SEVERAL, ABSENT = -1 << 30, (-1 << 30) + 1  # as ROOT: it has more than two components, or none; as SECOND: it has one


MARKS = 5  # bits of MARK; above them is where the clause's components begin in `variable`
UNLISTED = 255
"""In `variable`, in place of a number of columns: solutions are not listed. That stands in its first place, too."""


class StepColumns(NamedTuple):
    """The join steps and trees of a segment's clauses, shared by all clauses that have them."""

    step: Any  # shape (steps, COLUMNS)
    tested: Any  # shape (tests, 2): the position of the pattern whose value is tested, the test
    node: Any  # shape (nodes, NODE_COLUMNS)
    more: Any  # steps
    component_offset: Any  # clause -> its slice of `last`
    last: Any  # component -> the root of its tree, or -2 - the last step of its path, or NO_STEP
    clause: Any  # shape (clauses, 4)
    plain: Any  # hash table of the plain steps (`triplewire.kernels.joins.network.direct`)
    variable: Any  # by component: how many columns its solutions have, and the variable of each (`.order`)


class Scratch(NamedTuple):
    """What `decide` works with. It may be used again, for the same network."""

    constants: Any  # constant -> stamp << 32 | the publication's term
    tests: Any  # test -> stamp << 32 | the set of triples that it holds of
    slots: Any  # hash table: stamp << 32 | the batch's term
    terms: Any  # shape (3, terms of a publication): by slot its term; by term that of the batch, and the constant
    sets: Any  # shape (terms and tests of a publication, 3, WORDS): triples with it as subject, predicate, object
    triples: Any  # shape (3, triples of a publication): their terms
    memo: Any  # shape (steps, 4): stamp, begin in `rows`, number of rows (or TOO_MANY), number of solutions
    rows: Any  # of all steps, one behind the other: number of solutions, then the values of the variables
    node_memo: Any  # shape (nodes, 4): stamp, begin in `bits`, solutions for a value at most, in all at most
    counted: Any  # node -> stamp << 32 | where in `rows` are its solutions by value
    bits: Any  # sets of values and of triples; first the one that has all values
    tally: Any  # shape (2, terms of a publication): zeros
    path: Any  # steps or nodes that are to be solved
    values: Any  # shape (steps, 2): of a plain step, stamp, and the values that it allows
    direct: Any  # direct node with a link -> stamp << 32 | its solutions
    asked: Any  # shape (3, keys): plain steps that are looked up
    state: Any  # the places are those of `triplewire.kernels.joins.network.publication`
