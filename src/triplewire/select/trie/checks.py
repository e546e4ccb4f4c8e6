"""Checks the arrays of a saved index "trie", as its kernels check no bounds when they read them.

What the arrays mean: `triplewire.select.trie.build`, `triplewire.select.trie.atom_tables`; how a set-trie lies in
memory: `triplewire.kernels.trie.subsets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import under
from triplewire.clauses.schema import Column, Schema, Sizes, blocks, check, is_ascending, is_within, require
from triplewire.kernels.shared.ranks import UNEQUAL
from triplewire.kernels.trie.atoms import HASHED, NOTHING
from triplewire.kernels.trie.bounds import NUMBER, STATUS
from triplewire.kernels.trie.stars import ANY, CHECK, RANGE, TERM, TEST
from triplewire.kernels.trie.subsets import ALONE, AT, CODE, COUNT, ENDS, HALF, SCANNED, SEARCHED, STAR, TAIL, WIDE
from triplewire.kernels.trie.subsets import RANGE as RANGE_BIT
from triplewire.kernels.trie.windows import GROUP, LAST_GROUP, LAST_OP, OP
from triplewire.select.trie.atom_tables import range_tests
from triplewire.select.trie.build import star_blocks
from triplewire.select.trie.window_checks import check_windows

_CODES = (CHECK + 1) << STATUS  # how many codes there are
_TRIE: Schema = {
    "first_range": Column("i8", (1,)),
    "may_repeat": Column("b1", (1,)),
    "keys": Column("i8", ("atoms",), least=np.iinfo(np.int64).min),
    "slots": Column("i4", ("places",), below="first_range", least=-1),
    "dense": Column("i4", ("cells",), below="atoms+1"),
    "asked": Column("i4", ("constants+2", 4), below="most", least=min(HASHED, NOTHING)),
    "range_offset": Column("i4", ("ranges+1",), offsets="ranged"),
    "range_atom": Column("i4", ("ranged",), below="atoms"),
    "range_test": Column("i4", ("ranged", 4)),
    "window_low": Column("i4", ("windows",)),
    "window_high": Column("i4", ("windows",)),
    "bound_offset": Column("i4", ("bounds+1",), offsets="numbers"),
    "bounds": Column("i4", ("numbers",), least=-1),
}
_SET_TRIE: Schema = {
    "nodes": Column("i8", ("rows+1", 2), least=np.iinfo(np.int64).min),
    "root": Column("i4", ("labels",), below="rows", least=-1),
    "item": Column("i4", ("items",), below="clauses"),
    "need": Column("u4", ("items",), below=_CODES << NUMBER),
    "subscription": Column("i4", ("items",), below="subscriptions"),
    "tail": Column("i4", ("tails+1",)),
    "star": Column("i8", ("blocks",)),
}


def _stars(nodes: NDArray[Any]) -> int:
    """How many rows end a star?"""
    return sum(int(np.count_nonzero(nodes[begin:end, 1] >> STAR & 1)) for begin, end in blocks(len(nodes) - 1))


def check_trie(clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check what `TrieIndex.arrays` gave for these clauses. Raises `ValueError`."""
    trie = under("trie", arrays)
    require("first_range" in trie and trie["first_range"].shape == (1,), "the array trie.first_range is no number")
    sizes = {
        "constants": len(clauses.constants),
        "groups": clauses.tests.groups,
        "subscriptions": len(clauses),
        "clauses": clauses.count,
        "first_range": int(trie["first_range"][0]),
        "most": np.iinfo(np.int32).max,
    }
    sizes = check(_TRIE, trie, "trie", sizes)
    _check_atoms(trie, sizes, len(clauses.tests))
    _check_bounds(trie, sizes, int(np.diff(clauses.table.pattern_offset).max(initial=0)))
    require(bool(trie["may_repeat"][0]) == clauses.have_alternatives, "trie.may_repeat is not that of the clauses")
    parts = {name: under(name, arrays) for name in ("atoms", "stars")}
    check(_SET_TRIE, parts["atoms"], "atoms", {**sizes, "labels": sizes["atoms"]})
    stars = _stars(parts["atoms"]["nodes"])
    check(_SET_TRIE, parts["stars"], "stars", {**sizes, "labels": stars, "blocks": 0})
    there = np.zeros(clauses.count, np.bool_)
    singles = len(parts["atoms"]["item"])
    for name, before, first_range in (("atoms", 0, sizes["first_range"]), ("stars", singles, stars)):
        _SetTrieCheck(name, parts[name], before, first_range).run(clauses.facts.owner, sizes["bounds"])
        check_windows(name, parts[name], trie, first_range)
        there[parts[name]["item"]] = True
    items = sum(len(part["item"]) for part in parts.values())
    require(items == clauses.count and there.all(), "the tries have not each clause once")


def _check_atoms(trie: Mapping[str, NDArray[Any]], sizes: Sizes, tests: int) -> None:
    """The tables in which atoms are looked up: no look-up leads out of them, or to a range atom."""
    atoms, first_range, places, cells = sizes["atoms"], sizes["first_range"], sizes["places"], sizes["cells"]
    require(0 <= first_range <= atoms, "trie.first_range is no atom")
    is_range = (trie["keys"] >> 32) & 3 == RANGE
    require(not is_range[:first_range].any() and is_range[first_range:].all(), "the range atoms are not the last ones")
    free = any((trie["slots"][begin:end] < 0).any() for begin, end in blocks(places))
    require(places & (places - 1) == 0 and free, f"the array trie.slots has {places:,} places, or none is free")
    for begin, end in blocks(cells):
        cell = trie["dense"][begin:end]
        require(((cell < first_range) | (cell == atoms)).all(), "the array trie.dense holds a range atom")
    require(cells > 0, "the array trie.dense is empty")
    asked = trie["asked"]
    for kind, width in ((TERM, sizes["constants"]), (TEST, tests)):
        require(int(asked[:, kind].max()) + width <= cells or (asked[:, kind] < 0).all(), "trie.asked leads too far")
    always = asked[:, ANY]
    require(is_within(always, 0) and ((always < first_range) | (always == atoms)).all(), "trie.asked holds no atom")
    require(is_within(asked[:, RANGE], -1, sizes["ranges"]), "trie.asked leads to no ranges")
    require(is_within(trie["range_atom"], first_range), "the array trie.range_atom holds another atom")
    _check_ranges(trie["range_test"], trie["keys"][first_range:], sizes)


def _check_ranges(asks: NDArray[Any], keys: NDArray[Any], sizes: Sizes) -> None:
    """What range atoms ask is what their keys say, of groups that are there."""
    require(sizes["ranged"] == len(keys), "the array trie.range_atom has not each range atom once")
    require(np.array_equal(asks, range_tests(keys)), "the array trie.range_test asks what no key says")
    is_window = asks[:, LAST_OP] > 0
    require(is_within(asks[:, OP], 1, UNEQUAL), "a range atom in trie.range_test has no operator")
    require(is_within(asks[:, LAST_OP], 0, UNEQUAL), "a range atom in trie.range_test has a wrong operator")
    groups = np.append(asks[:, GROUP], asks[is_window, LAST_GROUP])
    require(is_within(groups, 0, sizes["groups"]), "a range atom in trie.range_test has no group")


def _check_bounds(trie: Mapping[str, NDArray[Any]], sizes: Sizes, patterns: int) -> None:
    """Each bound has two numbers of patterns, and then predicates. `patterns`: of one clause, at most."""
    offset, numbers = trie["bound_offset"], trie["bounds"]
    require((np.diff(offset) >= 2).all(), "a bound in trie.bound_offset is too short")
    is_count = np.zeros(len(numbers), np.bool_)
    is_count[offset[:-1]] = is_count[offset[:-1] + 1] = True
    require((numbers[offset[:-1] + 1] >= 0).all(), "a bound in trie.bounds has a wrong number of patterns")
    require((numbers[is_count] <= patterns).all(), "a bound in trie.bounds has more than all patterns")
    predicate = numbers[~is_count]
    require(is_within(predicate, 0, sizes["constants"]), "a bound in trie.bounds has no constant as predicate")


class _SetTrieCheck:
    """One set-trie: each row is reached on one way at the most, and no way ends outside."""

    def __init__(self, name: str, trie: Mapping[str, NDArray[Any]], before: int, first_range: int) -> None:
        self._name = name
        self._before = before  # items of other tries
        self._trie = trie
        self._first_range = first_range
        self._rows = len(trie["nodes"]) - 1
        # at the first of some siblings, and behind the last: where rows that have a parent begin and end
        self._has_parent = np.zeros(self._rows + 1, np.int32)
        self._below_range = np.zeros(self._rows + 1, np.int32)
        self._is_first = np.zeros(self._rows + 1, np.bool_)
        self._in_tail = np.zeros(len(trie["tail"]) + 1, np.int32)

    def _require(self, holds: bool | np.bool_, what: str) -> None:
        require(holds, f"in the array {self._name}.nodes, {what}")

    def run(self, owner: NDArray[Any], bounds: int) -> None:
        """All checks. `owner` is that of the clauses, `bounds` how many bounds there are."""
        trie, nodes = self._trie, self._trie["nodes"]
        self._require(self._rows > 0 and int(nodes[0, 1]) >> COUNT & 0xFFFF == 0, "the root is missing")
        items = nodes[:, 0] >> AT
        ends = items[0] == 0 and items[-1] == len(trie["item"]) and is_ascending(items)
        self._require(ends, "the items do not follow each other")
        for begin, end in blocks(self._rows):
            self._check_rows(begin, end, items)
        for begin, end in blocks(len(trie["item"])):
            need, item = trie["need"][begin:end], trie["item"][begin:end]
            self._require((need & ((1 << NUMBER) - 1) < bounds).all(), "a clause has no bound")
            own = np.array_equal(trie["subscription"][begin:end], owner[item])
            self._require(own, "a clause has not its subscription")
        self._check_ways()
        self._check_stars()

    def _check_rows(self, begin: int, end: int, items: NDArray[Any]) -> None:
        """What the second words of some rows say, and where their children are."""
        trie, nodes, row = self._trie, self._trie["nodes"], np.arange(begin, end)
        marks, size = nodes[begin:end, 1], np.diff(items[begin : end + 1])
        first, count = marks & HALF, marks >> COUNT & 0xFFFF
        bits = (ENDS, SCANNED, TAIL, ALONE, SEARCHED, RANGE_BIT)
        ends, more, tail, alone, odd, ranged = ((marks >> bit & 1).astype(bool) for bit in bits)
        self._require((marks >> (TAIL + 1) == 0).all() and (count <= WIDE).all(), "a row has unknown marks")
        self._require(np.array_equal(ends, size > 0), "a row has other items than it says")
        self._require(((size == 1) & (tail | (count == 0)))[alone].all(), "a row is not alone")
        self._check_tails(first[tail], count[tail], alone[tail])
        where, is_open = items[begin:end][alone], marks[alone] >> CODE + STATUS & 3 == CHECK
        named = np.where(is_open, self._before + where, trie["subscription"][where])
        there = first.copy()
        there[tail & alone] = trie["tail"][(first + count)[tail & alone]]
        self._require(np.array_equal(named, there[alone]), "a row has another subscription, or place")
        self._check_codes(marks, items[begin : end + 1], ends)
        parent = count > 0
        sorts = more.astype(np.int8) + odd + tail
        self._require(np.array_equal(sorts, parent), "the children are of no sort")
        parent &= ~tail
        self._require(np.array_equal(odd, (count == WIDE) | ranged), "the children are of another sort")
        first, count, row, ranged = first[parent], count[parent].copy(), row[parent], ranged[parent]
        self._require((first > row).all() and (first <= self._rows).all(), "children do not lie behind their parent")
        wide = count == WIDE
        count[wide] = nodes[first[wide] - 1, 0] & HALF
        last = first + count
        self._require((count[wide] >= WIDE).all() and (last <= self._rows).all(), "children lie behind the end")
        self._is_first[first] = True
        for change, which in ((self._has_parent, slice(None)), (self._below_range, ranged)):
            np.add.at(change, first[which], np.int32(1))
            np.add.at(change, last[which], np.int32(-1))

    def _check_tails(self, first: NDArray[Any], count: NDArray[Any], alone: NDArray[np.bool_]) -> None:
        """Where some tails have their labels, and behind them what is named."""
        ends = first + count + alone
        self._require((count > 0).all() and (ends < len(self._trie["tail"])).all(), "a tail leads nowhere")
        np.add.at(self._in_tail, first, np.int32(1))
        np.add.at(self._in_tail, first + count, np.int32(-1))

    def _check_codes(self, marks: NDArray[Any], items: NDArray[Any], ends: NDArray[np.bool_]) -> None:
        """Items of a row ascend by need, and its code is the largest of theirs."""
        need = self._trie["need"][items[0] : items[-1]]
        first = (items[:-1] - items[0])[ends]
        is_first = np.zeros(len(need), np.bool_)
        is_first[first] = True
        self._require((is_first[1:] | (need[1:] >= need[:-1])).all(), "items are out of order")
        last = (items[1:] - items[0])[ends] - 1
        self._require(np.array_equal(need[last] >> NUMBER, marks[ends] >> CODE & 255), "a code is another")
        self._require((marks[~ends] >> CODE & 255 == 0).all(), "a row without items has a code")

    def _check_ways(self) -> None:
        """Each row is the child of one row or of the root, and none is that twice; siblings ascend; labels are there,
        and those of range atoms are of range nodes."""
        trie, nodes = self._trie, self._trie["nodes"]
        label = nodes[:-1, 0] & HALF
        has_parent = np.cumsum(self._has_parent[:-1], dtype=np.int32)
        below_range = np.cumsum(self._below_range[:-1], dtype=np.int32).astype(bool)
        self._require(is_within(has_parent, 0, 2), "a row has two parents")
        alike = (has_parent[1:] & has_parent[:-1]).astype(bool) & ~self._is_first[1:-1]
        self._require((~alike | (label[1:] > label[:-1])).all(), "siblings are out of order")
        root = np.flatnonzero(trie["root"] >= 0)
        top = trie["root"][root]
        reached = has_parent.astype(bool)
        before = np.count_nonzero(reached)
        reached[top] = True
        self._require(np.count_nonzero(reached) == before + len(top), "a child of the root has two parents")
        is_labelled = np.array_equal(label[top], root) and not (top == 0).any()
        self._require(is_labelled, "a child of the root has another label")
        in_tail = trie["tail"][np.cumsum(self._in_tail[:-1], dtype=np.int32) > 0]
        self._require(is_within(in_tail, 0, self._first_range), "a label of a tail is no atom or star")
        plain = reached & ~below_range
        self._require((label[plain] < len(trie["root"])).all(), "a label is no atom or star")
        ranged = (nodes[:-1, 1] >> RANGE_BIT & 1).astype(bool)
        self._require(np.array_equal(ranged, plain & (label >= self._first_range)), "a range node is none")

    def _check_stars(self) -> None:
        """The numbers of stars are those of the rows where they end; without a star, nothing is said of them."""
        star, nodes = self._trie["star"], self._trie["nodes"]
        require(int(nodes[-1, 1]) == 0, f"the array {self._name}.nodes has no end")
        expected = star_blocks(nodes) if _stars(nodes) else star[:0]
        require(np.array_equal(star, expected), f"the array {self._name}.star does not say where stars end")
