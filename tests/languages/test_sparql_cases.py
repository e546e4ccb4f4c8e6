"""What becomes of SPARQL texts: the files of tests/cases/sparql, each text with its tree or its error."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from case_files import Case, read_cases

from shared_data import ROOT
from triplewire.errors import TriplewireError
from triplewire.ir.nodes import And, Pattern
from triplewire.ir.show import show
from triplewire.languages.context import Context
from triplewire.languages.sparql import parse
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication


@dataclass(frozen=True)
class Named:
    """An operator that is named here; what it answers does not matter."""

    name: str
    parameters: tuple[Parameter, ...]

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        return False


CONTEXT = Context(
    prefixes={"ex": "http://example.org/", "dc": "http://outside.org/", "": "http://example.org/empty#"},
    base="http://example.org/base/doc",
    operators={
        "locIn": Named("locIn", (Parameter("where"), Parameter("place"))),
        "mobPattern": Named("mobPattern", (Parameter("people"),)),
    },
)


def outcome(text: str) -> str:
    """The line of a case file: the form, its variables and its tree, or the error."""
    try:
        parsed = parse(text, CONTEXT)
    except TriplewireError as error:
        return f"=! {type(error).__name__} {error}"
    form = "SELECT"
    if parsed.ask:
        form = "ASK"
    elif parsed.construct is not None:
        form = f"CONSTRUCT {show(And(tuple(Pattern(*row) for row in parsed.construct)))}"
    words = [form, *(f"?{name}" for name in parsed.select), show(parsed.where)]
    return "=> " + " ".join(words) + "".join(f" -- {warning}" for warning in parsed.warnings)


FILES = sorted(path.name for path in (ROOT / "tests" / "cases" / "sparql").glob("*.txt"))


@pytest.mark.parametrize("case", [case for name in FILES for case in read_cases(f"sparql/{name}")], ids=str)
def test_text(case: Case) -> None:
    assert outcome(case.text) == case.outcome
