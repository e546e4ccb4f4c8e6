"""The built-in operators, by cases (`tests/cases/operators/built_in.toml`), and operators made of functions."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from shared_data import ROOT
from triplewire.errors import LanguageError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.languages import parse
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.operator import Argument, Operator, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal
from triplewire.operators import built_in_operators, function_operator
from triplewire.operators.built_in import LANGUAGE, LOC_IN
from triplewire.read import read_document

CASES = tomllib.loads((ROOT / "tests/cases/operators/built_in.toml").read_text(encoding="utf-8"))["case"]
PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in {"": "http://example.org/", **PREDECLARED}.items())
CALLS = [
    pytest.param(case["publication"], call, wanted, id=f"{case['name']}: {call}")
    for case in CASES
    for call, wanted in case["calls"].items()
]


@pytest.mark.parametrize(("turtle", "call", "wanted"), CALLS)
def test_built_in(turtle: str, call: str, wanted: bool | str) -> None:
    """The whole way: a predicate subscription over a publication. A text is the refusal of constants."""
    if isinstance(wanted, str):
        with pytest.raises(LanguageError, match=re.escape(wanted)):
            parse(call, "predicates", operators=built_in_operators())
        return
    (publication,) = read_document((PREFIXES + turtle).encode(), "a.ttl")
    subscription = parse(call, "predicates", operators=built_in_operators())
    answer = evaluate(subscription, publication, World(operators=built_in_operators()))
    assert (bool(answer.bindings), answer.failures) == (wanted, ())


@pytest.mark.parametrize("operator", [LOC_IN, LANGUAGE], ids=lambda operator: operator.name)
@pytest.mark.parametrize("wrong", [None, BlankNode("b"), IRI("urn:no"), Literal("∞"), Literal("-"), Literal("1_0")])
def test_a_wrong_argument_is_named(operator: Operator, wrong: Argument) -> None:
    good = {LOC_IN.name: Literal("1"), LANGUAGE.name: Literal("en")}[operator.name]
    for at, parameter in enumerate(operator.parameters):
        arguments = tuple(wrong if n == at else good for n in range(len(operator.parameters)))
        with pytest.raises(ValueError, match=f"^{parameter.name} "):
            operator.evaluate(Publication("urn:none", ()), arguments)


def test_the_registry_names_what_it_finds() -> None:
    operators = built_in_operators()
    assert (operators["locIn"], operators["language"]) == (LOC_IN, LANGUAGE)
    assert all(name == operator.name for name, operator in operators.items())
    assert [parameter.name for parameter in LOC_IN.parameters] == ["south", "west", "north", "east"]


def test_an_operator_from_a_function() -> None:
    """Three lines make an operator: one that tests, or one that binds; with a quantity in a unit."""

    def near(publication: Publication, arguments: tuple[Argument, ...]) -> list[tuple[Any, ...]]:
        distance, _ = arguments
        return [(distance, place) for place in (IRI("urn:x"), IRI("urn:y"))]

    operators: dict[str, Operator] = {"near": function_operator("near", [Parameter("distance", "m"), "place"], near)}
    assert operators["near"].parameters == (Parameter("distance", "m"), Parameter("place"))
    subscription = parse("near(5 km, ?place)", "predicates", operators=operators)
    answer = evaluate(subscription, Publication("p", ()), World(operators=operators))
    assert {binding["place"] for binding in answer.bindings} == {IRI("urn:x"), IRI("urn:y")}
