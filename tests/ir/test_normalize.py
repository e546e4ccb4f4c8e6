"""What registration refuses, and what it must not."""

from __future__ import annotations

import re

import pytest

from triplewire.config import Settings
from triplewire.errors import LimitError, UnsupportedQuery
from triplewire.ir.checks import check
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.nodes import And, Filter, Function, Negate, Not, Optional, Or, Pattern, Variable, Where
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

PATTERN = Pattern(Variable("s"), IRI("http://e/p"), Variable("o"))


def subscription(where: Where) -> Subscription:
    return Subscription("test", "sparql", "", ("s",), where)


def union(count: int) -> str:
    return " UNION ".join(f"{{ ?s :p {number} }}" for number in range(count))


@pytest.mark.parametrize(
    ("text", "branches"),
    [
        (f"{{ {union(6)} }}", 6),
        (f"{{ {union(2)} }} {{ {union(3)} }}", 6),
        (f"{union(4)} UNION {{ {union(2)} }}", 6),
        ("?s (:p|:q)/(:p|:q|:r) ?o", 6),
        (f"?s :p ?o OPTIONAL {{ {union(6)} }}", 6),
        (f"?s :p ?o FILTER NOT EXISTS {{ {union(6)} }}", 6),
        (f"?s :p ?o MINUS {{ {union(6)} }}", 6),
        (f"?s :p ?o FILTER (?o = 1 || EXISTS {{ {union(6)} }})", 6),
        ("?s :p ?o FILTER (?o = 1 || ?o = 2 || ?o = 3)", 1),
        (f"{{ {union(2)} }} OPTIONAL {{ {union(2)} }}", 2),  # a group that is evaluated by itself counts by itself
    ],
)
def test_branches_are_counted(text: str, branches: int) -> None:
    query = f"PREFIX : <http://e/> SELECT * {{ {text} }}"
    parse(query, settings=Settings(max_branches=branches))
    if branches > 1:
        with pytest.raises(LimitError, match="max_branches"):
            parse(query, settings=Settings(max_branches=branches - 1))


def test_branches_are_counted_without_making_them() -> None:
    """Two to the power of a thousand."""
    choice = Or((PATTERN, PATTERN))
    with pytest.raises(LimitError, match="max_branches"):
        check(subscription(And((choice,) * 1_000)), Settings(max_patterns=10_000))


def test_patterns_are_counted() -> None:
    query = "SELECT * { ?s ?p ?o . ?s ?p ?q OPTIONAL { ?s ?p ?r } FILTER NOT EXISTS { ?s ?p ?t } }"
    parse(query, settings=Settings(max_patterns=4))
    with pytest.raises(LimitError, match=r"4 triple patterns, more than 3.*max_patterns"):
        parse(query, settings=Settings(max_patterns=3))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ FILTER (1 = 1) }",
        "{ BIND (1 AS ?x) }",
        "{ VALUES ?x { 1 } }",
        "{ OPTIONAL { ?s ?p ?o } }",
        "{ MINUS { ?s ?p ?o } }",
        "{ FILTER NOT EXISTS { ?s ?p ?o } }",
        "{ FILTER EXISTS { ?s ?p ?o } }",
    ],
)
def test_nothing_positive_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedQuery, match="needs a triple pattern or an operator call"):
        parse(f"ASK {text}")


@pytest.mark.parametrize(
    "text",
    [
        "{ { ?s ?p ?o } }",
        "{ {} UNION { ?s ?p ?o } }",
        '{ FILTER op:language("en") }',
        '{ CALL language("en") }',
        "{ FILTER (1 = 1) ?s ?p ?o }",
    ],
)
def test_something_positive_is_registered(text: str) -> None:
    assert parse(f"ASK {text}").where


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ('REGEX(?o, "[")', "'[' without ']'"),
        ('REGEX(?o, "a", "g")', "no flags"),
        ('REPLACE(?o, "(?<!a)b", "c")', "the group '(?<!'"),
        ('REGEX(?o, "a") && REGEX(STR(?o), "*")', "a quantifier behind nothing"),
    ],
)
def test_a_wrong_regular_expression_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery, match=re.escape(reason)):
        parse(f"SELECT * {{ ?s ?p ?o FILTER ({expression}) }}")


def test_a_regular_expression_of_literal_text_may_hold_anything() -> None:
    assert parse('SELECT * { ?s ?p ?o FILTER REGEX(?o, "(", "q") }').where


def test_a_long_regular_expression_is_refused_by_the_setting() -> None:
    query = f'SELECT * {{ ?s ?p ?o FILTER REGEX(?o, "{"é" * 20}") }}'
    parse(query, settings=Settings(max_regex_bytes=40))
    with pytest.raises(LimitError, match="max_regex_bytes"):
        parse(query, settings=Settings(max_regex_bytes=39))


def test_an_unknown_function_is_refused() -> None:
    where = And((PATTERN, Filter(Function("FOO", (Variable("s"),)))))
    with pytest.raises(UnsupportedQuery, match="the function FOO"):
        check(subscription(where), Settings())


@pytest.mark.slow
def test_a_tree_too_deep_is_refused_whatever_made_it() -> None:
    where: Where = And((PATTERN,))
    condition: Negate = Negate(Literal("true"))
    for _ in range(100_000):
        where = And((PATTERN, Not(where)))
        condition = Negate(condition)
    for deep in (where, And((PATTERN, Filter(condition)))):
        with pytest.raises(LimitError, match="max_query_depth"):
            check(subscription(deep), Settings())


@pytest.mark.parametrize("levels", [10, 30, 500])
def test_a_tree_that_is_registered_can_be_evaluated(levels: int) -> None:
    """At worst by a named limit, never by an overflow of the stack."""
    publication = Publication("urn:p", (Triple(IRI("http://e/s"), IRI("http://e/p"), Literal("o")),))
    negated: Where = And((PATTERN,))
    nested: Where = And((PATTERN,))
    for _ in range(levels):
        negated = And((PATTERN, Not(And((PATTERN, Not(negated))))))
        nested = And((PATTERN, Optional(Or((nested, PATTERN)))))
    settings = Settings(max_query_depth=4_000, max_patterns=4_000, max_branches=4_000)
    for deep in map(subscription, (negated, nested)):
        check(deep, settings)
        try:
            found = len(evaluate(deep, publication, World(settings=settings)).bindings)
        except LimitError as error:
            found = 0 if "max_query_depth" in error.remedy and levels > 30 else -1
        assert found == (1 if levels <= 30 else 0)
