"""Expressions and their values: `tests/cases/evaluate/functions.txt` and `tests/cases/compare/strict.txt`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, Term, Triple

FOLDER = Path(__file__).parent.parent / "cases"
TRIPLE = Triple(IRI("http://e/s"), IRI("http://e/p"), Literal("o"))
PUBLICATION = Publication("urn:p", (TRIPLE,), published=dt.datetime(2020, 2, 29, 12, 30, 0, 500_000, dt.UTC))


def value(expression: str, *, base: str = "", world: World | None = None) -> Term | None:
    """The expression's value; None where it is an error."""
    text = f"PREFIX ex: <http://e/> SELECT ?r {{ ?s ?p ?o BIND(({expression}) AS ?r) }}"
    (binding,) = evaluate(parse(text, base=base), PUBLICATION, world or World()).bindings
    return binding.get("r")


def cases(*files: str) -> list[str]:
    lines = [line for file in files for line in (FOLDER / file).read_text("utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("line", cases("evaluate/functions.txt", "compare/strict.txt"))
def test_value(line: str) -> None:
    expression, _, wanted = line.rpartition(" => ")
    assert value(expression) == (None if wanted == "error" else value(wanted))


def test_now_is_when_the_publication_was_published() -> None:
    assert value("NOW()") == Literal("2020-02-29T12:30:00.5Z", XSD + "dateTime")
    undated = Publication("urn:p", (TRIPLE,))
    answer = evaluate(parse("SELECT ?r { ?s ?p ?o BIND(NOW() AS ?r) }"), undated, World())
    assert answer.bindings == ({"r": Literal("1970-01-01T00:00:00Z", XSD + "dateTime")},)


def test_iri_resolves_against_the_base() -> None:
    assert value('IRI("b")', base="http://e/a/") == IRI("http://e/a/b")
    assert value('IRI("../c")', base="http://e/a/") == IRI("http://e/c")
    assert value('IRI("b")') is None


def test_a_computed_text_has_a_limit() -> None:
    world = World(settings=Settings(max_literal_bytes=10))
    assert value('CONCAT("12345", "67890")', world=world) == Literal("1234567890")
    assert value('CONCAT("12345", "678901")', world=world) is None
    assert value('REPLACE("aaaaa", "a", "bbb")', world=world) is None
    assert value('ENCODE_FOR_URI("éééé")', world=world) is None


def test_a_product_has_a_limit() -> None:
    square = "1" + "0" * 3_000
    assert value(f"{square} * 10") == Literal(square + "0", XSD + "integer")
    assert value(f"{square} * {square}") is None
    assert value(f"{square}.0 * {square}.0") is None


def test_a_computed_pattern_is_an_error_where_it_is_wrong() -> None:
    assert value('REGEX("a", CONCAT("(", ""))') is None
    assert value('REGEX("a", CONCAT("a", ""))') == Literal("true", XSD + "boolean")


def test_a_pattern_that_backtracks_takes_linear_time() -> None:
    assert value(f'REGEX("{"a" * 5_000}!", "^(a+)+$")') == Literal("false", XSD + "boolean")
