"""Publications as flat arrays of statements, words and classes, from which queries are drawn.

Made from generated publications (`rtf`) or from an N-Quads file of real ones. Matching does not use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.ir.fulltext.analysis import analyse
from triplewire.ir.fulltext.nodes import Analyzer

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
