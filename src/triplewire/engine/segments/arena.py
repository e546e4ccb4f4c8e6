"""The arena of match rows: columns carved out of few large pieces of memory, because fresh memory is slow to touch.

An index writes the subscriptions that it accepts directly into place (`triplewire.select.index.Space`), and
`triplewire.engine.segments.snapshot` adds the rest. Rows that a result still holds keep their piece. A piece of which
no rows are left is used again.
"""

from __future__ import annotations

import weakref
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets
from triplewire.kernels import rows as kernels

Columns: TypeAlias = "tuple[Ids, Ids, NDArray[np.bool_]]"
"""Rows: publication, subscription, truncated."""

_PAGE = 1 << 21  # bytes of a large page
_ROW = 9  # bytes of a row
_FIRST, _MOST = 1 << 13, 6 * _PAGE // _ROW  # rows of the first piece; and up to how many the pieces grow by themselves
_GROWTH = 4
_SPARE = 1.125  # times as much room as was needed before
_REMEMBERED = 3  # pieces that may be used again


class _Piece:
    """A piece of memory. Its columns are views of an array that lives as long as any of them."""

    def __init__(self, rows: int) -> None:
        self.size = _bytes(rows)
        self._memory = np.empty(self.size, np.uint8).data
        self._lent: weakref.ref[NDArray[np.uint8]] | None = None

    @property
    def is_idle(self) -> bool:
        """Does nobody hold rows of it?"""
        return self._lent is None or self._lent() is None

    def columns(self) -> Columns:
        """Its columns, for a new user. They begin with a large page, so even columns of small elements lie in such."""
        piece: NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self._lent = weakref.ref(piece)
        address: int = piece.__array_interface__["data"][0]
        begin = -address % _PAGE if len(piece) >= 2 * _PAGE else 0
        size = (len(piece) - begin) // _ROW
        publication: Ids = piece[begin : begin + 4 * size].view(np.int32)
        subscription: Ids = piece[begin + 4 * size : begin + 8 * size].view(np.int32)
        return publication, subscription, piece[begin + 8 * size : begin + _ROW * size].view(np.bool_)


class Arena:
    """Memory for the match rows of some publications at a time. One thread uses it."""

    def __init__(self) -> None:
        self._pieces = [_Piece(_FIRST)]
        self._columns = self._pieces[0].columns()
        self._begin = self._end = 0  # the rows that nobody has taken yet
        self._room = len(self._columns[0])
        self._publications = 1  # of this part
        self._usual = 0.0  # the most rows per publication in a part so far, times _SPARE
        self._largest = 0.0  # the most rows of a part so far, times _SPARE

    def begin(self, publications: int) -> None:
        """Begin a part: reserve room for as many rows as earlier parts had, so that rows are not moved later."""
        self._publications = publications or 1
        least = min(self._usual * publications, self._largest)
        if self._room - self._end < least:
            self.more(int(least), 0)

    @property
    def free(self) -> Ids:
        """Room for the next subscriptions; what is written there counts when it is added."""
        return self._columns[1][self._end :]

    def more(self, least: int, used: int) -> None:
        """Have room for so many subscriptions; the first `used` of those in `free` are kept."""
        if self._room - self._end >= least:
            return
        rows = self._end - self._begin
        larger = self._piece(rows + least).columns()
        for column, old in zip(larger, self._columns, strict=True):
            column[:rows] = old[self._begin : self._end]
        larger[1][rows : rows + used] = self._columns[1][self._end : self._end + used]
        self._columns, self._begin, self._end, self._room = larger, 0, rows, len(larger[0])

    def _piece(self, rows: int) -> _Piece:
        """Memory for so many rows: an idle piece, which is still near the processor, or a new one."""
        pieces = self._pieces
        for place in range(len(pieces) - 1):  # the last one is in use
            if pieces[place].size >= _bytes(rows) and pieces[place].is_idle:
                pieces.append(pieces.pop(place))
                return pieces[-1]
        size = max(rows, min(_GROWTH * len(self._columns[0]), _MOST))
        self._pieces = [*pieces[1 - _REMEMBERED :], _Piece(size)]
        return self._pieces[-1]

    def add(self, offset: Offsets, accepted: Ids, columns: Columns, start: int) -> None:
        """Add rows: of publication p those of the slice `offset` of `accepted`, none of them truncated, and `columns`.
        The numbers of the subscriptions are raised by `start`."""
        count = len(accepted)
        end = count + len(columns[0])
        if self._room - self._end < end:
            self.more(end, 0)
        publication, subscription, truncated = self._columns
        kernels.fill(offset, accepted, start, self._end, publication, subscription, truncated)
        if end > count:
            rows = slice(self._end + count, self._end + end)
            publication[rows], truncated[rows] = columns[0], columns[2]
            subscription[rows] = columns[1] + np.int32(start)
        self._end += end

    def take_rows(self) -> Columns:
        """The rows that were added since the last time."""
        publication, subscription, truncated = self._columns
        rows, count = slice(self._begin, self._end), _SPARE * (self._end - self._begin)
        if count > self._usual * self._publications:
            self._usual = count / self._publications
        if count > self._largest:
            self._largest = count
        self._begin = self._end
        return publication[rows], subscription[rows], truncated[rows]


def _bytes(rows: int) -> int:
    """The size of a piece for so many rows, with what may lie before its first large page."""
    return _ROW * rows + (_PAGE if _ROW * rows >= _PAGE else 0)
