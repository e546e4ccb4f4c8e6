"""Which of many names is nearly a given one, for messages that ask "did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

_LETTERS = 128  # kinds of characters that are told apart when they are counted
_COMPARED = 16  # names that are compared letter by letter: those that have most characters in common


class AlikeNames:
    """Names, with how often each character occurs in them: what two names have in common bounds how alike they are.
    `least`: how much of two names, of 1, must be the same (`difflib.SequenceMatcher.ratio`)."""

    def __init__(self, names: Iterable[str], least: float = 0.8) -> None:
        self._names = sorted(names)
        self._least = least
        self._counts = np.array([_counts(name) for name in self._names], np.int16).reshape(-1, _LETTERS)
        self._lengths = self._counts.sum(1)

    def nearest(self, text: str) -> str:
        """The name that is nearly the text; "" where none is."""
        if not self._names:
            return ""
        counts = _counts(text)
        common = np.minimum(self._counts, counts).sum(1)
        bound = 2 * common / np.maximum(self._lengths + counts.sum(), 1)
        most = np.argsort(-bound, kind="stable")[:_COMPARED]
        names = [self._names[number] for number in most[bound[most] >= self._least].tolist()]
        return next(iter(get_close_matches(text, names, n=1, cutoff=self._least)), "")


def _counts(text: str) -> NDArray[np.int16]:
    """How often each kind of character occurs, as far as that can be counted."""
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts: NDArray[np.int16] = np.bincount(characters % _LETTERS, minlength=_LETTERS).clip(max=32_767).astype(np.int16)
    return counts
