"""Full-text tests as the columnar verifier answers them, under any budget.

The answers are those of `triplewire.ir.evaluation.expressions`.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from ir.full_texts import expressions_over, nears_over
from triplewire.config import Settings
from triplewire.errors import LimitError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.state import Evaluation
from triplewire.ir.fulltext import analyse, fold_prefix, satisfies
from triplewire.ir.nodes import (
    Analyzer,
    FullText,
    Function,
    Near,
    Phrase,
    Prefix,
    TextExpression,
    TextNot,
    Variable,
    Word,
)
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Term, made_blank
from triplewire.verify import residual_tests as answers
from triplewire.verify.kernels.search import ANSWER, ASKED, FAILED, FALSE, TRUE
from triplewire.verify.residual_tests import Answers, LiteralText, ResidualTests, Search, no_groups

WRITTEN = ["run", "Running", "runs", "cafe", "Café", "CAF\u00c9S", "\u65e5\u672c", "a_b"]
written = st.sampled_from(WRITTEN)
analyzers = st.builds(
    Analyzer, st.sampled_from(["default", "unicode"]), st.sampled_from(["", "english"]), st.booleans()
)
words = st.builds(lambda text, analyzer: Word(analyse(text, analyzer)[0], analyzer), written, analyzers)
prefixes = st.builds(
    lambda text, size, analyzer: Prefix(fold_prefix(text, analyzer)[:size], analyzer),
    written,
    st.integers(1, 4),
    st.builds(Analyzer, st.sampled_from(["default", "unicode"]), st.just(""), st.booleans()),
)
expressions = expressions_over(words, words | prefixes) | expressions_over(
    st.builds(Word, st.sampled_from(["run", "runs", "cafe"])), st.just(Prefix("run")) | st.just(Word("cafe"))
)
texts = st.lists(written, max_size=12).map(" ".join)
terms = texts.flatmap(
    lambda text: st.sampled_from(
        [
            Literal(text),
            Literal(text),
            Literal.tagged(text, "en"),
            Literal(text, XSD + "token"),
            IRI("x:run"),
            made_blank(text),
        ]
    )
)


def filled(expressions: list[TextExpression], terms: list[Term], world: World) -> list[list[int]]:
    """What the residual predicates answer, expression by term: all together where steps abound, else one by one."""
    lazy = ResidualTests(
        len(expressions), lambda test: FullText(Variable("x"), expressions[test]), lambda test: 0, world
    )
    places = [(test << 32 | term) for test in range(len(expressions)) for term in range(len(terms))]
    outcomes: list[int] = []
    for group in [places] if world == World() else [[key] for key in places]:
        answers = Answers(lazy.scope)
        for at, key in enumerate(group):
            answers.known[at] = key, -1, ASKED
        lazy.fill(answers, terms.__getitem__, lambda number: Publication("urn:none", ()))
        outcomes += answers.known[: len(group), ANSWER].tolist()
    return [outcomes[test * len(terms) : (test + 1) * len(terms)] for test in range(len(expressions))]


def evaluated(expression: TextExpression, term: Term, world: World) -> int:
    """What the reference says of it."""
    state = Evaluation(Publication("urn:none", ()), world, frozenset(), no_groups)
    try:
        return TRUE if holds(FullText(Variable("x"), expression), {"x": term}, state) else FALSE
    except LimitError:
        return FAILED


@settings(max_examples=examples(800), deadline=None)
@given(st.lists(expressions, min_size=1, max_size=4), st.lists(terms, min_size=1, max_size=4), st.integers(1, 40))
def test_as_the_reference(expressions: list[TextExpression], terms: list[Term], most: int) -> None:
    for world in World(), World(settings=Settings(max_steps=most)):
        wanted = [[evaluated(expression, term, world) for term in terms] for expression in expressions]
        assert filled(expressions, terms, world) == wanted


@settings(max_examples=examples(400), deadline=None)
@given(expressions, texts)
def test_where_steps_abound_every_search_answers(expression: TextExpression, text: str) -> None:
    assert Search(expression)(LiteralText(text)) is satisfies(expression, text)


few = st.sampled_from(["a", "b", "ab"])
small = st.builds(Word, few)


@settings(max_examples=examples(800), deadline=None)
@given(nears_over(small, small | st.just(Prefix("a"))), st.lists(few, max_size=9).map(" ".join), st.integers(1, 30))
def test_near_in_small_texts(near: Near, text: str, most: int) -> None:
    for world in World(), World(settings=Settings(max_steps=most)):
        assert filled([near], [Literal(text)], world) == [[evaluated(near, Literal(text), world)]]


def test_what_is_kept_does_not_grow_with_the_texts() -> None:
    contains = Function("CONTAINS", (Variable("x"), Literal("b")))
    lazy, evaluated = ResidualTests(1, lambda test: contains, lambda test: 0, World()), list[Term]()
    evaluate = lazy._evaluated
    lazy._evaluated = lambda *what: evaluated.append(what[1]) or evaluate(*what)  # type: ignore[method-assign, func-returns-value]
    short: list[Term] = [Literal("ab"), Literal("b" * 200), BlankNode("b"), IRI("x:b")]
    long: list[Term] = [Literal("b" * 100_000), Literal("b", "x:" + "b" * 1_000), IRI("x:" + "b" * 1_000)]
    for again in ([], short):
        evaluated.clear()
        answers = Answers(lazy.scope)
        for number in range(7):
            answers.known[number] = number, -1, ASKED
        lazy.fill(answers, [*short, *long].__getitem__, lambda number: Publication("urn:none", ()))
        assert answers.known[[0, 1, 4], ANSWER].tolist() == [TRUE] * 3
        assert evaluated == [term for term in [*short, *long] if term not in again]
    assert {term for _, term in lazy._outcomes._entries} == set(short)


A, B = Word("a"), Word("b")
LONG = Phrase((A,) * 130)


@pytest.mark.parametrize(
    "expression",
    [
        LONG,
        TextNot(LONG),
        Phrase((*LONG.items, B)),
        Phrase((*LONG.items, Prefix("b"))),
        Near((LONG, B), ((0, 9),), (True,)),
        Near((Phrase((A, A)), Phrase((A, A))), ((0, 9),), (True,)),
        Near((A, A, B), ((0, 9), (0, 9)), (False, True)),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("text", ["a " * 300 + "b", "b " + "a " * 200, "a " * 129 + "b"], ids=len)
def test_the_work_that_is_refused(expression: TextExpression, text: str) -> None:
    answers = set()
    for most in (1, 2, 3, 50, 150, 299, 300, 301, 400, 599, 600, 601, 602, 800, 2_000_000):
        world = World(settings=Settings(max_steps=most))
        wanted = evaluated(expression, Literal(text), world)
        assert filled([expression], [Literal(text)], world) == [[wanted]]
        answers.add(wanted)
    assert answers - {FAILED}


def test_expressions_are_kept_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_NODES", 50)
    lazy = ResidualTests(9, lambda test: Function("CONCAT", (Literal(str(test)),) * 10), lambda test: 0, World())
    lazy.prepare(range(9))
    assert (len(lazy._stated), lazy._stated.weight) == (4, 48)
