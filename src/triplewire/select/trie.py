"""The set-trie over atoms, and the one over stars: built from Programs, walked for every publication.

A clause's patterns and tests become atom sets, one a subject (`triplewire.kernels.stars`). Sets that end in one node of
the first trie are the same star; clauses of several stars are sets of star numbers in the second trie. Labels are
ordered rarest first, so that a walk ends early. The walk itself: `triplewire.select.walk`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.kernels import atoms as atom_kernels
from triplewire.kernels import set_trie
from triplewire.kernels import stars as star_kernels
from triplewire.select.programs import ASK, EXACT, Programs
from triplewire.select.tests import Tests

Keys = NDArray[np.int64]

_TEST_FACTOR = 10.0  # texts hold many words that few ask for: measured on queries of the RTF workload


@dataclass(frozen=True, slots=True)
class SetTrie:
    """Sets of labels, flat (`triplewire.kernels.set_trie` describes it); node 0 is the root."""

    nodes: Ids  # shape (nodes + 1, 4): label, first child, first item, marks
    root: Ids  # label -> child of the root, or -1
    item: Ids  # clauses, by node
    need: Bytes  # of each item: status << 6 | freedom
    subscription: Ids  # of each item
    star: Ids  # node -> number of the star that ends there, or -1; empty where no clause has several

    def __len__(self) -> int:
        return len(self.nodes) - 1


@dataclass(frozen=True, slots=True)
class Trie:
    """Everything that the walk needs beside features."""

    keys: Keys  # atom -> its key (`triplewire.kernels.stars`), rarest atom first, range atoms last
    slots: Ids  # hash table over the keys
    first_range: int  # atoms from here on are range atoms
    # by term, as predicate, with two entries more: any predicate, the subject itself
    any_key: NDArray[np.bool_]  # is "has this predicate" an atom?
    flags: Bytes  # which kinds of atoms there are
    range_row: Ids  # its row in the range atoms, or -1
    range_offset: Ids
    range_atom: Ids
    range_group: Ids
    range_op: Ids
    atoms: SetTrie
    stars: SetTrie
    always: Ids  # clauses that nothing narrows
    owner: Ids  # clause -> subscription
    status: Bytes  # clause -> SURE, MULTI or CHECK
    freedom: Bytes  # clause -> what is variable (`clause_freedom` in `triplewire.kernels.stars`)
    may_repeat: bool  # may one subscription come from two clauses?


def build_trie(programs: Programs, tests: Tests, terms: int) -> Trie:
    """The tries of the programs. `terms` is how many term ids there are."""
    with np.errstate(over="ignore"):  # hashes wrap around where the kernels run as plain Python
        return _built(programs, tests, terms)


def _built(programs: Programs, tests: Tests, terms: int) -> Trie:
    lazy = np.asarray(tests.is_lazy, np.bool_)
    columns = (programs.test_variable, programs.test, lazy, tests.group, tests.op, tests.rank)
    clauses = len(programs.pattern_offset) - 1
    set_clause, set_offset, key, rank = _sets(programs, columns)
    keys, atom = _numbered(key)
    order, first_range = _order(keys, np.bincount(atom, minlength=len(keys)))
    keys, atom = keys[order], _inverse(order)[atom]
    label_offset, labels = np.zeros_like(set_offset), np.empty(len(atom) + int((rank >= 0).sum()), np.int32)
    star_kernels.order_sets(set_offset, atom, rank, first_range, label_offset, labels)
    shape, node = _shape(label_offset, labels, len(keys))
    status, freedom = np.zeros(clauses, np.uint8), np.zeros((clauses, 4), np.uint8)
    star_kernels.clause_info(programs.pattern_offset, programs.pattern, programs.test_offset, columns, status, freedom)
    owner = programs.owners()
    _restrict(programs, owner, status, freedom)
    count = np.bincount(set_clause, minlength=clauses)
    single = count[set_clause] == 1
    facts = owner, status, freedom
    atoms = _add_items(shape, node[single], set_clause[single], *facts)
    atoms, stars = _add_stars(atoms, node[~single], set_clause[~single], *facts)
    slots = np.empty(1 << max(int(2 * len(keys)).bit_length(), 3), np.int32)
    atom_kernels.build_table(keys, slots)
    repeats = bool((np.diff(programs.clause_offset) > 1).any())
    always = np.flatnonzero(count == 0).astype(np.int32)
    return Trie(
        keys,
        slots,
        first_range,
        *_predicates(keys, first_range, terms),
        atoms,
        stars,
        always,
        owner,
        status,
        freedom,
        repeats,
    )


def _sets(programs: Programs, columns: tuple[NDArray[np.generic], ...]) -> tuple[Ids, Offsets, Keys, Ids]:
    """The atom set of each star: its clause, its slice, keys and ranks."""
    most, elements = star_kernels.count_stars(programs.pattern_offset, programs.pattern, programs.test_offset)
    set_clause, set_offset = np.empty(most, np.int32), np.zeros(most + 1, np.int64)
    key, rank = np.empty(elements, np.int64), np.empty(elements, np.int32)
    star_kernels.stars(
        programs.pattern_offset, programs.pattern, programs.test_offset, columns, set_clause, set_offset, key, rank
    )
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


def _inverse(order: Keys) -> Ids:
    inverse = np.empty(len(order), np.int32)
    inverse[order] = np.arange(len(order), dtype=np.int32)
    return inverse


def _restrict(programs: Programs, owner: Ids, status: Bytes, freedom: Bytes) -> None:
    """Clauses that do not say all are only checked; ASK has one binding, whatever is free."""
    flags = programs.flags[owner]
    several = np.diff(programs.clause_offset)[owner] > 1
    ask = flags & ASK != 0
    status[(flags & EXACT == 0) | (several & ~ask)] = star_kernels.CHECK
    freedom[ask] = 0


def _shape(offset: Offsets, labels: Ids, alphabet: int) -> tuple[SetTrie, Ids]:
    """A trie without items, level by level, and the node in which each set ends."""
    sets = len(offset) - 1
    node = np.zeros(sets, np.int32)
    length = np.diff(offset)
    active = np.arange(sets, dtype=np.int64)
    firsts: list[NDArray[np.int32]] = []
    label: list[NDArray[np.int32]] = [np.array([-1], np.int32)]
    start, nodes, depth = 0, 1, 0  # the nodes of the current level are start .. nodes
    while True:
        active = active[length[active] > depth]
        key = (node[active].astype(np.int64) << 32) | labels[offset[active] + depth].astype(np.int64)
        distinct, child = np.unique(key, return_inverse=True)
        parents = (distinct >> 32).astype(np.int64) - start
        counts = np.bincount(parents, minlength=nodes - start)
        firsts.append((nodes + np.concatenate(([0], np.cumsum(counts)[:-1]))).astype(np.int32))
        if not len(active):
            break
        node[active] = nodes + child
        label.append((distinct & 0xFFFFFFFF).astype(np.int32))
        start, nodes, depth = nodes, nodes + len(distinct), depth + 1
    record = np.zeros((nodes + 1, 4), np.int32)
    record[:nodes, set_trie.LABEL] = np.concatenate(label)
    record[:nodes, set_trie.FIRST], record[nodes, set_trie.FIRST] = np.concatenate(firsts), nodes
    root = np.full(alphabet, -1, np.int32)
    children = np.arange(record[0, set_trie.FIRST], record[1, set_trie.FIRST])
    root[record[children, set_trie.LABEL]] = children
    none = np.zeros(0, np.int32)
    return SetTrie(record, root, none, np.zeros(0, np.uint8), none, none), node


def _add_items(shape: SetTrie, node: Ids, clause: Ids, owner: Ids, status: Bytes, freedom: Bytes) -> SetTrie:
    """The trie with the clauses at the nodes where their sets end; its node records are filled in."""
    nodes = len(shape)
    items = clause[np.argsort(node, kind="stable")].astype(np.int32)
    counts = np.bincount(node, minlength=nodes)
    np.cumsum(counts, out=shape.nodes[1:, set_trie.ITEM])
    free = freedom[items].astype(np.int64)
    loose = (free[:, 3] > 0) | (free[:, 2] > 0)
    free_objects = free[:, 1] + free[:, 2]
    general = (free[:, 0] > 1) | (free[:, 2] > 1) | (free_objects >= set_trie.GENERAL)
    code = np.where(general, set_trie.GENERAL, free_objects | loose * set_trie.LOOSE)
    need = (status[items].astype(np.int64) << 6 | code).astype(np.uint8)
    if len(items):
        some = np.flatnonzero(counts)
        shape.nodes[some, set_trie.MARKS] = np.maximum.reduceat(need, shape.nodes[some, set_trie.ITEM])
    return replace(shape, item=items, need=need, subscription=owner[items])


def _add_stars(
    atoms: SetTrie, node: Ids, clause: Ids, owner: Ids, status: Bytes, freedom: Bytes
) -> tuple[SetTrie, SetTrie]:
    """The first trie with its stars marked, and the second trie: clauses as sets of stars, the rarest first."""
    if not len(node):
        return atoms, _shape(np.zeros(1, np.int64), np.zeros(0, np.int32), 0)[0]
    ends, number = np.unique(node, return_inverse=True)
    order = np.argsort(np.bincount(number), kind="stable")
    star = np.full(len(atoms), -1, np.int32)
    star[ends[order]] = np.arange(len(ends))
    atoms.nodes[ends, set_trie.MARKS] |= set_trie.STAR
    pairs = np.unique(clause.astype(np.int64) << 32 | star[node])  # a clause may have a star twice
    clauses, counts = np.unique(pairs >> 32, return_counts=True)
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    shape, ends = _shape(offset, (pairs & 0xFFFFFFFF).astype(np.int32), len(order))
    second = _add_items(shape, ends, clauses.astype(np.int32), owner, status, freedom)
    return replace(atoms, star=star), second


def _predicates(keys: Keys, first_range: int, terms: int) -> tuple[NDArray[np.bool_], Bytes, Ids, Ids, Ids, Ids, Ids]:
    """What the atoms ask of each predicate: the columns any_key .. range_op of `Trie`."""
    predicate, kind = (keys >> 34) - 2, (keys >> 32) & 3
    row = np.where(predicate >= 0, predicate, np.where(predicate == star_kernels.WILD, terms, terms + 1))
    any_key = np.zeros(terms + 2, np.bool_)
    any_key[row[kind == star_kernels.ANY]] = True
    flags = np.zeros(terms + 2, np.uint8)
    for bit, wanted in ((atom_kernels.HAS_TERM, star_kernels.TERM), (atom_kernels.HAS_TEST, star_kernels.TEST)):
        flags[row[kind == wanted]] |= np.uint8(bit)
    ranges = np.arange(first_range, len(keys))
    ranges = ranges[np.argsort(row[ranges], kind="stable")]
    owners, counts = np.unique(row[ranges], return_counts=True)
    range_row = np.full(terms + 2, -1, np.int32)
    range_row[owners] = np.arange(len(owners))
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    code = (keys[ranges] & 0xFFFFFFFF).astype(np.int32)
    return any_key, flags, range_row, offset, ranges.astype(np.int32), code >> 3, code & 7
