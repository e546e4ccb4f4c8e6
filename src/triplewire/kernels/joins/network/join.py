"""Join steps are solved: the rows of a step are those of its parent, joined with the triples that fit its pattern.

    rows(step) = for each row of its parent, for each triple that fits the pattern with the row's values:
        the row with the values of the pattern's new variables, and how many solutions it stands for
        (values of variables that stand nowhere else, and need not be listed, only add to that number)

Rows stay until the next publication.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures
from triplewire.kernels.joins.network.columns import (
    AFTER,
    BEFORE,
    LEAF,
    OBJECT,
    PARENT,
    POSITION,
    PREDICATE,
    RANGED,
    SUBJECT,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.network.publication import (
    BEGIN,
    COUNT,
    LISTED,
    MOST_SOLUTIONS,
    SOLVED,
    STAMP,
    TOO_MANY,
    TOTAL,
    USED,
    VISITED,
    WORD,
    fitting,
    passes,
    triple_words,
)
from triplewire.kernels.shared.bits import count_bits
from triplewire.kernels.shared.compiled import helper

MOST_ROWS = 1024  # of a step
FIRST_ROW = 0  # the row that first steps are joined to; it has no variables
_int: Any = np.int64


@helper
def _bind(n: int, triple: int, row: int, at: int, steps: StepColumns, work: Scratch) -> Any:
    """Write the row `at`: that of the parent, and the values that a triple gives. False: a variable has two."""
    step, rows, width = steps.step, work.rows, _int(steps.width[n, BEFORE])
    for v in range(width):
        rows[at + 1 + v] = rows[row + 1 + v]
    fits = True
    for k in range(3):
        code, value = step[n, SUBJECT + k], work.triples[k, triple]
        if code < 0 and code != LEAF and -1 - code >= _int(steps.width[n, BEFORE]):
            if -1 - code >= width:
                rows[at + 1 + (-1 - code)], width = value, -code
            fits = fits and rows[at + 1 + (-1 - code)] == value
    return fits


@helper
def _join(n: int, row: int, weight: int, publication: int, triples: int, out: int, steps: StepColumns,
          features: NodeFeatures, work: Scratch) -> int:  # fmt: skip
    """Put the rows that a row of the parent has in a step behind those that end at `out`. Returns the end, or
    TOO_MANY."""
    step, rows = steps.step, work.rows
    t0, t1 = steps.test_offset[n], steps.test_offset[n + 1]
    width, new_width = _int(steps.width[n, BEFORE]), _int(steps.width[n, AFTER])
    size, begin, count = new_width + 1, out, _int(0)
    has_leaf = step[n, SUBJECT] == LEAF or step[n, PREDICATE] == LEAF or step[n, OBJECT] == LEAF
    listed = t1 if work.state[LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, POSITION] >= RANGED)
    for w in range(triple_words(triples)):
        bits = fitting(n, w, row, width, triples, t0, listed, steps, work)
        if not asks and new_width == width:
            count += count_bits(bits)
            bits = _int(0)
        while bits != 0:
            triple = w * WORD + count_bits((bits & -bits) - 1)
            bits &= bits - 1
            if asks and not passes(t0, t1, triple, publication, steps, features, work):
                continue
            if new_width == width:
                count += 1
                continue
            if out + size > rows.size:
                return TOO_MANY
            if not _bind(n, triple, row, out, steps, work):
                continue
            at, same = begin if has_leaf else out, False
            while at < out and not same:  # another value of a leaf gives the same row
                same = True
                for v in range(width + 1, size):
                    same = same and rows[at + v] == rows[out + v]
                at = at if same else at + size
            if same:
                rows[at] = min(_int(rows[at]) + weight, MOST_SOLUTIONS)
            else:
                rows[out] = weight
                out += size
    if count > 0:
        if out + size > rows.size:
            return TOO_MANY
        rows[out] = min(weight * count, MOST_SOLUTIONS)
        for v in range(1, size):
            rows[out + v] = rows[row + v]
        out += size
    return out


@helper
def _solve(n: int, publication: int, triples: int, steps: StepColumns, features: NodeFeatures,
           work: Scratch) -> None:  # fmt: skip
    """Solve a step whose parent is solved. Inlined where it is called, with all that it calls: the arrays would take
    longer to hand over than most steps take."""
    memo, rows, parent = work.memo, work.rows, steps.step[n, PARENT]
    begin = _int(work.state[USED])
    out, parents, row, total = begin, _int(1), _int(FIRST_ROW), _int(0)
    if parent >= 0:
        parents, row = _int(memo[parent, COUNT]), _int(memo[parent, BEGIN])
    for _ in range(max(parents, 0)):
        if out >= 0:
            out = _join(n, row, rows[row], publication, triples, out, steps, features, work)
        row += _int(steps.width[n, BEFORE]) + 1
    size = _int(steps.width[n, AFTER]) + 1
    if parents < 0 or out < 0 or out - begin > MOST_ROWS * size:
        memo[n, COUNT] = TOO_MANY
    else:
        for at in range(begin, out, size):
            total += rows[at]
        memo[n, BEGIN], memo[n, COUNT], memo[n, TOTAL] = begin, (out - begin) // size, min(total, MOST_SOLUTIONS)
        work.state[USED] = out
    memo[n, SOLVED] = work.state[STAMP]
    work.state[VISITED] += 1


@helper
def solve_path(n: int, publication: int, triples: int, steps: StepColumns, features: NodeFeatures,
                work: Scratch) -> None:  # fmt: skip
    """Solve a step and those before it, as far as that has not been done."""
    depth, stamp = 0, work.state[STAMP]
    while n >= 0 and work.memo[n, SOLVED] != stamp:
        work.path[depth], depth, n = n, depth + 1, steps.step[n, PARENT]
    while depth > 0:
        depth -= 1
        _solve(work.path[depth], publication, triples, steps, features, work)
