"""From tokens and statements to a batch: the one way that all adapters of `triplewire.encode` go.

An adapter makes tokens of what it is given (`triplewire.kernels.text.intern`) and hands them to an `Interner`, which
gives ids, and statements of these ids back to it, which gives the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Terms
from triplewire.encode.names import suffix_columns
from triplewire.encode.text import is_plain, words_of_terms
from triplewire.kernels.shared.columns import Triples, fixed_array
from triplewire.kernels.text import columns as column_kernels
from triplewire.kernels.text import intern as kernels
from triplewire.kernels.text.columns import Statements, TermColumns
from triplewire.kernels.text.names import hash_terms
from triplewire.model.terms import XSD_STRING

_STRING = np.frombuffer(XSD_STRING.encode(), np.uint8)
_ROOM, _MOST_ROOM = 64, 1 << 15  # rows of a new table, at least and at most
_BYTES_A_TERM = 256  # of text, as a guess
_NO_ROWS, _NO_SLOTS = np.empty((0, kernels.COLUMNS), np.uint64), np.full(2, -1, np.int32)

Rows = NDArray[np.uint64]
"""Rows of a table, or tokens: shape (any, `triplewire.kernels.text.intern.COLUMNS`)."""


class _Table:
    """Rows and the slots that find them, at most half full."""

    def __init__(self, room: int) -> None:
        self._room = room  # at least, once there are rows
        self.rows: Rows = _NO_ROWS
        self.slots: Ids = _NO_SLOTS

    @property
    def columns(self) -> kernels.Interned:
        """The table as kernels take it."""
        return kernels.Interned(self.rows, self.slots)

    def reserve(self, count: int, more: int) -> None:
        """Make room for `more` rows, besides the `count` that are there."""
        if count + more <= len(self.rows):
            return
        room = max(2 * len(self.rows), count + more, self._room)
        rows = np.empty((room, kernels.COLUMNS), np.uint64)
        rows[:count] = self.rows[:count]
        self.rows, self.slots = rows, np.empty(1 << (2 * room - 1).bit_length(), np.int32)
        kernels.refill(rows, count, self.slots)


class Interner:
    """The distinct terms of `data` and the suffixes of its literals, both by number. `data` can be read eight bytes
    behind each of its texts."""

    def __init__(self, data: Bytes, max_iri_bytes: int, max_literal_bytes: int) -> None:
        self.data: Bytes = fixed_array(data)
        self._limits = max_iri_bytes, max_literal_bytes
        self._terms, self._suffixes = _Table(min(len(data) // _BYTES_A_TERM, _MOST_ROOM) + _ROOM), _Table(_ROOM)
        self._suffixes.reserve(0, 1)
        self._suffixes.rows[0] = 0
        self._state = np.zeros(kernels.STATE, np.int64)
        self._state[kernels.SUFFIXES] = 1  # 0 is none; no slot leads there

    @property
    def rows(self) -> Rows:
        """The rows of the distinct terms."""
        return self._terms.rows[: self._state[kernels.TERMS]]

    def take(self, tokens: Rows, count: int, out: Ids) -> bool:
        """The ids of the first `count` tokens. False where a term is over a limit, or too many collide."""
        terms, suffixes, *_ = self._state.tolist()
        self._terms.reserve(terms, count)
        self._suffixes.reserve(suffixes, count)
        return bool(
            kernels.intern_tokens(
                self.data, tokens, count, *self._limits, _STRING, self._terms.columns, self._suffixes.columns,
                self._state, out,
            )
        )  # fmt: skip

    def take_all(self, tokens: Rows) -> Ids:
        """The ids of tokens, however many collide. No others were taken before."""
        out = np.empty(len(tokens), np.int32)
        return out if self.take(tokens, len(tokens), out) else self._by_dictionary(tokens)

    def _by_dictionary(self, tokens: Rows) -> Ids:
        """`take_all`, slower: for terms that were made to collide."""
        suffixes, terms, suffix_rows, term_rows = {b"": 0}, dict[tuple[bytes, int, int], int](), [tokens[0]], []
        ids, data = [], self.data.tobytes()
        for token in tokens:
            start, end, kind, first, last = token.tolist()
            suffix = data[first:last] if last else b""
            if suffix not in suffixes:
                suffix_rows.append(np.array([first, last, 0, 0, 0], np.uint64))
            number = suffixes.setdefault(suffix, len(suffixes))
            key = data[start:end], kind, number
            if key not in terms:
                term_rows.append((start, end, kind, number, 0))
            ids.append(terms.setdefault(key, len(terms)))
        self._terms.rows, self._suffixes.rows = np.array(term_rows, np.uint64), np.array(suffix_rows, np.uint64)
        self._state[[kernels.TERMS, kernels.SUFFIXES]] = len(terms), len(suffixes)
        start, end, kind, suffix, _ = self.rows.astype(np.int64).T
        columns = suffix_columns(self.suffixes("surrogatepass"))
        self.rows[:, kernels.HASH] = hash_terms(
            self.data, start, end, kind.astype(np.uint8), suffix.astype(np.int32), *columns
        )
        return np.array(ids, np.int32)

    def odd_iris(self) -> list[bytes]:
        """The IRIs that are not of the plainest form, but for those in suffixes."""
        rows = self.rows
        out = np.empty(len(rows), np.int32)
        count = kernels.odd_iris(self.data, rows, len(rows), kernels.byte_classes(), out)
        return self._texts(rows[out[:count]])

    def suffixes(self, errors: str = "strict") -> tuple[str, ...]:
        """The suffixes by number. Raises `UnicodeDecodeError` where one is no UTF-8. `errors`: of `bytes.decode`."""
        count = self._state[kernels.SUFFIXES]
        if count == 1:
            return ("",)
        return ("", *[text.decode("utf-8", errors) for text in self._texts(self._suffixes.rows[1:count])])

    def _texts(self, rows: Rows) -> list[bytes]:
        data = memoryview(self.data.data)
        spans = zip(rows[:, kernels.START].tolist(), rows[:, kernels.END].tolist(), strict=True)
        return [bytes(data[start:end]) for start, end in spans]

    def batch(self, ids: Sequence[str], statements: Statements, suffixes: tuple[str, ...]) -> Batch:
        """The publications with these ids. `statements`: of the ids of terms. `suffixes`: those of this interner.
        Nobody writes to the arrays of a batch any more: kernels take them as they are."""
        rows, size = self.rows, len(statements.subject)
        count = len(rows)
        columns = TermColumns(
            np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.int32),
            np.empty(count, np.uint64), np.empty(count, np.float64), np.empty(count, np.uint8),
            np.empty(count, np.bool_),
        )  # fmt: skip
        offset, (subject, predicate, object_) = np.empty(len(ids) + 1, np.int64), np.empty((3, size), np.int32)
        triples = Triples(offset, subject, predicate, object_)
        used, text_bytes = column_kernels.write_columns(
            self.data, rows, is_plain(suffixes), statements, columns, triples
        )
        words = words_of_terms(self.data, columns.start, columns.end, columns.has_text, text_bytes)
        terms = Terms(self.data, *columns[:4], suffixes, *columns[4:7])
        batch = Batch(ids, offset, subject[:used], predicate[:used], object_[:used], terms, words)
        of_words = words.offset, words.ids, words.text, words.start, words.end, words.hash
        for array in (offset, batch.subject, batch.predicate, batch.object, *columns, *of_words):
            array.setflags(write=False)
        return batch
