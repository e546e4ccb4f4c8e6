"""Publications as flat arrays of statements, words and classes, from which queries are drawn.

Made from generated publications (`rtf`) or from an N-Quads file of real ones. Matching does not use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer

Statement: TypeAlias = tuple[str, str, str]
"""Subject, predicate, object as N-Triples writes them."""
Document: TypeAlias = tuple[str, Sequence[Statement]]
"""The name of a publication (an IRI in angle brackets) and its statements, each once."""

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_LONGEST = 100  # characters of an object that a query repeats
_PLAIN = re.compile(r'"(.*)"(?:@[A-Za-z0-9-]+)?', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Flat arrays over all statements, sorted by publication and subject.

    A star is one subject in one publication. `text` numbers the statements whose object has words; the words of text
    number i are `word[word_offset[i] : word_offset[i + 1]]`.
    """

    predicates: tuple[str, ...]
    objects: tuple[str, ...]
    words: tuple[str, ...]
    predicate: NDArray[np.int32]  # of each statement
    object: NDArray[np.int32]
    publication_offset: NDArray[np.int64]  # publication -> its slice of the statements
    star: NDArray[np.int32]  # statement -> its star
    star_offset: NDArray[np.int64]
    is_type: NDArray[np.bool_]
    is_short: NDArray[np.bool_]  # the object may be repeated in a query
    text: NDArray[np.int64]  # the statements with words, ascending
    word: NDArray[np.int32]
    word_offset: NDArray[np.int64]

    @property
    def classes(self) -> NDArray[np.int32]:
        """The objects that are classes, each once."""
        return np.unique(self.object[self.is_type])

    def describe(self) -> dict[str, float]:
        """Statistics of the corpus: counts, and means for a publication."""
        per_publication = np.diff(self.publication_offset)
        text_words = np.zeros(len(self.object), np.int64)
        text_words[self.text] = np.diff(self.word_offset)
        counted = np.add.reduceat(text_words, self.publication_offset[:-1])
        return {
            "publications": len(per_publication),
            "triples": len(self.object),
            "mean triples": float(per_publication.mean()),
            "mean words": float(counted.mean()),
            "median words": float(np.median(counted)),
            "most words": int(counted.max()),
            "classes": len(self.classes),
            "properties": len(self.predicates),
            "distinct words": len(self.words),
        }


class _Table(dict[str, int]):
    """Numbers for texts, in the order in which they are first looked up."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def build(documents: Iterable[Document]) -> Corpus:
    """The corpus of these publications."""
    predicates, objects, vocabulary = _Table(), _Table(), _Table()
    predicate: list[int] = []
    object_: list[int] = []
    star: list[int] = []
    texts: list[int] = []
    word: list[int] = []
    offsets, word_offsets, stars = [0], [0], 0
    for _, statements in documents:
        last = ""
        for subject, property_, value in sorted(statements):
            stars += subject != last
            last = subject
            if (plain := _PLAIN.fullmatch(value)) and (tokens := analyse(_unescaped(plain[1]), Analyzer())):
                texts.append(len(object_))
                word.extend(vocabulary[token] for token in tokens)
                word_offsets.append(len(word))
            star.append(stars - 1)
            predicate.append(predicates[property_])
            object_.append(objects[value])
        offsets.append(len(object_))
    predicate_ids, star_ids = np.array(predicate, np.int32), np.array(star, np.int32)
    object_ids = np.array(object_, np.int32)
    # a blank node in a query would be a variable
    short = np.array([len(text) <= _LONGEST and not text.startswith("_:") for text in objects], bool)
    return Corpus(
        tuple(predicates), tuple(objects), tuple(vocabulary), predicate_ids, object_ids, np.array(offsets, np.int64),
        star_ids, np.searchsorted(star_ids, np.arange(stars + 1)).astype(np.int64),
        predicate_ids == predicates[TYPE], short[object_ids], np.array(texts, np.int64), np.array(word, np.int32),
        np.array(word_offsets, np.int64),
    )  # fmt: skip


def _unescaped(text: str) -> str:
    return re.sub(r'\\(["\\nrt])', _escape, text)


def _escape(match: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r", "t": "\t"}.get(match[1], match[1])


def to_nquads(documents: Iterable[Document]) -> bytes:
    """The publications as N-Quads, each a named graph."""
    return "".join(
        f"{subject} {predicate} {object_} {name} .\n"
        for name, statements in documents
        for subject, predicate, object_ in statements
    ).encode()


def from_nquads(path: Path) -> list[Document]:
    """The publications of an N-Quads file that writes one statement a line with single spaces."""
    documents: dict[str, dict[Statement, None]] = {}
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            subject, predicate, rest = line.split(" ", 2)
            value, name, _ = rest.rsplit(" ", 2)
            documents.setdefault(name, {})[(subject, predicate, value)] = None
    return [(name, list(statements)) for name, statements in documents.items()]


# --- vocabulary ------------------------------------------------------------------------------------------------------
# Words and names, made from numbers, so that no list of them is needed.


NAMESPACE = "http://bench.example.org/"

_ONSETS = ("", "b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "gr", "pl", "tr")
_VOWELS = ("a", "e", "i", "o", "u", "ai")
_SYLLABLES = tuple(onset + vowel for onset in _ONSETS for vowel in _VOWELS)
_LATIN = "abdefghiklmnoprstuvz"
_SCRIPTS = ("абдефгхиклмнопрстувз", "αβδεφγηικλμνοπρστυβζ")
_FOREIGN = 40  # one word in so many is written in another script
_PLAIN_VOCABULARY = 200  # but not the most frequent ones


def word(number: int) -> str:
    """The word of a rank, from 0. Different ranks have different words."""
    rest, text = number, ""
    while True:
        rest, syllable = divmod(rest, len(_SYLLABLES))
        text += _SYLLABLES[syllable]
        if rest == 0:
            break
        rest -= 1
    if number >= _PLAIN_VOCABULARY and number % _FOREIGN == 0:
        return text.translate(str.maketrans(_LATIN, _SCRIPTS[number // _FOREIGN % len(_SCRIPTS)]))
    return f"{text}{number}" if number >= _PLAIN_VOCABULARY and number % _FOREIGN == 1 else text


def name(number: int) -> str:
    """A capitalised name for a class or a thing, unique by its number."""
    return f"{word(_PLAIN_VOCABULARY + number % 7_000).title()}_{number}"


def iri(kind: str, local: str) -> str:
    """An IRI of the benchmark's namespace, as N-Triples writes it."""
    return f"<{NAMESPACE}{kind}/{local}>"


class ZipfDraws:
    """Ranks drawn by Zipf's law with Mandelbrot's shift: p(rank) ~ 1 / (rank + shift) ** exponent."""

    def __init__(self, size: int, exponent: float, shift: float) -> None:
        weights = 1.0 / (np.arange(1, size + 1) + shift) ** exponent
        self._sums = np.cumsum(weights / weights.sum())
        self._last = size - 1

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.int64]:
        """`count` ranks, from 0."""
        return np.minimum(np.searchsorted(self._sums, random.random(count), side="right"), self._last)


# --- pieces ----------------------------------------------------------------------------------------------------------
# Writes millions of rows fast: a row is a sequence of pieces, and a piece is a text that many rows share.


Rows: TypeAlias = NDArray[np.int32]
"""Piece ids, shape (rows, pieces of a row); the piece 0 is empty."""

CHUNK = 100_000  # rows made at a time
_THOUSAND = 1_000


class Pieces:
    """The distinct texts of which rows are made, with their numbers."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"": 0}
        self._texts: pa.Array | None = None

    def add(self, text: str) -> int:
        """The id of a text."""
        known = self._ids.get(text)
        if known is None:
            known = self._ids[text] = len(self._ids)
            self._texts = None
        return known

    def add_all(self, texts: Iterable[str]) -> Rows:
        """The ids of texts."""
        return np.array([self.add(text) for text in texts], dtype=np.int32)

    def render(self, rows: Rows) -> memoryview:
        """The bytes of the rows, one after the other."""
        if self._texts is None:
            self._texts = pa.array([text.encode() for text in self._ids], pa.large_binary())
        taken = self._texts.take(pa.array(np.ascontiguousarray(rows).reshape(-1)))
        size = int(np.frombuffer(taken.buffers()[1], np.int64)[len(taken)])
        return memoryview(taken.buffers()[2])[:size]


class SubscriptionRows:
    """The frame of a JSON Lines row around the pieces of a query: its id, its language, its end."""

    def __init__(self, pieces: Pieces, language: str, letter: str, query_head: str = "", query_tail: str = "") -> None:
        self._pieces = pieces
        self._head = pieces.add(f'{{"id": "{letter}')
        self._numbers = pieces.add_all(f"{number:03d}" for number in range(_THOUSAND))
        self._middle = pieces.add(f'", "language": "{language}", "query": "{quoted(query_head)}')
        self._tail = pieces.add(f'{quoted(query_tail)}"}}\n')

    def around(self, query: Rows, first: int) -> Rows:
        """The pieces of whole rows, made from those of their queries. Ids count from `first`."""
        number = np.arange(first, first + len(query))
        frame = np.empty((len(query), 5), np.int32)
        frame[:, 0] = self._head
        for place, divisor in enumerate((_THOUSAND * _THOUSAND, _THOUSAND, 1), 1):
            frame[:, place] = self._numbers[number // divisor % _THOUSAND]
        frame[:, 4] = self._middle
        return np.hstack([frame, query, np.full((len(query), 1), self._tail, np.int32)])


def quoted(text: str) -> str:
    """The text, escaped for a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def write_rows(path: Path, pieces: Pieces, chunks: Iterable[Rows]) -> int:
    """Write rows to a file, chunk by chunk. Returns their number."""
    count = 0
    with path.open("wb") as stream:
        for rows in chunks:
            stream.write(pieces.render(rows))
            count += len(rows)
    return count
