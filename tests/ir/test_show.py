"""How trees are written for people: the cases are node expressions with the text they give, and no two share one."""

from __future__ import annotations

import pytest

from triplewire.ir.nodes import (
    ANY,
    AllOf,
    Analyzer,
    And,
    AnyOf,
    Bind,
    Call,
    Coercion,
    Compare,
    Exists,
    Filter,
    FullText,
    Function,
    Holds,
    In,
    InstanceOf,
    Label,
    Minus,
    Near,
    Negate,
    Not,
    Optional,
    Or,
    Pattern,
    Phrase,
    Prefix,
    Relation,
    TextAnd,
    TextNot,
    TextOr,
    TextRelation,
    TextTest,
    Values,
    Variable,
    Word,
)
from triplewire.ir.show import Node, show
from triplewire.model.namespaces import PREDECLARED, shorten
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal

X, Y = Variable("x"), Variable("y")
TITLE = IRI("http://purl.org/rss/1.0/title")
P = Pattern(X, TITLE, Y)
TEN = Literal("10", XSD + "integer")
ENGLISH = Analyzer(stemming="en")

CASES: list[tuple[Node, str]] = [
    (IRI("http://a.example/b"), "<http://a.example/b>"),
    (IRI(PREDECLARED["dc"] + "title"), "dc:title"),
    (IRI(PREDECLARED["dc"] + "a/b"), "<http://purl.org/dc/elements/1.1/a/b>"),
    (IRI(PREDECLARED["op"] + "locIn"), "op:locIn"),
    (IRI("urn:x"), "<urn:x>"),
    (BlankNode("b"), "_:b"),
    (Literal("10"), '"10"'),
    (TEN, "10"),
    (Literal("x", XSD + "integer"), '"x"^^xsd:integer'),
    (Literal("1.5", XSD + "decimal"), "1.5"),
    (Literal("true", XSD + "boolean"), "true"),
    (Literal("1", XSD + "boolean"), '"1"^^xsd:boolean'),
    (Literal("1e3", XSD + "double"), "1e3"),
    (Literal.tagged("a\n", "en"), '"a\\n"@en'),
    (Label("Home Page"), "'Home Page'"),
    (Label("it's"), r"'it\'s'"),
    (Label("B", "http://a.example/B"), "'B'(<http://a.example/B>)"),
    (Variable(".1"), "?.1"),
    (ANY, "*"),
    (P, "?x rss:title ?y"),
    (Pattern(X, RDF_TYPE, ANY), "?x rdf:type *"),
    (And(()), "{}"),
    (And((P,)), "{?x rss:title ?y}"),
    (And((P, And((P, P)))), "{?x rss:title ?y . {?x rss:title ?y . ?x rss:title ?y}}"),
    (Or((P, And((P,)))), "(?x rss:title ?y UNION {?x rss:title ?y})"),
    (Or((P,)), "UNION(?x rss:title ?y)"),
    (Not(P), "NOT EXISTS ?x rss:title ?y"),
    (Optional(And((P,))), "OPTIONAL {?x rss:title ?y}"),
    (Minus(P), "MINUS ?x rss:title ?y"),
    (Filter(Compare(">", Y, TEN)), "FILTER (?y > 10)"),
    (Filter(Compare(">", Y, TEN, Coercion.LENIENT)), "FILTER (?y >~ 10)"),
    (Bind(Y, Function("STRLEN", (X,))), "BIND(STRLEN(?x) AS ?y)"),
    (Values((X, Y), ((TEN, None), (None, TITLE))), "VALUES (?x ?y) {(10 UNDEF) (UNDEF rss:title)}"),
    (Call("mob", (X, TEN)), "CALL mob(?x, 10)"),
    (Holds(Call("mob", (X, TEN))), "op:mob(?x, 10)"),
    (TextTest(TextRelation.CONTAINS, X, "a"), '(?x CONTAINS "a")'),
    (TextTest(TextRelation.STARTS, X, "a", negated=True), '(?x NOT STARTS WITH "a")'),
    (InstanceOf(X, Relation.DESCENDANT, Label("C")), "(?x ISA <= 'C')"),
    (Function("+", (X, TEN)), "(?x + 10)"),
    (Function("+", (X,)), "+(?x)"),
    (Function(XSD + "integer", (X,)), "xsd:integer(?x)"),
    (AllOf((X, AnyOf((X, Y)))), "(?x && (?x || ?y))"),
    (AllOf((X,)), "ALL(?x)"),
    (AnyOf(()), "ANY()"),
    (Negate(X), "!?x"),
    (Negate(Exists(P)), "!EXISTS ?x rss:title ?y"),
    (In(X, (TEN, Y)), "(?x IN (10, ?y))"),
    (In(X, (), negated=True), "(?x NOT IN ())"),
    (FullText(X, Word("games")), 'ftcontains(?x, "games")'),
    (Prefix("gam"), '"gam*"'),
    (Word("run", ENGLISH), '"run" USING STEMMING "en"'),
    (Word("a", Analyzer("unicode", "", True)), '"a" USING ANALYZER "unicode" USING DIACRITICS INSENSITIVE'),
    (Phrase((Word("olympic"), Prefix("gam"))), '"olympic gam*"'),
    (Near((Word("a"), Word("b")), ((0, 2),), (True,)), '("a" ftNEAR[0,2] "b")'),
    (Near((Word("a"), Word("b")), ((0, 2),), (False,)), '("a" ftNEAR[0,2] UNORDERED "b")'),
    (TextAnd((Word("a"), TextNot(Word("b")))), '("a" ftAND ftNOT "b")'),
    (TextOr((Word("a"), Word("b"))), '("a" ftOR "b")'),
    (TextOr((Word("a"),)), 'ftANY("a")'),
]


@pytest.mark.parametrize(("node", "text"), CASES, ids=[text for _, text in CASES])
def test_text(node: Node, text: str) -> None:
    assert show(node) == text


def test_one_text_for_one_tree() -> None:
    assert len({text for _, text in CASES}) == len(CASES)


def test_a_shortened_iri_expands_to_itself() -> None:
    for iri in ("http://purl.org/dc/elements/1.1/date", "http://purl.org/dc/elements/1.1/", "http://schema.org/a.b"):
        short = shorten(iri)
        assert short is not None
        prefix, _, local = short.partition(":")
        assert PREDECLARED[prefix] + local == iri
    assert shorten("http://schema.org/a.") is None
    assert shorten("http://schema.org/1") is None
