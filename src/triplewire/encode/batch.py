"""A batch of publications as flat arrays: distinct terms, distinct words, and triples of ids.

`triplewire.encode.publications` makes it. It knows nothing of subscriptions: `triplewire.select` asks it.
Nobody changes it. Its classes are not frozen, and so are those of selection and verification: to make a frozen object
takes five times as long, which a publication alone pays for sixty fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from triplewire.kernels.shared.columns import Triples

Bytes: TypeAlias = NDArray[np.uint8]
Ids: TypeAlias = NDArray[np.int32]
Offsets: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]

IRI_KIND, BLANK_KIND, LITERAL_KIND = 1, 2, 3
FEW_SUFFIXES = 64  # of so many suffixes, what is said of them is kept from batch to batch
NO_NUMBER, EXACT_NUMBER, LONG_NUMBER = 0, 1, 2
"""Of a text: it reads as no number; `number` is it, exactly comparable; it reads as one that needs more digits."""


@dataclass(slots=True)
class Terms:
    """The distinct terms of a batch, by id. Two ids are two different RDF terms."""

    text: Bytes  # holds the text of each term: IRI, blank node label, or lexical form; UTF-8, no escapes
    start: Offsets
    end: Offsets
    kind: Bytes
    suffix: Ids  # into `suffixes`; 0 but for literals of another datatype than xsd:string
    suffixes: tuple[str, ...]  # "" first; "@en" for a language, else a datatype IRI
    hash: Hashes
    number: NDArray[np.float64]  # what the text reads as in lenient comparison (semantics, section 2)
    number_state: Bytes
    _longest: int = field(default=-1, init=False, repr=False, compare=False)
    _suffix_bytes: NDArray[np.int64] | None = field(default=None, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def longest(self) -> int:
        """No term has more bytes of UTF-8, with the datatype or the language of a literal."""
        if self._longest < 0:
            longest = (self.end - self.start).max(initial=0) + self.suffix_bytes.max(initial=0)
            self._longest = int(longest)
        return self._longest

    @property
    def suffix_bytes(self) -> NDArray[np.int64]:
        """How many bytes of UTF-8 each of `suffixes` has."""
        if self._suffix_bytes is None:
            sizes = [len(text.encode("utf-8", "surrogatepass")) for text in self.suffixes]
            self._suffix_bytes = np.array(sizes, np.int64)
        return self._suffix_bytes


@dataclass(slots=True)
class Words:
    """The words of the literals that have text, by the default analyser (semantics, section 5)."""

    offset: Offsets  # term -> its slice of `ids`; one longer than the terms
    ids: Ids  # words in the order of their positions
    text: Bytes  # holds the distinct words
    start: Offsets
    end: Offsets
    hash: Hashes

    def __len__(self) -> int:
        return len(self.start)


@dataclass(slots=True)
class Batch:
    """Publications, each a slice of the triples, which are sorted by (subject, predicate, object) and distinct."""

    ids: Sequence[str]
    offset: Offsets  # publication -> its slice of the triples; one longer than the publications
    subject: Ids
    predicate: Ids
    object: Ids
    terms: Terms
    words: Words

    def __len__(self) -> int:
        return len(self.offset) - 1

    @property
    def triples(self) -> Triples:
        """The triples as kernels take them."""
        from triplewire.kernels.shared.columns import Triples  # with Numba, which the interpreted tier does without

        return Triples(self.offset, self.subject, self.predicate, self.object)

    def part(self, first: int, last: int) -> Batch:
        """The publications first .. last - 1, with the same terms and words."""
        begin, end = self.offset[first], self.offset[last]
        offset = self.offset[first : last + 1] - begin
        offset.setflags(write=False)  # as that of the whole: else each kernel would be compiled for both
        columns = self.subject[begin:end], self.predicate[begin:end], self.object[begin:end]
        return Batch(self.ids[first:last], offset, *columns, self.terms, self.words)

    def take(self, numbers: NDArray[np.integer]) -> Batch:
        """The publications of these numbers, with the same terms and words."""
        start = self.offset[numbers]
        counts = self.offset[numbers + 1] - start
        offset = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(counts, out=offset[1:])
        rows = np.arange(offset[-1]) + np.repeat(start - offset[:-1], counts)
        offset.setflags(write=False)  # as in `part`
        columns = self.subject[rows], self.predicate[rows], self.object[rows]
        for column in columns:
            column.setflags(write=self.subject.flags.writeable)  # kernels are compiled for one of both
        return Batch([self.ids[number] for number in numbers.tolist()], offset, *columns, self.terms, self.words)
