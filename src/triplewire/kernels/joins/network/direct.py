"""Nodes whose steps need no solving: the values that each of them allows are looked up.

A step is *plain* where its pattern has two constants and a variable, or one constant, its predicate, and one variable
as both ends: what triples of a publication give it is found by their predicates and one of their ends, for all plain
steps at once. A node is *direct* where all its steps are plain but for one, which may lead to a node of plain steps, or
to anything. How many solutions it has is known, exactly, after a few loads and a look at the triples of one predicate:
that takes less time than to keep sets of the steps, and of what they lead to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.network.columns import (
    ALWAYS,
    APART,
    AT_HAND,
    CHILD,
    EDGE,
    LEAF,
    LINK,
    MORE,
    MORE_END,
    OBJECT,
    PARENT,
    PREDICATE,
    SUBJECT,
    TEST,
    TEST_END,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.network.publication import CONSTANT, ENDS, FEW, STAMP, VISITED, WORD, triple_words
from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import mix_bits

PLAIN, LINKED = -1, -2
"""In place of MORE and MORE_END, which are equal where nothing is there: all steps are plain; LINKED - k: all but the
step number k."""

NEVER = -100  # a step that is neither
LOOP = 0xFFFFFFFF  # in a key, in place of a constant: subject and object are the same
KEY, STEPS = 0, 1  # columns of `plain`: a key, or FREE; the steps with a variable, and with a LEAF, each plus 1
FREE = -1
MOST_KEYS = 3 * FEW + 1  # of a publication, and room for one more
_TAIL = 4  # steps of a node; the others are looked at only where there are more
NOWHERE = -1
_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)
_ALL = (_int(1) << WORD) - 1


@helper
def _key(predicate: int, end: int, is_subject: int) -> Any:
    """What a plain step is known by: its constants, and whether the second one is the subject."""
    return (_int(is_subject) << 62) | (_int(predicate) << 32) | _int(end)


@helper
def _slot(key: int, mask: int) -> Any:
    """Where the search for a key begins."""
    return mix_bits(key ^ (key >> 15)) & mask


@helper
def _kind(s: int, step: Any, rows: Any) -> int:
    """Is a step of a node plain (PLAIN), or what a direct node may have one of (LINKED)?"""
    edge = step[s, EDGE] >> 1 if step[s, PARENT] == LINK else s
    subject, object_ = step[edge, SUBJECT], step[edge, OBJECT]
    if step[edge, PARENT] != APART or step[edge, PREDICATE] < 0 or step[edge, TEST] < step[edge, TEST_END]:
        return NEVER
    if step[s, PARENT] == LINK:
        return LINKED if subject == -1 and object_ == -2 and rows[step[s, CHILD], MORE] == PLAIN else NEVER
    if (subject >= 0) != (object_ >= 0) or subject == object_ == -1:
        return PLAIN
    return LINKED if (subject == -1 and object_ == LEAF) or (subject == LEAF and object_ == -1) else NEVER


@kernel
def mark_direct(step: Any, rows: Any, is_plain: Any) -> None:
    """Mark the nodes in `rows` that are direct, and their plain steps."""
    for n in range(rows.shape[0]):
        own, links, count = PLAIN, 0, 0
        for k in range(AT_HAND):
            s = rows[n, k]
            if s != ALWAYS:
                kind = _kind(s, step, rows)
                count += 1
                links += kind == LINKED
                own = NEVER if kind == NEVER else own
                if kind == LINKED and own == PLAIN:
                    own = LINKED - k
        if rows[n, MORE] == rows[n, MORE_END] and own != NEVER and links < 2 and count > 0:
            rows[n, MORE], rows[n, MORE_END] = own, own
            for k in range(AT_HAND):
                if rows[n, k] != ALWAYS and LINKED - k != own:
                    is_plain[rows[n, k]] = 1


@kernel
def enter_plain(step: Any, is_plain: Any, plain: Any) -> None:
    """Fill the hash table of the plain steps, all FREE before: a power of two of rows."""
    mask = plain.shape[0] - 1
    for s in range(step.shape[0]):
        if is_plain[s] == 0:
            continue
        is_subject = step[s, SUBJECT] >= 0
        end, variable = step[s, SUBJECT if is_subject else OBJECT], step[s, OBJECT if is_subject else SUBJECT]
        key = _key(step[s, PREDICATE], end if end >= 0 else LOOP, is_subject)
        at = _slot(key, mask)
        while plain[at, KEY] != FREE and plain[at, KEY] != key:
            at = (at + 1) & mask
        if plain[at, KEY] == FREE:
            plain[at, KEY], plain[at, STEPS] = key, 0
        plain[at, STEPS] |= _int(s + 1) << 32 if variable == LEAF else _int(s + 1)


@helper
def _ask(predicate: int, end: int, is_subject: int, value: int, count: int, plain: Any, work: Scratch) -> Any:
    """Note that a plain step, if there is one, has a value. Returns how many are noted: where both constants are
    known."""
    key = _key(max(predicate, 0), max(end, 0), is_subject)
    slot = _slot(key, plain.shape[0] - 1)
    work.asked[0, count], work.asked[1, count], work.asked[2, count] = key, slot, value
    prefetch(plain, slot)
    return count + ((predicate >= 0) & (end >= 0))


@helper
def _allow(s: int, value: int, stamp: int, values: Any) -> None:
    """A step has a value."""
    before = values[s, 1] if values[s, 0] == stamp else 0
    values[s, 0], values[s, 1] = stamp, before | _ONE << value


@called_helper
def look_up(triples: int, steps: StepColumns, work: Scratch) -> None:
    """Write down the values that the plain steps of direct nodes have in the publication at hand. First all places are
    fetched, then what they lead to: so look-ups do not wait for each other's memory."""
    plain, asked, values, count, terms = steps.plain, work.asked, work.values, _int(0), work.terms
    mask, stamp, named_steps = plain.shape[0] - 1, work.state[STAMP], _int(0)
    values[ALWAYS, 0], values[ALWAYS, 1] = stamp, _ALL
    for a in range(triples):
        subject, predicate, object_ = work.triples[0, a], work.triples[1, a], work.triples[2, a]
        known = terms[CONSTANT, predicate]
        count = _ask(known, terms[CONSTANT, object_], 0, subject, count, plain, work)
        count = _ask(known, terms[CONSTANT, subject], 1, object_, count, plain, work)
        if subject == object_:
            count = _ask(known, LOOP, 0, subject, count, plain, work)
    for k in range(count):
        key, at = asked[0, k], asked[1, k]
        while plain[at, KEY] != FREE and plain[at, KEY] != key:
            at = (at + 1) & mask
        if plain[at, KEY] == key:
            asked[0, named_steps], asked[2, named_steps] = plain[at, STEPS], asked[2, k]
            named_steps += 1
            prefetch(values, (plain[at, STEPS] & _LOW) - 1)
            prefetch(values, (plain[at, STEPS] >> 32) - 1)
    work.state[VISITED] += named_steps
    for k in range(named_steps):
        named = asked[0, k]
        if named & _LOW:
            _allow((named & _LOW) - 1, asked[2, k], stamp, values)
        if named >> 32:
            _allow((named >> 32) - 1, asked[2, k], stamp, values)


@helper
def values_of(n: int, linked: int, steps: StepColumns, work: Scratch) -> Any:
    """The values that the plain steps of a direct node allow. `linked`: the number of its step that is not plain, or
    any other number."""
    node, values, stamp, common = steps.node, work.values, work.state[STAMP], _int(_ALL)
    for k in range(_TAIL):
        s = node[n, k]
        common &= _ALL if k == linked else values[s, 1] if values[s, 0] == stamp else 0
    if node[n, _TAIL] != ALWAYS:
        for k in range(_TAIL, AT_HAND):
            s = node[n, k]
            common &= _ALL if k == linked else values[s, 1] if values[s, 0] == stamp else 0
    return common


@helper
def fetch_steps(n: int, steps: StepColumns, work: Scratch) -> None:
    """Have what is read of the steps of a direct node fetched."""
    for k in range(_TAIL):
        prefetch(work.values, steps.node[n, k])
    if steps.node[n, MORE] != PLAIN:
        prefetch(work.direct, n)
        prefetch(steps.node, n - 1)  # mostly its child, as that was written down before it
        prefetch(steps.step, steps.node[n, LINKED - steps.node[n, MORE]])


@helper
def count_plain(n: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a node of plain steps, which are looked up?"""
    return count_bits(values_of(n, _int(NOWHERE), steps, work))


@helper
def count_linked(n: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has any other direct node?"""
    step, linked, total = steps.step, LINKED - steps.node[n, MORE], _int(0)
    own = values_of(n, linked, steps, work)
    work.state[VISITED] += 1
    s, back, theirs = steps.node[n, linked], _int(0), _int(_ALL)
    if step[s, PARENT] == LINK:
        back, theirs = _int(step[s, EDGE] & 1), values_of(step[s, CHILD], _int(NOWHERE), steps, work)
        s = step[s, EDGE] >> 1
    else:
        back = _int(step[s, SUBJECT] == LEAF)
    place = work.constants[step[s, PREDICATE]]
    if own != 0 and theirs != 0 and place >> 32 == work.state[STAMP]:
        for w in range(triple_words(triples)):
            rest = work.sets[place & _LOW, 1, w]
            while rest != 0:
                triple = w * WORD + count_bits((rest & -rest) - 1)
                rest &= rest - 1
                total += own >> work.triples[2 * back, triple] & theirs >> work.triples[2 - 2 * back, triple] & 1
    return total


@helper
def is_direct(n: int, steps: StepColumns, work: Scratch) -> Any:
    """Is a node direct, and has the publication so few terms that a number holds a set of them?"""
    return (steps.node[n, MORE] < 0) & (work.state[ENDS] <= WORD)
