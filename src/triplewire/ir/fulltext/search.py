"""Does a literal satisfy a full-text expression, and where (semantics, section 5)? Plain and obvious.

The expression's tree: `triplewire.ir.fulltext.nodes`. How the literal is cut into words:
`triplewire.ir.fulltext.analysis`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.ir.fulltext.analysis import TextWords, words_of
from triplewire.ir.fulltext.nodes import Analyzer, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word

Span: TypeAlias = tuple[int, int]
"""The positions of the first and the last word of an occurrence."""

COMPARED_AT_ONCE = 64  # words of a phrase that are compared in the time of one step
SEARCHED_AT_ONCE = 512  # words of a text that a phrase is looked for among in the time of one step


def _free(steps: int) -> None:
    """No budget."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How texts are read. `spend` is told of the steps that a part of the work takes, before it is done, and may raise
    to refuse it; `words` gives the words of a text."""

    spend: Callable[[int], None] = _free
    words: Callable[[str, Analyzer], TextWords] = words_of


FREE = Reader()
"""Reads without a budget."""


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
        case Near():
            for operand, span in zip(expression.operands, _one_chain(expression, lexical), strict=True):
                words |= _named(operand, span, lexical)
        case _:
            words |= _named(expression, next(_spans(expression, lexical, FREE)), lexical)


def _named(expression: TextExpression, span: Span, lexical: str) -> set[tuple[str, int]]:
    words = words_of(lexical, _first_leaf(expression).analyzer).words
    return {(words[at], at) for at in range(span[0], span[1] + 1)}


def _first_leaf(expression: TextExpression) -> Word | Prefix:
    while True:
        match expression:
            case Word() | Prefix():
                return expression
            case Phrase(items):
                expression = items[0]
            case TextNot(operand):
                expression = operand
            case TextAnd(operands) | TextOr(operands) | Near(operands):
                expression = operands[0]


# --- where an operand of NEAR occurs ---------------------------------------------------------------------------------


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


# --- NEAR ------------------------------------------------------------------------------------------------------------


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


def _one_chain(near: Near, lexical: str) -> list[Span]:
    """One occurrence of each operand that together fit; the text satisfies `near`."""
    ends = _chains(near, lexical, FREE)
    chain = [ends[-1][0]]
    for number in range(len(ends) - 2, -1, -1):
        gap, ordered = near.gaps[number], near.ordered[number]
        chain.append(next(span for span in ends[number] if _fitting([span], chain[-1:], gap, ordered)))
    return chain[::-1]
