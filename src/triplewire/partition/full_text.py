"""Does one full-text expression follow from another, for every text? "Don't know" is no.

A phrase holds its words and its shorter phrases, and satisfies a NEAR whose operands stand in it. What the expressions
mean: `triplewire.ir.fulltext.search`.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplewire.ir.fulltext.nodes import Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word

_DEEPEST = 16  # expressions in each other that are looked into


def follows(wanted: TextExpression, given: TextExpression, depth: int = 0) -> bool:
    """Does every text that satisfies `given` satisfy `wanted`?"""
    if wanted == given:
        return True
    if depth > _DEEPEST:
        return False
    deeper = depth + 1
    if isinstance(given, TextOr):
        return all(follows(wanted, operand, deeper) for operand in given.operands)
    if isinstance(wanted, TextAnd):
        return all(follows(operand, given, deeper) for operand in wanted.operands)
    if isinstance(wanted, TextOr) and any(follows(operand, given, deeper) for operand in wanted.operands):
        return True
    if isinstance(given, TextAnd):
        return any(follows(wanted, operand, deeper) for operand in given.operands)
    if isinstance(wanted, TextNot):
        return isinstance(given, TextNot) and follows(given.operand, wanted.operand, deeper)
    if isinstance(wanted, Word | Prefix | Phrase):
        return _leaf(wanted, given, deeper)
    if isinstance(wanted, Near):
        if isinstance(given, Near):
            return _chain_in_chain(wanted, given)
        return isinstance(given, Phrase) and _chain_in_phrase(wanted, given)
    return False


def _leaf(wanted: Word | Prefix | Phrase, given: TextExpression, depth: int) -> bool:
    """A word, prefix or phrase, from something that says where words stand."""
    if isinstance(given, Near):
        return any(follows(wanted, operand, depth) for operand in given.operands)
    items = _items(given)
    return items is not None and _stands_in(_items(wanted), items)


def _items(expression: TextExpression) -> tuple[Word | Prefix, ...] | None:
    """The items of a phrase, or of one word or prefix. None of anything else, and of a phrase whose words have passed
    through different analyzers."""
    if isinstance(expression, Word | Prefix):
        return (expression,)
    if isinstance(expression, Phrase):
        analyzers = {item.analyzer for item in expression.items}
        return expression.items if len(analyzers) == 1 else None
    return None


def _stands_in(wanted: Sequence[Word | Prefix] | None, given: Sequence[Word | Prefix]) -> bool:
    if wanted is None:
        return False
    return any(_at(wanted, given, start) for start in range(len(given) - len(wanted) + 1))


def _at(wanted: Sequence[Word | Prefix], given: Sequence[Word | Prefix], start: int) -> bool:
    return all(_item(item, other) for item, other in zip(wanted, given[start:], strict=False))


def _item(wanted: Word | Prefix, given: Word | Prefix) -> bool:
    """Is a word that is `given` one that is `wanted`? Stemmed words and prefixes, which are not, differ."""
    if wanted == given:
        return True
    if wanted.analyzer != given.analyzer or wanted.analyzer.stemming or not isinstance(wanted, Prefix):
        return False
    return (given.word if isinstance(given, Word) else given.prefix).startswith(wanted.prefix)


# --- NEAR ------------------------------------------------------------------------------------------------------------


def _same_places(wanted: TextExpression, given: TextExpression) -> bool:
    """Is every occurrence of `given`, from its first word to its last, one of `wanted`?"""
    if wanted == given:
        return True
    if isinstance(given, TextOr):
        return all(_same_places(wanted, operand) for operand in given.operands)
    if isinstance(wanted, TextOr):
        return any(_same_places(operand, given) for operand in wanted.operands)
    items, others = _items(wanted), _items(given)
    return items is not None and others is not None and len(items) == len(others) and _at(items, others, 0)


def _chain_in_chain(wanted: Near, given: Near) -> bool:
    """Is it a piece of the other NEAR, with as wide or wider gaps?"""
    size = len(wanted.operands)
    for start in range(len(given.operands) - size + 1):
        operands = zip(wanted.operands, given.operands[start : start + size], strict=True)
        gaps = zip(wanted.gaps, given.gaps[start : start + size - 1], strict=True)
        orders = zip(wanted.ordered, given.ordered[start : start + size - 1], strict=True)
        if (
            all(_same_places(a, b) for a, b in operands)
            and all(a[0] <= b[0] and b[1] <= a[1] for a, b in gaps)
            and all(b or not a for a, b in orders)
        ):
            return True
    return False


def _chain_in_phrase(near: Near, phrase: Phrase) -> bool:
    """Do the operands stand in the phrase, as far apart as they have to?"""
    items = _items(phrase)
    if items is None:
        return False
    ends = _places(near.operands[0], items)
    for operand, (least, most), ordered in zip(near.operands[1:], near.gaps, near.ordered, strict=True):
        ends = {
            (first, last)
            for first, last in _places(operand, items)
            if any(
                least <= first - before_last - 1 <= most or (not ordered and least <= before_first - last - 1 <= most)
                for before_first, before_last in ends
            )
        }
    return bool(ends)


def _places(operand: TextExpression, items: Sequence[Word | Prefix]) -> set[tuple[int, int]]:
    """Where in the phrase the operand stands: the numbers of its first and last word."""
    if isinstance(operand, TextOr):
        return set().union(*(_places(inner, items) for inner in operand.operands))
    own = _items(operand)
    if own is None:
        return set()
    starts = range(len(items) - len(own) + 1)
    return {(start, start + len(own) - 1) for start in starts if _at(own, items, start)}
