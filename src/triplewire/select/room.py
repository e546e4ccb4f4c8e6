"""Where match rows come to lie: columns carved out of few large pieces of memory, as to touch fresh memory is slow.

The walk writes the subscriptions that it accepts directly into place; `triplewire.engine.snapshot` adds the rest.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets
from triplewire.kernels import rows as kernels

Columns: TypeAlias = "tuple[Ids, Ids, NDArray[np.bool_]]"
"""Rows: publication, subscription, truncated."""

_PAGE = 1 << 21  # bytes of a large page
_ROW = 9  # bytes of a row
_FIRST, _MOST = 1 << 13, 6 * _PAGE // _ROW  # rows of the first piece, and of most: each has some times those before it
_GROWTH = 4
_SPARE = 1.125  # times as much room as was needed before
_KEPT = 3  # pieces that are remembered, to be used again once nobody holds their rows


def _references(held: list[object]) -> int:
    """How many references there are to what only a list holds."""
    return getrefcount(held[0])


_UNSEEN = _references([object()])


class Room:
    """Room for match rows, of some publications at a time. One thread uses it."""

    def __init__(self) -> None:
        self._pieces = [np.empty(_bytes(_FIRST), np.uint8)]
        self._columns = _columns(self._pieces[0])
        self._begin = self._end = 0  # the rows that nobody has taken yet
        self._publications = 1  # of this part
        self._usual = 0.0  # rows of a publication in the part that had most of it, and some more
        self._largest = 0.0  # rows of the part that had most, and some more

    def begin(self, publications: int) -> None:
        """A part begins: have room for as many rows as others had, so that they need not be moved on the way."""
        self._publications = max(publications, 1)
        self.more(int(min(self._usual * publications, self._largest)), 0)

    @property
    def free(self) -> Ids:
        """Room for the next subscriptions; what is written there counts when it is added."""
        return self._columns[1][self._end :]

    def more(self, least: int, used: int) -> None:
        """Have room for so many subscriptions; the first `used` of those in `free` are kept."""
        if len(self.free) >= least:
            return
        rows = self._end - self._begin
        larger = _columns(self._piece(rows + least))
        for column, old in zip(larger, self._columns, strict=True):
            column[:rows] = old[self._begin : self._end]
        larger[1][rows : rows + used] = self._columns[1][self._end : self._end + used]
        self._columns, self._begin, self._end = larger, 0, rows

    def _piece(self, rows: int) -> NDArray[np.uint8]:
        """Memory for so many rows: one whose rows are all gone, for it is still near the processor, or a new one."""
        pieces = self._pieces
        for place in range(len(pieces) - 1):  # the last one is in use
            if len(pieces[place]) >= _bytes(rows) and getrefcount(pieces[place]) == _UNSEEN:
                pieces.append(pieces.pop(place))
                return pieces[-1]
        size = max(rows, min(_GROWTH * len(self._columns[0]), _MOST))
        self._pieces = [*pieces[1 - _KEPT :], np.empty(_bytes(size), np.uint8)]
        return self._pieces[-1]

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
        some, count = slice(self._begin, self._end), self._end - self._begin
        self._usual = max(self._usual, _SPARE * count / self._publications)
        self._largest = max(self._largest, _SPARE * count)
        self._begin = self._end
        return publication[some], subscription[some], truncated[some]


def _bytes(rows: int) -> int:
    """How large is a piece for so many rows? With what may lie before its first large page, if it has any."""
    return _ROW * rows + (_PAGE if _ROW * rows >= _PAGE else 0)


def _columns(piece: NDArray[np.uint8]) -> Columns:
    """Columns of a piece of memory, which begin with a large page: so even those of small elements lie in such."""
    begin = -_address(piece) % _PAGE if len(piece) >= 2 * _PAGE else 0
    size = (len(piece) - begin) // _ROW
    publication: Ids = piece[begin : begin + 4 * size].view(np.int32)
    subscription: Ids = piece[begin + 4 * size : begin + 8 * size].view(np.int32)
    return publication, subscription, piece[begin + 8 * size : begin + _ROW * size].view(np.bool_)


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
