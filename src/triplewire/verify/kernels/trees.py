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

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.search import count_bits, lowest_bit
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels.columns import NodeFeatures, Scratch, StepColumns
from triplewire.verify.kernels.publication import fitting, passes, triple_words, value_words

_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)


@helper
def has_value(place: Any, term: Any, bits: Any) -> Any:
    """Is a term in a set?"""
    return (bits[place + term // net.WORD] >> (term % net.WORD)) & 1 != 0


@helper
def _fit(n: int, publication: int, triples: int, steps: StepColumns, features: NodeFeatures,
         work: Scratch) -> None:  # fmt: skip
    """The triples that fit the pattern of a step: first the values of its first variable, then the triples, as sets."""
    step, memo, bits, tally = steps.step, work.memo, work.bits, work.tally
    size, words, begin = value_words(work), triple_words(triples), work.state[net.BITS_USED]
    memo[n, net.SOLVED], memo[n, net.BEGIN] = work.state[net.STAMP], begin
    memo[n, net.OF_SUBJECT] = memo[n, net.OF_OBJECT] = 0
    work.state[net.VISITED] += 1
    if begin + size + words > bits.size:
        work.state[net.FULL], memo[n, net.BEGIN], memo[n, net.OF_SUBJECT], memo[n, net.OF_OBJECT] = 1, 0, 1, 1
        return
    t0, t1, number = steps.test_offset[n], steps.test_offset[n + 1], _int(0)
    listed = t1 if work.state[net.LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, net.POSITION] >= net.RANGED)
    first = 0 if step[n, net.SUBJECT] == -1 else 2 if step[n, net.SUBJECT + 2] == -1 else net.NONE
    is_edge, is_loop = step[n, net.SUBJECT + 2] == -2, first == 0 and step[n, net.SUBJECT + 2] == -1
    bits[begin : begin + size] = 0
    for w in range(words):
        fit = rest = fitting(n, w, net.FIRST_ROW, _int(0), triples, t0, listed, steps, work)
        while rest != 0:
            triple = w * net.WORD + lowest_bit(rest)
            bit = rest & -rest  # the lowest bit that is set: that of this triple
            rest ^= bit
            subject, object_ = work.triples[0, triple], work.triples[2, triple]
            if (is_loop and subject != object_) or (
                asks and not passes(t0, t1, triple, publication, steps, features, work)
            ):
                fit ^= bit
                continue
            number += 1
            if first != net.NONE:
                value = subject if first == 0 else object_
                bits[begin + value // net.WORD] |= _ONE << (value % net.WORD)
                tally[0, value] += 1
                memo[n, net.OF_SUBJECT] = max(memo[n, net.OF_SUBJECT], tally[0, value])
            if is_edge:
                tally[1, object_] += 1
                memo[n, net.OF_OBJECT] = max(memo[n, net.OF_OBJECT], tally[1, object_])
        bits[begin + size + w] = fit
    for w in range(words):
        rest = bits[begin + size + w]
        while rest != 0:
            triple = w * net.WORD + lowest_bit(rest)
            rest &= rest - 1
            tally[0, work.triples[0, triple]] = tally[0, work.triples[2, triple]] = 0
            tally[1, work.triples[2, triple]] = 0
    if first == net.NONE:
        bits[begin], memo[n, net.OF_SUBJECT] = number > 0, number
    work.state[net.BITS_USED] = begin + size + words


@helper
def _semijoin(n: int, triples: int, steps: StepColumns, work: Scratch) -> None:
    """The values that a LINK leads from to a value of its child, which is solved, as its edge is."""
    memo, node_memo, bits, place = work.memo, work.node_memo, work.bits, work.state[net.BITS_USED]
    edge, child, back = steps.step[n, net.EDGE] >> 1, steps.step[n, net.CHILD], steps.step[n, net.EDGE] & 1
    size, words = value_words(work), triple_words(triples)
    memo[n, net.SOLVED], memo[n, net.BEGIN], memo[n, net.OF_SUBJECT] = work.state[net.STAMP], place, 0
    work.state[net.VISITED] += 1
    if place + size > bits.size:
        work.state[net.FULL], memo[n, net.BEGIN], memo[n, net.OF_SUBJECT] = 1, 0, 1
    elif node_memo[child, net.TOTAL] != 0 and memo[edge, net.OF_SUBJECT] > 0:
        theirs, bound = (
            node_memo[child, net.BEGIN],
            _int(memo[edge, net.OF_SUBJECT + back]) * node_memo[child, net.BOUND],
        )
        memo[n, net.OF_SUBJECT], work.state[net.BITS_USED] = min(bound, net.MOST_SOLUTIONS), place + size
        for w in range(size):
            bits[place + w] = 0
        for w in range(words):
            rest = bits[memo[edge, net.BEGIN] + size + w]
            while rest != 0:
                triple = w * net.WORD + lowest_bit(rest)
                rest &= rest - 1  # without the lowest bit: that of this triple
                value = work.triples[2 * back, triple]
                if has_value(theirs, work.triples[2 - 2 * back, triple], bits):
                    bits[place + value // net.WORD] |= _ONE << (value % net.WORD)


@helper
def steps_of(n: int, steps: StepColumns) -> Any:
    """How many steps has a node?"""
    return steps.node[net.ROW * n] & net.COUNT_MASK


@helper
def needs(n: int, k: int, steps: StepColumns) -> Any:
    """The step number k of a node."""
    return steps.node[net.ROW * n + net.FIRST_STEP + k]


@helper
def _solve_steps(n: int, publication: int, triples: int, steps: StepColumns,
                 features: NodeFeatures, work: Scratch) -> Any:  # fmt: skip
    """Solve the steps of a node. Returns NONE; or a child that is to be solved before; or n: it has no value."""
    stamp, memo = work.state[net.STAMP], work.memo
    for k in range(steps_of(n, steps)):
        s = needs(n, k, steps)
        if memo[s, net.SOLVED] != stamp:
            is_link = steps.step[s, net.PARENT] == net.LINK
            if is_link and work.node_memo[steps.step[s, net.CHILD], net.SOLVED] != stamp:
                return _int(steps.step[s, net.CHILD])
            fit = steps.step[s, net.EDGE] >> 1 if is_link else s
            if memo[fit, net.SOLVED] != stamp:
                _fit(fit, publication, triples, steps, features, work)
            if is_link:
                _semijoin(s, triples, steps, work)
        if memo[s, net.OF_SUBJECT] == 0:
            return _int(n)
    return _int(net.NONE)


@helper
def _meet(n: int, steps: StepColumns, work: Scratch) -> Any:
    """The values of a node, and bounds of its solutions. False: some of its steps are not solved."""
    memo, bits, begin, stamp = work.memo, work.bits, work.state[net.BITS_USED], work.state[net.STAMP]
    many, size, bound, count, solved = steps_of(n, steps), value_words(work), _int(1), _int(0), True
    for k in range(net.AT_HAND):
        s = needs(n, k, steps)
        solved &= memo[s, net.SOLVED] == stamp
        bound = min(bound * memo[s, net.OF_SUBJECT], net.MOST_SOLUTIONS)
    if solved and many > net.AT_HAND:
        for k in range(net.AT_HAND, many):
            s = needs(n, k, steps)
            solved &= memo[s, net.SOLVED] == stamp
            bound = min(bound * memo[s, net.OF_SUBJECT], net.MOST_SOLUTIONS)
    if not solved:
        return False
    for w in range(size):
        common = bits[memo[needs(n, 0, steps), net.BEGIN] + w]
        for k in range(1, net.AT_HAND):
            common &= bits[memo[needs(n, k, steps), net.BEGIN] + w]
        if many > net.AT_HAND:
            for k in range(net.AT_HAND, many):
                common &= bits[memo[needs(n, k, steps), net.BEGIN] + w]
        bits[begin + w] = common
        count += count_bits(common)
    solved_node = work.node_memo
    solved_node[n, net.SOLVED], solved_node[n, net.BEGIN], solved_node[n, net.BOUND] = stamp, begin, bound
    solved_node[n, net.TOTAL] = min(bound * count, net.MOST_SOLUTIONS)
    work.state[net.BITS_USED] = begin + size
    return True


@helper
def solve_tree(root: int, publication: int, triples: int, steps: StepColumns,
               features: NodeFeatures, work: Scratch) -> None:  # fmt: skip
    """Solve a node, and those below it, as far as that has not been done and makes a difference. Inlined where it is
    called, with all that it calls: the arrays would take longer to hand over than most nodes take."""
    depth, work.path[0], stamp = 1, root, work.state[net.STAMP]
    while depth > 0:
        n = work.path[depth - 1]
        if work.state[net.BITS_USED] + value_words(work) > work.bits.size:
            work.state[net.FULL] = 1
        if work.state[net.FULL] != 0:
            work.node_memo[n, net.SOLVED], work.node_memo[n, net.TOTAL] = stamp, net.TOO_MANY
        elif not _meet(n, steps, work):
            waits = _solve_steps(n, publication, triples, steps, features, work)
            if waits != n:
                work.path[depth], depth = waits, depth + (waits != net.NONE)
                continue
            work.node_memo[n, net.SOLVED], work.node_memo[n, net.TOTAL] = stamp, 0
        work.state[net.VISITED] += 1
        depth -= 1


@helper
def triples_of(s: int, value: int, words: int, size: int, steps: StepColumns, work: Scratch) -> Any:
    """How many triples fit the pattern of a step that is APART, with the value of its variable, if it has one?"""
    position, count = 2 if steps.step[s, net.SUBJECT] != -1 and steps.step[s, net.SUBJECT + 2] == -1 else 0, _int(0)
    has_value = position == 2 or steps.step[s, net.SUBJECT] == -1
    for w in range(words):
        rest = work.bits[work.memo[s, net.BEGIN] + size + w]
        count += count_bits(rest & work.sets[value, position, w] if has_value else rest)
    return count


@helper
def _below(s: int, value: int, words: int, size: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a LINK from a value?"""
    child, back, count = steps.step[s, net.CHILD], steps.step[s, net.EDGE] & 1, _int(0)
    edge = steps.step[s, net.EDGE] >> 1
    for w in range(words):
        rest = work.bits[work.memo[edge, net.BEGIN] + size + w] & work.sets[value, 2 * back, w]
        while rest != 0:
            term = work.triples[2 - 2 * back, w * net.WORD + lowest_bit(rest)]
            rest &= rest - 1
            if has_value(work.node_memo[child, net.BEGIN], term, work.bits):
                count += work.rows[(work.counted[child] & _LOW) + term]
    return count


@called_helper
def _count_node(n: int, triples: int, begin: int, steps: StepColumns, work: Scratch) -> Any:
    """Write down how many solutions each value of a node has, where those of its children are known. Returns their
    sum."""
    size, words, total = value_words(work), triple_words(triples), _int(0)
    for value in range(work.state[net.ENDS]):
        if not has_value(work.node_memo[n, net.BEGIN], value, work.bits):
            continue
        count = _int(1)
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if steps.step[s, net.PARENT] == net.LINK:
                count = min(count * _below(s, value, words, size, steps, work), net.MOST_SOLUTIONS)
            else:
                count = min(count * triples_of(s, value, words, size, steps, work), net.MOST_SOLUTIONS)
        work.rows[begin + value] = count
        total = min(total + count, net.MOST_SOLUTIONS)
    return total


@called_helper
def count_tree(root: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a tree that is solved and has one? TOO_MANY where there is no room to count them."""
    stamp, depth, total, work.path[0] = work.state[net.STAMP], 1, _int(0), root
    while depth > 0:
        n, child = work.path[depth - 1], _int(net.NONE)
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if steps.step[s, net.PARENT] == net.LINK and work.counted[steps.step[s, net.CHILD]] >> 32 != stamp:
                child = _int(steps.step[s, net.CHILD])
        if child != net.NONE:
            work.path[depth], depth = child, depth + 1
            continue
        begin = work.state[net.USED]
        if begin + work.state[net.ENDS] + 1 > work.rows.size:
            return _int(net.TOO_MANY)
        work.state[net.USED] = begin + work.state[net.ENDS] + 1
        total = _count_node(n, triples, begin, steps, work)
        work.counted[n] = (stamp << 32) | begin
        depth -= 1
    return total


@helper
def of_variable(n: int, steps: StepColumns) -> Any:
    """Has a node a variable, or just one pattern whose variables are LEAF?"""
    has_variable = False
    for k in range(steps_of(n, steps)):
        s = needs(n, k, steps)
        if s != net.ALWAYS:
            s = steps.step[s, net.EDGE] >> 1 if steps.step[s, net.PARENT] == net.LINK else s
            has_variable = has_variable or steps.step[s, net.SUBJECT] == -1 or steps.step[s, net.SUBJECT + 2] == -1
    return has_variable
