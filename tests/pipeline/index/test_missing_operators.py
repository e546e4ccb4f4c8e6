"""Subscriptions whose operator a running stream was not given cost nothing but their own pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.index.stages import rows_of
from triplewire.errors import StoreError, raise_refusal
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.pipeline.index import changes, versions
from triplewire.pipeline.index.build import IndexOptions, Spread, build
from triplewire.pipeline.index.pins import IndexSource

pytestmark = pytest.mark.slow

LARGER = OperatorFile(
    "larger.py",
    """
from triplewire.extend import Parameter

class Larger:
    name = "larger"
    parameters = (Parameter("size", "m"),)
    def evaluate(self, publication, arguments):
        return len(publication.triples) > float(arguments[0].lexical)

operators = (Larger(),)
""",
)
FILES = {
    "plain.rq": "ASK { ?s <urn:p> ?o }",
    "calls.pred": "larger(0 km)",
    "either.rq": "ASK { { ?s <urn:p> ?o } UNION { ?s <urn:q> ?o FILTER(op:larger(0)) } }",
}


def written(folder: Path, *names: str) -> list[Path]:
    files = [folder / name for name in names]
    for file in files:
        file.write_text(FILES[file.name])
    return files


def outcomes(source: IndexSource) -> tuple[list[str], list[str]]:
    """What a publication with urn:p, and one with urn:q, matched, and what was refused."""
    publications = [Publication(name, [Triple(IRI("urn:s"), IRI(f"urn:{name}"), Literal("o"))]) for name in "pq"]
    rows = [row for batch in source.newest()(rows_of(publications)) for row in batch.to_pylist()]
    matches = sorted(f"{row['publication']} {row['subscription']}" for row in rows if row["refusal"] is None)
    return matches, sorted(f"{row['refusal']['subject']}: {row['refusal']['reason']}" for row in rows if row["refusal"])


@pytest.fixture(params=["trie", "reference"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An index of one subscription: of a matcher that saves arrays, and of one that saves texts alone."""
    build(tmp_path / "index", written(tmp_path, "plain.rq"), IndexOptions(matcher=request.param))
    return tmp_path / "index"


def test_a_running_stream_goes_on(index: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    source = IndexSource(index, tmp_path, on_note=notes.append)
    source.check()
    assert outcomes(source) == (["p plain"], [])
    changes.subscribe(index, written(tmp_path, "calls.pred", "either.rq"), [LARGER], on_refusal=raise_refusal)
    fault = "the operator larger failed: it was not given (--operators FILE)"
    assert outcomes(source) == (
        ["p either", "p plain"],
        [f"p calls: {fault}", f"q calls: {fault}", f"q either: {fault}"],
    )
    changes.subscribe(index, written(tmp_path, "plain.rq"), [LARGER], on_refusal=lambda refusal: None)
    assert outcomes(source)[0] == ["p either", "p plain"]
    assert notes == [
        f"v2 of {index} has subscriptions that call operators that this run was not given (larger): pairs that depend "
        "on such a call are refused until it is started with --operators FILE"
    ]
    with pytest.raises(StoreError, match="its subscriptions call operators that were not given: larger"):
        IndexSource(index, tmp_path).check()
    given = IndexSource(index, tmp_path, [LARGER])
    given.check()
    assert outcomes(given) == (["p calls", "p either", "p plain", "q calls", "q either"], [])


def test_a_subscription_is_removed_without_its_operator(index: Path, tmp_path: Path) -> None:
    changes.subscribe(index, written(tmp_path, "calls.pred", "either.rq"), [LARGER], on_refusal=raise_refusal)
    with pytest.raises(StoreError, match="its subscriptions call operators that were not given: larger"):
        changes.subscribe(index, written(tmp_path, "plain.rq"), on_refusal=raise_refusal)
    assert changes.unsubscribe(index, ["calls"], on_refusal=raise_refusal).changed == 1
    source = IndexSource(index, tmp_path, [LARGER])
    assert outcomes(source) == (["p either", "p plain", "q either"], [])
    assert changes.unsubscribe(index, ["either"], on_refusal=raise_refusal).changed == 1
    source = IndexSource(index, tmp_path)
    source.check()
    assert outcomes(source) == (["p plain"], [])


def test_a_full_version_is_written_without_the_operator(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "CHANGES", 1)
    options = IndexOptions(operators=operators_of([LARGER]))
    build(index, written(tmp_path, *FILES), options, Spread("containment", 2))
    for id in ("plain", "calls"):
        changes.unsubscribe(index, [id], on_refusal=raise_refusal)
    assert versions.load(index).content.gone == ()
    source = IndexSource(index, tmp_path, [LARGER])
    source.check()
    assert outcomes(source) == (["p either", "q either"], [])
