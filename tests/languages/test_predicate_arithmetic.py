"""What arithmetic in operator predicates says of values: `tests/cases/predicates/arithmetic.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import pytest

from shared_data import ROOT
from triplewire.errors import LanguageError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.languages import parse
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication
from triplewire.model.terms import Term, parse_term

CASES = tomllib.loads((ROOT / "tests" / "cases" / "predicates" / "arithmetic.toml").read_text("utf-8"))["case"]
PUBLICATION = Publication("http://example.org/p", ())


@dataclass(frozen=True)
class Pair:
    """Binds its two arguments to the two values."""

    values: tuple[Term, ...]
    name: str = "pair"
    parameters: tuple[Parameter, ...] = (Parameter("y"), Parameter("z"))

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        return [self.values]


def holds(constraint: str, values: list[str]) -> bool:
    """Does the constraint hold of the values, as N-Triples writes them, for ?y and ?z?"""
    operators = {"pair": Pair(tuple(map(parse_term, values)))}
    subscription = parse(f"pair(?y, ?z), {constraint}", "predicates", operators=operators)
    return bool(evaluate(subscription, PUBLICATION, World(operators=operators)).bindings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["constraint"])
def test_arithmetic(case: dict[str, Any]) -> None:
    for values in case["values"]:
        assert holds(case["constraint"], values), values
    for values in case["others"]:
        assert not holds(case["constraint"], values), values


def test_a_number_that_would_be_too_long_is_refused() -> None:
    with pytest.raises(LanguageError, match=r"1:15: arithmetic with a number of more than 4,000 digits"):
        holds("?y > 2*1e99999999", ['"1"', '"1"'])
