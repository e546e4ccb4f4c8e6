"""The set-trie over atoms, and the one over stars: built from clauses, walked for every publication.

A clause's patterns and tests become atom sets, one a subject (`triplewire.select.trie.kernels.stars`). Sets that end
in one node of the first trie are the same star; clauses of several stars are sets of star numbers in the second trie.
Labels are ordered rarest first, so that a walk ends early. The walk itself: `triplewire.select.trie.index`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import ASK, EXACT, Clauses, ClauseTable
from triplewire.clauses.node_tests.columns import inverse
from triplewire.clauses.node_tests.table import Tests
from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.kernels.shared.columns import AT_MOST, TestColumns
from triplewire.select.trie.kernels import atoms as atom_kernels
from triplewire.select.trie.kernels import set_trie
from triplewire.select.trie.kernels import stars as star_kernels
from triplewire.select.trie.kernels import subsets as subset_kernels
from triplewire.select.trie.kernels import trie_nodes as node_kernels
from triplewire.select.trie.kernels.atoms import HASHED, NOTHING
from triplewire.select.trie.kernels.stars import ANY, LAST, LOW, RANGE, TERM, TEST, WILD
from triplewire.select.trie.kernels.subsets import GROUP, LAST_GROUP, LAST_OP, OP

Keys = NDArray[np.int64]

_CELLS, _LEAST = 4, 1 << 14  # `dense` has at most _CELLS cells per atom, or _LEAST cells if that is more
_ROWS_TOGETHER = 1 << 18  # rows of a trie that are looked at together
_NO_RANGES = np.zeros((0, 4), np.int32), np.zeros(0, np.int32)
_TEST_FACTOR = 10.0  # texts hold many words that few ask for: measured on queries of the RTF workload


@dataclass(frozen=True, slots=True)
class SetTrie:
    """Sets of labels, flat (`triplewire.select.trie.kernels.subsets` describes it); node 0 is the root."""

    nodes: Keys  # shape (rows + 1, 2)
    root: Ids  # label -> child of the root, or -1
    item: Ids  # clauses, by node, and those of a node by need: their order (`Trie.order`)
    need: NDArray[np.uint32]  # of each item: its code and the number of its bound (`.kernels.stars`)
    subscription: Ids  # of each item
    tail: Ids  # labels of the rows that are tails, and one number more
    star: Keys  # row >> BLOCK -> how many stars end before those rows, and in which of them (`.set_trie`)

    def __len__(self) -> int:
        return len(self.nodes) - 1


@dataclass(frozen=True, slots=True)
class Trie:
    """Everything that the walk needs beside features. A bound says how many solutions a clause that joins nothing can
    have (`triplewire.select.trie.kernels.stars`); bound k is the slice bound_offset[k] .. bound_offset[k + 1] of
    `bounds`.

    Rows of `asked` are terms, as predicates, and two more: any predicate, and the subject itself. Columns are kinds of
    atoms. TERM and TEST: where in `dense` the atoms begin, or HASHED, or NOTHING. ANY: the atom itself, or `len(keys)`
    where there is none, as in `dense`. RANGE: its row in the range atoms, or -1."""

    keys: Keys  # atom -> its key (`triplewire.select.trie.kernels.stars`), rarest atom first, range atoms last
    first_range: int  # atoms from here on are range atoms
    slots: Ids  # hash table over the keys of other atoms
    asked: Ids  # shape (terms + 2, 4)
    dense: Ids
    range_offset: Ids
    range_atom: Ids
    range_test: Ids  # shape (range atoms, 4): what each of them asks (`triplewire.select.trie.kernels.subsets`)
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


# --- atom tables: where the atoms lie that a triple may have, by predicate --------------------------------------------


def build_atom_tables(keys: Keys, first_range: int, terms: int, tests: int) -> tuple[Ids, Ids, Ids, Ids, Ids, Ids]:
    """The columns `slots` to `range_test` of `Trie` for atoms with these keys, of which those from `first_range` on are
    range atoms."""
    predicate, kind = (keys >> 34) - 2, (keys >> 32) & 3
    row = np.where(predicate >= 0, predicate, np.where(predicate == WILD, terms, terms + 1))
    asked = np.full((terms + 2, 4), NOTHING, np.int32)
    asked[:, ANY], asked[:, RANGE] = len(keys), -1
    any_object = np.flatnonzero(kind == ANY)
    asked[row[any_object], ANY] = any_object
    atom = np.flatnonzero((kind == TERM) | (kind == TEST))
    asked[row[atom], kind[atom]] = HASHED
    dense = _dense(asked, atom, row[atom], kind[atom], keys[atom] & 0xFFFFFFFF, (terms, tests), len(keys))
    hashed = atom[asked[row[atom], kind[atom]] == HASHED]
    slots = np.empty(1 << max(int(2 * len(hashed)).bit_length(), 3), np.int32)
    atom_kernels.build_table(keys, hashed, slots)
    return slots, asked, dense, *_ranges(keys, first_range, row, asked)


def _dense(asked: Ids, atom: Keys, row: Keys, kind: Keys, number: Keys, widths: tuple[int, int], none: int) -> Ids:
    """The table `dense`: the atoms of the (predicate, kind) groups that have most, by number of term or test. Writes to
    `asked` where each group begins."""
    code, group, counts = np.unique(row << 1 | kind, return_inverse=True, return_counts=True)
    width = np.array(widths, np.int64)[code & 1]
    order = np.argsort(-counts, kind="stable")
    order = order[np.cumsum(width[order]) <= max(_CELLS * none, _LEAST)]
    begin = np.full(len(code), HASHED, np.int64)
    begin[order] = np.cumsum(width[order]) - width[order]
    asked[code >> 1, code & 1] = begin
    dense = np.full(int(width[order].sum()) + 1, none, np.int32)
    direct = np.flatnonzero(begin[group] >= 0)
    dense[begin[group[direct]] + number[direct]] = atom[direct]
    return dense


def _ranges(keys: Keys, first_range: int, row: Keys, asked: Ids) -> tuple[Ids, Ids, Ids]:
    """The range atoms of each predicate, and what they ask; `asked` says which row is whose."""
    ranges = np.arange(first_range, len(keys))
    ranges = ranges[np.argsort(row[ranges], kind="stable")]
    owners, counts = np.unique(row[ranges], return_counts=True)
    asked[owners, RANGE] = np.arange(len(owners))
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    code = keys[first_range:] & 0xFFFFFFFF  # group and operator of the lower bound, or of the only one; of the upper
    parts = [part for bound in (code & ((1 << LAST) - 1), code >> LAST) for part in (bound >> 3, bound & 7)]
    return offset, ranges.astype(np.int32), np.stack(parts, axis=1).astype(np.int32)


# --- range elements of atom sets --------------------------------------------------------------------------------------


def ranges_of(
    asks: Ids, first_range: int, atom: Ids, rank: Keys, tests: Tests
) -> tuple[Ids, NDArray[np.float64], Ids, Ids]:
    """(label, share) of each element of atom sets, and the columns `window_low` and `window_high` of `Trie`. The label
    is the number of its window, or the rank of its bound, -1 where it is no range. The share: of the constants that its
    values are compared to, as many lie within; -1 where it is no range. `asks`: what each range atom asks
    (`triplewire.select.trie.kernels.subsets`)."""
    label, share = rank.astype(np.int32), np.full(len(atom), -1.0)
    ranged = np.flatnonzero(atom >= first_range)
    ask = asks[atom[ranged] - first_range]
    is_window = ask[:, LAST_OP] > 0
    sizes = np.ones(max(tests.groups, 1), np.int64)  # of range groups: how many ranks there are
    compared = tests.group >= 0
    np.maximum.at(sizes, tests.group[compared], tests.rank[compared] + 1)
    low, high = rank[ranged] >> LOW, rank[ranged] & ((1 << LOW) - 1)
    lowest = np.where(is_window, low, high) / sizes[ask[:, GROUP]]
    highest = (high + 1) / sizes[np.where(is_window, ask[:, LAST_GROUP], ask[:, GROUP])]
    is_upper = ask[:, OP] <= AT_MOST
    one_sided = np.where(is_upper, highest, 1 - lowest)
    share[ranged] = np.where(is_window, np.maximum(highest - lowest, 0.0), np.clip(one_sided, 0.0, 1.0))
    windows = ranged[is_window]
    windows = windows[np.lexsort((rank[windows], atom[windows]))]  # they are numbered ascending by atom and ranks
    is_new = np.ones(len(windows), np.bool_)
    is_new[1:] = (np.diff(atom[windows]) != 0) | (np.diff(rank[windows]) != 0)
    label[windows] = np.cumsum(is_new) - 1
    distinct = rank[windows[is_new]]
    return label, share, (distinct >> LOW).astype(np.int32), (distinct & ((1 << LOW) - 1)).astype(np.int32)


# --- the tries --------------------------------------------------------------------------------------------------------


def build_trie(clauses: Clauses) -> Trie:
    """The tries of the clauses."""
    table, tests = clauses.table, clauses.tests
    set_clause, set_offset, key, rank = _sets(table, tests.columns)
    keys, atom = _numbered(key)
    kind = (keys >> 32) & 3
    is_range, weight = kind == star_kernels.RANGE, np.where(kind == star_kernels.TEST, _TEST_FACTOR, 1.0)
    order = np.lexsort((keys, np.bincount(atom, minlength=len(keys)) * weight, is_range))  # rarest first, ranges last
    first_range = int(len(keys) - is_range.sum())
    keys, atom = keys[order], inverse(order)[atom]
    label_offset, labels = np.zeros_like(set_offset), np.empty(len(atom) + int((rank >= 0).sum()), np.int32)
    tables = build_atom_tables(keys, first_range, len(clauses.constants), len(tests))
    label, share, low, high = ranges_of(tables[-1], first_range, atom, rank, tests)
    star_kernels.order_sets(set_offset, atom, label, share, first_range, label_offset, labels)
    bound_offset, bounds, items = _number_bounds(clauses)
    count = np.bincount(set_clause, minlength=clauses.count)
    single = count[set_clause] == 1
    shape, node = _shape(label_offset, labels, len(keys), first_range, (tables[-1], high), single)
    always = np.flatnonzero(count == 0).astype(np.int32)  # nothing narrows them: they hang on the root
    atoms = items.hung(shape, np.append(node[single], np.zeros_like(always)), np.append(set_clause[single], always))
    atoms, stars = _add_stars(atoms, node[~single], set_clause[~single], items)
    may_repeat = clauses.have_alternatives
    return Trie(keys, first_range, *tables, low, high, atoms, stars, bound_offset, bounds, may_repeat)


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
    status = np.zeros(count, np.uint8)  # SURE, MULTI or CHECK: `triplewire.select.trie.kernels.stars`
    star_kernels.statuses(table.columns, clauses.tests.columns, status)
    inexact = table.flags & EXACT == 0
    status[inexact[owner] | (clauses.has_alternatives[owner] & ~ask)] = star_kernels.CHECK  # such a clause is not all
    distinct = star_kernels.number_bounds(table.columns, ask, status, offset, bounds, code, need)
    return offset[: distinct + 1].copy(), bounds[: offset[distinct]].copy(), _Items(owner, code, need)


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


def _shape(
    offset: Offsets, labels: Ids, alphabet: int, first_range: int, ranges: tuple[Ids, Ids], hangs: NDArray[np.bool_]
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
    nodes, none = np.zeros((used + 1, 2), np.int64), np.zeros(0, np.int32)
    nodes[:used] = rows[:used]
    return SetTrie(nodes, root, none, none.astype(np.uint32), none, tail[: tails + 1].copy(), nodes[:0, 0]), row[node]


def _add_stars(atoms: SetTrie, node: Ids, clause: Ids, items: _Items) -> tuple[SetTrie, SetTrie]:
    """The first trie with its stars marked, and the second trie: clauses as sets of stars, the rarest first."""
    if not len(node):
        return atoms, _shape(np.zeros(1, np.int64), np.zeros(0, np.int32), 0, 0, _NO_RANGES, np.zeros(0, np.bool_))[0]
    ends, number = np.unique(node, return_inverse=True)
    order = np.argsort(np.bincount(number), kind="stable")
    atoms.nodes[ends, 1] |= 1 << subset_kernels.STAR
    pairs = np.unique(clause.astype(np.int64) << 32 | inverse(order)[number])  # a clause may have a star twice
    clauses, counts = np.unique(pairs >> 32, return_counts=True)
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    labels, every = order[pairs & 0xFFFFFFFF].astype(np.int32), np.ones(len(clauses), np.bool_)
    shape, node = _shape(offset, labels, len(order), len(order), _NO_RANGES, every)
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
