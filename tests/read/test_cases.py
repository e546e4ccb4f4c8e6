"""Documents and the publications they become. A new case needs no Python: add it to a file of `tests/cases/read`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.model.publication import Publication
from triplewire.read import read_document, to_nquads

CASES = Path(__file__).resolve().parent.parent / "cases" / "read"


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{file.stem}: {case['name']}")
        for file in sorted(CASES.glob("*.toml"))
        for case in tomllib.loads(file.read_text("utf-8"))["case"]
    ]


def _read(case: dict[str, Any]) -> list[Publication]:
    data = bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode(case.get("encoding", "utf-8"))
    return read_document(
        data,
        case.get("source", "http://example.org/doc"),
        base=case.get("base", ""),
        split=case.get("split", "item"),
    )


@pytest.mark.parametrize("case", _cases())
def test_document(case: dict[str, Any]) -> None:
    publications = _read(case)
    assert "".join(map(to_nquads, publications)).strip() == case["expect"].strip()
    if "publications" in case:
        assert len(publications) == case["publications"]
    if "published" in case:
        assert [str(p.published.isoformat()) if p.published else "" for p in publications] == case["published"]
    if "notes" in case:
        assert [list(p.notes) for p in publications] == case["notes"]


@pytest.mark.parametrize("case", _cases())
def test_reading_twice_gives_the_same(case: dict[str, Any]) -> None:
    assert _read(case) == _read(case)


@pytest.mark.parametrize("case", _cases())
def test_what_is_written_reads_back(case: dict[str, Any]) -> None:
    publications = [p for p in _read(case) if p.triples]
    again = read_document("".join(map(to_nquads, publications)).encode(), "again.nq")
    assert "".join(map(to_nquads, again)) == "".join(map(to_nquads, publications))
