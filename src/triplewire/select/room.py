"""Where match rows come to lie: columns carved out of few large pieces of memory, as to touch fresh memory is slow.

The walk writes the subscriptions that it accepts directly into place; `triplewire.engine.snapshot` adds the rest.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets
from triplewire.kernels import rows as kernels

Columns: TypeAlias = "tuple[Ids, Ids, NDArray[np.bool_]]"
"""Rows: publication, subscription, truncated."""

_FIRST, _MOST = 1 << 13, 1 << 21  # rows of the first piece, and of the largest: each has some times those before it
_GROWTH = 4
_PAGE = 1 << 21  # bytes of a large page


class Room:
    """Room for the rows of a chunk of publications, of which some are matched at a time. One thread uses it."""

    def __init__(self) -> None:
        self._columns = _columns(_FIRST)
        self._begin = self._end = 0  # the rows that nobody has taken yet

    @property
    def free(self) -> Ids:
        """Room for the next subscriptions; what is written there counts when it is added."""
        return self._columns[1][self._end :]

    def more(self, least: int, used: int) -> None:
        """Have room for so many subscriptions; the first `used` of those in `free` are kept."""
        if len(self.free) >= least:
            return
        rows = self._end - self._begin
        size = min(_GROWTH * len(self._columns[0]), _MOST)
        larger = _columns(max(rows + least, size))
        for column, old in zip(larger, self._columns, strict=True):
            column[:rows] = old[self._begin : self._end]
        larger[1][rows : rows + used] = self._columns[1][self._end : self._end + used]
        self._columns, self._begin, self._end = larger, 0, rows

    def add(self, offset: Offsets, accepted: Ids, columns: Columns, start: int) -> None:
        """Add rows: of publication p those of the slice `offset` of `accepted`, none of them truncated, and `columns`.
        The numbers of the subscriptions are raised by `start`."""
        count = len(accepted)
        self.more(count + len(columns[0]), 0)
        publication, subscription, truncated = (column[self._end :] for column in self._columns)
        kernels.fill(offset, publication)
        truncated[:count] = False
        if _address(accepted) != _address(subscription):
            subscription[:count] = accepted
        if start:
            subscription[:count] += np.int32(start)
        end = count + len(columns[0])
        more = columns[0], columns[1] + np.int32(start), columns[2]
        for column, some in zip((publication, subscription, truncated), more, strict=True):
            column[count:end] = some
        self._end += end

    def taken(self) -> Columns:
        """The rows that were added since the last time."""
        publication, subscription, truncated = self._columns
        some = slice(self._begin, self._end)
        self._begin = self._end
        return publication[some], subscription[some], truncated[some]


def _columns(size: int) -> Columns:
    """Columns of one piece of memory: so even those of small elements lie in large pages, which it begins with."""
    piece = np.empty(9 * size + (_PAGE if 9 * size >= _PAGE else 0), np.uint8)
    piece = piece[-_address(piece) % _PAGE :] if 9 * size >= _PAGE else piece
    publication: Ids = piece[: 4 * size].view(np.int32)
    subscription: Ids = piece[4 * size : 8 * size].view(np.int32)
    return publication, subscription, piece[8 * size : 9 * size].view(np.bool_)


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
