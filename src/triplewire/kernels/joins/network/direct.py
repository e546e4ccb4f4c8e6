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
    COUNT_MASK,
    EDGE,
    FIRST_STEP,
    KIND,
    LEAF,
    LINK,
    OBJECT,
    PARENT,
    PREDICATE,
    ROW,
    SUBJECT,
    TEST,
    TEST_END,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.network.publication import CONSTANT, ENDS, FEW, STAMP, VISITED, WORD, triple_words
from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits, lowest_bit
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import mix_bits

PLAIN, LINKED = 1, 2  # sorts of direct nodes: all steps are plain; LINKED + k: all but the step number k
MOST_STEPS = 6  # of a direct node
NEVER = 100  # a step that is neither
LOOP = 0xFFFFFFFF  # in a key, in place of a constant: subject and object are the same
MOST_KEYS = 3 * FEW + 1  # of a publication, and room for one more
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
def _slot(key: int, mask: int, shift: int) -> Any:
    """Where in `plain` the search for a key begins, and what a place holds above the bits of a step: the upper
    bits of the key's hash, as many as there is room for."""
    seen = mix_bits(key ^ (key >> 15))
    return seen & mask, seen >> (shift - 1)


@helper
def _kind(s: int, step: Any, rows: Any) -> int:
    """Is a step of a node plain (PLAIN), or what a direct node may have one of (LINKED)?"""
    edge = step[s, EDGE] >> 1 if step[s, PARENT] == LINK else s
    subject, object_ = step[edge, SUBJECT], step[edge, OBJECT]
    if step[edge, PARENT] != APART or step[edge, PREDICATE] < 0 or step[edge, TEST] < step[edge, TEST_END]:
        return NEVER
    if step[s, PARENT] == LINK:
        return LINKED if subject == -1 and object_ == -2 and rows[ROW * step[s, CHILD]] >> KIND == PLAIN else NEVER
    if (subject >= 0) != (object_ >= 0) or subject == object_ == -1:
        return PLAIN
    return LINKED if (subject == -1 and object_ == LEAF) or (subject == LEAF and object_ == -1) else NEVER


@kernel
def mark_direct(step: Any, place: Any, rows: Any, is_plain: Any) -> int:
    """Mark the nodes in `rows` that are direct, and their plain steps. place[node]: its first row. Returns how many
    plain steps there are."""
    marked = 0
    for n in range(place.size):
        at = ROW * place[n]
        count, sort, links = rows[at], PLAIN, 0
        for k in range(min(count, MOST_STEPS)):
            kind = _kind(rows[at + FIRST_STEP + k], step, rows)
            links += kind == LINKED
            sort = NEVER if NEVER in (kind, sort) else LINKED + k if kind == LINKED else sort
        if 0 < count <= MOST_STEPS and sort != NEVER and links < 2:
            rows[at] |= sort << KIND
            for k in range(count):
                if LINKED + k != sort:
                    s = rows[at + FIRST_STEP + k]
                    marked += is_plain[s] == 0
                    is_plain[s] = 1
    return marked


@helper
def _key_of(s: int, step: Any) -> Any:
    """The key of a plain step."""
    subject, end = step[s, SUBJECT], max(step[s, SUBJECT], step[s, OBJECT])
    return _key(step[s, PREDICATE], end if end >= 0 else LOOP, subject >= 0)


@helper
def step_bits(steps: int) -> int:
    """How many bits does the number of one of so many steps take?"""
    bits = 1
    while steps >> bits > 0:
        bits += 1
    return bits


@kernel
def enter_plain(step: Any, is_plain: Any, plain: Any) -> None:
    """Fill the hash table of the plain steps, a power of two of places, all 0 before, and one more, which says how many
    bits a step takes. A place is a step, and above it some bits of its hash; or 0."""
    mask, shift = plain.size - 2, step_bits(step.shape[0])
    plain[plain.size - 1] = shift
    for s in range(step.shape[0]):
        if is_plain[s] > 0:
            at, mark = _slot(_key_of(s, step), mask, shift)
            while plain[at] != 0:
                at = (at + 1) & mask
            plain[at] = mark << shift | s


@helper
def _ask(predicate: int, end: int, is_subject: int, value: int, count: int, mask: int, shift: int, plain: Any,
         work: Scratch) -> Any:  # fmt: skip
    """Note that a plain step, if there is one, has a value. Returns how many are noted: where both constants are
    known."""
    key = _key(max(predicate, 0), max(end, 0), is_subject)
    at, mark = _slot(key, mask, shift)
    work.asked[0, count], work.asked[1, count], work.asked[2, count] = key, mark << 32 | at, value
    prefetch(plain, at)
    return count + ((predicate >= 0) & (end >= 0))


@helper
def _allow(s: int, key: int, value: int, steps: StepColumns, work: Scratch) -> None:
    """A step has a value, if it is the one with this key."""
    values, stamp = work.values, work.state[STAMP]
    if _key_of(s, steps.step) == key:
        before = values[s, 1] if values[s, 0] == stamp else 0
        values[s, 0], values[s, 1] = stamp, before | _ONE << value
        work.state[VISITED] += 1


@called_helper
def look_up(triples: int, steps: StepColumns, work: Scratch) -> None:
    """Write down the values that the plain steps of direct nodes have in the publication at hand. First all places are
    fetched, then what they lead to: so look-ups do not wait for each other's memory."""
    plain, asked, count, candidates, terms = steps.plain, work.asked, _int(0), _int(0), work.terms
    mask, shift = plain.size - 2, _int(plain[plain.size - 1])
    low = (_ONE << shift) - 1
    work.values[ALWAYS, 0], work.values[ALWAYS, 1] = work.state[STAMP], _ALL
    for a in range(triples):
        subject, predicate, object_ = work.triples[0, a], work.triples[1, a], work.triples[2, a]
        known = terms[CONSTANT, predicate]
        count = _ask(known, terms[CONSTANT, object_], 0, subject, count, mask, shift, plain, work)
        count = _ask(known, terms[CONSTANT, subject], 1, object_, count, mask, shift, plain, work)
        if subject == object_:
            count = _ask(known, LOOP, 0, subject, count, mask, shift, plain, work)
    for k in range(count):
        at, mark = asked[1, k] & _LOW, asked[1, k] >> 32
        while plain[at] != 0:
            s = plain[at] & low
            if plain[at] >> shift == mark and candidates < MOST_KEYS:
                asked[3, candidates], candidates = k << 32 | s, candidates + 1
                prefetch(steps.step, s)
                prefetch(work.values, s)
            elif plain[at] >> shift == mark:
                _allow(s, asked[0, k], asked[2, k], steps, work)
            at = (at + 1) & mask
    for k in range(candidates):
        own = asked[3, k] >> 32
        _allow(asked[3, k] & _LOW, asked[0, own], asked[2, own], steps, work)


@helper
def values_of(n: int, linked: int, steps: StepColumns, work: Scratch) -> Any:
    """The values that the plain steps of a direct node allow. `linked`: the number of its step that is not plain, or
    any other number."""
    node, values, stamp, common, begin = steps.node, work.values, work.state[STAMP], _int(_ALL), ROW * n + FIRST_STEP
    for k in range(AT_HAND):
        s = node[begin + k]
        common &= _ALL if k == linked else values[s, 1] if values[s, 0] == stamp else 0
    for k in range(AT_HAND, node[ROW * n] & COUNT_MASK):
        s = node[begin + k]
        common &= _ALL if k == linked else values[s, 1] if values[s, 0] == stamp else 0
    return common


@helper
def fetch_steps(n: int, steps: StepColumns, work: Scratch) -> None:
    """Have what is read of the steps of a direct node fetched."""
    for k in range(FIRST_STEP, FIRST_STEP + AT_HAND):
        prefetch(work.values, steps.node[ROW * n + k])
    sort = steps.node[ROW * n] >> KIND
    if sort != PLAIN:
        prefetch(work.direct, n)
        prefetch(steps.node, ROW * (n - 1))  # mostly its child, as that was written down before it
        prefetch(steps.step, steps.node[ROW * n + FIRST_STEP + sort - LINKED])


@helper
def count_plain(n: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a node of plain steps, which are looked up?"""
    return count_bits(values_of(n, _int(NOWHERE), steps, work))


@helper
def link_of(n: int, steps: StepColumns, work: Scratch) -> Any:
    """Of a direct node with a link: the values that are allowed at its own end, and at the other end; whether its own
    end is the object; and where the triples of the link are in `sets`, or NOWHERE."""
    step, linked = steps.step, linked_step(n, steps)
    own = values_of(n, linked, steps, work)
    s, back, theirs = steps.node[ROW * n + FIRST_STEP + linked], _int(0), _int(_ALL)
    if step[s, PARENT] == LINK:
        back, theirs = _int(step[s, EDGE] & 1), values_of(step[s, CHILD], _int(NOWHERE), steps, work)
        s = step[s, EDGE] >> 1
    else:
        back = _int(step[s, SUBJECT] == LEAF)
    place = work.constants[step[s, PREDICATE]]
    may_fit = own != 0 and theirs != 0 and place >> 32 == work.state[STAMP]
    return own, theirs, back, place & _LOW if may_fit else _int(NOWHERE)


@helper
def fitting_link(w: int, own: int, theirs: int, back: int, place: int, work: Scratch) -> Any:
    """The triples of a link (`link_of`), of those with the bits of number w, that have allowed values at both ends."""
    fit = rest = work.sets[place, 1, w] if place >= 0 else _int(0)
    while rest != 0:
        triple = w * WORD + lowest_bit(rest)
        if own >> work.triples[2 * back, triple] & theirs >> work.triples[2 - 2 * back, triple] & 1 == 0:
            fit &= ~(rest & -rest)
        rest &= rest - 1
    return fit


@helper
def count_linked(n: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has any other direct node?"""
    (own, theirs, back, place), total = link_of(n, steps, work), _int(0)
    work.state[VISITED] += 1
    for w in range(triple_words(triples)):
        total += count_bits(fitting_link(w, own, theirs, back, place, work))
    return total


@helper
def end_values(n: int, is_other: bool, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """The values that the solutions of a direct node with a link have at one end: its own, or the other."""
    (own, theirs, back, place), values = link_of(n, steps, work), _int(0)
    position = 2 - 2 * back if is_other else 2 * back
    for w in range(triple_words(triples)):
        fit = fitting_link(w, own, theirs, back, place, work)
        while fit != 0:
            values |= _ONE << work.triples[position, w * WORD + lowest_bit(fit)]
            fit &= fit - 1
    return values


@helper
def linked_step(n: int, steps: StepColumns) -> Any:
    """The number, in a direct node, of its step that is not plain; -1 where all are."""
    return (steps.node[ROW * n] >> KIND) - LINKED


@helper
def is_direct(n: int, steps: StepColumns, work: Scratch) -> Any:
    """Is a node direct, and has the publication so few terms that a number holds a set of them?"""
    return (steps.node[ROW * n] >> KIND > 0) & (work.state[ENDS] <= WORD)
