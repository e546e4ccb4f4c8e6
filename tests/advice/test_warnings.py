"""What is said of a subscription at registration: the cases of tests/cases/warnings, one by one and from a file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.engine import Engine
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.advice.vocabularies import TERMS, term_warning
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.namespaces import PREDECLARED

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).resolve().parents[1] / "cases/warnings/cases.toml").read_text(encoding="utf-8")
)["case"]
EXAMPLE = "http://example.org/"


def engine(matcher: str) -> Engine:
    taxonomy = Taxonomy.build([(EXAMPLE + "Lighthouse", EXAMPLE + "NavigationAid")])
    return Engine(taxonomy=taxonomy, matcher=matcher)


def said(case: dict[str, Any]) -> tuple[str, ...]:
    return (
        engine("reference")
        .subscribe(case["query"], case.get("language", "sparql"), id="case", base=case.get("base", ""))
        .warnings
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_registration_says_what_cannot_match(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(TriplewireError) as raised:
            said(case)
        assert case["refused"] in str(raised.value)
        return
    warnings = said(case)
    assert len(warnings) == len(case["warns"]), warnings
    for warning, part in zip(warnings, case["warns"], strict=True):
        assert part in warning


def test_files_of_many_similar_texts_say_the_same(tmp_path: Path) -> None:
    """Loading by template tells what registering one by one tells."""
    file, expected, rows = tmp_path / "many.jsonl", dict[str, tuple[str, ...]](), []
    for number, case in enumerate(CASES):
        for copy in range(5):  # a template comes with the second text of its kind
            query = case["query"].replace("> 5", f"> {5 + copy % 2}").replace("urn:q", f"urn:q{copy}")
            row = {"id": f"{number}-{copy}", "language": case.get("language", "sparql"), "query": query}
            rows.append(row | {"base": case.get("base", "")})
            if "refused" not in case:
                expected[str(row["id"])] = said(case | {"query": query})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told: dict[str, set[str]] = {id_: set() for id_ in expected}
    refused: list[Refusal] = []
    engine("trie").load_subscriptions(
        file, on_refusal=refused.append, on_warning=lambda id_, warning: told[id_].add(warning)
    )
    assert told == {id_: set(warnings) for id_, warnings in expected.items()}
    assert len(refused) == 5 * sum("refused" in case for case in CASES)


def test_every_listed_term_is_known() -> None:
    prefix, count = "", 0
    for line in TERMS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            prefix, _, line = line.partition(": ")
        for term in line.split():
            count += 1
            assert term_warning(PREDECLARED[prefix.rstrip("~")] + term) == "", term
    assert count > 3_000
