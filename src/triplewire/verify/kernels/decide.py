"""Which clauses have a solution in a publication, and how many? What clauses have in common is solved once for all.

    for each pair (publication, clause), those of a publication one behind the other:
        bound = product over the clause's components, each solved once a publication:
            direct node: count by look-ups | tree: semijoins, from the leaves up | path: rows, step by step
        bound = 0: MISS. More than `cap`: the product again, of exact numbers
        at most `cap`: MATCH. More, and surely as many bindings: TRUNCATED
        nothing is known, or solutions have to be listed to be counted, or clauses do not say all: LEFT

For publications of few triples, whose sets are the bits of a few numbers. Trees are solved by `.semijoin`, paths by
`.join`. What is LEFT goes to the next step of `triplewire.verify.batch_verifier`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import (
    LEFT,
    MATCH,
    MISS,
    TEST_FIELDS,
    TRUNCATED,
    Field,
    TermFeatures,
    TestColumns,
    Triples,
    Verdicts,
    borrowed,
    places,
)
from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.kernels.shared.search import lowest_bit
from triplewire.verify.kernels.columns import (
    ABSENT,
    ALWAYS,
    AT_HAND,
    FIRST_STEP,
    KEPT,
    KIND,
    LEAF,
    LINK,
    MARK,
    MARKS,
    NO_STEP,
    OWNER,
    PARENT,
    ROOT,
    ROW,
    SECOND,
    SEVERAL,
    SUBJECT,
    UNLISTED,
    NodeFeatures,
    Scratch,
    StepColumns,
)
from triplewire.verify.kernels.direct import (
    KEPT_STEPS,
    MOST_PLACES,
    PLAIN,
    count_linked,
    count_plain,
    enter_plain,
    fetch_steps,
    is_direct,
)
from triplewire.verify.kernels.publication import (
    BEGIN,
    BITS_USED,
    COUNT,
    ENDS,
    FEW,
    FIRST_ROW,
    FULL,
    MOST_SOLUTIONS,
    MOST_TERMS,
    MOST_TESTS,
    PLAIN_MASK,
    PLAIN_STAMP,
    SLOTS,
    SOLVED,
    STAMP,
    TOO_MANY,
    TOTAL,
    USED,
    WORD,
    WORDS,
    has_many_pairs,
    prepare,
    solve_path,
    triple_words,
    value_words,
)
from triplewire.verify.kernels.trees import (
    OF_SUBJECT,
    count_tree,
    has_value,
    needs,
    of_variable,
    solve_tree,
    steps_of,
    triples_of,
)

# --- selected --------------------------------------------------------------------------------------------------------
# How many solutions differ in what a clause selects? Bounds, from what the join network has solved of a component.


_int: Any = np.int64
_ONE = _int(1)


@helper
def leaves_of(s: int, steps: StepColumns) -> Any:
    """How many variables of a step stand in no other place?"""
    count = _int(0)
    for k in range(3):
        count += steps.step[s, SUBJECT + k] == LEAF
    return count


@helper
def _terms_of(s: int, place: int, value: int, words: int, size: int, steps: StepColumns, work: Scratch) -> Any:
    """How many different terms stand in a place of the triples that fit a step with the value of its variable?"""
    begin, count = work.memo[s, BEGIN] + size, _int(0)
    position = 2 if steps.step[s, SUBJECT] != -1 and steps.step[s, SUBJECT + 2] == -1 else 0
    has_variable = position == 2 or steps.step[s, SUBJECT] == -1
    for w in range(words):
        fit = work.bits[begin + w] & (work.sets[value, position, w] if has_variable else ~_int(0))
        rest = fit
        while rest != 0:
            term, before = work.triples[place, w * WORD + lowest_bit(rest)], fit & ((rest & -rest) - _ONE)
            before &= work.sets[term, place, w]
            for v in range(w):
                own = work.bits[begin + v] & (work.sets[value, position, v] if has_variable else ~_int(0))
                before |= own & work.sets[term, place, v]
            count += before == 0
            rest &= rest - _ONE
    return count


@helper
def _of_step(s: int, value: int, asked: Any, words: int, size: int, steps: StepColumns, work: Scratch) -> Any:
    """How many combinations of the leaves that are `asked`, as bits, has a step with the value of its variable? At
    least, and at most."""
    leaves, chosen, place = _int(0), _int(0), 0
    for k in range(3):
        if steps.step[s, SUBJECT + k] == LEAF:
            if (asked >> leaves) & 1 != 0:
                chosen, place = chosen + 1, k
            leaves += 1
    if chosen == 0:
        return _ONE, _ONE
    if chosen == 1 and leaves > 1:
        count = _terms_of(s, place, value, words, size, steps, work)
        return count, count
    count = triples_of(s, value, words, size, steps, work)
    return count if chosen == leaves else _ONE, count


@called_helper
def count_selected(root: int, asked: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many rows has a tree that is solved, which differ in the columns that are `asked`, as bits? At least, and at
    most; 0 and MOST_SOLUTIONS where it is no star."""
    size, words, has_variable = value_words(work), triple_words(triples), of_variable(root, steps)
    largest, at_least, at_most = _int(0), _int(0), _int(0)
    for k in range(steps_of(root, steps)):
        if steps.step[needs(root, k, steps), PARENT] == LINK:
            return _int(0), _int(MOST_SOLUTIONS)
    for value in range(work.state[ENDS] if has_variable else 1):
        if has_variable and not has_value(work.node_memo[root, BEGIN], value, work.bits):
            continue
        least, most, column = _ONE, _ONE, _int(has_variable)
        for k in range(steps_of(root, steps)):
            s = needs(root, k, steps)
            if s != ALWAYS:
                own_least, own_most = _of_step(s, value, asked >> column, words, size, steps, work)
                least, most = min(least * own_least, MOST_SOLUTIONS), min(most * own_most, MOST_SOLUTIONS)
                column += leaves_of(s, steps)
        largest, at_least = max(largest, least), min(at_least + least, MOST_SOLUTIONS)
        at_most = min(at_most + most, MOST_SOLUTIONS)
    return at_least if not has_variable or asked & 1 != 0 else largest, at_most


# --- decide ------------------------------------------------------------


EXACT, ALONE, ASK, DISTINCT = 1, 2, 4, 8
"""Bits of a clause's mark. EXACT: its subscription is equivalent to its clauses, and it has no residual predicate. Its
subscription has no other clause; is an ASK query; has a binding for each solution."""

AHEAD = 32  # pairs whose steps are fetched together
_LOW = _int(0xFFFFFFFF)


def scratch(constants: int, tests: int, columns: StepColumns, room: int, zeros: Callable[..., Any]) -> Scratch:
    """What `decide` works with, for so many constants and tests. `room`: numbers in rows of solutions, and in sets.
    `zeros` makes the arrays that are as large as the network, of a shape and a type."""
    nodes = len(columns.node) // ROW
    return Scratch(
        zeros(constants, np.int64),
        zeros(tests, np.int64),
        np.zeros(SLOTS, np.int64),
        np.zeros((3, SLOTS), np.int32),
        np.zeros((MOST_TERMS + MOST_TESTS, 3, WORDS), np.int64),
        np.zeros((3, FEW), np.int32),
        zeros((len(columns.step), 4), np.int32),
        zeros(room, np.int32),
        zeros((nodes, 4), np.int32),
        zeros(nodes, np.int64),
        zeros(room, np.int64),
        np.zeros((2, MOST_TERMS), np.int32),
        np.empty(64, np.int32),
        zeros(nodes, np.int64),
        np.zeros((MOST_PLACES, 2), np.int64),
        np.zeros((KEPT_STEPS, 2), np.int64),
        np.zeros(PLAIN_MASK + 1, np.int64),
    )


@helper
def _fetch_root(root: int, steps: StepColumns, work: Scratch) -> None:
    """Have the row of a component fetched."""
    if root >= 0:
        prefetch(steps.node, ROW * root)
    elif root < NO_STEP:
        prefetch(steps.step, -2 - root)
        prefetch(work.memo, -2 - root)


@helper
def _fetch_steps(root: int, steps: StepColumns, work: Scratch) -> None:
    """Have what is read of the steps of a component fetched, whose row is there."""
    if root >= 0 and steps.node[ROW * root] >> KIND > 0:
        fetch_steps(root, steps, work)
    elif root >= 0:
        prefetch(work.node_memo, root)
        for k in range(FIRST_STEP, FIRST_STEP + AT_HAND):
            prefetch(steps.step, steps.node[ROW * root + k])
            prefetch(work.memo, steps.node[ROW * root + k])


@helper
def fetch(clause: Any, begin: int, steps: StepColumns, work: Scratch) -> None:
    """Have what will be read of clauses fetched: of the components of those from `begin` on, their steps; of the ones
    behind these, their rows; of the ones behind those, what components they have. So what is read here has come."""
    end, is_later = min(begin + AHEAD, clause.size), begin > 0
    for k in range(min(begin + 2 * AHEAD * is_later, clause.size), min(begin + 3 * AHEAD, clause.size)):
        prefetch(steps.clause, clause[k])
    for k in range(min(begin + AHEAD * is_later, clause.size), min(begin + 2 * AHEAD, clause.size)):
        if steps.clause[clause[k], ROOT] == SEVERAL:
            prefetch(steps.roots, steps.clause[clause[k], SECOND])
        else:
            for place in range(ROOT, SECOND + 1):
                root = steps.clause[clause[k], place]
                if root > ABSENT:
                    _fetch_root(root, steps, work)
    for k in range(begin, end):
        if steps.clause[clause[k], ROOT] == SEVERAL:
            begin_roots = steps.clause[clause[k], SECOND]
            for j in range(begin_roots + 1, begin_roots + 1 + steps.roots[begin_roots]):
                _fetch_root(steps.roots[j], steps, work)
        else:
            for place in range(ROOT, SECOND + 1):
                _fetch_steps(steps.clause[clause[k], place], steps, work)


@helper
def most_solutions(root: int, p: int, triples: int, steps: StepColumns, features: NodeFeatures,
          work: Scratch) -> Any:  # fmt: skip
    """How many solutions has a component at most? 0: it has none. TOO_MANY: nothing is known."""
    if root >= 0 and is_direct(root, steps, work):
        if work.state[PLAIN_STAMP] != work.state[STAMP]:
            work.state[PLAIN_STAMP] = work.state[STAMP]
            enter_plain(triples, work)
        if steps.node[ROW * root] >> KIND == PLAIN:
            return count_plain(root, steps, work)
        if work.direct[root] >> 32 != work.state[STAMP]:
            work.direct[root] = (work.state[STAMP] << 32) | count_linked(root, triples, steps, work)
        return work.direct[root] & _LOW
    if root >= 0:
        if work.node_memo[root, SOLVED] != work.state[STAMP]:
            solve_tree(root, p, triples, steps, features, work)
        return _int(work.node_memo[root, TOTAL])
    if root == NO_STEP:
        return _int(TOO_MANY)
    if work.memo[-2 - root, SOLVED] != work.state[STAMP]:
        solve_path(-2 - root, p, triples, steps, features, work)
    return _int(work.memo[-2 - root, TOTAL] if work.memo[-2 - root, COUNT] >= 0 else TOO_MANY)


@helper
def components_of(c: int, steps: StepColumns) -> Any:
    """The components of a clause as numbers for `root_of`: first, and end."""
    root, second = steps.clause[c, ROOT], steps.clause[c, SECOND]
    if root == SEVERAL:
        return _int(second + 1), _int(second + 1 + steps.roots[second])
    return _int(0), _int(2 if second != ABSENT else 1)


@helper
def root_of(c: int, j: int, steps: StepColumns) -> Any:
    """The root of a component of a clause, or what stands there for one (`StepColumns.roots`)."""
    root = steps.clause[c, ROOT]
    return steps.roots[j] if root == SEVERAL else root if j == 0 else steps.clause[c, SECOND]


@helper
def _exactly_of(root: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a component that is solved, and has some? TOO_MANY where nothing is known."""
    if root >= 0 and is_direct(root, steps, work):
        is_plain = steps.node[ROW * root] >> KIND == PLAIN
        return count_plain(root, steps, work) if is_plain else work.direct[root] & _LOW
    return count_tree(root, triples, steps, work) if root >= 0 else _int(work.memo[-2 - root, TOTAL])


@called_helper
def _exactly(c: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a clause whose components are solved, and have some? TOO_MANY where nothing is known."""
    total, (first, last) = _int(1), components_of(c, steps)
    for j in range(first, last):
        count = _exactly_of(root_of(c, j, steps), triples, steps, work)
        total = min(total * count, MOST_SOLUTIONS) if total >= 0 and count >= 0 else _int(TOO_MANY)
    return total


@called_helper
def _selected(c: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions that differ in what it selects has a clause whose components are solved, and have some? At
    least, and at most."""
    at, least, most, (first, last) = _int(steps.clause[c, MARK] >> MARKS), _int(1), _int(1), components_of(c, steps)
    width, at = _int(steps.variable[at]), at + 1
    for j in range(first, last):
        root, columns, asked = root_of(c, j, steps), _int(steps.variable[at]), _int(0)
        if width == UNLISTED or columns == UNLISTED:
            return _int(0), _int(MOST_SOLUTIONS)
        for k in range(columns):
            asked |= _int(steps.variable[at + 1 + k] < width) << k
        own_least, own_most = _int(1), _int(1)
        if asked != 0 and (root < 0 or is_direct(root, steps, work)):
            own_most = _exactly_of(root, triples, steps, work)
            own_most = own_most if own_most >= 0 else _int(MOST_SOLUTIONS)
            own_least = own_most if asked == (1 << columns) - 1 else own_least
        elif asked != 0:
            own_least, own_most = count_selected(root, asked, triples, steps, work)
        least, most = min(least * own_least, MOST_SOLUTIONS), min(most * own_most, MOST_SOLUTIONS)
        at += columns + 1
    return least, most


@helper
def _outcome(c: int, total: Any, cap: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """The outcome of a clause that has solutions, `total` at most."""
    mark = steps.clause[c, MARK]
    if mark & EXACT == 0:
        return LEFT
    if mark & ASK > 0:
        return MATCH
    if mark & ALONE > 0 and total > cap:
        total = _exactly(c, triples, steps, work)
    least = total if mark & DISTINCT > 0 else 0
    if mark & ALONE > 0 and mark & DISTINCT == 0 and total > cap:
        least, total = _selected(c, triples, steps, work)
    if mark & ALONE > 0 and 0 <= total <= cap:
        return MATCH
    return TRUNCATED if mark & ALONE > 0 and least > cap and cap < MOST_SOLUTIONS else LEFT


@helper
def begin_publication(p: int, batch: Triples, known: Any, features: NodeFeatures, has_many: bool,
                      work: Scratch) -> None:  # fmt: skip
    """Nothing is solved of a publication, but that the step ALWAYS has all values. `has_many`: as in `prepare`."""
    work.state[STAMP] += 1
    prepare(p, batch, known, features, has_many, work)
    size = value_words(work)
    work.state[USED], work.state[BITS_USED], work.state[FULL] = FIRST_ROW + 1, size, 0
    work.memo[ALWAYS, SOLVED], work.memo[ALWAYS, BEGIN], work.memo[ALWAYS, OF_SUBJECT] = work.state[STAMP], 0, 1
    work.bits[:size] = (_int(1) << WORD) - 1


@helper
def _write(outcome: int, p: int, c: int, owner: int, verdicts: Verdicts, matches: int, others: int) -> Any:
    """A match goes to `matched`, a pair that is not decided to `left`. Returns how many these are now."""
    matched, truncated, left = verdicts
    if outcome == LEFT:
        left[0, others], left[1, others], others = p, c, others + 1
    elif outcome != MISS:
        matched[0, matches], matched[1, matches], truncated[matches] = p, owner, outcome == TRUNCATED
        matches += 1
    return matches, others


@called_helper
def _decide(publication: Any, clause: Any, steps: StepColumns, batch: Triples, known: Any,
            features: NodeFeatures, cap: int, work: Scratch, verdicts: Verdicts) -> Any:  # fmt: skip
    """What `decide` does. known[term of the batch]: the segment's constant, or -1."""
    now, triples, matches, others = -1, 0, _int(0), _int(0)
    work.rows[FIRST_ROW] = 1
    for k in range(clause.size):
        if k % AHEAD == 0:
            fetch(clause, k, steps, work)
        p, c = publication[k], clause[k]
        if p != now:
            now, triples = p, batch.offset[p + 1] - batch.offset[p]
            if triples <= FEW:
                begin_publication(p, batch, known, features, has_many_pairs(publication, k), work)
        outcome, total, is_known = _int(LEFT), _int(1), True
        if triples <= FEW:
            first, last = components_of(c, steps)
            for j in range(first, last):
                if total > 0:
                    own = root_of(c, j, steps)
                    most = most_solutions(own, p, triples, steps, features, work)
                    total = min(total * most, MOST_SOLUTIONS) if most >= 0 else total
                    is_known = is_known and most >= 0
            if total == 0:
                outcome = _int(MISS)
            elif is_known:
                outcome = _int(_outcome(c, total, cap, triples, steps, work))
        matches, others = _write(outcome, p, c, steps.clause[c, OWNER], verdicts, matches, others)
    return matches, others


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


@kernel
def decide(publication: Any, clause: Any, lent: Any, batch: Triples, features: TermFeatures, node_key: Any, cap: int,
           verdicts: Verdicts) -> Any:  # fmt: skip
    """What becomes of pairs of a publication and a clause, those of a publication one behind the other: how many are
    matches, and how many are left. `lent`: the addresses of `LENT`; `node_key`: as in `NodeFeatures`."""
    of_nodes = NodeFeatures(
        features.offset, features.test, features.low, features.high, features.node_offset, node_key
    )  # fmt: skip
    steps, work = take_steps(lent, STEPS), take_scratch(lent, SCRATCH)
    return _decide(publication, clause, steps, batch, features.term, of_nodes, cap, work, verdicts)
