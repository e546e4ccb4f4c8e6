"""Arrays that belong together, as the kernels that join take them, and the numbers of their columns and places.

Kernels of the network call this module `net`: `net.STAMP`. Sets of triples and of terms are bits, WORD in a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import TEST_FIELDS, Field, TestColumns, borrowed, places, range_holds
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.search import is_listed, lower

PARENT, SUBJECT, PREDICATE, OBJECT, WIDTH, NEW_WIDTH, TEST, TEST_END = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of a step while the network is made; those from `WIDTH` on stand elsewhere then. A position of the pattern
is a constant, -1 - v for the variable v, or LEAF. `WIDTH`: variables that have a value before the step; `NEW_WIDTH`:
after it. `TEST` .. `TEST_END`: its slice of `tested`."""

COLUMNS, KEPT = 8, 4  # while it is made, and then
BEFORE, AFTER = 0, 1  # columns of `width`
LEAF = -1000  # a variable that stands in no other place of the component: its values are counted, not listed
NO_STEP = -1  # parent of a first step; also `last` of a component that is not in the network
APART = -2  # parent of a step that belongs to trees: the triples that fit its pattern, as a set
POSITION, NUMBER = 0, 1
"""Columns of `tested`: the position of the pattern whose value is tested, the test. What a range test asks is there,
too, so that nobody looks elsewhere: its operator in OPS bits above the PLACES bits of the position, then its group; its
rank in place of the test."""

PLACES, OPS = 2, 3
RANGED = 1 << PLACES  # the least POSITION of a range test; these come last in a step


LINK = -3  # parent of a step of another kind: its EDGE and CHILD
EDGE, CHILD = SUBJECT, PREDICATE
"""Columns of a LINK: the step of a pattern << 1, plus 1 where it leads from object to subject; the node there."""

ALWAYS = 0  # a step that is APART and has all values; it fills up rows of `node`
AT_HAND, ROW = 3, 4  # steps that each node has room for; numbers in a row
KIND, COUNT_MASK, FIRST_STEP = 8, 0xFF, 1
"""A node is one row or several, one behind the other, and its number is that of the first row. It begins with the
number of its steps, and above KIND what sort of direct node it is (`triplewire.verify.kernels.direct`), or 0.
From FIRST_STEP on are its steps, which are APART or LINK; ALWAYS, where there are fewer than AT_HAND."""

MARK, ROOT, SECOND, OWNER = 0, 1, 2, 3
"""Columns of `clause`: what its solutions say (`.decide`); the root of its first component, and of its second one, as
in `roots`; its subscription."""

SEVERAL, ABSENT = -1 << 30, (-1 << 30) + 1
"""As ROOT: it has more than two components, or none, and SECOND says where their slice of `roots` begins, with the
number of them. As SECOND: it has one component."""


MARKS = 5  # bits of MARK; above them is where the clause's components begin in `variable`
UNLISTED = 255
"""In `variable`, in place of a number: there are more, or solutions are not listed. That stands in its first two
places, too."""


EXACT, ALONE, ASK, DISTINCT = 1, 2, 4, 8
"""Bits of a clause's mark. EXACT: its subscription is equivalent to its clauses, and it has no residual predicate. Its
subscription has no other clause; is an ASK query; has a binding for each solution."""

WORD, WORDS = 62, 4  # triples or terms whose bits are one number; numbers of a set of triples
FEW = WORD * WORDS  # triples of a publication
MOST_TERMS = 3 * FEW
MOST_TESTS = 1024  # that hold of the terms of a publication; where there are more, each is asked of each term
LISTING = 16  # pairs of a publication for which its tests are listed; for fewer, to ask takes less time
SLOTS = 2048  # a power of two, at least twice as many as a publication has terms
MOST_SOLUTIONS = 1 << 30  # counts stay there
STAMP, USED, LISTED, VISITED, ENDS, BITS_USED, FULL, PLAIN_STAMP, PLAIN_MASK = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Places in `state`: the stamp of the publication at hand; how much of `rows` is used; is `tests` complete; steps and
nodes solved; terms that are subjects or objects, which have the first numbers; how much of `bits` is used; was that too
small; the stamp of the publication whose plain steps are in `plain`, and the number of places there, less one."""
SOLVED, BEGIN, COUNT, TOTAL = 0, 1, 2, 3  # columns of `memo`
TOO_MANY = -1  # as COUNT or TOTAL: nothing is known
BY_SLOT, OF_BATCH, CONSTANT = 0, 1, 2  # rows of `terms`
FIRST_ROW = 0  # the row that first steps are joined to; it has no variables
BOUND = COUNT  # column of `node_memo`: solutions below for one value, at most; TOTAL: for all
OF_SUBJECT, OF_OBJECT = COUNT, TOTAL
"""Columns of `memo`, of a step that is APART: triples that fit, for one value of its subject, and of its object, at
most. The first one is that of its only variable, and of a LINK: solutions for one value, at most."""

MOST_PATH = 64  # steps or nodes from a root down
MOST_PLACES = 1024  # of the table of what plain steps can be
KEPT_STEPS = 1024  # whose values are kept: a power of two


USES, COLOUR, NEXT_COLOUR, VALUE, VERTEX = 0, 1, 2, 3, 4  # rows of `variables` while the network is made
NONE = -1  # as VALUE: the variable has no value yet; as VERTEX: it is none; no node, no column
USED_STEPS, USED_TESTS, USED_NODES = 0, 1, 2  # places in `used`: how many there are


class StepColumns(NamedTuple):
    """The join steps and trees of a segment's clauses, shared by all clauses that have them."""

    step: Any  # shape (steps, KEPT)
    width: Any  # shape (steps, 2): of a step of a path, the variables that have a value before it, and after it
    test_offset: Any  # step -> its slice of `tested`
    tested: Any  # shape (tests, 2): what is tested
    node: Any  # rows of ROW numbers, flat
    clause: Any  # shape (clauses, 4), in the order of the network (`triplewire.select.index.Index.order`)
    roots: Any  # of components: the root of its tree, or -2 - the last step of its path, or NO_STEP
    variable: Any  # by clause: how many variables it selects; then by component: how many columns its solutions have,
    # and the variable of each (`make_trees`)


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
    node_memo: Any  # shape (rows of nodes, 4): stamp, begin in `bits`, solutions for a value at most, in all at most
    counted: Any  # node -> stamp << 32 | where in `rows` are its solutions by value
    bits: Any  # sets of values and of triples; first the one that has all values
    tally: Any  # shape (2, terms of a publication): zeros
    path: Any  # steps or nodes that are to be solved
    direct: Any  # direct node with a link -> stamp << 32 | its solutions
    plain: Any  # shape (places, 2): hash table of what plain steps there can be (`.direct`): key, and its values
    step_values: Any  # shape (KEPT_STEPS, 2): of plain steps that were looked up: stamp << 32 | step, and its values
    state: Any  # places: STAMP ..


def doubled(array: Any) -> Any:
    """The array with room for as much again."""
    grown = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


_ids, _longs, _four = Field(np.int32), Field(np.int64), Field(np.int32, (4,))
LENT = (
    (StepColumns, (Field(np.int32, (KEPT,)), Field(np.uint8, (2,)), _ids, Field(np.int32, (2,)), _ids, _four, _ids,
                   Field(np.uint8))),
    (TestColumns, TEST_FIELDS),
    (Scratch, (_longs, _longs, _longs, Field(np.int32, (SLOTS,)), Field(np.int64, (3, WORDS)), Field(np.int32, (FEW,)),
               _four, _ids, _four, _longs, _longs, Field(np.int32, (MOST_TERMS,)), _ids, _longs,
               Field(np.int64, (2,)), Field(np.int64, (2,)), _longs)),
)  # fmt: skip
"""What is in the table of addresses, in its order."""

STEPS, TESTS, SCRATCH = places(LENT)
take_steps, take_tests, take_scratch = (borrowed(kind, fields) for kind, fields in LENT)


def scratch(constants: int, tests: int, columns: StepColumns, room: int, zeros: Callable[..., Any]) -> Scratch:
    """What `decide` works with, for so many constants and tests. `room`: numbers in rows of solutions, and in sets.
    `zeros` makes an array of a shape and a type, which may be as large as the network."""
    steps, nodes = len(columns.step), len(columns.node) // ROW
    of_publication = SLOTS, 3, MOST_TERMS + MOST_TESTS, 3
    of_network = steps, room, nodes, nodes, room, 2, MOST_PATH, nodes, MOST_PLACES, KEPT_STEPS, PLAIN_MASK + 1
    rows, fields = (constants, tests, *of_publication, *of_network), LENT[-1][1]
    return Scratch(*(zeros((size, *field.row), field.dtype) for size, field in zip(rows, fields, strict=True)))


# --- what kernels that join take -------------------------------------------------------------------------------------


class SortedTriples(NamedTuple):
    """The triples of a batch by publication, subject, predicate and object; of some, in other orders too."""

    offset: Any  # publication -> its slice; one longer than the publications
    pairs: Any  # subject << 32 | predicate
    object: Any
    key_offset: Any  # publication -> where its keys begin, or -1 (`triplewire.kernels.components.sort_triples`)
    keys: Any


class NodeFeatures(NamedTuple):
    """Which tests hold of which terms (`triplewire.clauses.view.Features`)."""

    offset: Any  # term -> its slice of `test`
    test: Any
    low: Any  # shape (range groups, terms)
    high: Any
    node_offset: Any  # publication -> its slice of `node_key`
    node_key: Any  # term << 32 | test, ascending: what holds in this publication only


class PairColumns(NamedTuple):
    """Pairs of a publication and some clauses of one subscription."""

    publication: Any
    clause_offset: Any  # pair -> its slice of `clauses`; one longer than the pairs
    clauses: Any
    width: Any  # how many variables are selected; 0 where one solution is enough


class StatedClauses(NamedTuple):
    """The clauses of a segment and their components (`triplewire.kernels.components`)."""

    pattern_offset: Any
    pattern: Any
    component_offset: Any
    component: Any
    member: Any
    test_offset: Any
    test_variable: Any
    test: Any


class JoinedClauses(NamedTuple):
    """Some clauses and their components, with their constants as the batch's terms."""

    code_offset: Any  # clause -> its slice of `code`
    code: Any  # shape (patterns, 3)
    component_offset: Any
    component: Any
    member: Any
    condition_offset: Any  # clause -> its slice of `condition`
    condition: Any  # shape (tests, 6): variable, test, kind, group, operator, rank


class ResidualAnswers(NamedTuple):
    """What is known of residual predicates (`triplewire.verify.residual_tests`)."""

    scope: Any  # test -> has it an answer for each publication?
    known: Any  # hash table


class SolutionRows(NamedTuple):
    """Where solutions go."""

    rows: Any
    pieces: Any  # shape (pieces, 4): pair, clause, begin in `rows`, number of rows
    slots: Any  # hash table over the rows of a component


class SearchState(NamedTuple):
    """What a search works with."""

    frame: Any
    value: Any
    state: Any


class PublicationSlice(NamedTuple):
    """The publication at hand: its number, its slice of the triples, and where its keys begin, or -1."""

    number: int
    begin: int
    end: int
    keys: int


class ClauseConditions(NamedTuple):
    """The tests of the clause at hand, and what they ask."""

    condition: Any
    features: NodeFeatures
    residual: ResidualAnswers


# --- does a test hold of a node in a publication ---------------------------------------------------------------------


@called_helper
def is_indexed(test: int, term: int, publication: int, features: NodeFeatures) -> Any:
    """Does an indexed test hold of the term, everywhere or in this publication?"""
    answer = is_listed(test, features.test, features.offset[term], features.offset[term + 1])
    if not answer:
        end, key = features.node_offset[publication + 1], (np.int64(term) << 32) | test
        at = lower(features.node_key, features.node_offset[publication], end, key)
        answer = at < end and features.node_key[at] == key
    return answer


@helper
def is_within(term: int, group: int, op: int, rank: int, features: NodeFeatures) -> Any:
    """Does a range test hold of the term?"""
    return range_holds(op, rank, features.low[group, term], features.high[group, term])
