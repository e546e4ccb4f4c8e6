"""An item of a feed that comes again has the content that it had, in whatever file, channel and syntax it comes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire import Engine, Publication
from triplewire.read import read_document
from triplewire.read.names import to_nquads

CASES = tomllib.loads(Path(__file__).parent.parent.joinpath("cases/told/items.toml").read_text(encoding="utf-8"))[
    "case"
]


def _read(case: dict[str, Any], which: str, folder: Path) -> Publication:
    document = case[which]
    publications = read_document(
        document["text"].strip().encode(), str(folder / document["file"]), split=case.get("split", "item")
    )
    return publications[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_content(case: dict[str, Any], tmp_path: Path) -> None:
    first, second = (_read(case, which, tmp_path) for which in ("first", "second"))
    said = "\n".join(map(str, (*first.triples, "", *second.triples)))
    assert (first.content_hash == second.content_hash) is case["same"], said
    assert first.graph_hash != second.graph_hash, "the graphs differ"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_content_of_matches_and_of_quads(case: dict[str, Any], tmp_path: Path, matcher: str) -> None:
    """The content is in the graph and the id: what `read --format nquads` writes has it too, whoever matches."""
    engine = Engine(matcher=matcher)
    engine.subscribe("ASK { ?s ?p ?o }", id="all")
    one = _read(case, "first", tmp_path)
    file = tmp_path / "one.nq"
    file.write_text(to_nquads(one), encoding="utf-8")
    found = [match.content for result in engine.match_files(str(file)) for match in result]
    found += [match.content for match in engine.match([one])]
    assert found == [one.content_hash] * 2
