"""Which clauses have a solution in a publication, and how many? What clauses have in common is solved once for all.

    for each pair (publication, clause), those of a publication one behind the other:
        bound = product over the clause's components, each solved once a publication:
            direct node: count by look-ups | tree: semijoins, from the leaves up | path: rows, step by step
        bound = 0: MISS. More than `cap`: the product again, of exact numbers
        at most `cap`: MATCH. More, and surely as many bindings: TRUNCATED
        nothing is known, or solutions have to be listed to be counted, or clauses do not say all: LEFT

For publications of few triples, whose sets are the bits of a few numbers. Trees are solved by `trees`, paths by
`publication`. What is LEFT goes to the next step of `triplewire.verify.batch_verifier`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import LEFT, MATCH, MISS, TRUNCATED, TermFeatures, Triples, Verdicts
from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels.columns import NodeFeatures, Scratch, StepColumns
from triplewire.verify.kernels.direct import PLAIN, count_linked, count_plain, enter_plain, fetch_steps, is_direct
from triplewire.verify.kernels.publication import has_many_pairs, prepare, solve_path, value_words
from triplewire.verify.kernels.trees import count_tree, solve_tree

AHEAD = 32  # pairs whose steps are fetched together
_int: Any = np.int64
_LOW = _int(0xFFFFFFFF)


@helper
def _fetch_root(root: int, steps: StepColumns, work: Scratch) -> None:
    """Have the row of a component fetched."""
    if root >= 0:
        prefetch(steps.node, net.ROW * root)
    elif root < net.NO_STEP:
        prefetch(steps.step, -2 - root)
        prefetch(work.memo, -2 - root)


@helper
def _fetch_steps(root: int, steps: StepColumns, work: Scratch) -> None:
    """Have what is read of the steps of a component fetched, whose row is there."""
    if root >= 0 and steps.node[net.ROW * root] >> net.KIND > 0:
        fetch_steps(root, steps, work)
    elif root >= 0:
        prefetch(work.node_memo, root)
        for k in range(net.FIRST_STEP, net.FIRST_STEP + net.AT_HAND):
            prefetch(steps.step, steps.node[net.ROW * root + k])
            prefetch(work.memo, steps.node[net.ROW * root + k])


@helper
def fetch(clause: Any, begin: int, steps: StepColumns, work: Scratch) -> None:
    """Have what will be read of clauses fetched: of the components of those from `begin` on, their steps; of the ones
    behind these, their rows; of the ones behind those, what components they have. So what is read here has come."""
    end, is_later = min(begin + AHEAD, clause.size), begin > 0
    for k in range(min(begin + 2 * AHEAD * is_later, clause.size), min(begin + 3 * AHEAD, clause.size)):
        prefetch(steps.clause, clause[k])
    for k in range(min(begin + AHEAD * is_later, clause.size), min(begin + 2 * AHEAD, clause.size)):
        if steps.clause[clause[k], net.ROOT] == net.SEVERAL:
            prefetch(steps.roots, steps.clause[clause[k], net.SECOND])
        else:
            for place in range(net.ROOT, net.SECOND + 1):
                root = steps.clause[clause[k], place]
                if root > net.ABSENT:
                    _fetch_root(root, steps, work)
    for k in range(begin, end):
        if steps.clause[clause[k], net.ROOT] == net.SEVERAL:
            begin_roots = steps.clause[clause[k], net.SECOND]
            for j in range(begin_roots + 1, begin_roots + 1 + steps.roots[begin_roots]):
                _fetch_root(steps.roots[j], steps, work)
        else:
            for place in range(net.ROOT, net.SECOND + 1):
                _fetch_steps(steps.clause[clause[k], place], steps, work)


@helper
def most_solutions(root: int, p: int, triples: int, steps: StepColumns, features: NodeFeatures,
          work: Scratch) -> Any:  # fmt: skip
    """How many solutions has a component at most? 0: it has none. TOO_MANY: nothing is known."""
    if root >= 0 and is_direct(root, steps, work):
        if work.state[net.PLAIN_STAMP] != work.state[net.STAMP]:
            work.state[net.PLAIN_STAMP] = work.state[net.STAMP]
            enter_plain(triples, work)
        if steps.node[net.ROW * root] >> net.KIND == PLAIN:
            return count_plain(root, steps, work)
        if work.direct[root] >> 32 != work.state[net.STAMP]:
            work.direct[root] = (work.state[net.STAMP] << 32) | count_linked(root, triples, steps, work)
        return work.direct[root] & _LOW
    if root >= 0:
        if work.node_memo[root, net.SOLVED] != work.state[net.STAMP]:
            solve_tree(root, p, triples, steps, features, work)
        return _int(work.node_memo[root, net.TOTAL])
    if root == net.NO_STEP:
        return _int(net.TOO_MANY)
    if work.memo[-2 - root, net.SOLVED] != work.state[net.STAMP]:
        solve_path(-2 - root, p, triples, steps, features, work)
    return _int(work.memo[-2 - root, net.TOTAL] if work.memo[-2 - root, net.COUNT] >= 0 else net.TOO_MANY)


@helper
def components_of(c: int, steps: StepColumns) -> Any:
    """The components of a clause as numbers for `root_of`: first, and end."""
    root, second = steps.clause[c, net.ROOT], steps.clause[c, net.SECOND]
    if root == net.SEVERAL:
        return _int(second + 1), _int(second + 1 + steps.roots[second])
    return _int(0), _int(2 if second != net.ABSENT else 1)


@helper
def root_of(c: int, j: int, steps: StepColumns) -> Any:
    """The root of a component of a clause, or what stands there for one (`StepColumns.roots`)."""
    root = steps.clause[c, net.ROOT]
    return steps.roots[j] if root == net.SEVERAL else root if j == 0 else steps.clause[c, net.SECOND]


@helper
def _exactly_of(root: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a component that is solved, and has some? TOO_MANY where nothing is known."""
    if root >= 0 and is_direct(root, steps, work):
        is_plain = steps.node[net.ROW * root] >> net.KIND == PLAIN
        return count_plain(root, steps, work) if is_plain else work.direct[root] & _LOW
    return count_tree(root, triples, steps, work) if root >= 0 else _int(work.memo[-2 - root, net.TOTAL])


@called_helper
def _exactly(c: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a clause whose components are solved, and have some? TOO_MANY where nothing is known."""
    total, (first, last) = _int(1), components_of(c, steps)
    for j in range(first, last):
        count = _exactly_of(root_of(c, j, steps), triples, steps, work)
        total = min(total * count, net.MOST_SOLUTIONS) if total >= 0 and count >= 0 else _int(net.TOO_MANY)
    return total


@helper
def _outcome(c: int, total: Any, cap: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """The outcome of a clause that has solutions, `total` at most."""
    mark = steps.clause[c, net.MARK]
    if mark & net.EXACT == 0:
        return LEFT
    if mark & net.ASK > 0:
        return MATCH
    if mark & net.ALONE == 0:
        return LEFT
    if total > cap:
        total = _exactly(c, triples, steps, work)
    if 0 <= total <= cap:
        return MATCH
    return TRUNCATED if mark & net.DISTINCT > 0 and total > cap and cap < net.MOST_SOLUTIONS else LEFT


@helper
def begin_publication(p: int, batch: Triples, known: Any, features: NodeFeatures, has_many: bool,
                      work: Scratch) -> None:  # fmt: skip
    """Nothing is solved of a publication, but that the step ALWAYS has all values. `has_many`: as in `prepare`."""
    work.state[net.STAMP] += 1
    prepare(p, batch, known, features, has_many, work)
    size = value_words(work)
    work.state[net.USED], work.state[net.BITS_USED], work.state[net.FULL] = net.FIRST_ROW + 1, size, 0
    work.memo[net.ALWAYS, net.SOLVED], work.memo[net.ALWAYS, net.BEGIN] = work.state[net.STAMP], 0
    work.memo[net.ALWAYS, net.OF_SUBJECT] = 1
    work.bits[:size] = (_int(1) << net.WORD) - 1


@called_helper
def _decide(publication: Any, clause: Any, steps: StepColumns, batch: Triples, known: Any,
            features: NodeFeatures, cap: int, work: Scratch, verdicts: Verdicts) -> Any:  # fmt: skip
    """What `decide` does. known[term of the batch]: the segment's constant, or -1."""
    (matched, truncated, left), now, triples, matches, others = verdicts, -1, 0, _int(0), _int(0)
    work.rows[net.FIRST_ROW] = 1
    for k in range(clause.size):
        if k % AHEAD == 0:
            fetch(clause, k, steps, work)
        p, c = publication[k], clause[k]
        if p != now:
            now, triples = p, batch.offset[p + 1] - batch.offset[p]
            if triples <= net.FEW:
                begin_publication(p, batch, known, features, has_many_pairs(publication, k), work)
        outcome, total, is_known = _int(LEFT), _int(1), True
        if triples <= net.FEW:
            first, last = components_of(c, steps)
            for j in range(first, last):
                if total > 0:
                    root = root_of(c, j, steps)
                    most = most_solutions(root, p, triples, steps, features, work)
                    total = min(total * most, net.MOST_SOLUTIONS) if most >= 0 else total
                    is_known = is_known and most >= 0
            if total == 0:
                outcome = _int(MISS)
            elif is_known:
                outcome = _int(_outcome(c, total, cap, triples, steps, work))
        if outcome == LEFT:
            left[0, others], left[1, others], others = p, c, others + 1
        elif outcome != MISS:
            matched[0, matches], matched[1, matches] = p, steps.clause[c, net.OWNER]
            truncated[matches], matches = outcome == TRUNCATED, matches + 1
    return matches, others


@kernel
def decide(publication: Any, clause: Any, lent: Any, batch: Triples, features: TermFeatures, node_key: Any, cap: int,
           verdicts: Verdicts) -> Any:  # fmt: skip
    """What becomes of pairs of a publication and a clause, those of a publication one behind the other: how many are
    matches, and how many are left. `lent`: the addresses of `LENT`; `node_key`: as in `NodeFeatures`."""
    of_nodes = NodeFeatures(
        features.offset, features.test, features.low, features.high, features.node_offset, node_key
    )  # fmt: skip
    steps, work = net.take_steps(lent, net.STEPS), net.take_scratch(lent, net.SCRATCH)
    return _decide(publication, clause, steps, batch, features.term, of_nodes, cap, work, verdicts)
