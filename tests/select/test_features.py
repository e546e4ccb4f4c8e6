"""Features are what evaluation says: of every term, every indexed test of every kind, in every publication."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from features_twin import IRIS, KINDS, TERMS, WORLD, X, batches, check, check_shape, check_tests
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from triplewire.clauses.clauses import CLASSES
from triplewire.clauses.node_tests import few, words
from triplewire.clauses.node_tests.columns import flat, unflat
from triplewire.clauses.node_tests.few import MOST_WORDS, FewTerms
from triplewire.clauses.node_tests.table import INDEXED, RANGE, RESIDUAL, Tests, TestTable, build
from triplewire.clauses.view import Features, features
from triplewire.encode.names import term_names
from triplewire.encode.publications import encode
from triplewire.ir.nodes import (
    Analyzer,
    Coercion,
    Compare,
    Expression,
    FullText,
    Function,
    InstanceOf,
    Label,
    Negate,
    Prefix,
    Relation,
    TextOr,
    TextRelation,
    TextTest,
    Word,
)
from triplewire.ir.normal_form import normal_form
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, Term, Triple


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_what_evaluation_says(kind: str) -> None:
    @settings(max_examples=examples(150), deadline=None)
    @given(st.lists(KINDS[kind], min_size=1, max_size=12), batches)
    def run(asked: list[Expression], batch_of: list[Publication]) -> None:
        check(asked, batch_of)

    run()


def test_words_are_found_among_many_that_nothing_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_FEW", 0)
    test_each_kind_is_what_evaluation_says("words")


FEW: dict[str, st.SearchStrategy[Expression]] = {
    "words": st.builds(
        lambda text, other: FullText(X, TextOr((Word(text), Word(other))) if other else Word(text)),
        st.sampled_from(["one", "two", "three", "sport", "final", "日本語", "x"]),
        st.sampled_from(["one", ""]),
    ),
    "numbers": st.builds(
        lambda op, text: Compare(op, X, Literal(text), Coercion.LENIENT),
        st.sampled_from(["=", "<", "<=", ">", ">="]),
        st.sampled_from(["1", "01", "2", "-3.5", "100", "0.1", "9007199254740993"]),
    ),
    "prefixes": st.builds(
        lambda prefix: FullText(X, Prefix(prefix)), st.sampled_from(["o", "on", "one", "ones", "t", "3", "é", "öl"])
    ),
    "classes": st.builds(
        lambda relation, iri: InstanceOf(X, relation, iri), st.sampled_from(Relation), st.sampled_from(IRIS)
    ),
}
FEW["all"] = st.one_of(*FEW.values())
FEW |= {f"any {kind}": tests for kind, tests in KINDS.items()}
FEW["any"] = st.one_of(*KINDS.values())


@pytest.mark.parametrize("kind", FEW)
def test_few_publications_are_looked_up_in_one_call(kind: str) -> None:
    @settings(max_examples=examples(100), deadline=None)
    @given(
        st.lists(FEW[kind], min_size=1, max_size=9),
        st.lists(st.sampled_from(TERMS), max_size=6),
        st.lists(batches, min_size=1, max_size=3),
        st.sampled_from([2, MOST_WORDS]),
    )
    def run(asked: list[Expression], constants: list[Term], some: list[list[Publication]], most: int) -> None:
        table = TestTable()
        for test in asked:
            table.add(test)
        tests, names = build(table.specs()), term_names(list(dict.fromkeys(constants)))
        few_terms = FewTerms(names, tests)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(few, "MOST_WORDS", most)
            for publications in some:
                batch = encode(publications)
                meant, found = features(batch, names, tests, WORLD), few_terms.look_up(batch, WORLD)
                assert found is not None or kind != "words" or len(batch.words) > most
                if found is not None:
                    looked_up.append(kind)
                    check_same(Features(*found), meant, tests)

    looked_up: list[str] = []
    run()
    assert looked_up


def check_same(what: Features, meant: Features, tests: Tests) -> None:
    """They say the same; the tests of a term may be in another order."""
    check_shape(what, tests)
    for field in fields(what):
        values, wanted = getattr(what, field.name), getattr(meant, field.name)
        if field.name == "test":
            term = np.repeat(np.arange(len(what.offset) - 1), np.diff(what.offset))
            values, wanted = (tests_[np.lexsort((tests_, term))] for tests_ in (values, wanted))
        assert values.tolist() == wanted.tolist()


OTHERS: list[Expression] = [
    TextTest(TextRelation.CONTAINS, X, "one"),
    Function("REGEX", (X, Literal("ONE"), Literal("i"))),
    Compare("=", Function("LANG", (X,)), Literal("en")),
    Compare(">", X, Literal("2020-01-01"), Coercion.LENIENT),
    Compare(">", X, Literal("1", XSD + "integer")),
    Compare("!=", X, Literal("2020-01-01", XSD + "date")),
    Compare("=", X, Literal("one")),
    FullText(X, Prefix("on")),
    FullText(X, Word("one", Analyzer(stemming="english"))),
    FullText(X, Word("one", Analyzer("unicode"))),
]


@pytest.mark.parametrize("other", OTHERS)
def test_other_tests_are_given_to_that_call(other: Expression) -> None:
    table = TestTable()
    for test in (FullText(X, Word("one")), other, Compare(">", X, Literal("0"), Coercion.LENIENT)):
        table.add(test)
    tests, names = build(table.specs()), term_names([])
    assert not tests.is_residual.any()
    few_terms = FewTerms(names, tests)
    for text in ("one", "Ones 3", "3", "2021-01-01", "one"):  # what was there before is forgotten
        literals = (
            Literal(text),
            Literal(text, language="en"),
            Literal(text, XSD + "integer"),
            Literal(text, XSD + "date"),
        )
        batch = encode([Publication("p", tuple(Triple(IRI("urn:s"), IRI("urn:p"), literal) for literal in literals))])
        found = few_terms.look_up(batch, WORLD)
        assert found is not None
        check_same(Features(*found), features(batch, names, tests, WORLD), tests)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(*KINDS.values()), min_size=1, max_size=12),
    st.lists(st.one_of(*KINDS.values()), max_size=6),
    batches,
)
def test_stored_and_united_tables_say_the_same(
    first: list[Expression], second: list[Expression], batch_of: list[Publication]
) -> None:
    tables, numbers = [], []
    for asked in (first, second):
        table = TestTable()
        numbers.append([table.add(test) for test in asked])
        tables.append(unflat(flat(build(table.specs())), CLASSES))
    union, maps = Tests.union(tables)
    for asked, old, new in zip((first, second), numbers, maps, strict=True):
        check_tests(asked, [int(new[number]) for number in old], union, batch_of, WORLD)
    indexed = [new[np.flatnonzero(~table.is_residual)] for table, new in zip(tables, maps, strict=True)]
    lazy = sum(int(table.is_residual.sum()) for table in tables)
    assert len(union) == len(np.unique(np.concatenate(indexed))) + lazy


def test_a_union_of_what_is_used_leaves_the_rest_behind() -> None:
    table = TestTable()
    asked = [FullText(X, Word("one")), Negate(Label("a")), Label("one"), FullText(X, Word("two")), Negate(Label("b"))]
    for test in asked:
        table.add(test)
    old = build(table.specs())
    union, (first, second) = Tests.union([old, old], [np.array([1, 3]), np.array([0, 3, 4])])
    assert len(union) == 4
    assert (first[[0, 2, 4]] == -1).all()
    assert (second[[1, 2]] == -1).all()
    assert first[3] == second[3]
    assert union.kind[[first[1], first[3], second[0], second[4]]].tolist() == [RESIDUAL, INDEXED, INDEXED, RESIDUAL]
    publication = Publication("p", (Triple(IRI("urn:s"), IRI("urn:p"), Literal("one two")),))
    check_tests([asked[3], asked[0]], [int(first[3]), int(second[0])], union, [publication], WORLD)


# --- what is indexed ---------------------------------------------------------------------------------------------

BY_KIND = {
    INDEXED: [
        "?x = 5", "?x = 'a'", "'a'@en = ?x", "?x = <urn:a>", "?x = true", "?x = '2020-01-01'^^xsd:date",
        "?x IN (1, 'a', <urn:a>)",
        "contains(?x, 'a')", "contains(str(?x), 'a')", "strstarts(?x, 'a')", "strends(str(?x), 'a')",
        "contains(lcase(?x), 'a')", "strstarts(ucase(str(?x)), 'A')", "regex(?x, 'a', 'i')", "regex(lcase(?x), '^a')",
        "str(?x) = 'a'", "'a' = lcase(str(?x))", "str(?x) IN ('a', 'b')", "lang(?x) IN ('en', '')", "sameTerm(?x, 01)",
        "lang(?x) = 'en'", "'' = lang(?x)", "langMatches(lang(?x), 'en')", "regex(?x, 'a b')", "regex(str(?x), '^a$')",
        "ftcontains(?x, 'a')", "ftcontains(?x, 'a*')", "ftcontains(?x, 'a' ftOR 'b*')", "?x = 'a' || contains(?x, 'b')",
    ],
    RANGE: [
        "?x > 5", "5 >= ?x", "?x < 2.5", "?x <= 1e3", "?x > '2020-01-01'^^xsd:date",
        "?x < '2020-01-01T00:00:00Z'^^xsd:dateTime", "?x != 5", "5.0 != ?x", "?x != '2020-01-01'^^xsd:date",
    ],
    RESIDUAL: [
        "?x != 'a'", "?x != <urn:a>", "?x != true", "?x != 'NaN'^^xsd:double", "?x > 'a'", "!(?x = 5)", "?x NOT IN (5)",
        "isIRI(?x)", "contains(?x, '')",
        "contains(substr(?x, 2), 'a')", "lcase(?x) = 'a'", "str(?x) = ''", "regex(?x, 'é', 'i')",
        "regex(?x, 'a.b')", "regex(lcase(?x), 'a', 'i')",
        "regex(?x, 'a|b')", "ftcontains(?x, ftNOT 'a')", "strlen(?x) > 5",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "condition"), [(kind, one) for kind, some in BY_KIND.items() for one in some])
def test_the_index_knows_a_condition(kind: int, condition: str) -> None:
    (clause,) = normal_form(parse(f"SELECT ?x WHERE {{ ?s ?p ?x FILTER ({condition}) }}"), most=64).clauses
    table = TestTable()
    ((_, test),) = clause.tests
    table.add(test)
    assert build(table.specs()).kind.tolist() == [kind]
