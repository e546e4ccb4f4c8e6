"""Does a literal satisfy a full-text expression, and where (semantics, section 5)? Plain and obvious.

The expression's tree: `triplewire.ir.fulltext.nodes`. How the literal is cut into words:
`triplewire.ir.fulltext.analysis`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from triplewire.ir.fulltext.analysis import words_of
from triplewire.ir.fulltext.nodes import Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word

Span: TypeAlias = tuple[int, int]
"""The positions of the first and the last word of an occurrence."""

Spend: TypeAlias = Callable[[int], None]
"""Called with the steps that a part of the work takes, before it is done; may raise to refuse it."""

COMPARED_AT_ONCE = 64  # words of a phrase that are compared in the time of one step


def _free(steps: int) -> None:
    """No budget."""


def satisfies(expression: TextExpression, lexical: str, spend: Spend = _free) -> bool:
    """Is the expression true of the literal's text? `spend` hears of the work for phrases and NEAR."""
    match expression:
        case Word(word, analyzer):
            return word in words_of(lexical, analyzer).positions
        case Prefix(prefix, analyzer):
            return next(words_of(lexical, analyzer).with_prefix(prefix), None) is not None
        case Phrase(items):
            return next(_phrase_spans(items, lexical, spend), None) is not None
        case Near():
            return bool(_chains(expression, lexical, spend))
        case TextAnd(operands):
            return all(satisfies(operand, lexical, spend) for operand in operands)
        case TextOr(operands):
            return any(satisfies(operand, lexical, spend) for operand in operands)
        case TextNot(operand):
            return not satisfies(operand, lexical, spend)


def occurrences(expression: TextExpression, lexical: str, spend: Spend = _free) -> list[tuple[str, int]]:
    """The words that decide, as (word, position from 0), by position; [] where the text does not satisfy it.

    Of each word, prefix or phrase it is the first occurrence; of a NEAR, a chain that fits. Absence has no place.
    """
    words: set[tuple[str, int]] = set()
    if satisfies(expression, lexical, spend):
        _collect(expression, lexical, spend, words)
    return sorted(words, key=lambda item: (item[1], item[0]))


def _collect(expression: TextExpression, lexical: str, spend: Spend, words: set[tuple[str, int]]) -> None:
    """Add what decided; the text satisfies the expression."""
    match expression:
        case TextAnd(operands) | TextOr(operands):
            for operand in operands:
                if satisfies(operand, lexical, spend):
                    _collect(operand, lexical, spend, words)
        case TextNot():
            return
        case Near():
            for operand, span in zip(expression.operands, _one_chain(expression, lexical, spend), strict=True):
                words |= _named(operand, span, lexical)
        case _:
            words |= _named(expression, next(_spans(expression, lexical, spend)), lexical)


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


def _spans(expression: TextExpression, lexical: str, spend: Spend) -> Iterator[Span]:
    """The occurrences of a word, prefix or phrase by position; of an OR of them, those of each operand in turn."""
    match expression:
        case Word(word, analyzer):
            for at in words_of(lexical, analyzer).positions.get(word, ()):
                yield at, at
        case Prefix(prefix, analyzer):
            words = words_of(lexical, analyzer)
            for at in sorted(at for word in words.with_prefix(prefix) for at in words.positions[word]):
                yield at, at
        case Phrase(items):
            yield from _phrase_spans(items, lexical, spend)
        case TextOr(operands):
            for operand in operands:
                yield from _spans(operand, lexical, spend)
        case _:
            raise ValueError(f"NEAR takes words, prefixes, phrases, or an OR of them, not {expression}")


def _phrase_spans(items: Sequence[Word | Prefix], lexical: str, spend: Spend) -> Iterator[Span]:
    """Every place of a phrase, by position."""
    last = items[-1]
    wanted = tuple(item.word for item in items if isinstance(item, Word))
    # a prefix is not stemmed, so its word is looked up among those of its own analyser, at the same position
    endings = words_of(lexical, last.analyzer).words
    for start in words_of(lexical, items[0].analyzer).phrase(wanted):
        spend(len(wanted) // COMPARED_AT_ONCE)
        end = start + len(items) - 1
        if isinstance(last, Word) or (end < len(endings) and endings[end].startswith(last.prefix)):
            yield start, end


# --- NEAR ------------------------------------------------------------------------------------------------------------


def _chains(near: Near, lexical: str, spend: Spend) -> list[list[Span]]:
    """For each operand the occurrences that end a chain of the operands so far; [] when no whole chain exists.

    One pass from the left keeps, of each operand, the occurrences that fit a remaining occurrence of the operand before
    it. No chain is built twice, however many there are.
    """
    ends: list[list[Span]] = []
    for number, operand in enumerate(near.operands):
        spans = sorted(set(_spans(operand, lexical, spend)))
        spend(len(spans))
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


def _one_chain(near: Near, lexical: str, spend: Spend) -> list[Span]:
    """One occurrence of each operand that together fit; the text satisfies `near`."""
    ends = _chains(near, lexical, spend)
    chain = [ends[-1][0]]
    for number in range(len(ends) - 2, -1, -1):
        gap, ordered = near.gaps[number], near.ordered[number]
        chain.append(next(span for span in ends[number] if _fitting([span], chain[-1:], gap, ordered)))
    return chain[::-1]
