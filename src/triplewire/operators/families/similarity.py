"""`ftsim(text, words, threshold)`: is a text similar to these words, by the cosine of their tf-idf vectors?

The vector space model, which the RTF paper leaves to future work (section 6). The weight of a word in a text is its
number there times ln((1 + N) / (1 + n)) + 1, where n of N texts have it (C. Manning, P. Raghavan, H. Schuetze,
Introduction to Information Retrieval, 2008, sections 6.2 and 6.3). n and N are learned beforehand and kept in a file
(`learn`), so that an answer depends on no order of publications; without a file all words weigh the same.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from triplewire.ir.fulltext import words_of
from triplewire.ir.nodes import Analyzer
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import Literal
from triplewire.operators import text_of
from triplewire.operators.families.library import number_of, state_of_file

VARIABLE = "TRIPLEWIRE_FREQUENCIES"
MOST_WORDS = 200_000  # of a text
MOST_ASKED = 1_000  # words of a call
_ANALYZER = Analyzer()
_DIGITS = 12  # of a cosine that count: the rest is rounding


@dataclass(frozen=True)
class Frequencies:
    """In how many of how many texts each word is."""

    texts: int
    of_word: Mapping[str, int]

    def weight(self, word: str) -> float:
        """What a word counts for: more, the fewer texts have it."""
        return math.log((1 + self.texts) / (1 + self.of_word.get(word, 0))) + 1


NOTHING_LEARNED = Frequencies(0, {})


def learn(publications: Iterable[Publication], path: str | Path) -> Frequencies:
    """Count in how many texts of publications each word is, and write it to a file: a line `word TAB count` each, first
    the number of texts, without a word."""
    counts: Counter[str] = Counter()
    texts = 0
    for publication in publications:
        for triple in publication.triples:
            if isinstance(triple.object, Literal) and triple.object.has_text:
                texts += 1
                counts.update(set(words_of(triple.object.lexical, _ANALYZER).words))
    rows = [("", texts), *sorted(counts.items())]
    Path(path).write_text("".join(f"{word}\t{count}\n" for word, count in rows), encoding="utf-8")
    return Frequencies(texts, counts)


def frequencies(path: str) -> Frequencies:
    """What `learn` wrote to a file. Raises `ValueError`."""
    try:
        return _read(path, state_of_file(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"the frequencies {path} cannot be read: {error}") from None


@lru_cache(maxsize=4)
def _read(path: str, _state: tuple[int, int]) -> Frequencies:
    rows = [line.split("\t") for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    counts = {word: int(count) for word, count in rows}
    if "" not in counts or not all(0 <= count <= counts[""] for count in counts.values()):
        raise ValueError("its first line is a tabulator and the number of texts, which no word has more of")
    return Frequencies(counts.pop(""), counts)


@dataclass(frozen=True)
class Similarity:
    """The operator `ftsim`, with a file of frequencies ("": the one that TRIPLEWIRE_FREQUENCIES names, if any)."""

    file: str = ""
    name: str = "ftsim"
    parameters: tuple[Parameter, ...] = (Parameter("text"), Parameter("words"), Parameter("threshold"))
    cost: float = 5e-5
    cacheable: bool = False  # the file may change

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """No warnings. Raises `ValueError` where a constant is wrong, or the file cannot be read."""
        _, words, threshold = arguments
        if words is not None:
            _asked(words)
        if threshold is not None:
            _least(threshold)
        self._frequencies()
        return ()

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        """Is the text at least so similar? False of a term without text. Raises `ValueError` for very long texts."""
        text, words, threshold = arguments
        least, asked = _least(threshold), Counter(_asked(words))
        text_of(text, "text")
        if not (isinstance(text, Literal) and text.has_text):
            return False
        text_words = words_of(text.lexical, _ANALYZER).words
        if len(text_words) > MOST_WORDS:
            raise ValueError(f"text has more than {MOST_WORDS} words")
        return similarity(asked, Counter(text_words), self._frequencies()) >= least

    def _frequencies(self) -> Frequencies:
        path = self.file or os.environ.get(VARIABLE, "")
        return frequencies(path) if path else NOTHING_LEARNED


def similarity(first: Mapping[str, int], second: Mapping[str, int], known: Frequencies) -> float:
    """The cosine of two texts, given as the numbers of their words: 1 is the same, 0 has no word in common."""
    if len(first) > len(second):
        first, second = second, first
    common = first.keys() & second.keys()
    # `fsum` is exact, so no order of words changes the sum
    product = math.fsum(first[word] * second[word] * known.weight(word) ** 2 for word in common)
    length = math.sqrt(_square(first, known)) * math.sqrt(_square(second, known))
    return round(product / length, _DIGITS) if length else 0.0


def _square(text: Mapping[str, int], known: Frequencies) -> float:
    return math.fsum((count * known.weight(word)) ** 2 for word, count in text.items())


def _asked(argument: Argument) -> tuple[str, ...]:
    """The words of a call. Raises `ValueError` where there are none, or too many."""
    words = words_of(text_of(argument, "words"), _ANALYZER).words
    if not 0 < len(words) <= MOST_ASKED:
        raise ValueError(f"words has {len(words)} words, but may have 1 to {MOST_ASKED}")
    return words


def _least(argument: Argument) -> float:
    """The threshold. Raises `ValueError` where it is no number above 0, up to 1."""
    least = number_of(argument, "threshold", 0, 1)
    if not least:
        raise ValueError("threshold is 0, which every text reaches: write one above 0, up to 1")
    return least


FTSIM = Similarity()


def ftsim(file: str | Path) -> Similarity:
    """The operator with a file of frequencies of its own."""
    return Similarity(str(file))
