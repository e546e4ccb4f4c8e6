"""The texts of subscriptions, on disk: one JSON row a subscription, found by its place. And the table of their ids.

A row is a line of a subscription file: {"id", "language", "query", "prefixes", "base"}. `TextWriter` holds new rows,
in memory at first, then in a temporary file that vanishes with it; `TextFile` is the file of a saved engine. Neither is
mapped: what is read seldom shall not count as memory in use. Neither is read from where the last read has ended: a
parent and its forks share that place.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Protocol, cast

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.clauses.clauses import mapped_zeros
from triplewire.clauses.node_tests.columns import Strings, concatenated, inverse, to_bytes, to_text
from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.encode.names import Names
from triplewire.encode.strings import TextColumn, of_text
from triplewire.errors import StoreError, WriteError
from triplewire.forks import forget_in_children, new_lock
from triplewire.kernels.text.names import fill_slots
from triplewire.languages.templates.splitting import Texts as Spans

IN_MEMORY = 1 << 20  # bytes of rows before they go to a file
MOST_SOURCES = 200  # of one segment
_MOVED_TOGETHER = 4_096  # rows
_BLOCK = 1 << 20  # bytes
_FEW = 64  # ids that are read one by one, as to copy them first takes longer
_KEPT = 1 << 20  # ids of one table that are kept as texts, at most: 60 bytes each
SEED = 5  # of the hashes of ids; terms and words have lower ones


class TextSource(Protocol):
    """Rows by place."""

    size: int  # bytes of all rows

    def read(self, start: int, length: int) -> bytes:
        """The bytes at this place. Any thread may ask."""


class TextWriter:
    """Rows that are appended and read by any number of threads. Where `expected` bytes are too many for memory, the
    file is there from the start: later its objects would come to lie among the small ones of a load, and keep the
    memory of those from being given back (decision 025)."""

    def __init__(self, expected: int = 0) -> None:
        self._lock = new_lock()  # held by who appends
        self._memory = bytearray()
        self._file = _temporary_file() if expected > IN_MEMORY else None
        self._is_of_parent = False
        self.size = 0
        forget_in_children(self)

    def append(self, rows: Sequence[bytes]) -> tuple[Offsets, Ids]:
        """Add rows; returns where each begins and how long it is. Raises `StoreError` where they cannot be written, and
        leaves none of them there."""
        return self.append_joined(b"".join(rows), np.array(list(map(len, rows)), np.int32))

    def append_joined(self, data: bytes, lengths: Ids) -> tuple[Offsets, Ids]:
        """The same for rows of these lengths that stand one behind the other."""
        starts = np.zeros(len(lengths), np.int64)
        np.cumsum(lengths[:-1], out=starts[1:])
        with self._lock:
            starts += self.size
            if self._is_of_parent or (self._file is None and self.size + len(data) > IN_MEMORY):
                self._move()
            if self._file is not None:
                _write(self._file, self.size, data)
            else:
                self._memory[self.size :] = data
            self.size += len(data)
        return starts, lengths

    def _move(self) -> None:
        file = _temporary_file()
        for start in range(0, self.size, _BLOCK):
            _write(file, start, self.read(start, min(self.size - start, _BLOCK)))
        self._file, self._is_of_parent = file, False
        self._memory = bytearray()

    def read(self, start: int, length: int) -> bytes:
        """The bytes at this place."""
        memory, file = self._memory, self._file  # in this order: what leaves the memory is in the file already
        if file is None:
            return bytes(memory[start : start + length])
        return _read(file, start, length, "temporary file")

    def forget(self) -> None:
        """In the child of a fork: the file is read, and not written to, as the parent goes on with it."""
        self._is_of_parent = self._file is not None


def _temporary_file() -> IO[bytes]:
    """A file that is open as long as the texts. It has no buffer, which would keep what a full disk has refused, and
    fail again when somebody reads."""
    try:
        return cast("IO[bytes]", tempfile.TemporaryFile(prefix="triplewire-texts-", buffering=0))
    except OSError as error:
        raise _unwritten(error) from error


def _write(file: IO[bytes], start: int, data: bytes) -> None:
    """Write all of the data at a place. Raises `StoreError`."""
    unwritten = memoryview(data)
    try:
        while unwritten:
            written = _write_at(file, unwritten, start)
            unwritten, start = unwritten[written:], start + written
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> WriteError:
    what = f"the texts of subscriptions cannot be written to a temporary file: {error.strerror or error}"
    return WriteError(what, remedy="make room in the folder for temporary files, or name another one by TMPDIR")


class TextFile:
    """The rows of a saved engine, read from its file. The file may be removed or replaced meanwhile."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = file.seek(0, os.SEEK_END)

    def read(self, start: int, length: int) -> bytes:
        """The bytes at this place. Raises `StoreError` where they are missing."""
        return _read(self._file, start, length, self._file.name)


@dataclass(frozen=True)
class Texts:
    """Where the text of each subscription lies: source, start and length. One without a text has the length 0."""

    sources: tuple[TextSource, ...]
    source: Bytes  # subscription -> place of its source in `sources`
    start: Offsets  # subscription -> where its row begins in the source
    length: Ids  # subscription -> bytes of its row

    @classmethod
    def of(cls, writer: TextWriter, rows: Sequence[bytes]) -> Texts:
        """The texts of new rows, which are appended to the writer."""
        return cls((writer,), np.zeros(len(rows), np.uint8), *writer.append(rows))

    def __len__(self) -> int:
        return len(self.start)

    def read(self, number: int) -> bytes:
        """The text of a subscription."""
        source: TextSource = self.sources[self.source[number]]
        return source.read(int(self.start[number]), int(self.length[number]))

    def blocks(self) -> Iterator[bytes]:
        """All texts in order; those that lie one behind the other are read together."""
        start, length = self.start, self.length
        follows = (self.source[1:] == self.source[:-1]) & (start[1:] == start[:-1] + length[:-1])
        begins = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(self)] if len(self) else []
        for first, end in pairwise(begins):
            source, last = self.sources[self.source[first]], int(start[end - 1]) + int(length[end - 1])
            for begin in range(int(start[first]), last, _BLOCK):
                yield source.read(begin, min(last - begin, _BLOCK))

    def take(self, rows: NDArray[np.int64]) -> Texts:
        """The texts of the subscriptions with these numbers."""
        return Texts(self.sources, self.source[rows], self.start[rows], self.length[rows])

    def are_equal(self, others: Spans) -> NDArray[np.bool_]:
        """Which of them are the same as others, each as long as the other? None is empty."""
        if not len(self):
            return np.zeros(0, np.bool_)
        mine = np.frombuffer(b"".join(self.blocks()), np.uint8)
        differs = mine != np.frombuffer(others.joined(), np.uint8)
        return ~np.logical_or.reduceat(differs, np.cumsum(self.length, dtype=np.int64) - self.length)

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """The texts of several segments, one behind the other. The rows stay where they are, unless there are more than
        `MOST_SOURCES` sources: then all are written to a new one."""
        sources = tuple({id(source): source for part in parts for source in part.sources}.values())
        place = {id(source): number for number, source in enumerate(sources)}
        if len(sources) > MOST_SOURCES:
            return cls.of(TextWriter(), [part.read(number) for part in parts for number in range(len(part))])
        source = [np.array([place[id(source)] for source in part.sources], np.uint8)[part.source] for part in parts]
        starts, lengths = [part.start for part in parts], [part.length for part in parts]
        return cls(sources, np.concatenate(source), np.concatenate(starts), np.concatenate(lengths))

    def tidied(self, least: int) -> Texts:
        """The same texts; those in sources smaller than `least` bytes, or of which less than half is used, are written
        together into a new one. So no more is left on disk than is needed."""
        used = np.bincount(self.source, self.length, len(self.sources))
        size = np.array([source.size for source in self.sources])
        moved = (size < least) | (2 * used < size)
        if not moved.any():
            return self
        writer = TextWriter()
        rows = np.flatnonzero(moved[self.source])
        start = self.start.copy()
        for begin in range(0, len(rows), _MOVED_TOGETHER):
            portion = rows[begin : begin + _MOVED_TOGETHER]
            start[portion], _ = writer.append([self.read(number) for number in portion.tolist()])
        staying = np.flatnonzero(~moved)
        place = np.full(len(self.sources), len(staying), np.uint8)
        place[staying] = np.arange(len(staying))
        return Texts((*(self.sources[number] for number in staying), writer), place[self.source], start, self.length)


def _read(file: IO[bytes], start: int, length: int, source: str) -> bytes:
    data = b""
    try:
        while len(data) < length and (piece := _read_at(file, length - len(data), start + len(data))):
            data += piece
    except OSError as error:
        raise StoreError(f"the text of a subscription cannot be read: {error.strerror}", source=source) from error
    if len(data) != length:
        raise StoreError("the text of a subscription is missing", source=source)
    return data


if sys.platform == "win32":  # it has no forks
    _MOVING = threading.Lock()

    def _read_at(file: IO[bytes], length: int, start: int) -> bytes:
        with _MOVING:
            file.seek(start)
            return file.read(length)

    def _write_at(file: IO[bytes], data: memoryview, start: int) -> int:
        with _MOVING:
            file.seek(start)
            return file.write(data)

else:

    def _read_at(file: IO[bytes], length: int, start: int) -> bytes:
        return os.pread(file.fileno(), length, start)

    def _write_at(file: IO[bytes], data: memoryview, start: int) -> int:
        return os.pwrite(file.fileno(), data, start)


class _KeptTexts:
    """The strings of a table as texts that are made when they are first asked for, and kept, up to `_KEPT`. Any number
    of threads may ask."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._lock = new_lock()  # held by who adds texts
        self._count = 1  # places that are taken; the first one is no text's
        # string -> its place among the texts made, 0 where it is not there; a text is put there before its place
        self._kept: tuple[Ids, NDArray[np.object_]] | None = None

    def take(self, numbers: Ids) -> list[str]:
        """The texts of these strings."""
        if self._kept is not None:
            place, made = self._kept
            places = place[numbers]
            if places.all():
                with suppress(IndexError):  # another thread has added some of them in the meantime
                    texts: list[str] = made[places].tolist()
                    return texts
        with self._lock:
            return self._added(numbers)

    def _added(self, numbers: Ids) -> list[str]:
        """The same, where some are not there yet."""
        place, made = self._kept or self._anew()
        new = np.unique(numbers[place[numbers] == 0])
        if self._count + len(new) > _KEPT:
            (place, made), new = self._anew(), np.unique(numbers)
            if len(new) >= _KEPT:
                return self._decoded(numbers)
        end = self._count + len(new)
        if end > len(made):
            larger = np.empty(min(2 * end, _KEPT), object)
            larger[: self._count] = made[: self._count]
            made = larger
        made[self._count : end] = self._decoded(new)
        place[new] = np.arange(self._count, end)
        self._kept, self._count = (place, made), end
        texts: list[str] = made[place[numbers]].tolist()
        return texts

    def _anew(self) -> tuple[Ids, NDArray[np.object_]]:
        """Room for texts, of which there are none. What other threads are reading stays as it is."""
        self._kept, self._count = None, 1
        return mapped_zeros(len(self._names), np.int32), np.empty(1, object)

    def _decoded(self, numbers: Ids) -> list[str]:
        if len(numbers) <= _FEW:
            return [to_text(self._names[number]) for number in numbers.tolist()]
        return list(map(to_text, Strings(*self._names.texts(numbers))))


class IdTable:
    """The ids of the subscriptions 0 .. n-1 of a segment, in bytes. `rank` is given where it is known already."""

    def __init__(self, names: Names, rank: Ids | None = None) -> None:
        self.names = names
        self._rank = rank
        self._kept = _KeptTexts(names)

    @classmethod
    def of(cls, ids: Sequence[str]) -> IdTable:
        """The table of ids, which are distinct."""
        return cls(Names.build([to_bytes(id_) for id_ in ids], SEED))

    @classmethod
    def of_spans(cls, ids: Spans) -> IdTable:
        """The same of ids in bytes."""
        offset = np.concatenate((np.zeros(1, np.int64), np.cumsum(ids.lengths)))
        return cls(Names.of(np.frombuffer(ids.joined(), np.uint8), offset, SEED))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def rank(self) -> Ids:
        """Subscription -> how many ids come before its own. Worked out when it is first asked for."""
        if self._rank is None:
            texts = of_text(self.names.text, self.names.offset)  # without a copy
            order = np.frombuffer(pc.array_sort_indices(texts).buffers()[1], np.uint64, len(self.names))
            self._rank = inverse(order)
        return self._rank

    def find_all(self, other: IdTable) -> Ids:
        """The number here of each id of another table, or -1."""
        names = other.names
        return self.names.find_all(names.text, names.offset[:-1], names.offset[1:], names.hash)

    def texts(self, numbers: Ids) -> list[str]:
        """The ids of some subscriptions. Each is decoded when it is first asked for, and shared from then on."""
        return self._kept.take(numbers)

    def column(self, numbers: Ids) -> TextColumn:
        """The same as a column."""
        return TextColumn(*self.names.texts(numbers), np.arange(len(numbers), dtype=np.int32))

    @classmethod
    def joined(cls, parts: Sequence[IdTable], numbers: Sequence[NDArray[np.int64]]) -> IdTable:
        """One table of some ids of several tables, which are distinct."""
        taken = [(part.names, places) for part, places in zip(parts, numbers, strict=True)]
        texts, offsets = zip(*[names.texts(places) for names, places in taken], strict=True)
        text, offset = np.concatenate(texts), concatenated(offsets)
        hashes = np.concatenate([names.hash[places] for names, places in taken])
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
    further = sorted(
        (other.names[number], place)
        for other, other_places, other_numbers in others
        for place, number in zip(other_places.tolist(), other_numbers.tolist(), strict=True)
    )
    ascending, names = numbers[order], ids.names
    before = np.array(  # how many of the first table
        [bisect_left(ascending, key, key=lambda number: names[int(number)]) for key, _ in further], np.int64
    )
    ranks[places[order]] = np.arange(len(places)) + np.searchsorted(before, np.arange(len(places)), side="right")
    for number, (_, place) in enumerate(further):
        ranks[place] = before[number] + number
    return ranks
