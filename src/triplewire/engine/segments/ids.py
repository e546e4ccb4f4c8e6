"""The ids of subscriptions as a table of byte strings: look-up, ranks, and the union of several tables.

The table itself: `triplewire.encode.names`. An id is looked up as its UTF-8 bytes, whose order is that of the ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import Strings, concatenated, inverse, to_bytes, to_text
from triplewire.encode.batch import Ids
from triplewire.encode.buffers import of_text
from triplewire.encode.names import Names
from triplewire.encode.strings import TextColumn
from triplewire.kernels.text.names import fill_slots

_FEW = 64  # ids that are read one by one, as to copy them first takes longer
SEED = 5  # of the hashes; terms and words have lower ones


def id_key(id: str) -> bytes:
    """An id as it is looked up."""
    return to_bytes(id)


class IdTable:
    """The ids of the subscriptions 0 .. n-1 of a segment. `rank` is given where it is known already."""

    def __init__(self, names: Names, rank: Ids | None = None) -> None:
        self.names = names
        self._rank = rank

    @classmethod
    def of(cls, ids: Sequence[str]) -> IdTable:
        """The table of ids, which are distinct."""
        return cls(Names.build([id_key(id_) for id_ in ids], SEED))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def rank(self) -> Ids:
        """Subscription -> how many ids come before its own. Worked out when it is first asked for."""
        if self._rank is None:
            self._rank = _ranks(self.names)
        return self._rank

    def find(self, key: bytes) -> int:
        """The number of the subscription with an id, as `id_key` gives it; -1 where there is none."""
        return self.names.find(key)

    def find_all(self, other: IdTable) -> Ids:
        """The number here of each id of another table, or -1."""
        names = other.names
        return self.names.find_all(names.text, names.offset[:-1], names.offset[1:], names.hash)

    def key(self, number: int) -> bytes:
        """The id of a subscription, as it is looked up."""
        return self.names[number]

    def texts(self, numbers: Ids) -> list[str]:
        """The ids of some subscriptions."""
        if len(numbers) <= _FEW:
            return [to_text(self.names[number]) for number in numbers.tolist()]
        return list(map(to_text, Strings(*self.names.texts(numbers))))

    def column(self, numbers: Ids) -> TextColumn:
        """The same as a column."""
        return TextColumn(*self.names.texts(numbers), np.arange(len(numbers), dtype=np.int32))

    @classmethod
    def joined(cls, parts: Sequence[IdTable], numbers: Sequence[NDArray[np.int64]]) -> IdTable:
        """One table of some ids of several tables, which are distinct."""
        texts, offsets = zip(*[part.names.texts(own) for part, own in zip(parts, numbers, strict=True)], strict=True)
        text, offset = np.concatenate(texts), concatenated(offsets)
        hashes = np.concatenate([part.names.hash[own] for part, own in zip(parts, numbers, strict=True)])
        slots = np.empty(1 << max((2 * len(hashes)).bit_length(), 1), np.int32)
        fill_slots(hashes, slots)
        return cls(Names(text, offset, hashes, slots, np.array([SEED]), np.zeros(0, np.uint8)))


def ranks_together(parts: Sequence[tuple[IdTable, NDArray[np.int64], Ids]], count: int) -> NDArray[np.int64]:
    """Place 0 .. count - 1 -> the rank of its id among the ids of all places.

    `parts`: (table, places, numbers): the ids of these places are those with these numbers in the table. The table with
    most places gives its ranks; the ids of the other tables are put between them by bisection.
    """
    ranks = np.zeros(count, np.int64)
    if not parts:
        return ranks
    (ids, places, numbers), *others = sorted(parts, key=lambda part: len(part[1]), reverse=True)
    order = np.argsort(ids.rank[numbers])
    keys = _Keys(ids, numbers[order])
    further = sorted(
        (other.key(number), place)
        for other, own, its in others
        for place, number in zip(own.tolist(), its.tolist(), strict=True)
    )
    before = np.array([bisect_left(keys, key) for key, _ in further], np.int64)  # how many of the first table
    ranks[places[order]] = np.arange(len(places)) + np.searchsorted(before, np.arange(len(places)), side="right")
    for number, (_, place) in enumerate(further):
        ranks[place] = before[number] + number
    return ranks


class _Keys(Sequence[bytes]):
    """Some ids of a table, for `bisect`."""

    def __init__(self, ids: IdTable, numbers: Ids) -> None:
        self._ids = ids
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> bytes:  # type: ignore[override]  # no slices are asked for
        return self._ids.key(int(self._numbers[place]))


def _ranks(names: Names) -> Ids:
    order = np.frombuffer(pc.array_sort_indices(_column(names)).buffers()[1], np.uint64, len(names))
    return inverse(order)


def _column(names: Names) -> pa.Array:
    """The strings as Arrow sees them, without a copy."""
    return of_text(names.text, names.offset)
