"""Features are what evaluation says: of every term, every indexed test of every kind, in every publication."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.config import Settings
from triplewire.encode.decode import Decoder
from triplewire.encode.names import term_names
from triplewire.encode.publications import encode
from triplewire.ir.analysis import analyse
from triplewire.ir.evaluate import World
from triplewire.ir.evidence import evidence
from triplewire.ir.expressions import holds
from triplewire.ir.nodes import (
    AnyOf,
    Coercion,
    Compare,
    Expression,
    FullText,
    Function,
    In,
    InstanceOf,
    Label,
    Negate,
    Relation,
    TextRelation,
    TextTest,
    Variable,
)
from triplewire.ir.patterns import fits
from triplewire.ir.state import Evaluation
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.text import Analyzer, Phrase, Prefix, TextOr, Word
from triplewire.languages import parse
from triplewire.model.namespaces import beside, label_iri
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal, Node, Term, Triple
from triplewire.select.classes import spellings
from triplewire.select.features import Features, features
from triplewire.select.tests import INDEXED, LAZY, OPS, RANGE, Tests, TestTable
from triplewire.select.words import stems

X = Variable("x")
N = "http://e/"
TAXONOMY = Taxonomy.build(
    [
        (N + "Football", N + "Sports"),
        (N + "Sports", N + "Thing"),
        (N + "Chess", N + "Games"),
        (N + "Chess", N + "Sports"),
    ],
    [
        (N + "final", N + "Football"),
        ("two", N + "Games"),
        (N + "two%20three", N + "Games"),
        (N + "%C3%A9t%C3%A9", N + "Games"),
    ],
    [(N + "Sports", "sport"), (N + "Games", "sport"), (N + "final", "The Final")],
)
WORLD = World(TAXONOMY, {}, Settings(max_literal_bytes=40))

# --- what is asked -----------------------------------------------------------------------------------------------

NUMBERS = ["1", "01", "1.0", "2", "-3.5", "1e2", "100", " 2 ", "0.1", "0.10000000000000000001", "1e400", "-1e400", "0",
           "-0", "12345678901234567890", "12345678901234567891", "9007199254740993", "9007199254740992", "1e-400",
           "NaN", "INF", ".5", "5."]  # fmt: skip
DATES = ["2020-01-01", "2020-01-01T00:00", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5", "2020-01-01T00:00:00.50",
         "2019-12-31T23:00:00-01:00", "2020-01-01T10:00:00", "2021-02-03T00:00:00+14:00", " 2020-01-01", "2020-13-01",
         "-0001-01-01", "123456789-01-01", "\u3000" "2020-01-01"]  # fmt: skip
TEXTS = ["one", "two", "two three", "The Final", "sport", "Sports", "Running runs", "été", "ete",
         "e\u0301te\u0301", "Straße", "日本語 text", "", "a", N + "final", N + "Sports",
         "a long text that is longer than forty characters", "one\x00two", "ONE", "half\ud800 one"]  # fmt: skip
ANALYZERS = [Analyzer(), Analyzer(stemming="english"), Analyzer("unicode"), Analyzer("default", "", True)]
PLAIN = [Literal(text) for text in TEXTS + NUMBERS + DATES]
TAGGED = [Literal.tagged(text, tag) for text in ("one", "sport", "1") for tag in ("en", "de", "de-at")]
NUMERIC = [Literal(n, XSD + kind) for n in NUMBERS for kind in ("integer", "decimal", "float", "double", "byte")]
MOMENTS = [Literal(d, XSD + kind) for d in DATES for kind in ("dateTime", "date", "dateTimeStamp")]
OTHER = [
    Literal("true", XSD + "boolean"),
    Literal("1", XSD + "boolean"),
    Literal("one", "urn:type"),
    Literal("P1D", XSD + "duration"),
]
IRIS = [IRI(N + name) for name in ("Football", "Sports", "Thing", "Chess", "final", "other")] + [
    IRI("two"),
    IRI("urn:1"),
]
LITERALS = PLAIN + TAGGED + NUMERIC + MOMENTS + OTHER
TERMS: list[Term] = [*LITERALS, *IRIS, BlankNode("b"), BlankNode("sport")]

literals = st.sampled_from(LITERALS)
constants = st.one_of(literals, st.sampled_from(IRIS))
labels = st.one_of(
    st.builds(Label, st.sampled_from(TEXTS + NUMBERS + DATES)),
    st.sampled_from(["Sports", "final", "two", "", "one", "two three"]).map(
        lambda text: Label(text, label_iri(text, N))
    ),
    st.just(Label("odd", N + "Sports")),
    st.just(Label("two", "two")),
)
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
analyzers = st.sampled_from(ANALYZERS)
words = st.builds(
    lambda text, analyzer, prefix: Prefix(text[:2], analyzer) if prefix else Word(text, analyzer),
    st.sampled_from(["one", "two", "run", "ete", "été", "final", "日", "strasse", "x"]),
    analyzers,
    st.booleans(),
)
texts = st.one_of(words, words, st.builds(TextOr, st.lists(words, min_size=1, max_size=3).map(tuple)))
parts = st.sampled_from(["o", "one", "t", "e", "two three", "é", "", "a long text", "1", N, "\x00"])
regexes = st.sampled_from(
    ["one", "^one", "one$", "^one$", "t.o", "two three", "^日本語", "a long text", "$", "1-", "on(e|)"]
)
LANG = Function("LANG", (X,))
tags = st.sampled_from(
    [*(Literal(tag) for tag in ("en", "EN", "de", "", "*", "e")), Literal.tagged("en", "en"), IRI("en")]
)
functions = st.builds(
    lambda name, text, through: Function(name, (Function("STR", (X,)) if through else X, Literal(text))),
    st.sampled_from(["CONTAINS", "STRSTARTS", "STRENDS"]),
    parts,
    st.booleans(),
)
KINDS: dict[str, st.SearchStrategy[Expression]] = {
    "words": st.builds(FullText, st.just(X), texts),
    "substrings": st.one_of(
        st.builds(
            TextTest,
            st.sampled_from([TextRelation.CONTAINS, TextRelation.STARTS, TextRelation.ENDS]),
            st.just(X),
            parts,
        ),
        functions,
        st.builds(TextTest, st.just(TextRelation.REGEX), st.just(X), regexes),
        st.builds(
            lambda text, through: Function("REGEX", (Function("STR", (X,)) if through else X, Literal(text))),
            regexes,
            st.booleans(),
        ),
    ),
    "languages": st.one_of(
        st.builds(lambda tag: Compare("=", LANG, tag), tags),
        st.builds(lambda tag: Compare("=", tag, LANG), tags),
        st.builds(lambda tag: Function("LANGMATCHES", (LANG, tag)), tags),
    ),
    "lenient": st.one_of(
        st.builds(Compare, operators, st.just(X), st.one_of(constants, labels), st.just(Coercion.LENIENT)),
        st.builds(Compare, operators, st.one_of(constants, labels), st.just(X), st.just(Coercion.LENIENT)),
    ),
    "strict": st.one_of(
        st.builds(Compare, operators, st.just(X), constants),
        st.builds(Compare, operators, constants, st.just(X)),
        st.builds(In, st.just(X), st.lists(constants, max_size=3).map(tuple)),
        st.builds(lambda term: Function("SAMETERM", (X, term)), constants),
    ),
    "labels": labels,
    "classes": st.builds(
        InstanceOf,
        st.just(X),
        st.sampled_from(Relation),
        st.one_of(st.sampled_from(IRIS), labels, st.sampled_from(["sport", "Games"]).map(Label)),
    ),
}
either = st.one_of(*(KINDS[kind] for kind in ("words", "substrings", "lenient", "languages", "strict", "classes")))
KINDS["disjunctions"] = st.builds(AnyOf, st.lists(either, max_size=3).map(tuple))

nodes = st.sampled_from([*IRIS, BlankNode("b")])
triples = st.one_of(
    st.builds(Triple, nodes, st.sampled_from([IRI("urn:p"), IRI("urn:q"), *IRIS[:1]]), st.sampled_from(TERMS)),
    st.builds(Triple, nodes, st.just(RDF_TYPE), st.sampled_from([*IRIS, Literal("Sports"), IRI("urn:unknown")])),
)
publications = st.lists(triples, min_size=1, max_size=12).map(lambda some: Publication("p", tuple(some)))
batches = st.lists(publications, min_size=1, max_size=3)

# --- the twin ----------------------------------------------------------------------------------------------------


def wanted(test: Expression, term: Term, publication: Publication, world: World = WORLD) -> bool:
    if isinstance(test, Label):
        return fits(test, term)

    def no_group(*_: object) -> bool:
        raise AssertionError

    return holds(test, {"x": term}, Evaluation(publication, world, frozenset(), no_group))


def found(number: int, term: int, publication: int, tests: Tests, what: Features) -> bool:
    """Does Features say that the test holds of the term? As its documentation has it."""
    if tests.kind[number] == RANGE:
        low, high = what.low[tests.group[number], term], what.high[tests.group[number], term]
        rank = tests.rank[number]
        if low < 0:
            return False
        return bool({"<": rank >= high, "<=": rank >= low, ">": rank < low, ">=": rank < high}[OPS[tests.op[number]]])
    if number in what.test[what.offset[term] : what.offset[term + 1]]:
        return True
    slice_ = slice(what.node_offset[publication], what.node_offset[publication + 1])
    return bool(((what.node_term[slice_] == term) & (what.node_test[slice_] == number)).any())


def check(asked: Sequence[Expression], batch_of: Sequence[Publication], world: World = WORLD) -> Tests:
    table = TestTable()
    numbers = [table.add(test) for test in asked]
    tests = table.freeze()
    assert len(tests) == len(table) == len(set(numbers))
    check_tests(asked, numbers, tests, batch_of, world)
    return tests


def check_tests(
    asked: Sequence[Expression], numbers: Sequence[int], tests: Tests, batch_of: Sequence[Publication], world: World
) -> None:
    batch = encode(batch_of)
    decoder = Decoder(batch)
    what = features(batch, term_names([]), tests, world)
    check_shape(what, tests)
    for p, publication in enumerate(batch_of):
        rows = slice(int(batch.offset[p]), int(batch.offset[p + 1]))
        here = np.unique(np.concatenate([batch.subject[rows], batch.predicate[rows], batch.object[rows]]))
        for test, number in zip(asked, numbers, strict=True):
            if tests.kind[number] != LAZY:
                for row in here.tolist():
                    term = decoder.term(row)
                    assert found(number, row, p, tests, what) == wanted(test, term, publication, world), (test, term)


def check_shape(what: Features, tests: Tests) -> None:
    for offset, values in ((what.offset, what.test),):
        for low, high in zip(offset[:-1].tolist(), offset[1:].tolist(), strict=True):
            assert (np.diff(values[low:high]) > 0).all()
    assert not tests.is_lazy[what.test].any()
    assert (tests.kind[what.test] == INDEXED).all()
    for low, high in zip(what.node_offset[:-1].tolist(), what.node_offset[1:].tolist(), strict=True):
        pairs = list(zip(what.node_term[low:high].tolist(), what.node_test[low:high].tolist(), strict=True))
        assert pairs == sorted(set(pairs))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_what_evaluation_says(kind: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(st.lists(KINDS[kind], min_size=1, max_size=12), batches)
    def run(asked: list[Expression], batch_of: list[Publication]) -> None:
        check(asked, batch_of)

    run()


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
        tables.append(Tests.from_arrays(table.freeze().arrays()))
    union, maps = Tests.union(tables)
    for asked, old, new in zip((first, second), numbers, maps, strict=True):
        check_tests(asked, [int(new[number]) for number in old], union, batch_of, WORLD)
    indexed = [new[np.flatnonzero(~table.is_lazy)] for table, new in zip(tables, maps, strict=True)]
    lazy = sum(int(table.is_lazy.sum()) for table in tables)
    assert len(union) == len(np.unique(np.concatenate(indexed))) + lazy


# --- what is indexed ---------------------------------------------------------------------------------------------

BY_KIND = {
    INDEXED: [
        "?x = 5", "?x = 'a'", "'a'@en = ?x", "?x = <urn:a>", "?x = true", "?x = '2020-01-01'^^xsd:date",
        "?x IN (1, 'a', <urn:a>)",
        "contains(?x, 'a')", "contains(str(?x), 'a')", "strstarts(?x, 'a')", "strends(str(?x), 'a')",
        "sameTerm(?x, 01)",
        "lang(?x) = 'en'", "'' = lang(?x)", "langMatches(lang(?x), 'en')", "regex(?x, 'a b')", "regex(str(?x), '^a$')",
        "ftcontains(?x, 'a')", "ftcontains(?x, 'a*')", "ftcontains(?x, 'a' ftOR 'b*')", "?x = 'a' || contains(?x, 'b')",
    ],
    RANGE: [
        "?x > 5", "5 >= ?x", "?x < 2.5", "?x <= 1e3", "?x > '2020-01-01'^^xsd:date",
        "?x < '2020-01-01T00:00:00Z'^^xsd:dateTime",
    ],
    LAZY: [
        "?x != 5", "?x > 'a'", "!(?x = 5)", "?x NOT IN (5)", "isIRI(?x)", "contains(?x, '')",
        "contains(lcase(?x), 'a')",
        "regex(?x, 'a.b')", "regex(?x, 'a', 'i')", "regex(?x, 'a|b')", "ftcontains(?x, ftNOT 'a')", "strlen(?x) > 5",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "condition"), [(kind, one) for kind, some in BY_KIND.items() for one in some])
def test_the_index_knows_a_condition(kind: int, condition: str) -> None:
    (clause,) = evidence(parse(f"SELECT ?x WHERE {{ ?s ?p ?x FILTER ({condition}) }}"), most=64).clauses
    table = TestTable()
    ((_, test),) = clause.tests
    table.add(test)
    assert table.freeze().kind.tolist() == [kind]


# --- examples ----------------------------------------------------------------------------------------------------


def facts(*objects: Term) -> list[Publication]:
    return [Publication("p", tuple(Triple(IRI("urn:s"), IRI("urn:p"), term) for term in objects))]


def compared(op: str, constants: Iterable[Any], coercion: Coercion = Coercion.LENIENT) -> list[Expression]:
    return [Compare(op, X, constant, coercion) for constant in constants]


@pytest.mark.parametrize("op", ["=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("coercion", Coercion)
def test_all_pairs_of_numbers(op: str, coercion: Coercion) -> None:
    tests = check(distinct(compared(op, NUMERIC + PLAIN, coercion)), facts(*NUMERIC, *PLAIN))
    assert (tests.kind == (INDEXED if op == "=" else RANGE)).sum() > 20


@pytest.mark.parametrize("op", ["=", "<", "<=", ">", ">="])
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
    assert spellings("%20" * 6) is None
    assert spellings("what%3F") is None


def test_many_thresholds() -> None:
    constants = [Literal(f"{n / 7:.6f}") for n in range(100_000)]
    table = TestTable()
    for test in compared(">", constants):
        table.add(test)
    tests = table.freeze()
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
    found = features(batch, term_names([]), table.freeze(), WORLD).test.tolist()
    assert found == sorted(number for part, number in numbers.items() if part in text)


def test_the_same_test_has_one_number() -> None:
    table = TestTable()
    number = table.word("one")
    assert table.add(FullText(X, Word("one"))) == number
    assert table.add(FullText(X, TextOr((Word("one"),)))) == number
    assert table.add(Compare("=", X, IRI("urn:a"))) == table.add(In(X, (IRI("urn:a"),)))
    lazy = table.add(Negate(Compare("=", X, IRI("urn:a"))))
    assert table.add(Negate(Compare("=", X, IRI("urn:a")))) == lazy
    assert table.freeze().kind.tolist() == [INDEXED, INDEXED, LAZY]


def test_a_phrase_is_lazy_and_in_no_slice() -> None:
    tests = check([FullText(X, Phrase((Word("one"), Word("two"))))], facts(Literal("one two")))
    assert tests.is_lazy.tolist() == [True]


def test_a_table_without_tests() -> None:
    tests = TestTable().freeze()
    what = features(encode(facts(Literal("one"))), term_names([]), tests, WORLD)
    assert len(what.test) == 0
    assert what.low.shape[0] == 0
    assert what.node_offset.tolist() == [0, 0]


def test_constants_are_found_by_all_that_they_are() -> None:
    constants: list[Term] = [
        Literal("a"),
        Literal.tagged("a", "en"),
        IRI("a"),
        Literal("a", XSD + "byte"),
        Literal("absent"),
    ]
    batch = encode(facts(Literal("a", XSD + "byte"), Literal("a"), Literal("b"), IRI("a"), Literal.tagged("a", "en")))
    decoder = Decoder(batch)
    what = features(batch, term_names(constants), TestTable().freeze(), WORLD)
    for row, constant in enumerate(what.term.tolist()):
        term = decoder.term(row)
        assert constant == (constants.index(term) if term in constants else -1)


def test_a_folded_word_has_the_stem_that_it_has_in_its_text() -> None:
    letters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))
    for language in ("english", "german", "turkish", "greek"):
        analyzer = Analyzer(stemming=language)
        text = " ".join(f"run{letter}ing {letter}s" for letter in letters)
        assert stems(analyse(text, Analyzer()), analyzer) == analyse(text, analyzer)
