"""Full-text search: cases as data (`tests/cases/fulltext/search.toml`), and a naive twin that it never differs from."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from ir.full_texts import expressions_over, nears_over
from shared_data import ROOT
from triplewire.ir.fulltext import Reader, occurrences, satisfies
from triplewire.ir.nodes import FullText, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.ir.walk import walk
from triplewire.languages import parse

CASES = tomllib.loads((ROOT / "tests/cases/fulltext/search.toml").read_text(encoding="utf-8"))["case"]


def compiled(text: str) -> TextExpression:
    """An expression as written inside ftcontains."""
    where = parse(f"SELECT * {{ ?s ?p ?t FILTER ftcontains(?t, {text}) }}", "sparql").where
    return next(node.expression for node in walk(where) if isinstance(node, FullText))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    expression = compiled(case["expression"])
    assert satisfies(expression, case["text"]) == ("words" in case)
    assert occurrences(expression, case["text"]) == [tuple(pair) for pair in case.get("words", [])]


# --- the naive twin: words are the characters of a text, a NEAR tries every choice -----------------------------------


def naive(expression: TextExpression, words: list[str]) -> bool:
    match expression:
        case TextAnd(operands):
            return all(naive(operand, words) for operand in operands)
        case TextOr(operands):
            return any(naive(operand, words) for operand in operands)
        case TextNot(operand):
            return not naive(operand, words)
        case Near():
            choices = itertools.product(*(list(places(operand, words)) for operand in expression.operands))
            return any(chained(expression, choice) for choice in choices)
    return any(True for _ in places(expression, words))


def places(expression: TextExpression, words: list[str]) -> Iterator[range]:
    """Every stretch of words that is an occurrence."""
    for start, stop in itertools.combinations(range(len(words) + 1), 2):
        if is_one(expression, words[start:stop]):
            yield range(start, stop)


def is_one(expression: TextExpression, words: list[str]) -> bool:
    match expression:
        case Word(word):
            return words == [word]
        case Prefix(prefix):
            return len(words) == 1 and words[0].startswith(prefix)
        case Phrase(items):
            pairs = zip(items, words, strict=False)
            return len(items) == len(words) and all(is_one(item, [word]) for item, word in pairs)
        case TextOr(operands):
            return any(is_one(operand, words) for operand in operands)
    raise AssertionError(expression)


def chained(near: Near, choice: tuple[range, ...]) -> bool:
    steps = zip(itertools.pairwise(choice), near.gaps, near.ordered, strict=True)
    return all(between(a, b, *gap) or (not ordered and between(b, a, *gap)) for (a, b), gap, ordered in steps)


def between(a: range, b: range, least: int, most: int) -> bool:
    return least <= b.start - a.stop <= most


some_words = st.sampled_from(["a", "b", "ab", "bc", "abc"])
leaves = st.builds(Word, some_words) | st.builds(Prefix, st.sampled_from(["a", "b", "ab"]))
nears = nears_over(st.builds(Word, some_words), leaves)
expressions = expressions_over(st.builds(Word, some_words), leaves)
texts = st.lists(some_words, max_size=9)


@pytest.mark.slow
@settings(max_examples=examples(800), deadline=None)
@given(expressions, texts)
def test_as_the_naive_twin(expression: TextExpression, words: list[str]) -> None:
    assert satisfies(expression, " ".join(words)) == naive(expression, words)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(nears, texts)
def test_near_as_the_naive_twin(near: Near, words: list[str]) -> None:
    assert satisfies(near, " ".join(words)) == naive(near, words)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(expressions, texts)
def test_the_words_that_decide_are_enough(expression: TextExpression, words: list[str]) -> None:
    """They stand in the text, and without NOT the text satisfies it by them alone."""
    found = occurrences(expression, " ".join(words))
    assert all(words[at] == word for word, at in found)
    assert found == sorted(set(found), key=lambda pair: pair[1])
    if satisfies(expression, " ".join(words)):
        kept = {at for _, at in found}
        masked = [word if at in kept else "x" for at, word in enumerate(words)]
        if not any(isinstance(node, TextNot) for node in walk(expression)):
            assert satisfies(expression, " ".join(masked))
    else:
        assert not found


# --- hostile ---------------------------------------------------------------------------------------------------------


def test_the_work_for_near_grows_with_the_text_and_the_chain() -> None:
    """Twice the text: twice the steps, though the chains that could be tried are many more."""

    def steps(length: int, links: int) -> int:
        spent: list[int] = []
        chain = Near((Word("a"),) * links + (Word("b"),), ((0, 1_000),) * links, (True,) * links)
        assert not satisfies(chain, "a " * length, Reader(spent.append))
        assert satisfies(chain, "a " * length + "b", Reader(spent.append))
        return sum(spent)

    assert 0 < steps(2_000, 10) <= 2 * steps(1_000, 10) + 100
    assert 0 < steps(1_000, 20) <= 2 * steps(1_000, 10) + 100


@pytest.mark.slow
def test_the_work_for_a_phrase_can_be_refused() -> None:
    """A phrase that stands nearly everywhere in a text of its own length squared."""

    class TooMuch(Exception):
        pass

    left = [1_000_000]

    def spend(steps: int) -> None:
        left[0] -= steps
        if left[0] < 0:
            raise TooMuch

    many = Phrase((Word("a"),) * 20_000)
    text = "a " * 200_000
    assert satisfies(many, text, Reader(spend))
    assert not satisfies(Phrase((*many.items, Word("b"))), text, Reader(spend))
    assert not satisfies(Phrase((*many.items, Word("b"))), ("a " * 19_999 + "b ") * 10, Reader(spend))
    with pytest.raises(TooMuch):
        satisfies(Near((many, Word("a")), ((0, 0),), (True,)), text, Reader(spend))
