"""Trees are solved: which values a variable can have, so that all below it has a solution, and how many at most.

    values(node) = values that all its patterns allow, and from which each of its links leads to a value of its child
    bound(node)  = product over its steps of the most triples (for a link, times the child's bound) that a value has
    solutions    <= bound(root) * number of values(root)
    exactly: count(node, value) = product over its steps of
        the triples that fit with the value | for a link, the sum of count(child, other end) over them

Sets of values and of triples are bits of numbers, WORD in each. Source: M. Yannakakis, "Algorithms for Acyclic Database
Schemes", VLDB 1981, section 4. No solution is listed. They are counted only where the bound does not decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.search import count_bits, lowest_bit
from triplewire.verify.kernels.columns import (
    AFTER,
    ALWAYS,
    AT_HAND,
    CHILD,
    COUNT_MASK,
    EDGE,
    FIRST_STEP,
    LEAF,
    LINK,
    NO_STEP,
    PARENT,
    POSITION,
    RANGED,
    ROW,
    SUBJECT,
    NodeFeatures,
    Scratch,
    StepColumns,
)
from triplewire.verify.kernels.publication import (
    BEGIN,
    BITS_USED,
    COUNT,
    ENDS,
    FIRST_ROW,
    FULL,
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
    value_words,
)

BOUND = COUNT  # column of `node_memo`: solutions below for one value, at most; TOTAL: for all
OF_SUBJECT, OF_OBJECT = COUNT, TOTAL
"""Columns of `memo`, of a step that is APART: triples that fit, for one value of its subject, and of its object, at
most. The first one is that of its only variable, and of a LINK: solutions for one value, at most."""

_NONE = -1
_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)


@helper
def has_value(place: Any, term: Any, bits: Any) -> Any:
    """Is a term in a set?"""
    return (bits[place + term // WORD] >> (term % WORD)) & 1 != 0


@helper
def _fit(n: int, publication: int, triples: int, steps: StepColumns, features: NodeFeatures,
         work: Scratch) -> None:  # fmt: skip
    """The triples that fit the pattern of a step: first the values of its first variable, then the triples, as sets."""
    step, memo, bits, tally = steps.step, work.memo, work.bits, work.tally
    size, words, begin = value_words(work), triple_words(triples), work.state[BITS_USED]
    memo[n, SOLVED], memo[n, BEGIN], memo[n, OF_SUBJECT], memo[n, OF_OBJECT] = work.state[STAMP], begin, 0, 0
    work.state[VISITED] += 1
    if begin + size + words > bits.size:
        work.state[FULL], memo[n, BEGIN], memo[n, OF_SUBJECT], memo[n, OF_OBJECT] = 1, 0, 1, 1
        return
    t0, t1, number = steps.test_offset[n], steps.test_offset[n + 1], _int(0)
    listed = t1 if work.state[LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, POSITION] >= RANGED)
    first = 0 if step[n, SUBJECT] == -1 else 2 if step[n, SUBJECT + 2] == -1 else _NONE
    is_edge, is_loop = step[n, SUBJECT + 2] == -2, first == 0 and step[n, SUBJECT + 2] == -1
    bits[begin : begin + size] = 0
    for w in range(words):
        fit = rest = fitting(n, w, FIRST_ROW, _int(0), triples, t0, listed, steps, work)
        while rest != 0:
            triple = w * WORD + lowest_bit(rest)
            own = rest & -rest  # the lowest bit that is set: that of this triple
            rest ^= own
            subject, object_ = work.triples[0, triple], work.triples[2, triple]
            if (is_loop and subject != object_) or (
                asks and not passes(t0, t1, triple, publication, steps, features, work)
            ):
                fit ^= own
                continue
            number += 1
            if first != _NONE:
                value = subject if first == 0 else object_
                bits[begin + value // WORD] |= _ONE << (value % WORD)
                tally[0, value] += 1
                memo[n, OF_SUBJECT] = max(memo[n, OF_SUBJECT], tally[0, value])
            if is_edge:
                tally[1, object_] += 1
                memo[n, OF_OBJECT] = max(memo[n, OF_OBJECT], tally[1, object_])
        bits[begin + size + w] = fit
    for w in range(words):
        rest = bits[begin + size + w]
        while rest != 0:
            triple = w * WORD + lowest_bit(rest)
            rest &= rest - 1
            tally[0, work.triples[0, triple]] = tally[0, work.triples[2, triple]] = 0
            tally[1, work.triples[2, triple]] = 0
    if first == _NONE:
        bits[begin], memo[n, OF_SUBJECT] = number > 0, number
    work.state[BITS_USED] = begin + size + words


@helper
def _semijoin(n: int, triples: int, steps: StepColumns, work: Scratch) -> None:
    """The values that a LINK leads from to a value of its child, which is solved, as its edge is."""
    memo, node_memo, bits, place = work.memo, work.node_memo, work.bits, work.state[BITS_USED]
    edge, child, back = steps.step[n, EDGE] >> 1, steps.step[n, CHILD], steps.step[n, EDGE] & 1
    size, words = value_words(work), triple_words(triples)
    memo[n, SOLVED], memo[n, BEGIN], memo[n, OF_SUBJECT] = work.state[STAMP], place, 0
    work.state[VISITED] += 1
    if place + size > bits.size:
        work.state[FULL], memo[n, BEGIN], memo[n, OF_SUBJECT] = 1, 0, 1
    elif node_memo[child, TOTAL] != 0 and memo[edge, OF_SUBJECT] > 0:
        bound, theirs = _int(memo[edge, OF_SUBJECT + back]) * node_memo[child, BOUND], node_memo[child, BEGIN]
        memo[n, OF_SUBJECT], work.state[BITS_USED] = min(bound, MOST_SOLUTIONS), place + size
        for w in range(size):
            bits[place + w] = 0
        for w in range(words):
            rest = bits[memo[edge, BEGIN] + size + w]
            while rest != 0:
                triple = w * WORD + lowest_bit(rest)
                rest &= rest - 1
                value = work.triples[2 * back, triple]
                if has_value(theirs, work.triples[2 - 2 * back, triple], bits):
                    bits[place + value // WORD] |= _ONE << (value % WORD)


@helper
def steps_of(n: int, steps: StepColumns) -> Any:
    """How many steps has a node?"""
    return steps.node[ROW * n] & COUNT_MASK


@helper
def needs(n: int, k: int, steps: StepColumns) -> Any:
    """The step number k of a node."""
    return steps.node[ROW * n + FIRST_STEP + k]


@helper
def _solve_steps(n: int, publication: int, triples: int, steps: StepColumns,
                 features: NodeFeatures, work: Scratch) -> Any:  # fmt: skip
    """Solve the steps of a node. Returns NONE; or a child that is to be solved before; or n: it has no value."""
    stamp, memo = work.state[STAMP], work.memo
    for k in range(steps_of(n, steps)):
        s = needs(n, k, steps)
        if memo[s, SOLVED] != stamp:
            is_link = steps.step[s, PARENT] == LINK
            if is_link and work.node_memo[steps.step[s, CHILD], SOLVED] != stamp:
                return _int(steps.step[s, CHILD])
            fit = steps.step[s, EDGE] >> 1 if is_link else s
            if memo[fit, SOLVED] != stamp:
                _fit(fit, publication, triples, steps, features, work)
            if is_link:
                _semijoin(s, triples, steps, work)
        if memo[s, OF_SUBJECT] == 0:
            return _int(n)
    return _int(_NONE)


@helper
def _meet(n: int, steps: StepColumns, work: Scratch) -> Any:
    """The values of a node, and bounds of its solutions. False: some of its steps are not solved."""
    memo, bits, begin, stamp, many = work.memo, work.bits, work.state[BITS_USED], work.state[STAMP], steps_of(n, steps)
    size, bound, count, solved = value_words(work), _int(1), _int(0), True
    for k in range(AT_HAND):
        s = needs(n, k, steps)
        solved &= memo[s, SOLVED] == stamp
        bound = min(bound * memo[s, OF_SUBJECT], MOST_SOLUTIONS)
    if solved and many > AT_HAND:
        for k in range(AT_HAND, many):
            s = needs(n, k, steps)
            solved &= memo[s, SOLVED] == stamp
            bound = min(bound * memo[s, OF_SUBJECT], MOST_SOLUTIONS)
    if not solved:
        return False
    for w in range(size):
        common = bits[memo[needs(n, 0, steps), BEGIN] + w]
        for k in range(1, AT_HAND):
            common &= bits[memo[needs(n, k, steps), BEGIN] + w]
        if many > AT_HAND:
            for k in range(AT_HAND, many):
                common &= bits[memo[needs(n, k, steps), BEGIN] + w]
        bits[begin + w] = common
        count += count_bits(common)
    own = work.node_memo
    own[n, SOLVED], own[n, BEGIN], own[n, BOUND] = stamp, begin, bound
    own[n, TOTAL] = min(bound * count, MOST_SOLUTIONS)
    work.state[BITS_USED] = begin + size
    return True


@helper
def solve_tree(root: int, publication: int, triples: int, steps: StepColumns,
               features: NodeFeatures, work: Scratch) -> None:  # fmt: skip
    """Solve a node, and those below it, as far as that has not been done and makes a difference. Inlined where it is
    called, with all that it calls: the arrays would take longer to hand over than most nodes take."""
    depth, work.path[0], stamp = 1, root, work.state[STAMP]
    while depth > 0:
        n = work.path[depth - 1]
        if work.state[BITS_USED] + value_words(work) > work.bits.size:
            work.state[FULL] = 1
        if work.state[FULL] != 0:
            work.node_memo[n, SOLVED], work.node_memo[n, TOTAL] = stamp, TOO_MANY
        elif not _meet(n, steps, work):
            waits = _solve_steps(n, publication, triples, steps, features, work)
            if waits != n:
                work.path[depth], depth = waits, depth + (waits != _NONE)
                continue
            work.node_memo[n, SOLVED], work.node_memo[n, TOTAL] = stamp, 0
        work.state[VISITED] += 1
        depth -= 1


@helper
def triples_of(s: int, value: int, words: int, size: int, steps: StepColumns, work: Scratch) -> Any:
    """How many triples fit the pattern of a step that is APART, with the value of its variable, if it has one?"""
    position, count = 2 if steps.step[s, SUBJECT] != -1 and steps.step[s, SUBJECT + 2] == -1 else 0, _int(0)
    has_value = position == 2 or steps.step[s, SUBJECT] == -1
    for w in range(words):
        rest = work.bits[work.memo[s, BEGIN] + size + w]
        count += count_bits(rest & work.sets[value, position, w] if has_value else rest)
    return count


@helper
def _below(s: int, value: int, words: int, size: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a LINK from a value?"""
    edge, child, back, count = steps.step[s, EDGE] >> 1, steps.step[s, CHILD], steps.step[s, EDGE] & 1, _int(0)
    for w in range(words):
        rest = work.bits[work.memo[edge, BEGIN] + size + w] & work.sets[value, 2 * back, w]
        while rest != 0:
            term = work.triples[2 - 2 * back, w * WORD + lowest_bit(rest)]
            rest &= rest - 1
            if has_value(work.node_memo[child, BEGIN], term, work.bits):
                count += work.rows[(work.counted[child] & _LOW) + term]
    return count


@called_helper
def _count_node(n: int, triples: int, begin: int, steps: StepColumns, work: Scratch) -> Any:
    """Write down how many solutions each value of a node has, where those of its children are known. Returns their
    sum."""
    size, words, total = value_words(work), triple_words(triples), _int(0)
    for value in range(work.state[ENDS]):
        if not has_value(work.node_memo[n, BEGIN], value, work.bits):
            continue
        count = _int(1)
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if steps.step[s, PARENT] == LINK:
                count = min(count * _below(s, value, words, size, steps, work), MOST_SOLUTIONS)
            else:
                count = min(count * triples_of(s, value, words, size, steps, work), MOST_SOLUTIONS)
        work.rows[begin + value] = count
        total = min(total + count, MOST_SOLUTIONS)
    return total


@called_helper
def count_tree(root: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a tree that is solved and has one? TOO_MANY where there is no room to count them."""
    stamp, depth, total, work.path[0] = work.state[STAMP], 1, _int(0), root
    while depth > 0:
        n, child = work.path[depth - 1], _int(_NONE)
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if steps.step[s, PARENT] == LINK and work.counted[steps.step[s, CHILD]] >> 32 != stamp:
                child = _int(steps.step[s, CHILD])
        if child != _NONE:
            work.path[depth], depth = child, depth + 1
            continue
        begin = work.state[USED]
        if begin + work.state[ENDS] + 1 > work.rows.size:
            return _int(TOO_MANY)
        work.state[USED] = begin + work.state[ENDS] + 1
        total = _count_node(n, triples, begin, steps, work)
        work.counted[n] = (stamp << 32) | begin
        depth -= 1
    return total


# --- levels ----------------------------------------------------------------------------------------------------------
# A component as levels that are walked to list its solutions: each gives some of the columns their values.


KIND, STEP, AT, SIDE, CHILD_NODE, COLUMN, COLUMN_END = 0, 1, 2, 3, 4, 5, 8
"""Columns of `level`: what it walks; the step or node; the column that its triples have a value of, or NONE, and in
which place; the node that has the value at the other end, or NONE; by place of a triple, the column that it gives."""

VALUES, TRIPLES, ROWS, FITTING = 0, 1, 2, 3
"""Kinds: the values of a node; the triples of a step that is APART; the rows of a path's last step; the triples that
fit a step with the row's values."""

NONE = -1
MOST_LEVELS = 72  # a component has at most 32 patterns, and there is one for the root


class Levels(NamedTuple):
    """The levels of the component at hand."""

    level: Any  # shape (MOST_LEVELS, COLUMN_END)
    queue: Any  # shape (2, MOST_LEVELS): nodes whose steps come next, and the columns of their variables
    wanted: Any  # column -> is it asked for, or does it lead there?


@helper
def _add(kind: int, step: int, at: int, side: int, child: int, count: int, level: Any) -> int:
    """Put a level behind others; it gives nothing yet. Returns how many there are."""
    level[count, KIND], level[count, STEP], level[count, AT], level[count, SIDE] = kind, step, at, side
    level[count, CHILD_NODE] = child
    for k in range(3):
        level[count, COLUMN + k] = NONE
    return count + 1


@helper
def _add_leaves(s: int, column: int, count: int, steps: StepColumns, level: Any) -> int:
    """The level before `count` gives what is LEAF in a step. Returns how many columns there are."""
    for k in range(3):
        if steps.step[s, SUBJECT + k] == LEAF:
            level[count - 1, COLUMN + k], column = column, column + 1
    return column


@helper
def of_variable(n: int, steps: StepColumns) -> Any:
    """Has a node a variable, or just one pattern whose variables are LEAF?"""
    has_variable = False
    for k in range(steps_of(n, steps)):
        s = needs(n, k, steps)
        if s != ALWAYS:
            s = steps.step[s, EDGE] >> 1 if steps.step[s, PARENT] == LINK else s
            has_variable = has_variable or steps.step[s, SUBJECT] == -1 or steps.step[s, SUBJECT + 2] == -1
    return has_variable


@called_helper
def _tree(root: int, steps: StepColumns, levels: Levels) -> int:
    """The levels of a tree."""
    step, level, queue = steps.step, levels.level, levels.queue
    count, column, head, tail = 0, 0, 0, 1
    queue[0, 0], queue[1, 0] = root, NONE
    if of_variable(root, steps):
        count = _add(VALUES, root, NONE, 0, NONE, count, level)
        level[0, COLUMN], queue[1, 0], column = 0, 0, 1
    while head < tail:
        n, own, head = queue[0, head], queue[1, head], head + 1
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if s == ALWAYS:
                continue
            if step[s, PARENT] == LINK:
                edge, back = step[s, EDGE] >> 1, step[s, EDGE] & 1
                count = _add(TRIPLES, edge, own, 2 * back, step[s, CHILD], count, level)
                column = _add_leaves(edge, column, count, steps, level)
                queue[0, tail], queue[1, tail], tail = step[s, CHILD], column, tail + 1
                level[count - 1, COLUMN + 2 - 2 * back], column = column, column + 1
            else:
                count = _add(TRIPLES, s, own, 0 if step[s, SUBJECT] == -1 else 2, NONE, count, level)
                column = _add_leaves(s, column, count, steps, level)
    return count


@called_helper
def _path(last: int, steps: StepColumns, levels: Levels) -> int:
    """The levels of a path."""
    step, level, queue = steps.step, levels.level, levels.queue
    count, column, length, s = _add(ROWS, last, NONE, 0, NONE, 0, level), int(steps.width[last, AFTER]), 0, last
    while s >= 0:
        queue[0, length], length, s = s, length + 1, step[s, PARENT]
    while length > 0:
        length -= 1
        s = queue[0, length]
        before, count = column, _add(FITTING, s, NONE, 0, NONE, count, level)
        column = _add_leaves(s, column, count, steps, level)
        count -= column == before
    return count


@called_helper
def plan(root: int, columns: int, asked: int, steps: StepColumns, levels: Levels) -> Any:
    """Write down the levels of a component, of those of its columns that are `asked` for, as bits. Returns how many
    levels there are, and whether two walks through them may give these columns the same values."""
    level, wanted = levels.level, levels.wanted
    for c in range(columns):
        wanted[c] = (asked >> c) & 1
    count = _path(-2 - root, steps, levels) if root < NO_STEP else _tree(root, steps, levels)
    level_count, repeats = 0, False
    for n in range(count - 1, -1, -1):
        is_kept = level[n, KIND] == ROWS
        for k in range(3):
            is_kept = is_kept or (level[n, COLUMN + k] >= 0 and wanted[level[n, COLUMN + k]] != 0)
        if is_kept and level[n, AT] >= 0:
            wanted[level[n, AT]] = 1
        if not is_kept:
            level[n, KIND] = NONE
    for n in range(count):
        if level[n, KIND] == NONE:
            continue
        for k in range(3):
            repeats = repeats or (level[n, COLUMN + k] >= 0 and (asked >> level[n, COLUMN + k]) & 1 == 0)
        if level[n, KIND] == ROWS:
            for c in range(steps.width[level[n, STEP], AFTER]):
                repeats = repeats or (asked >> c) & 1 == 0
        for k in range(COLUMN_END):
            level[level_count, k] = level[n, k]
        level_count += 1
    return level_count, repeats
