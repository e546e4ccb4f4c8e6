"""Hash tables of pairs of numbers, and lists of numbers, both in arrays: what the papers' structures are made of.

    find:    slot = hash of the pair;  while the slot is taken by another pair: slot = the next one
    append:  the last entry of the list leads to the new one, which is the last now
    remove:  the entry before the number's leads to the one behind it

Nothing is moved when something is added, so who read before reads the same, and behind it what is new. Who calls sees
to it that there is room (`triplewire.select.papers.growing`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import mix_bits

_int: Any = np.int64


class Table(NamedTuple):
    """Distinct pairs of numbers, each with the number of its row. There are at least twice as many slots as rows."""

    slots: Any  # -1, or a row
    key: Any  # shape (rows, 2)
    used: Any  # how many rows there are, in an array of one number


class Lists(NamedTuple):
    """Lists of numbers; entries are numbered in the order in which they came."""

    first: Any  # list -> its first entry, or -1
    last: Any
    next: Any  # entry -> the next one of its list, or -1
    value: Any
    used: Any  # how many entries there are, in an array of one number


@helper
def _slot_of(a: int, b: int, table: Table) -> Any:
    """The slot of a pair, or the free one where it belongs."""
    mask = table.slots.size - 1
    slot = mix_bits(mix_bits(a) + 3 * _int(b)) & mask
    row = table.slots[slot]
    while row >= 0 and (table.key[row, 0] != a or table.key[row, 1] != b):
        slot = (slot + 1) & mask
        row = table.slots[slot]
    return slot


@called_helper
def find(a: int, b: int, table: Table) -> int:
    """The row of a pair; -1 where it is not there."""
    return int(table.slots[_slot_of(a, b, table)])


@called_helper
def entered(a: int, b: int, table: Table) -> int:
    """The row of a pair, which is added where it is not there."""
    slot = _slot_of(a, b, table)
    if table.slots[slot] < 0:
        row = table.used[0]
        table.key[row, 0], table.key[row, 1] = a, b
        table.slots[slot] = row
        table.used[0] = row + 1
    return int(table.slots[slot])


@kernel
def fill_slots(table: Table) -> None:
    """Enter all rows into slots of which all are free."""
    for row in range(table.used[0]):
        table.slots[_slot_of(table.key[row, 0], table.key[row, 1], table)] = row


@helper
def append(number: int, value: int, lists: Lists) -> None:
    """Put a value at the end of the list with this number."""
    entry = lists.used[0]
    lists.value[entry], lists.next[entry] = value, -1
    if lists.first[number] < 0:
        lists.first[number] = entry
    else:
        lists.next[lists.last[number]] = entry
    lists.last[number] = entry
    lists.used[0] = entry + 1


@called_helper
def remove(number: int, value: int, lists: Lists) -> Any:
    """Take a value out of a list; returns how many entries were looked at."""
    before, entry, steps = _int(-1), _int(lists.first[number]), _int(0)
    while entry >= 0 and lists.value[entry] != value:
        before, entry, steps = entry, _int(lists.next[entry]), steps + 1
    if entry >= 0:
        if before < 0:
            lists.first[number] = lists.next[entry]
        else:
            lists.next[before] = lists.next[entry]
        if lists.last[number] == entry:
            lists.last[number] = before
    return steps + 1
