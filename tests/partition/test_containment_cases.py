"""Which subscriptions contain which: the cases of `cases/partition/containment.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages import parse
from triplewire.partition.containment import Containers, Form, contains, form_of

FILE = Path(__file__).parents[1] / "cases" / "partition" / "containment.toml"
CASES = tomllib.loads(FILE.read_text(encoding="utf-8"))["case"]
TAXONOMY = Taxonomy.build([("Tennis", "Sport"), ("Sport", "Thing")])
WORLD = World(TAXONOMY, {}, Settings())


def form(case: dict[str, Any], side: str) -> Form:
    """One side of a case."""
    language = case.get("language", "gql")
    text = case[side] if language != "gql" else f"PREFIX : <http://e/> SELECT * WHERE {case[side]}"
    return form_of(parse(text, language, id=side), WORLD)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_case(case: dict[str, Any]) -> None:
    wide, narrow = form(case, "wide"), form(case, "narrow")
    assert contains(wide, narrow, TAXONOMY) is case["contains"]
    assert contains(wide, wide, TAXONOMY) is wide.contains
    containers = Containers(TAXONOMY)
    containers.add(narrow)
    assert containers.contained_in(wide) == ["narrow"] * case["contains"]
