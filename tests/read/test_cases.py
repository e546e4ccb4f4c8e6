"""Documents and the publications they become. A new case needs no Python: add it to a file of `tests/cases/read`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.errors import Refusal
from triplewire.model.publication import Publication
from triplewire.read import read_document, read_documents, to_nquads

CASES = Path(__file__).resolve().parent.parent / "cases" / "read"


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{file.stem}: {case['name']}")
        for file in sorted(CASES.glob("*.toml"))
        for case in tomllib.loads(file.read_text("utf-8"))["case"]
    ]


def _data(case: dict[str, Any]) -> bytes:
    return bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode(case.get("encoding", "utf-8"))


def _read(case: dict[str, Any]) -> list[Publication]:
    return read_document(
        _data(case),
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


@pytest.mark.parametrize("split", ["item", "document"])
def test_documents_that_are_read_together_are_read_as_each_alone(split: str) -> None:
    wrong = (b"<http://a> <http://b>", b"", b"<http://a> <http://p> 1 .\n<http://a> <http://p> .", b"<rdf>", b"{}")
    sources = [(_data(x), x.get("source", "http://example.org/doc")) for param in _cases() for x in param.values]
    sources += [(data, f"http://example.org/wrong{number}") for number, data in enumerate(wrong)]
    together: list[Refusal] = []
    alone: list[Refusal] = []
    for (data, source), publications in zip(
        sources, read_documents(sources, split=split, on_refusal=together.append), strict=True
    ):
        assert publications == read_document(data, source, base=source, split=split, on_refusal=alone.append)
        assert together == alone
    assert len([refusal for refusal in alone if not refusal.is_warning]) == len(wrong) - 1, "an empty file says nothing"
