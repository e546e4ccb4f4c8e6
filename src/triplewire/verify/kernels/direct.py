"""Nodes whose steps need no solving: the values that each of them allows are looked up.

    values(node) = AND over its plain steps of table[the step's constants], whose bit v says: value v is allowed
    solutions    = all steps are plain: how many bits values(node) has
                   one is a link: the triples of its predicate with an allowed value at each end

A step is *plain* where its pattern has two constants and a variable, or one constant, its predicate, and one variable
as both ends. What plain steps there can be in a publication is put into a table that stays near the processor. Those
that a pair needs are looked up there, and nothing is read of others. A node is *direct* where all its steps are plain
but for one, which may lead to a node of plain steps, or to anything. How many solutions it has is known, exactly, after
a few loads and a look at the triples of one predicate: that takes less time than to keep sets of the steps, and of what
they lead to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.search import count_bits, lowest_bit
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels.columns import Scratch, StepColumns
from triplewire.verify.kernels.publication import triple_words

PLAIN, LINKED = 1, 2  # sorts of direct nodes: all steps are plain; LINKED + k: all but the step number k
MOST_STEPS = 16  # of a direct node
NEVER = 100  # a step that is neither
LOOP = 0x7FFFFFFF  # in a key, in place of a constant: subject and object are the same
PLACES = 64  # of the table of what plain steps can be, at the least; `net.MOST_PLACES` at the most
NOWHERE = -1
_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)
_ALL = (_int(1) << net.WORD) - 1


@helper
def _key(predicate: Any, end: Any, is_subject: Any) -> Any:
    """What a plain step is known by: its constants, and whether the second one is the subject."""
    return _int(predicate) << 32 | _int(is_subject) << 31 | _int(end)


@helper
def _kind(s: int, step: Any, rows: Any) -> int:
    """Is a step of a node plain (PLAIN), or what a direct node may have one of (LINKED)?"""
    edge = step[s, net.EDGE] >> 1 if step[s, net.PARENT] == net.LINK else s
    subject, object_ = step[edge, net.SUBJECT], step[edge, net.OBJECT]
    has_tests = step[edge, net.TEST] < step[edge, net.TEST_END]
    if step[edge, net.PARENT] != net.APART or step[edge, net.PREDICATE] < 0 or has_tests:
        return NEVER
    if step[s, net.PARENT] == net.LINK:
        is_of_plain = rows[net.ROW * step[s, net.CHILD]] >> net.KIND == PLAIN
        return LINKED if subject == -1 and object_ == -2 and is_of_plain else NEVER
    if (subject >= 0) != (object_ >= 0) or subject == object_ == -1:
        return PLAIN
    return LINKED if (subject == -1 and object_ == net.LEAF) or (subject == net.LEAF and object_ == -1) else NEVER


@kernel
def mark_direct(step: Any, place: Any, rows: Any) -> None:
    """Mark the nodes in `rows` that are direct. place[node]: its first row."""
    for n in range(place.size):
        at = net.ROW * place[n]
        count, sort, links = rows[at], PLAIN, 0
        for k in range(min(count, MOST_STEPS)):
            kind = _kind(rows[at + net.FIRST_STEP + k], step, rows)
            links += kind == LINKED
            sort = NEVER if NEVER in (kind, sort) else LINKED + k if kind == LINKED else sort
        if 0 < count <= MOST_STEPS and sort != NEVER and links < 2:
            rows[at] |= sort << net.KIND


@helper
def _place_of(key: Any, mask: Any, plain: Any) -> Any:
    """The place in the table of a step with this key; a free one where the table has none."""
    at = mix_bits(key) & mask
    while plain[_wide(at), 0] >= 0 and plain[_wide(at), 0] != key:
        at = (at + 1) & mask
    return _wide(at)


@helper
def _enter(key: Any, value: Any, mask: Any, plain: Any) -> None:
    """A step with this key may have this value."""
    at = _place_of(key, mask, plain)
    before = plain[at, 1] if plain[at, 0] == key else 0
    plain[at, 0], plain[at, 1] = key, before | _ONE << value


@called_helper
def enter_plain(triples: int, work: Scratch) -> None:
    """Fill the table of what plain steps there can be in the publication at hand, and with which values."""
    plain, terms, places = work.plain, work.terms, _int(PLACES)
    while places < net.MOST_PLACES and places < 4 * triples:
        places *= 2
    work.state[net.PLAIN_MASK] = places - 1
    for at in range(places):
        plain[at, 0] = -1
    for a in range(triples):
        subject, predicate, object_ = work.triples[0, a], work.triples[1, a], work.triples[2, a]
        known, start, end = terms[net.CONSTANT, predicate], terms[net.CONSTANT, subject], terms[net.CONSTANT, object_]
        if known >= 0 and end >= 0:
            _enter(_key(known, end, 0), subject, places - 1, plain)
        if known >= 0 and start >= 0:
            _enter(_key(known, start, 1), object_, places - 1, plain)
        if known >= 0 and subject == object_:
            _enter(_key(known, LOOP, 0), subject, places - 1, plain)


@helper
def _values_of_step(s: Any, steps: StepColumns, work: Scratch) -> Any:
    """The values that a plain step allows; ALWAYS allows all. They are kept until those of another step take their
    place."""
    place, key_of_step = _wide(s & (net.KEPT_STEPS - 1)), work.state[net.STAMP] << 32 | _int(s)
    if work.step_values[place, 0] != key_of_step:
        plain, step, mask = work.plain, steps.step, work.state[net.PLAIN_MASK]
        subject, object_ = _int(step[_wide(s), net.SUBJECT]), _int(step[_wide(s), net.OBJECT])
        # of two positions one is a constant, and the larger; where both are a variable, -1 & LOOP is LOOP
        key = _key(step[_wide(s), net.PREDICATE], max(subject, object_) & LOOP, subject >= 0)
        at = _place_of(key, mask, plain)
        allowed = plain[at, 1] if plain[at, 0] == key else _int(0)
        work.step_values[place, 0], work.step_values[place, 1] = key_of_step, _int(_ALL) if s == net.ALWAYS else allowed
        work.state[net.VISITED] += 1
    return work.step_values[place, 1]


@helper
def values_of(n: int, linked: int, steps: StepColumns, work: Scratch) -> Any:
    """The values that the plain steps of a direct node allow. `linked`: the number of its step that is not plain, or
    any other number."""
    node, common, begin = steps.node, _int(_ALL), net.ROW * n + net.FIRST_STEP
    for k in range(net.AT_HAND):
        common &= _values_of_step(_int(net.ALWAYS) if k == linked else _int(node[begin + k]), steps, work)
    for k in range(net.AT_HAND, node[net.ROW * n] & net.COUNT_MASK):
        common &= _values_of_step(_int(net.ALWAYS) if k == linked else _int(node[begin + k]), steps, work)
    return common


@helper
def fetch_steps(n: int, steps: StepColumns, work: Scratch) -> None:
    """Have what is read of the steps of a direct node fetched."""
    for k in range(net.FIRST_STEP, net.FIRST_STEP + net.AT_HAND):
        prefetch(steps.step, steps.node[net.ROW * n + k])
    sort = steps.node[net.ROW * n] >> net.KIND
    if sort != PLAIN:
        prefetch(work.direct, n)
        prefetch(steps.node, net.ROW * (n - 1))  # mostly its child, as that was written down before it


@helper
def count_plain(n: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has a node of plain steps, which are looked up?"""
    return count_bits(values_of(n, _int(NOWHERE), steps, work))


@helper
def link_of(n: int, steps: StepColumns, work: Scratch) -> Any:
    """Of a direct node with a link: the values that are allowed at its own end, and at the other end; whether its own
    end is the object; and where the triples of the link are in `sets`, or NOWHERE."""
    step, linked = steps.step, linked_step(n, steps)
    near = values_of(n, linked, steps, work)
    s, back, far = steps.node[net.ROW * n + net.FIRST_STEP + linked], _int(0), _int(_ALL)
    if step[s, net.PARENT] == net.LINK:
        back, far = _int(step[s, net.EDGE] & 1), values_of(step[s, net.CHILD], _int(NOWHERE), steps, work)
        s = step[s, net.EDGE] >> 1
    else:
        back = _int(step[s, net.SUBJECT] == net.LEAF)
    place = work.constants[step[s, net.PREDICATE]]
    may_fit = near != 0 and far != 0 and place >> 32 == work.state[net.STAMP]
    return near, far, back, place & _LOW if may_fit else _int(NOWHERE)


@helper
def fitting_link(w: int, near: int, far: int, back: int, place: int, work: Scratch) -> Any:
    """The triples of a link (`link_of`), of those with the bits of number w, that have allowed values at both ends."""
    fit = rest = work.sets[place, 1, w] if place >= 0 else _int(0)
    while rest != 0:
        triple = w * net.WORD + lowest_bit(rest)
        if near >> work.triples[2 * back, triple] & far >> work.triples[2 - 2 * back, triple] & 1 == 0:
            fit &= ~(rest & -rest)  # without the lowest bit of the rest: this triple has an end that is not allowed
        rest &= rest - 1
    return fit


@helper
def count_linked(n: int, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """How many solutions has any other direct node?"""
    (near, far, back, place), total = link_of(n, steps, work), _int(0)
    work.state[net.VISITED] += 1
    for w in range(triple_words(triples)):
        total += count_bits(fitting_link(w, near, far, back, place, work))
    return total


@helper
def end_values(n: int, is_other: bool, triples: int, steps: StepColumns, work: Scratch) -> Any:
    """The values that the solutions of a direct node with a link have at one end: its own, or the other."""
    (near, far, back, place), values = link_of(n, steps, work), _int(0)
    position = 2 - 2 * back if is_other else 2 * back
    for w in range(triple_words(triples)):
        fit = fitting_link(w, near, far, back, place, work)
        while fit != 0:
            values |= _ONE << work.triples[position, w * net.WORD + lowest_bit(fit)]
            fit &= fit - 1
    return values


@helper
def linked_step(n: int, steps: StepColumns) -> Any:
    """The number, in a direct node, of its step that is not plain; -1 where all are."""
    return (steps.node[net.ROW * n] >> net.KIND) - LINKED


@helper
def is_direct(n: int, steps: StepColumns, work: Scratch) -> Any:
    """Is a node direct, and has the publication so few terms that a number holds a set of them?"""
    return (steps.node[net.ROW * n] >> net.KIND > 0) & (work.state[net.ENDS] <= net.WORD)
