"""Full text (semantics, section 5): how a literal is cut into words, and whether they satisfy an expression, and where.

The expression's tree: `triplewire.ir.nodes`. Search is plain and obvious: what indexes make of it must agree with it.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import regex
import Stemmer

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.nodes import Analyzer, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.ir.walk import walk

# --- words -----------------------------------------------------------------------------------------------------------

_LANGUAGES = (
    "ar arabic, ca catalan, da danish, de german, el greek, en english, es spanish, eu basque, fi finnish, fr french, "
    "ga irish, hi hindi, hu hungarian, hy armenian, id indonesian, it italian, lt lithuanian, ne nepali, nl dutch, "
    "no norwegian, pt portuguese, ro romanian, ru russian, sr serbian, sv swedish, ta tamil, tr turkish, yi yiddish"
)
STEMMING_LANGUAGES = dict(pair.split() for pair in _LANGUAGES.split(", "))
"""ISO 639-1 code to the name of Snowball's algorithm."""

_WORD = re.compile(r"[^\W_]+")
_BOUNDARY = regex.compile(r"\b", regex.WORD | regex.VERSION1)  # UAX 29 word boundaries
_SINGLE = regex.compile(r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]\p{M}*")
_IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")  # the soft hyphen, joiners and the like
_APOSTROPHES = {0x2019: "'"}  # what is printed, and what is typed
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
        if not all(word in self.positions for word in words):
            return
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
    code point or two; a letter that Unicode does not decompose (`ø`, `ł`) stays. With the tokenizer "unicode", folding
    is that of NFKC_Casefold (Unicode Standard Annex 44), which drops characters that are ignorable, and `’` is `'`.
    """
    if analyzer.tokenizer == "unicode" and not text.isascii():
        text = _IGNORABLE.sub("", text).translate(_APOSTROPHES)
    folded = text.casefold()
    if not folded.isascii():
        if analyzer.tokenizer == "unicode":  # NFKC makes capitals of letter-like symbols, so they are folded again
            folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
        if analyzer.ignore_diacritics:
            marked = unicodedata.normalize("NFD", folded)
            folded = unicodedata.normalize("NFC", "".join(c for c in marked if not unicodedata.combining(c)))
    words = _WORD.findall(folded) if analyzer.tokenizer == "default" else list(_unicode_words(folded))
    if analyzer.stemming:
        stemmers = _LOCAL.__dict__.setdefault("stemmers", {})
        if analyzer.stemming not in stemmers:
            stemmers[analyzer.stemming] = Stemmer.Stemmer(analyzer.stemming)
        words = stemmers[analyzer.stemming].stemWords(words)
    return tuple(words)


def fold_prefix(text: str, analyzer: Analyzer) -> str:
    """A prefix in the form in which the analyser's words start; it is not stemmed. "" when it holds no word."""
    words = analyse(text, Analyzer(analyzer.tokenizer, "", analyzer.ignore_diacritics))
    return words[-1] if words else ""


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


# --- search ----------------------------------------------------------------------------------------------------------

Span: TypeAlias = tuple[int, int]
"""The positions of the first and the last word of an occurrence."""

COMPARED_AT_ONCE = 64  # words of a phrase that are compared in the time of one step
SEARCHED_AT_ONCE = 512  # words of a text that a phrase is looked for among in the time of one step


@dataclass(frozen=True, slots=True)
class Reader:
    """How texts are read: without a budget, or `spend` is told of the steps that a part of the work takes, before it is
    done, and may raise to refuse it. `words` gives the words of a text."""

    spend: Callable[[int], None] = lambda steps: None
    words: Callable[[str, Analyzer], TextWords] = words_of


FREE = Reader()


def satisfies(expression: TextExpression, lexical: str, reader: Reader = FREE) -> bool:
    """Is the expression true of the literal's text? What `reader` raises ends the work."""
    match expression:
        case Word(word, analyzer):
            return word in reader.words(lexical, analyzer).positions
        case Prefix(prefix, analyzer):
            return next(reader.words(lexical, analyzer).with_prefix(prefix), None) is not None
        case Phrase(items):
            return next(_phrase_spans(items, lexical, reader), None) is not None
        case Near():
            return bool(_chains(expression, lexical, reader))
        case TextAnd(operands):
            return all(satisfies(operand, lexical, reader) for operand in operands)
        case TextOr(operands):
            return any(satisfies(operand, lexical, reader) for operand in operands)
        case TextNot(operand):
            return not satisfies(operand, lexical, reader)


def occurrences(expression: TextExpression, lexical: str) -> list[tuple[str, int]]:
    """The words that decide, as (word, position from 0), by position; [] where the text does not satisfy it.

    Of each word, prefix or phrase it is the first occurrence; of a NEAR, a chain that fits. Absence has no place.
    """
    words: set[tuple[str, int]] = set()
    if satisfies(expression, lexical):
        _collect(expression, lexical, words)
    return sorted(words, key=lambda item: (item[1], item[0]))


def _collect(expression: TextExpression, lexical: str, words: set[tuple[str, int]]) -> None:
    """Add what decided; the text satisfies the expression."""
    match expression:
        case TextAnd(operands) | TextOr(operands):
            for operand in operands:
                if satisfies(operand, lexical):
                    _collect(operand, lexical, words)
        case TextNot():
            return
        case Near(operands):
            ends = _chains(expression, lexical, FREE)
            chain = [ends[-1][0]]  # one occurrence of each operand that together fit, from the last to the first
            for spans, gap, ordered in reversed(list(zip(ends, expression.gaps, expression.ordered, strict=False))):
                chain.append(next(span for span in spans if _fitting([span], chain[-1:], gap, ordered)))
            for operand, span in zip(operands, reversed(chain), strict=True):
                words |= _named(operand, span, lexical)
        case _:
            words |= _named(expression, next(_spans(expression, lexical, FREE)), lexical)


def _named(expression: TextExpression, span: Span, lexical: str) -> set[tuple[str, int]]:
    first = next(node for node in walk(expression) if isinstance(node, Analyzer))
    words = words_of(lexical, first).words
    return {(words[at], at) for at in range(span[0], span[1] + 1)}


def _spans(expression: TextExpression, lexical: str, reader: Reader) -> Iterator[Span]:
    """The occurrences of a word, prefix or phrase by position; of an OR of them, those of each operand in turn."""
    match expression:
        case Word(word, analyzer):
            for at in reader.words(lexical, analyzer).positions.get(word, ()):
                yield at, at
        case Prefix(prefix, analyzer):
            words = reader.words(lexical, analyzer)
            for at in sorted(at for word in words.with_prefix(prefix) for at in words.positions[word]):
                yield at, at
        case Phrase(items):
            yield from _phrase_spans(items, lexical, reader)
        case TextOr(operands):
            for operand in operands:
                yield from _spans(operand, lexical, reader)
        case _:
            raise ValueError(f"NEAR takes words, prefixes, phrases, or an OR of them, not {expression}")


def _phrase_spans(items: Sequence[Word | Prefix], lexical: str, reader: Reader) -> Iterator[Span]:
    """Every place of a phrase, by position."""
    last = items[-1]
    wanted = tuple(item.word for item in items if isinstance(item, Word))
    # a prefix is not stemmed, so its word is looked up among those of its own analyser, at the same position
    endings = reader.words(lexical, last.analyzer).words
    words = reader.words(lexical, items[0].analyzer)
    reader.spend(len(words.words) // SEARCHED_AT_ONCE)
    for start in words.phrase(wanted):
        reader.spend(len(wanted) // COMPARED_AT_ONCE)
        end = start + len(items) - 1
        if isinstance(last, Word) or (end < len(endings) and endings[end].startswith(last.prefix)):
            yield start, end


def _chains(near: Near, lexical: str, reader: Reader) -> list[list[Span]]:
    """For each operand the occurrences that end a chain of the operands so far; [] when no whole chain exists.

    One pass from the left keeps, of each operand, the occurrences that fit a remaining occurrence of the operand before
    it. No chain is built twice, however many there are.
    """
    ends: list[list[Span]] = []
    for number, operand in enumerate(near.operands):
        spans = sorted(set(_spans(operand, lexical, reader)))
        reader.spend(len(spans))
        if number:
            spans = _fitting(ends[-1], spans, near.gaps[number - 1], near.ordered[number - 1])
        if not spans:
            return []
        ends.append(spans)
    return ends


def _fitting(before: list[Span], spans: list[Span], gap: tuple[int, int], ordered: bool) -> list[Span]:
    """Those of `spans` that have at least gap[0] and at most gap[1] words between them and some span `before`."""
    least, most = gap
    ends = sorted(last for _, last in before)
    starts = [] if ordered else [first for first, _ in before]
    return [
        (first, last)
        for first, last in spans
        if any_between(ends, first - most - 1, first - least - 1)
        or any_between(starts, last + least + 1, last + most + 1)
    ]


def any_between(ascending: list[int], low: int, high: int) -> bool:
    """Is one of them at least `low` and at most `high`?"""
    at = bisect_left(ascending, low)
    return at < len(ascending) and ascending[at] <= high
