"""The range elements of atom sets when a trie is built: windows get numbers, and how selective each element is.

What a window is and how those that hold are reached: `triplewire.kernels.trie.windows`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.table import Tests
from triplewire.encode.batch import Ids
from triplewire.kernels.shared.ranks import AT_MOST
from triplewire.kernels.trie.stars import LOW
from triplewire.kernels.trie.windows import GROUP, LAST_GROUP, LAST_OP, OP


@dataclass(frozen=True, slots=True)
class Ranges:
    """`label` of each element is the number of its window, or the rank of its bound, -1 where it is no range. `share`:
    of the constants that its values are compared to, as many lie within; -1 where it is no range."""

    label: Ids
    share: NDArray[np.float64]
    window_low: Ids  # window -> the ranks of its bounds
    window_high: Ids


def ranges_of(asks: Ids, first_range: int, atom: Ids, rank: NDArray[np.int64], tests: Tests) -> Ranges:
    """Of elements of atom sets. `asks`: what each range atom asks (`triplewire.kernels.trie.windows`)."""
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
    number, window_low, window_high = _numbered(atom[windows], rank[windows])
    label[windows] = number
    return Ranges(label, share, window_low, window_high)


def _numbered(atom: Ids, rank: NDArray[np.int64]) -> tuple[Ids, Ids, Ids]:
    """The number of each window, ascending by atom and ranks; and the ranks of the distinct ones."""
    order = np.lexsort((rank, atom))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(atom[order]) != 0) | (np.diff(rank[order]) != 0)
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(first, dtype=np.int32) - np.int32(1)
    distinct = rank[order[first]]
    return number, (distinct >> LOW).astype(np.int32), (distinct & ((1 << LOW) - 1)).astype(np.int32)


def no_ranges() -> tuple[Ids, Ids]:
    """What the range atoms ask, and the upper bounds of windows, where there are none."""
    return np.zeros((0, 4), np.int32), np.zeros(0, np.int32)
