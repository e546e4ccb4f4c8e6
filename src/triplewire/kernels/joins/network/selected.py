"""How many solutions differ in what a clause selects? Bounds, from what the join network has solved of a component.

They are exact for stars: all is selected, or the subject is, or a pattern has one variable more. Other solutions have
to be listed to be counted (`triplewire.kernels.joins.network.listing`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.network.columns import ALWAYS, LEAF, LINK, PARENT, SUBJECT, Scratch, StepColumns
from triplewire.kernels.joins.network.levels import of_variable
from triplewire.kernels.joins.network.publication import BEGIN, ENDS, MOST_SOLUTIONS, WORD, triple_words, value_words
from triplewire.kernels.joins.network.semijoin import has_value, needs, steps_of, triples_of
from triplewire.kernels.shared.bits import lowest_bit
from triplewire.kernels.shared.compiled import called_helper, helper

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
