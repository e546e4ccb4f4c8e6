"""Full-text expressions that are generated, over words and last words of phrases (words or prefixes) of one's own."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st

from triplewire.ir.nodes import Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word

Leaves: TypeAlias = st.SearchStrategy[Word | Prefix]

_gaps = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda gap: (min(gap), max(gap)))


def phrases_over(words: st.SearchStrategy[Word], leaves: Leaves) -> st.SearchStrategy[Phrase]:
    """Phrases of two to four words, of which the last may be a prefix."""
    return st.builds(lambda first, last: Phrase((*first, last)), st.lists(words, min_size=1, max_size=3), leaves)


def nears_over(words: st.SearchStrategy[Word], leaves: Leaves) -> st.SearchStrategy[Near]:
    """Chains of two to four words, prefixes, phrases, or ORs of them."""
    single = leaves | phrases_over(words, leaves)
    operands = single | st.lists(single, min_size=1, max_size=3).map(tuple).map(TextOr)

    @st.composite
    def nears(draw: st.DrawFn) -> Near:
        size = draw(st.integers(2, 4))
        steps = [draw(st.tuples(_gaps, st.booleans())) for _ in range(size - 1)]
        chosen = tuple(draw(operands) for _ in range(size))
        return Near(chosen, tuple(gap for gap, _ in steps), tuple(ordered for _, ordered in steps))

    return nears()


def expressions_over(words: st.SearchStrategy[Word], leaves: Leaves) -> st.SearchStrategy[TextExpression]:
    """Any of them, under AND, OR and NOT."""
    return st.recursive(
        leaves | phrases_over(words, leaves) | nears_over(words, leaves),
        lambda inner: (
            inner.map(TextNot)
            | st.lists(inner, min_size=1, max_size=3).map(tuple).map(TextAnd)
            | st.lists(inner, min_size=1, max_size=3).map(tuple).map(TextOr)
        ),
        max_leaves=4,
    )
