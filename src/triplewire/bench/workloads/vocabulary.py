"""Words and names, made from numbers, so that no list of them is needed.

Frequent words are short and rare ones long, as in natural languages. Some are in other scripts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NAMESPACE = "http://bench.example.org/"

_ONSETS = ("", "b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "gr", "pl", "tr")
_VOWELS = ("a", "e", "i", "o", "u", "ai")
_SYLLABLES = tuple(onset + vowel for onset in _ONSETS for vowel in _VOWELS)
_LATIN = "abdefghiklmnoprstuvz"
_SCRIPTS = ("абдефгхиклмнопрстувз", "αβδεφγηικλμνοπρστυβζ")
_FOREIGN = 40  # one word in so many is written in another script
_PLAIN = 200  # but not the most frequent ones


def word(number: int) -> str:
    """The word of a rank, from 0. Different ranks have different words."""
    rest, text = number, ""
    while True:
        rest, syllable = divmod(rest, len(_SYLLABLES))
        text += _SYLLABLES[syllable]
        if rest == 0:
            break
        rest -= 1
    if number >= _PLAIN and number % _FOREIGN == 0:
        return text.translate(str.maketrans(_LATIN, _SCRIPTS[number // _FOREIGN % len(_SCRIPTS)]))
    return f"{text}{number}" if number >= _PLAIN and number % _FOREIGN == 1 else text


def name(number: int) -> str:
    """A capitalised name for a class or a thing, unique by its number."""
    return f"{word(_PLAIN + number % 7_000).title()}_{number}"


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
