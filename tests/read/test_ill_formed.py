"""Feeds as they are: what can be read of them is read, and what is wrong is said. Cases: `tests/cases/feeds`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.model.references import id_iri
from triplewire.model.terms import IRI, Literal
from triplewire.read import read
from triplewire.read.feeds.vocabulary import TITLE
from triplewire.read.names import document_iri

FOLDER = Path(__file__).resolve().parents[1] / "cases/feeds"
CASES = [
    case
    for name in ("ill-formed.toml", "as-they-are.toml")
    for case in tomllib.loads((FOLDER / name).read_text("utf-8"))["case"]
]
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])


def _file(case: dict[str, Any], folder: Path) -> Path:
    file = folder / "feed"
    text = case.get("leading", "") + case.get("text", "").replace("LONG", "x" * (1024 * 1024 + 1))
    data = bytes.fromhex(case["hex"]) if "hex" in case else text.encode(case.get("encoding", "utf-8"))
    for written, of in case.get("bytes", {}).items():  # what no text in that encoding says
        assert written.encode() in data
        data = data.replace(written.encode(), bytes.fromhex(of))
    file.write_bytes(data)
    return file


def _titles(publications: list[Publication]) -> list[str]:
    return [
        o.lexical for p in publications for o in p.graph.objects(IRI(id_iri(p.id)), TITLE) if isinstance(o, Literal)
    ]


@each_case
def test_read_and_told(case: dict[str, Any], tmp_path: Path) -> None:
    file = _file(case, tmp_path)
    told: list[Refusal] = []
    publications = list(read(file, on_refusal=told.append))
    said = [str(row).replace(document_iri(str(file)), "FEED").replace(str(file), "feed") for row in told]
    assert said == case["told"]
    assert _titles(publications) == case["titles"]
    if "ids" in case:
        assert [publication.id.replace(document_iri(str(file)), "FEED") for publication in publications] == case["ids"]
    triples = "\n".join(str(triple) for publication in publications for triple in publication.triples)
    for part in case.get("says", ()):
        assert f"{part} ." in triples


@each_case
def test_warnings_are_notes_and_refusals_are_raised(case: dict[str, Any], tmp_path: Path) -> None:
    file = _file(case, tmp_path)
    refusals = [line for line in case["told"] if line.startswith("refused")]
    publications: list[Publication] = []
    if refusals:
        with pytest.raises(ReadError):
            publications.extend(read(file))
        return
    publications.extend(read(file))
    assert all(
        list(publication.notes) == [line.split(": ", 1)[1] for line in case["told"]] for publication in publications
    )
