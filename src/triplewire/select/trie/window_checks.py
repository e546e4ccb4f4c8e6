"""The windows of a saved set-trie, checked before its kernels trust them.

How they lie: `triplewire.kernels.trie.windows`. The rows themselves are checked already:
`triplewire.select.trie.checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.schema import is_within, require
from triplewire.kernels.trie.subsets import COUNT, HALF, RANGE, WIDE
from triplewire.kernels.trie.windows import FAN, LAST_OP, level_rows


def check_windows(name: str, trie: Mapping[str, NDArray[Any]], ranges: Mapping[str, NDArray[Any]], first: int) -> None:
    """The children of range nodes with two bounds are windows, in order, and the levels above them are those of their
    upper bounds. `first`: the first range atom, or where there are none in this trie, all its labels. Raises
    `ValueError`."""
    nodes, low, high = trie["nodes"], ranges["window_low"], ranges["window_high"]
    row = np.flatnonzero(nodes[:-1, 1] >> RANGE & 1)
    atom = (nodes[row, 0] & HALF) - first
    require(is_within(atom, 0, len(ranges["range_test"])), f"in the array {name}.nodes, a range node asks nothing")
    row = row[ranges["range_test"][atom, LAST_OP] > 0]
    begin, count = nodes[row, 1] & HALF, nodes[row, 1] >> COUNT & 0xFFFF
    wide = count == WIDE
    count[wide] = nodes[begin[wide] - 1, 0] & HALF
    change = np.zeros(len(nodes) + 1, np.int32)
    np.add.at(change, begin, np.int32(1))
    np.add.at(change, begin + count, np.int32(-1))
    is_window = np.cumsum(change[:-2]) > 0
    label = nodes[:-1, 0] & HALF
    require(is_within(label[is_window], 0, len(low)), f"in the array {name}.nodes, a window is none")
    is_first = np.zeros(len(nodes) + 1, np.bool_)
    is_first[begin] = True
    later = np.flatnonzero(is_window & ~is_first[:-2])
    require((low[label[later - 1]] <= low[label[later]]).all(), f"in the array {name}.nodes, windows are out of order")
    for first_row, siblings in zip(begin[wide].tolist(), count[wide].tolist(), strict=True):
        require(level_rows(siblings) < first_row - 1, f"in the array {name}.nodes, windows have no levels")
        value, end = high[label[first_row : first_row + siblings]], first_row - 1
        while len(value) > FAN:
            value = np.maximum.reduceat(value, np.arange(0, len(value), FAN))
            own, end = label[end - len(value) : end], end - len(value)
            require(np.array_equal(own, value), f"in the array {name}.nodes, a level above windows is wrong")
