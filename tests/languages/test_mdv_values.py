"""Which conditions over set-valued properties a document satisfies: `tests/cases/mdv/values.toml`."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from shared_data import ROOT
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.nodes import And
from triplewire.languages import parse
from triplewire.languages.context import Context
from triplewire.languages.mdv import parse as parse_mdv
from triplewire.read import read_document

PREFIXES = {"": "http://example.org/"}
CASES = tomllib.loads((ROOT / "tests" / "cases" / "mdv" / "values.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_conditions(case: dict[str, Any]) -> None:
    (publication,) = read_document(case["turtle"].encode(), "http://example.org/document.ttl")

    def holds(condition: str) -> bool:
        rule = parse(f"search A a, P b, P c register a where {condition}", "mdv", prefixes=PREFIXES)
        return bool(evaluate(rule, publication, World()).bindings)

    assert [condition for condition in case["holds"] if not holds(condition)] == []
    assert [condition for condition in case["others"] if holds(condition)] == []


@pytest.mark.slow
def test_a_path_of_thousands_of_steps_is_read() -> None:
    where = parse_mdv("search A a register a where a" + ".p" * 30_000 + " = 1", Context(prefixes=PREFIXES)).where
    assert isinstance(where, And)
    assert len(where.parts) == 1 + 30_000 + 1
