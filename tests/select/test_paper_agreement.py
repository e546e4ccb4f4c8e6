"""Every matcher matches what one of the papers' matchers once missed: `tests/cases/structures/agreement.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from amounts import OF_PAPERS
from triplewire import Engine
from triplewire.read import read
from triplewire.read.taxonomy import load_taxonomy

FILE = Path(__file__).resolve().parents[1] / "cases" / "structures" / "agreement.toml"
CASES = tomllib.loads(FILE.read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
@pytest.mark.parametrize("matcher", ["reference", "trie", *OF_PAPERS])
def test_it_matches(matcher: str, case: dict[str, Any], tmp_path: Path) -> None:
    taxonomy = tmp_path / "taxonomy.ttl"
    taxonomy.write_text(case["taxonomy"], encoding="utf-8")
    engine = Engine(matcher=matcher, taxonomy=load_taxonomy(taxonomy))
    for name, text in case["subscriptions"].items():
        engine.subscribe(text, "gql", id=name)
    matches = engine.match(read(case["publication"].encode()))
    assert {one.subscription: sorted(row["x"].value for row in one.bindings) for one in matches} == case["matches"]
