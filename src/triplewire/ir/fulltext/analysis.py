"""How text becomes words (semantics, section 5): the analysers, and an index of one literal's words.

What is asked of the words: `triplewire.ir.fulltext.search`.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

import regex
import Stemmer

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.fulltext.nodes import Analyzer

STEMMING_LANGUAGES = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""ISO 639-1 code to the name of Snowball's algorithm."""

_WORD = re.compile(r"[^\W_]+")
_BOUNDARY = regex.compile(r"\b", regex.WORD | regex.VERSION1)  # UAX 29 word boundaries
_SINGLE = regex.compile(r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]\p{M}*")
_HAS_WORD = regex.compile(r"[\p{L}\p{N}]")
_LOCAL = threading.local()  # a stemmer keeps a buffer, so each thread has its own


def stemming_language(name: str) -> str:
    """The Snowball algorithm for an ISO 639-1 code or a language's English name. Raises `ValueError` listing them."""
    language = STEMMING_LANGUAGES.get(name.lower(), name.lower())
    if language not in Stemmer.algorithms():
        raise ValueError(f"there is no stemming for {name!r}; known: {', '.join(sorted(STEMMING_LANGUAGES))}")
    return language


class TextWords:
    """The words of one text, in order, with the places of each."""

    __slots__ = ("__dict__", "words")

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Word to its positions, ascending."""
        positions: dict[str, list[int]] = {}
        for position, word in enumerate(self.words):
            positions.setdefault(word, []).append(position)
        return positions

    @cached_property
    def _codes(self) -> dict[str, str]:
        """From words to characters, so that a phrase is a substring.

        Past the last code point, words share characters: the words of a hit must be compared."""
        return {word: chr(number % (sys.maxunicode + 1)) for number, word in enumerate(self.positions)}

    @cached_property
    def _coded(self) -> str:
        """The text with a character for each word: a phrase is a substring, and the search for those is linear."""
        return "".join(map(self._codes.__getitem__, self.words))

    def phrase(self, words: tuple[str, ...]) -> Iterator[int]:
        """The positions where these words stand next to each other, ascending."""
        for word in words:
            if word not in self.positions:
                return iter(())
        return self._together(words)

    def _together(self, words: tuple[str, ...]) -> Iterator[int]:
        """`phrase` of words that are all there."""
        wanted = "".join(map(self._codes.__getitem__, words))
        at = self._coded.find(wanted)
        while at >= 0:
            if self.words[at : at + len(words)] == words:
                yield at
            at = self._coded.find(wanted, at + 1)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.positions)

    def with_prefix(self, prefix: str) -> Iterator[str]:
        """The distinct words that start with the prefix, sorted."""
        for at in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            if not self._sorted[at].startswith(prefix):
                return
            yield self._sorted[at]


CACHED_WORDS = 1_000_000
"""Words that are kept with their indexes, over all literals, where 16 characters count as a word as well: some 150 MB
at the most."""
_CHARACTERS = 16  # of a text, that count as a word
_cache: BoundedCache[tuple[str, Analyzer], TextWords] = BoundedCache()


def words_of(text: str, analyzer: Analyzer) -> TextWords:
    """The words of a text. They are kept, since many expressions look at the same literal."""
    key = text, analyzer
    words = _cache.get(key)
    if words is None:
        words = TextWords(analyse(text, analyzer))
        _cache.put(key, words, len(words.words) + len(text) // _CHARACTERS + 1, CACHED_WORDS)
    return words


def analyse(text: str, analyzer: Analyzer) -> tuple[str, ...]:
    """The words of a text, in order; a word's position is its index.

    Case folding comes first, then diacritics, then the tokenizer, then stemming. Without diacritics, `é` is `e`, in one
    code point or two; a letter that Unicode does not decompose (`ø`, `ł`) stays.
    """
    folded = _fold(text, analyzer)
    words = _WORD.findall(folded) if analyzer.tokenizer == "default" else list(_unicode_words(folded))
    if analyzer.stemming:
        words = _stemmer(analyzer.stemming).stemWords(words)
    return tuple(words)


def fold_prefix(text: str, analyzer: Analyzer) -> str:
    """A prefix in the form in which the analyser's words start; it is not stemmed. "" when it holds no word."""
    words = analyse(text, Analyzer(analyzer.tokenizer, "", analyzer.ignore_diacritics))
    return words[-1] if words else ""


def _fold(text: str, analyzer: Analyzer) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    if analyzer.tokenizer == "unicode":  # NFKC makes capitals of letter-like symbols, so they are folded again
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    return _without_diacritics(folded) if analyzer.ignore_diacritics else folded


def _unicode_words(text: str) -> Iterator[str]:
    """UAX 29 words that hold a letter or digit; Han, Kana and Thai one character at a time, with its marks."""
    for piece in _BOUNDARY.split(text):
        at = 0
        for single in _SINGLE.finditer(piece):
            if _HAS_WORD.search(piece[at : single.start()]):
                yield piece[at : single.start()]
            yield single[0]
            at = single.end()
        if _HAS_WORD.search(piece[at:]):
            yield piece[at:]


def _without_diacritics(text: str) -> str:
    """Decomposed (NFD), without the marks of a combining class, composed again."""
    decomposed = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmers: dict[str, Stemmer.Stemmer] = _LOCAL.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language)
    return stemmers[language]
