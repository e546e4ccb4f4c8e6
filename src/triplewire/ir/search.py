"""Does a literal satisfy a full-text expression, and where (semantics, section 5)? Plain and obvious.

The expression's tree: `triplewire.ir.text`. How the literal is cut into words: `triplewire.ir.analysis`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeAlias

from triplewire.ir.analysis import words_of
from triplewire.ir.text import Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word

Span: TypeAlias = tuple[int, int]
"""The positions of the first and the last word of an occurrence."""


def satisfies(expression: TextExpression, lexical: str) -> bool:
    """Is the expression true of the literal's text?"""
    match expression:
        case TextAnd(operands):
            return all(satisfies(operand, lexical) for operand in operands)
        case TextOr(operands):
            return any(satisfies(operand, lexical) for operand in operands)
        case TextNot(operand):
            return not satisfies(operand, lexical)
        case Word(word, analyzer):
            return word in words_of(lexical, analyzer).positions
        case Near():
            return bool(_chains(expression, lexical))
    return next(_spans(expression, lexical), None) is not None


def occurrences(expression: TextExpression, lexical: str) -> list[tuple[str, int]]:
    """The words that decide, as (word, position from 0), by position; [] where the text does not satisfy it.

    Of each word, prefix or phrase it is the first occurrence; of a NEAR, the first chain that fits.
    """
    found: set[tuple[str, int]] = set()
    if satisfies(expression, lexical):
        _collect(expression, lexical, found)
    return sorted(found, key=lambda item: (item[1], item[0]))


def _collect(expression: TextExpression, lexical: str, found: set[tuple[str, int]]) -> None:
    match expression:
        case TextAnd(operands) | TextOr(operands):
            for operand in operands:
                if satisfies(operand, lexical):
                    _collect(operand, lexical, found)
        case TextNot():
            return  # absence has no place
        case Near():
            for operand, span in zip(expression.operands, _first_chain(expression, lexical), strict=True):
                found |= _named(operand, span, lexical)
        case _:
            found |= _named(expression, next(_spans(expression, lexical)), lexical)


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


def _spans(expression: TextExpression, lexical: str) -> Iterator[Span]:
    """The occurrences of a word, prefix, phrase, or an OR of them; each operand's by position."""
    match expression:
        case Word(word, analyzer):
            for at in words_of(lexical, analyzer).positions.get(word, ()):
                yield at, at
        case Prefix(prefix, analyzer):
            words = words_of(lexical, analyzer)
            for at in sorted(at for word in words.with_prefix(prefix) for at in words.positions[word]):
                yield at, at
        case Phrase(items):
            yield from _phrase_spans(items, lexical)
        case TextOr(operands):
            for operand in operands:
                yield from _spans(operand, lexical)


def _phrase_spans(items: tuple[Word | Prefix, ...], lexical: str) -> Iterator[Span]:
    words = words_of(lexical, items[0].analyzer).words
    for start, _ in _spans(items[0], lexical):
        end = start + len(items) - 1
        if end < len(words) and all(_is(item, words[start + n]) for n, item in enumerate(items)):
            yield start, end


def _is(item: Word | Prefix, word: str) -> bool:
    return word == item.word if isinstance(item, Word) else word.startswith(item.prefix)


# --- NEAR ------------------------------------------------------------------------------------------------------------


def _chains(near: Near, lexical: str) -> list[list[Span]]:
    """For each operand the occurrences that end a chain of the operands so far; [] when no whole chain exists.

    One pass from the left keeps, of each operand, every occurrence that some kept occurrence of the operand before it
    fits: so no chain is built twice, however many there are.
    """
    kept = [sorted(set(_spans(near.operands[0], lexical)))]
    for operand, gap, ordered in zip(near.operands[1:], near.gaps, near.ordered, strict=True):
        ends = sorted(last for _, last in kept[-1])
        starts = [] if ordered else [first for first, _ in kept[-1]]
        least, most = gap
        kept.append(
            [
                span
                for span in sorted(set(_spans(operand, lexical)))
                if _any_between(ends, span[0] - most - 1, span[0] - least - 1)
                or _any_between(starts, span[1] + least + 1, span[1] + most + 1)
            ]
        )
        if not kept[-1]:
            return []
    return kept


def _any_between(ascending: list[int], low: int, high: int) -> bool:
    at = bisect_left(ascending, low)
    return at < len(ascending) and ascending[at] <= high


def _fits(first: Span, second: Span, gap: tuple[int, int], ordered: bool) -> bool:
    """Do at least gap[0] and at most gap[1] words stand between, without overlap?"""
    least, most = gap
    if least <= second[0] - first[1] - 1 <= most:
        return True
    return not ordered and least <= first[0] - second[1] - 1 <= most


def _first_chain(near: Near, lexical: str) -> list[Span]:
    """One occurrence of each operand that together fit; the text satisfies `near`."""
    kept = _chains(near, lexical)
    chain = [kept[-1][0]]
    for number in range(len(kept) - 2, -1, -1):
        gap, ordered = near.gaps[number], near.ordered[number]
        chain.append(next(span for span in kept[number] if _fits(span, chain[-1], gap, ordered)))
    return chain[::-1]
