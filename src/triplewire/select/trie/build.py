"""The set-trie over atoms, and the one over stars: built from clauses, walked for every publication.

A clause's patterns and tests become atom sets, one a subject (`triplewire.kernels.trie.stars`). Sets that end in one
node of the first trie are the same star; clauses of several stars are sets of star numbers in the second trie. Labels
are ordered rarest first, so that a walk ends early. The walk itself: `triplewire.select.trie.walk`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import inverse
from triplewire.clauses.table import ASK, EXACT, ClauseTable
from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.kernels.shared.columns import TestColumns
from triplewire.kernels.trie import atoms as atom_kernels
from triplewire.kernels.trie import bounds as bound_kernels
from triplewire.kernels.trie import set_trie
from triplewire.kernels.trie import stars as star_kernels
from triplewire.kernels.trie import subsets as subset_kernels
from triplewire.kernels.trie import trie_nodes as node_kernels
from triplewire.select.trie.atom_tables import build_atom_tables
from triplewire.select.trie.ranges import no_ranges, ranges_of

Keys = NDArray[np.int64]

_ROWS_TOGETHER = 1 << 18  # rows of a trie that are looked at together
_TEST_FACTOR = 10.0  # texts hold many words that few ask for: measured on queries of the RTF workload


@dataclass(frozen=True, slots=True)
class SetTrie:
    """Sets of labels, flat (`triplewire.kernels.trie.subsets` describes it); node 0 is the root."""

    nodes: Keys  # shape (rows + 1, 2)
    root: Ids  # label -> child of the root, or -1
    item: Ids  # clauses, by node, and those of a node by need: their order (`Trie.order`)
    need: NDArray[np.uint32]  # of each item: its code and the number of its bound (`triplewire.kernels.trie.bounds`)
    subscription: Ids  # of each item
    tail: Ids  # labels of the rows that are tails, and one number more
    star: Keys  # row >> BLOCK -> how many stars end before those rows, and in which of them (`.set_trie`)

    def __len__(self) -> int:
        return len(self.nodes) - 1


@dataclass(frozen=True, slots=True)
class Trie:
    """Everything that the walk needs beside features. A bound says how many solutions a clause that joins nothing can
    have (`triplewire.kernels.trie.bounds`); bound k is the slice bound_offset[k] .. bound_offset[k + 1] of `bounds`."""

    keys: Keys  # atom -> its key (`triplewire.kernels.trie.stars`), rarest atom first, range atoms last
    first_range: int  # atoms from here on are range atoms
    slots: Ids  # these columns are those of `triplewire.select.trie.atom_tables`
    asked: Ids
    dense: Ids
    range_offset: Ids
    range_atom: Ids
    range_test: Ids
    window_low: Ids  # window -> the ranks of its bounds; windows ascend by atom and these
    window_high: Ids
    atoms: SetTrie
    stars: SetTrie
    bound_offset: Ids
    bounds: Ids
    may_repeat: bool  # may one subscription come from two clauses?

    @property
    def order(self) -> Ids:
        """The clauses in the order of the walk: what a publication reaches mostly lies together."""
        return np.concatenate([self.atoms.item, self.stars.item]) if len(self.stars.item) else self.atoms.item


def build_trie(clauses: Clauses) -> Trie:
    """The tries of the clauses."""
    table, tests = clauses.table, clauses.tests
    set_clause, set_offset, key, rank = _sets(table, tests.columns)
    keys, atom = _numbered(key)
    order, first_range = _order(keys, np.bincount(atom, minlength=len(keys)))
    keys, atom = keys[order], inverse(order)[atom]
    label_offset, labels = np.zeros_like(set_offset), np.empty(len(atom) + int((rank >= 0).sum()), np.int32)
    asked = build_atom_tables(keys, first_range, len(clauses.constants), len(tests))
    ranges = ranges_of(asked.range_test, first_range, atom, rank, tests)
    star_kernels.order_sets(set_offset, atom, ranges.label, ranges.share, first_range, label_offset, labels)
    bound_offset, bounds, items = _number_bounds(clauses)
    count = np.bincount(set_clause, minlength=clauses.count)
    single = count[set_clause] == 1
    asks = asked.range_test, ranges.window_high
    shape, node = _shape(label_offset, labels, len(keys), first_range, asks, single)
    always = np.flatnonzero(count == 0).astype(np.int32)  # nothing narrows them: they hang on the root
    atoms = items.hung(shape, np.append(node[single], np.zeros_like(always)), np.append(set_clause[single], always))
    atoms, stars = _add_stars(atoms, node[~single], set_clause[~single], items)
    return Trie(
        keys,
        first_range,
        asked.slots,
        asked.asked,
        asked.dense,
        asked.range_offset,
        asked.range_atom,
        asked.range_test,
        ranges.window_low,
        ranges.window_high,
        atoms,
        stars,
        bound_offset,
        bounds,
        clauses.have_alternatives,
    )


@dataclass(frozen=True, slots=True)
class _Items:
    """What is to be known of each clause where it hangs on a node."""

    owner: Ids
    code: Bytes
    need: NDArray[np.uint32]  # the code and the number of the clause's bound

    def hung(self, shape: SetTrie, node: Ids, clause: Ids, before: int = 0) -> SetTrie:
        """The trie with the clauses at the nodes where their sets end; its rows are filled in. `before`: items of
        other tries."""
        item = np.empty(len(clause), np.int32)
        node_kernels.hang(node, clause, self.code, self.need, self.owner, before, shape.nodes, shape.tail, item)
        owner = self.owner[item]
        subscription = item if np.array_equal(owner, item) else owner  # one array where each has one clause
        return replace(shape, item=item, need=self.need[item], subscription=subscription)


def _number_bounds(clauses: Clauses) -> tuple[Ids, Ids, _Items]:
    """The distinct bounds (offsets and numbers), and the items of all clauses."""
    table, owner, count = clauses.table, clauses.facts.owner, clauses.count
    code, need = np.empty(count, np.uint8), np.empty(count, np.uint32)
    ask = (table.flags & ASK != 0)[owner]
    offset, bounds = np.empty(count + 1, np.int32), np.empty(2 * count + len(table.pattern), np.int32)
    distinct = bound_kernels.number_bounds(table.columns, ask, _statuses(clauses, ask), offset, bounds, code, need)
    return offset[: distinct + 1].copy(), bounds[: offset[distinct]].copy(), _Items(owner, code, need)


def _statuses(clauses: Clauses, ask: NDArray[np.bool_]) -> Bytes:
    """What a publication with all stars of a clause is: SURE, MULTI or CHECK (`triplewire.kernels.trie.stars`), by
    clause. `ask`: clause -> is it of an ASK query?"""
    status = np.zeros(clauses.count, np.uint8)
    star_kernels.statuses(clauses.table.columns, clauses.tests.columns, status)
    owner, inexact = clauses.facts.owner, clauses.table.flags & EXACT == 0
    status[inexact[owner] | (clauses.has_alternatives[owner] & ~ask)] = star_kernels.CHECK  # such a clause is not all
    return status


def _sets(table: ClauseTable, tests: TestColumns) -> tuple[Ids, Offsets, Keys, Keys]:
    """The atom set of each star: its clause, its slice, keys and ranks."""
    most, elements = star_kernels.count_stars(table.columns)
    set_clause, set_offset = np.empty(most, np.int32), np.zeros(most + 1, np.int64)
    key, rank = np.empty(elements, np.int64), np.empty(elements, np.int64)
    star_kernels.stars(table.columns, tests, set_clause, set_offset, key, rank)
    used = int(set_offset[-1])
    return set_clause, set_offset, key[:used], rank[:used]


def _numbered(key: Keys) -> tuple[Keys, Ids]:
    """The distinct keys, and the number of each key among them."""
    number, room = np.empty(len(key), np.int32), 1 << 16
    while True:
        slots, distinct = np.full(2 * room, -1, np.int32), np.empty(room, np.int64)
        count = atom_kernels.number_keys(key, slots, distinct, number)
        if count >= 0:
            return distinct[:count].copy(), number
        room *= 8


def _order(keys: Keys, asked: NDArray[np.int64]) -> tuple[Keys, int]:
    """The order of the atoms: rarest first, range atoms last; and the number of the first range atom."""
    is_range = (keys >> 32) & 3 == star_kernels.RANGE
    rarity = asked * np.where((keys >> 32) & 3 == star_kernels.TEST, _TEST_FACTOR, 1.0)
    order = np.lexsort((keys, rarity, is_range))
    return order.astype(np.int64), int(len(keys) - is_range.sum())


def _shape(
    offset: Offsets,
    labels: Ids,
    alphabet: int,
    first_range: int,
    ranges: tuple[Ids, Ids],
    hangs: NDArray[np.bool_],
) -> tuple[SetTrie, Ids]:
    """A trie without items, and the row in which each set ends. `ranges`: what range atoms ask, and the upper bounds
    of windows. `hangs`: of which sets there will be an item."""
    most = len(labels) + 1
    parent, label, node = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(len(offset) - 1, np.int32)
    root = np.full(alphabet, -1, np.int32)
    count = node_kernels.grow(offset, labels, root, parent, label, node)
    most_rows = count + count // subset_kernels.WIDE + count // node_kernels.LEVELS
    rows, row = np.empty((most_rows, 2), np.int64), np.empty(count, np.int32)
    alone, is_end = np.bincount(node[hangs], minlength=count) == 1, np.zeros(count, np.bool_)
    is_end[node] = True
    tail = np.zeros(2 * count + 1, np.int32)
    used, tails = node_kernels.arrange(parent, label, count, root, first_range, *ranges, alone, is_end, rows, row, tail)
    nodes = np.zeros((used + 1, 2), np.int64)
    nodes[:used] = rows[:used]
    none = np.zeros(0, np.int32)
    labels_of_tails = tail[: tails + 1].copy()
    return SetTrie(nodes, root, none, none.astype(np.uint32), none, labels_of_tails, nodes[:0, 0]), row[node]


def _add_stars(atoms: SetTrie, node: Ids, clause: Ids, items: _Items) -> tuple[SetTrie, SetTrie]:
    """The first trie with its stars marked, and the second trie: clauses as sets of stars, the rarest first."""
    if not len(node):
        return atoms, _shape(np.zeros(1, np.int64), np.zeros(0, np.int32), 0, 0, no_ranges(), np.zeros(0, np.bool_))[0]
    ends, number = np.unique(node, return_inverse=True)
    order = np.argsort(np.bincount(number), kind="stable")
    atoms.nodes[ends, 1] |= 1 << subset_kernels.STAR
    pairs = np.unique(clause.astype(np.int64) << 32 | inverse(order)[number])  # a clause may have a star twice
    clauses, counts = np.unique(pairs >> 32, return_counts=True)
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    labels, every = order[pairs & 0xFFFFFFFF].astype(np.int32), np.ones(len(clauses), np.bool_)
    shape, node = _shape(offset, labels, len(order), len(order), no_ranges(), every)
    stars = items.hung(shape, node, clauses.astype(np.int32), len(atoms.item))
    return replace(atoms, star=_star_blocks(atoms.nodes)), stars


def _star_blocks(nodes: Keys) -> Keys:
    """The column `star` of a trie with these rows."""
    size = set_trie.BLOCK_ROWS
    is_star = np.zeros(len(nodes) + size - len(nodes) % size, np.bool_)
    for begin in range(0, len(nodes), _ROWS_TOGETHER):
        end = min(begin + _ROWS_TOGETHER, len(nodes))
        is_star[begin:end] = nodes[begin:end, 1] >> subset_kernels.STAR & 1
    bits = np.packbits(is_star, bitorder="little").view(f"<u{size // 8}").astype(np.int64)
    counts = np.count_nonzero(is_star.reshape(-1, size), axis=1)
    numbers: Keys = (np.cumsum(counts) - counts) << size | bits
    return numbers
