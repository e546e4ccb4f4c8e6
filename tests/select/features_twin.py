"""Generated tests of nodes, terms and publications; and features held against evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from hypothesis import strategies as st

from triplewire.clauses.node_tests.table import INDEXED, OPS, RANGE, RESIDUAL, Tests, TestTable, build
from triplewire.clauses.view import Features, features
from triplewire.config import Settings
from triplewire.encode.decode import Decoder
from triplewire.encode.names import term_names
from triplewire.encode.publications import encode
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.patterns import fits
from triplewire.ir.evaluation.state import Evaluation
from triplewire.ir.nodes import (
    Analyzer,
    AnyOf,
    Coercion,
    Compare,
    Expression,
    FullText,
    Function,
    In,
    InstanceOf,
    Label,
    Prefix,
    Relation,
    TextOr,
    TextRelation,
    TextTest,
    Variable,
    Word,
)
from triplewire.ir.taxonomy import Taxonomy
from triplewire.kernels.shared.search import LONG
from triplewire.model.namespaces import label_iri
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal, Term, Triple, made_iri

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
         "a long text that is longer than forty characters", "one\x00two", "ONE", "half\ud800 one",
         "ÉTÉ", "\u212aelvin lo\u017f\u017f", "STRASSE", "\u0130", "ΑΣ", "ας"]  # fmt: skip
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
    made_iri("two"),
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
parts = st.sampled_from(["o", "one", "t", "e", "two three", "é", "", "a long text", "1", N, "\x00", "ONE", "O",
                         "ss", "SS", "straße", "É", "k", "i", "\ud800"])  # fmt: skip
regexes = st.sampled_from(["one", "^one", "one$", "^one$", "t.o", "two three", "^日本語", "a long text", "$", "1-",
                           "on(e|)", "ONE", "SS$", "K"])  # fmt: skip
_STR = Function("STR", (X,))
operands = st.sampled_from([X, _STR, *(Function(case, (of,)) for case in ("LCASE", "UCASE") for of in (X, _STR))])
"""What string functions are asked of."""

LANG = Function("LANG", (X,))
tags = st.sampled_from(
    [*(Literal(tag) for tag in ("en", "EN", "de", "", "*", "e")), Literal.tagged("en", "en"), made_iri("en")]
)
functions = st.builds(
    lambda name, operand, text: Function(name, (operand, Literal(text))),
    st.sampled_from(["CONTAINS", "STRSTARTS", "STRENDS"]),
    operands,
    parts,
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
            lambda operand, text, flags: Function("REGEX", (operand, Literal(text), *flags)),
            operands,
            regexes,
            st.sampled_from([(), (Literal("i"),), (Literal(""),), (Literal("si"),)]),
        ),
        st.builds(lambda operand, constant: Compare("=", operand, constant), operands, constants),
        st.builds(lambda operand, constant: Compare("=", constant, operand), operands, constants),
        st.builds(In, operands, st.lists(constants, max_size=3).map(tuple)),
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
        orders = {"<": rank >= high, "<=": rank >= low, ">": rank < low, ">=": rank < high}
        return bool({**orders, "!=": rank < low or rank >= high}[OPS[tests.op[number]]])
    if number in what.test[what.offset[term] : what.offset[term + 1]]:
        return True
    slice_ = slice(what.node_offset[publication], what.node_offset[publication + 1])
    return bool(((what.node_term[slice_] == term) & (what.node_test[slice_] == number)).any())


def check(asked: Sequence[Expression], batch_of: Sequence[Publication], world: World = WORLD) -> Tests:
    table = TestTable()
    numbers = [table.add(test) for test in asked]
    tests = build(table.specs())
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
    again = features(batch, term_names([]), tests, world)  # what the first time had to be found out, is known now
    for field in fields(what):
        assert getattr(again, field.name).tolist() == getattr(what, field.name).tolist()
    for p, publication in enumerate(batch_of):
        rows = slice(int(batch.offset[p]), int(batch.offset[p + 1]))
        here = np.unique(np.concatenate([batch.subject[rows], batch.predicate[rows], batch.object[rows]]))
        for test, number in zip(asked, numbers, strict=True):
            if tests.kind[number] != RESIDUAL:
                for row in here.tolist():
                    term = decoder.term(row)
                    assert found(number, row, p, tests, what) == wanted(test, term, publication, world), (test, term)


def check_shape(what: Features, tests: Tests) -> None:
    for low, high in zip(what.offset[:-1].tolist(), what.offset[1:].tolist(), strict=True):
        assert len(set(what.test[low:high].tolist())) == high - low
        assert high - low <= LONG or (np.diff(what.test[low:high]) > 0).all()
    assert not tests.is_residual[what.test].any()
    assert (tests.kind[what.test] == INDEXED).all()
    for low, high in zip(what.node_offset[:-1].tolist(), what.node_offset[1:].tolist(), strict=True):
        pairs = list(zip(what.node_term[low:high].tolist(), what.node_test[low:high].tolist(), strict=True))
        assert pairs == sorted(set(pairs))
