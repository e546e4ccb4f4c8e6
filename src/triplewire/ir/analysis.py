"""How text becomes words (semantics, section 5): the analysers, and an index of one literal's words.

What is asked of the words: `triplewire.ir.search`.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property, lru_cache

import regex
import Stemmer

from triplewire.ir.text import Analyzer

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
    found = STEMMING_LANGUAGES.get(name.lower(), name.lower())
    if found not in Stemmer.algorithms():
        raise ValueError(f"there is no stemming for {name!r}; known: {', '.join(sorted(STEMMING_LANGUAGES))}")
    return found


class Words:
    """The words of one text, in order, with the places of each."""

    __slots__ = ("__dict__", "words")

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Word to its positions, ascending."""
        found: dict[str, list[int]] = {}
        for position, word in enumerate(self.words):
            found.setdefault(word, []).append(position)
        return found

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.positions)

    def with_prefix(self, prefix: str) -> Iterator[str]:
        """The distinct words that start with the prefix, sorted."""
        for at in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            if not self._sorted[at].startswith(prefix):
                return
            yield self._sorted[at]


@lru_cache(maxsize=65_536)
def words_of(text: str, analyzer: Analyzer) -> Words:
    """The text's words with an index; kept, since many expressions look at the same literal."""
    return Words(analyse(text, analyzer))


def analyse(text: str, analyzer: Analyzer) -> tuple[str, ...]:
    """The words of a text, in order; a word's position is its index.

    Case folding comes first, then the tokenizer, then diacritics, then stemming.
    """
    folded = _fold(text, analyzer)
    words = _WORD.findall(folded) if analyzer.tokenizer == "default" else list(_unicode_words(folded))
    if analyzer.ignore_diacritics:
        words = [word for word in map(_without_diacritics, words) if word]
    if analyzer.stemming:
        words = _stemmer(analyzer.stemming).stemWords(words)
    return tuple(words)


def fold_prefix(text: str, analyzer: Analyzer) -> str:
    """A prefix in the form in which the analyser's words start; it is not stemmed. "" when it holds no word."""
    words = analyse(text, Analyzer(analyzer.tokenizer, "", analyzer.ignore_diacritics))
    return words[-1] if words else ""


def _fold(text: str, analyzer: Analyzer) -> str:
    folded = text.casefold()
    return unicodedata.normalize("NFKC", folded) if analyzer.tokenizer == "unicode" else folded


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


def _without_diacritics(word: str) -> str:
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmers: dict[str, Stemmer.Stemmer] = _LOCAL.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language)
    return stemmers[language]
