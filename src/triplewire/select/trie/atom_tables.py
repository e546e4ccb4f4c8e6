"""Where the atoms lie that a triple may have: tables by predicate, made for `triplewire.kernels.trie.atoms`.

The predicates with most atoms have theirs by number of term or test, so that a look-up is one load; the rest are in a
hash table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.kernels.trie import atoms as kernels
from triplewire.kernels.trie.atoms import HASHED, NOTHING
from triplewire.kernels.trie.stars import ANY, LAST, RANGE, TERM, TEST, WILD

_CELLS, _LEAST = 4, 1 << 14  # `dense` has at most _CELLS cells per atom, or _LEAST cells if that is more


@dataclass(frozen=True, slots=True)
class AtomTables:
    """Rows of `asked` are terms, as predicates, and two more: any predicate, and the subject itself. Columns are kinds
    of atoms. TERM and TEST: where in `dense` the atoms begin, or HASHED, or NOTHING. ANY: the atom itself, or
    `len(keys)` where there is none, as in `dense`. RANGE: its row in the range atoms, or -1."""

    slots: Ids  # hash table over the keys of other atoms
    asked: Ids  # shape (terms + 2, 4)
    dense: Ids
    range_offset: Ids
    range_atom: Ids
    range_test: Ids  # shape (range atoms, 4): what each of them asks (`triplewire.kernels.trie.windows`)


def build_atom_tables(keys: NDArray[np.int64], first_range: int, terms: int, tests: int) -> AtomTables:
    """The tables for atoms with these keys, of which those from `first_range` on are range atoms."""
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
    kernels.build_table(keys, hashed, slots)
    return AtomTables(slots, asked, dense, *_ranges(keys, first_range, row, asked))


def _dense(
    asked: Ids,
    atom: NDArray[np.int64],
    row: NDArray[np.int64],
    kind: NDArray[np.int64],
    number: NDArray[np.int64],
    widths: tuple[int, int],
    none: int,
) -> Ids:
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


def _ranges(keys: NDArray[np.int64], first_range: int, row: NDArray[np.int64], asked: Ids) -> tuple[Ids, Ids, Ids]:
    """The range atoms of each predicate, and what they ask; `asked` says which row is whose."""
    ranges = np.arange(first_range, len(keys))
    ranges = ranges[np.argsort(row[ranges], kind="stable")]
    owners, counts = np.unique(row[ranges], return_counts=True)
    asked[owners, RANGE] = np.arange(len(owners))
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return offset, ranges.astype(np.int32), range_tests(keys[first_range:])


def range_tests(keys: NDArray[np.int64]) -> Ids:
    """Of range atoms: the group and the operator of the lower bound, or of the only one, and of the upper one; the
    operator is 0 without."""
    code = keys & 0xFFFFFFFF
    parts = [part for bound in (code & ((1 << LAST) - 1), code >> LAST) for part in (bound >> 3, bound & 7)]
    tests: Ids = np.stack(parts, axis=1).astype(np.int32)
    return tests
