"""Features of chosen tests: all pairs of constants and values, names of classes, very many tests."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import Any

import pytest
import re2
from features_twin import IRIS, MOMENTS, NUMERIC, PLAIN, TERMS, WORLD, N, X, check
from hypothesis import given
from hypothesis import strategies as st

from amounts import usually
from triplewire.clauses.node_tests import words as words_of_batch
from triplewire.clauses.node_tests.classes import spellings
from triplewire.clauses.node_tests.table import INDEXED, RANGE, RESIDUAL, TestTable, build
from triplewire.clauses.node_tests.words import stems
from triplewire.clauses.view import features
from triplewire.encode.decode import Decoder
from triplewire.encode.names import term_names
from triplewire.encode.publications import encode
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import (
    Analyzer,
    Coercion,
    Compare,
    Expression,
    FullText,
    Function,
    In,
    InstanceOf,
    Label,
    Negate,
    Phrase,
    Relation,
    TextOr,
    TextRelation,
    TextTest,
    Word,
)
from triplewire.kernels.shared.search import LONG
from triplewire.model.namespaces import beside
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal, Node, Term, Triple, made_iri

# --- examples ----------------------------------------------------------------------------------------------------


def facts(*objects: Term) -> list[Publication]:
    return [Publication("p", tuple(Triple(IRI("urn:s"), IRI("urn:p"), term) for term in objects))]


def compared(op: str, constants: Iterable[Any], coercion: Coercion = Coercion.LENIENT) -> list[Expression]:
    return [Compare(op, X, constant, coercion) for constant in constants]


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("coercion", Coercion)
def test_all_pairs_of_numbers(op: str, coercion: Coercion) -> None:
    tests = check(distinct(compared(op, NUMERIC + PLAIN, coercion)), facts(*NUMERIC, *PLAIN))
    assert (tests.kind == (INDEXED if op == "=" else RANGE)).sum() > 20


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("coercion", Coercion)
def test_all_pairs_of_dates(op: str, coercion: Coercion) -> None:
    check(distinct(compared(op, MOMENTS, coercion)), facts(*MOMENTS))


def distinct(tests: Iterable[Expression]) -> list[Expression]:
    """One expression a number: lenient constants of one text are one test."""
    table, first = TestTable(), dict[int, Expression]()
    for test in tests:
        first.setdefault(table.add(test), test)
    return list(first.values())


def test_all_classes_and_all_nodes() -> None:
    names: list[IRI | Label] = [
        *IRIS,
        Label("two three", N + "two%20three"),
        Label("Sports", N + "Sports"),
        Label("sport"),
        Label("Games"),
        Label("odd", N + "Sports"),
    ]
    asked: list[Expression] = [InstanceOf(X, relation, name) for relation in Relation for name in names]
    named: list[Node] = [BlankNode("b"), *IRIS]
    typed = [Triple(node, RDF_TYPE, cls) for node in named for cls in IRIS[:3]]
    said = [Triple(IRI("urn:s"), IRI("urn:p"), term) for term in TERMS]
    check(
        asked, [Publication("p", (*typed, *said)), Publication("q", tuple(said)), Publication("r", (*typed[:4], *said))]
    )


@given(st.text("aé%20CA9日x/ ", max_size=8))
def test_a_name_is_among_the_spellings_of_its_iri(text: str) -> None:
    found = spellings(beside(text, "x", "x"))
    assert found is None or text in found
    assert all(beside(other, "x", "x") == beside(text, "x", "x") for other in found or ())


def test_a_name_of_many_codes_is_not_spelled_out() -> None:
    assert spellings("a%20b") == ["a%20b", "a b"]
    assert spellings("%41%c3") == ["%41%c3"]
    assert spellings("%C0%9%20") == ["%C0%9%20", "%C0%9 "]
    assert spellings("%20" * 6) is None
    assert spellings("what%3F") is None


def test_many_thresholds() -> None:
    constants = [Literal(f"{n / 7:.6f}") for n in range(100_000)]
    table = TestTable()
    for test in compared(">", constants):
        table.add(test)
    tests = build(table.specs())
    batch = encode(facts(Literal("100"), Literal("-1"), Literal("1e9"), Literal("none")))
    low = features(batch, term_names([]), tests, WORLD).low
    assert low.shape == (1, len(batch.terms))
    assert sorted(low[0].tolist())[-4:] == [-1, 0, 700, 100_000]


def test_many_substrings() -> None:
    chooser = random.Random(5)
    parts = ["".join(chooser.choices("abcdefgh", k=chooser.randint(2, 9))) for _ in range(100_000)]
    text = "".join(chooser.choices("abcdefgh", k=5_000))
    table = TestTable()
    numbers = {part: table.add(TextTest(TextRelation.CONTAINS, X, part)) for part in parts}
    batch = encode(facts(Literal(text)))
    found = features(batch, term_names([]), build(table.specs()), WORLD).test.tolist()
    assert found == sorted(number for part, number in numbers.items() if part in text)


def test_every_character_in_another_case() -> None:
    """What a character becomes in lower and in upper case, and what RE2 takes for it where it ignores case."""
    characters = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    cased = [c for c in characters if c.lower() != c or c.upper() != c]
    to_ascii = [c for c in characters if re2.search("(?i)[a-z]", c) or re.search("[A-Za-z]", c.lower() + c.upper())]
    assert len(cased) > 2_000
    assert 70 < len(to_ascii) < 100
    letters = "abcdefghijklmnopqrstuvwxyz"
    asked: list[Expression] = [
        Function("CONTAINS", (Function(case, (X,)), Literal(text)))
        for case, texts in (("LCASE", letters + "Aß"), ("UCASE", letters.upper() + "aß"))
        for text in texts
    ]
    asked += [Function("REGEX", (X, Literal(text), Literal("i"))) for text in letters + "-"]
    tests = check(asked, facts(*(Literal(f"1{c}2") for c in dict.fromkeys([*to_ascii, *cased[::20]]))))
    assert not tests.is_residual.any()


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize("count", [LONG - 1, LONG, LONG + 1, 3 * LONG])
def test_many_words_of_a_term(monkeypatch: pytest.MonkeyPatch, count: int, few: int) -> None:
    monkeypatch.setattr(words_of_batch, "_FEW", few)  # 0: as if hardly a word were asked for
    words = [f"w{n * 7919 % count}" for n in range(count)]
    alike = TextOr((Word("w1"), Word("w5"), Word("none")))
    asked = [FullText(X, text) for text in (*map(Word, reversed(words)), alike, Word("none"))]
    check(asked, facts(Literal(" ".join(words + words)), Literal("w5 w1 w2 w1"), Literal("other")))
    check([*asked, FullText(X, Word("w2", Analyzer(stemming="english")))], facts(Literal(" ".join(words + words))))


def test_the_same_test_has_one_number() -> None:
    table = TestTable()
    number = table.word("one")
    assert table.add(FullText(X, Word("one"))) == number
    assert table.add(FullText(X, TextOr((Word("one"),)))) == number
    assert table.add(Compare("=", X, IRI("urn:a"))) == table.add(In(X, (IRI("urn:a"),)))
    lazy = table.add(Negate(Compare("=", X, IRI("urn:a"))))
    assert table.add(Negate(Compare("=", X, IRI("urn:a")))) == lazy
    assert build(table.specs()).kind.tolist() == [INDEXED, INDEXED, RESIDUAL]


def test_a_phrase_is_lazy_and_in_no_slice() -> None:
    tests = check([FullText(X, Phrase((Word("one"), Word("two"))))], facts(Literal("one two")))
    assert tests.is_residual.tolist() == [True]


def test_a_table_without_tests() -> None:
    tests = build(TestTable().specs())
    what = features(encode(facts(Literal("one"))), term_names([]), tests, WORLD)
    assert len(what.test) == 0
    assert what.low.shape[0] == 0
    assert what.node_offset.tolist() == [0, 0]


def test_constants_are_found_by_all_that_they_are() -> None:
    constants: list[Term] = [
        Literal("a"),
        Literal.tagged("a", "en"),
        made_iri("a"),
        Literal("a", XSD + "byte"),
        Literal("absent"),
    ]
    batch = encode(
        facts(Literal("a", XSD + "byte"), Literal("a"), Literal("b"), made_iri("a"), Literal.tagged("a", "en"))
    )
    decoder = Decoder(batch)
    what = features(batch, term_names(constants), build(TestTable().specs()), WORLD)
    for row, constant in enumerate(what.term.tolist()):
        term = decoder.term(row)
        assert constant == (constants.index(term) if term in constants else -1)


def test_a_folded_word_has_the_stem_that_it_has_in_its_text() -> None:
    letters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))[:: usually(4, 1)]
    for language in ("english", "german", "turkish", "greek"):
        analyzer = Analyzer(stemming=language)
        text = " ".join(f"run{letter}ing {letter}s" for letter in letters)
        assert stems(analyse(text, Analyzer()), analyzer) == analyse(text, analyzer)
