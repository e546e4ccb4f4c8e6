"""Answers of operators that are no verdict, or hold terms that RDF does not have: in this process, isolated, by HTTP.

Cases: `tests/cases/operators/wrong_answers.toml`.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from operators.service import ANSWERS, service
from triplewire import Engine, Publication, plugins
from triplewire.errors import TriplewireError
from triplewire.extend import Parsed
from triplewire.ir.nodes import ANY, Pattern
from triplewire.languages import parse
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators.files import OperatorFile, operators_of

CASES = tomllib.loads((Path(__file__).parents[1] / "cases/operators/wrong_answers.toml").read_text())["case"]
FILE = """
from triplewire import BlankNode, IRI, Literal
from triplewire.extend import Parameter

class Answers:
    parameters = (Parameter("input"), Parameter("output"))

    def __init__(self, name, answer, isolated):
        self.name, self.answer, self.isolated = name, answer, isolated

    def evaluate(self, publication, arguments):
        return self.answer(arguments[0])

operators = tuple([Answers(f"a{number}", answer, ISOLATED) for number, answer in enumerate([
"""
ABOUT = Publication("urn:p", [Triple(IRI("urn:s"), IRI("urn:t"), Literal("x"))])


def refusals(file: OperatorFile, *names: str) -> list[str]:
    """Why the pair of each operator is undecided; none of them is a match."""
    engine = Engine(operators=operators_of([file]), matcher="reference")
    for name in names:
        engine.subscribe(f"{name}(x, ?out)", "predicates", id=name)
    result = engine.match([ABOUT])
    assert not list(result)
    return [str(refusal) for refusal in result.refusals]


@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_in_python(isolated: bool) -> None:
    answers = "".join(f"    lambda given: {case['python']},\n" for case in CASES)
    text = FILE.replace("ISOLATED", str(isolated)) + answers + "])])\n"
    names = [f"a{number:d}" for number in range(len(CASES))]
    said = dict(zip(sorted(names), refusals(OperatorFile("answers.py", text), *names), strict=True))
    for name, case in zip(names, CASES, strict=True):
        assert f"the operator {name} failed" in said[name]
        assert case["said"] in said[name]


@pytest.mark.parametrize("case", [case for case in CASES if case["json"]], ids=lambda case: case["python"])
def test_of_a_service(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "wrong", json.loads(case["json"]))
    with service() as server:
        toml = server.toml("wrong", parameters=["topic", "output"]).replace('parameters = ["topic"]\n', "")
        (reason,) = refusals(OperatorFile("services.toml", toml), "mentions")
    assert "the operator mentions failed" in reason
    assert case["said"].partition(", and")[0].removesuffix("{") in reason


def test_what_was_given_may_be_repeated() -> None:
    """A term of a publication that a program made is not the operator's fault."""
    text = FILE.replace("ISOLATED", "False") + "lambda given: [(given, Literal('y'))]])])\n"
    engine = Engine(operators=operators_of([OperatorFile("answers.py", text)]))
    engine.subscribe("SELECT * { ?s <urn:t> ?x FILTER op:a0(?x, ?out) }", id="one")
    result = engine.match([Publication("urn:p", [Triple(IRI("urn:s"), IRI("urn:t"), Literal("\ud800"))])])
    assert ([match.subscription for match in result], list(result.refusals)) == (["one"], [])


@pytest.mark.parametrize("place", ["where", "construct"])
def test_a_language_of_a_plug_in(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes trees of what it likes; its terms are checked as well."""

    def odd(text: str, _: object) -> Parsed:
        term = Literal("y", language=text)
        template = ((IRI("urn:s"), IRI("urn:p"), term),)
        where = Pattern(ANY, IRI("urn:t"), term if place == "where" else ANY)
        return Parsed((), where, construct=template if place == "construct" else None)

    monkeypatch.setattr(plugins, "find", lambda family, name: odd)
    assert parse("en", "odd").where
    with pytest.raises(TriplewireError, match="language tag"):
        parse('en .\n<urn:evil> <urn:p> "y"@en', "odd")
