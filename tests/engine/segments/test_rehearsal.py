"""A rehearsal: what the first match would wait for is there before, and no operator is called for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triplewire import IRI, Engine, Literal, Publication, Triple, load_taxonomy
from triplewire.engine.chunk import Chunk
from triplewire.engine.segments import loading
from triplewire.engine.segments.loading import instance_of
from triplewire.engine.segments.segment import Segment, SegmentContext
from triplewire.ir.normal_form import normal_form
from triplewire.languages import parse
from triplewire.operators import function_operator

CLASSES = """<urn:Cat> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Animal> .
<urn:Dog> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Animal> .
"""
QUERIES = [
    "(?x, <urn:p>, ?y) AND (?y, <urn:q>, <urn:o{n}>)",
    '(?x, <urn:p>, ?y) SUCHTHAT (?y ISA <= <urn:Animal> AND ?x FTCONTAINS "red")',
    "(?x, <urn:p{n}>, ?y) SUCHTHAT (?y > 3)",
    "(?x, <urn:p>, ?y) AND CALL slow(?y)",
]


def _file(folder: Path, count: int) -> Path:
    rows = (
        {"id": str(n), "language": "gql", "query": f"SELECT * WHERE {QUERIES[n % 4].format(n=n)}"} for n in range(count)
    )
    file = folder / "subscriptions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_each_kind_of_clause_has_an_instance_that_it_matches() -> None:
    query = parse("SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:q> 'x', ?c . ?c ?d <urn:o> }")
    instance = instance_of(normal_form(query, most=8).clauses[0])
    engine = Engine()
    engine.subscribe(query.text, "sparql", id="x")
    assert len(instance.triples) == 4
    assert [match.subscription for match in engine.match([instance])] == ["x"]


def test_a_large_segment_rehearses_without_calls_and_no_answer_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunks that segments match: instances first, then the publication."""
    (tmp_path / "classes.nt").write_text(CLASSES)
    calls: list[object] = []

    slow = function_operator("slow", ["node"], lambda publication, arguments: calls.append(arguments) or True)
    chunks: list[Chunk] = []
    match = Segment.rows
    monkeypatch.setattr(Segment, "rows", lambda self, chunk, *rest: chunks.append(chunk) or match(self, chunk, *rest))
    given = Publication("urn:x", (Triple(IRI("urn:a"), IRI("urn:p"), IRI("urn:Cat")),))
    answers = []
    for least in (100, 101):
        monkeypatch.setattr(loading, "LEAST", least)
        engine = Engine(taxonomy=load_taxonomy(tmp_path / "classes.nt"), operators={"slow": slow})
        engine.load_subscriptions(_file(tmp_path, 100))
        assert len(chunks) == 2 * (least == 100)
        assert not calls
        answers.append(sorted(match.subscription for match in engine.match([given])))
        assert calls
        chunks.clear()
        calls.clear()
    assert answers[0] == answers[1]
    assert answers[0]


def test_a_residual_predicate_is_compiled_before_the_first_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many subscriptions are compiled from their texts while the first publication is matched."""
    rows = (
        {"id": str(n), "language": "gql", "query": f"SELECT * WHERE (?x, <urn:p>, ?y) SUCHTHAT (?y != text{n})"}
        for n in range(20)
    )
    file = tmp_path / "subscriptions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    compiled: list[int] = []
    compile_ = SegmentContext.compiled
    monkeypatch.setattr(SegmentContext, "compiled", lambda self, *where: compiled.append(1) or compile_(self, *where))
    given = Publication("urn:x", (Triple(IRI("urn:a"), IRI("urn:p"), Literal("text3")),))
    counts = []
    for least in (20, 21):
        monkeypatch.setattr(loading, "LEAST", least)
        engine = Engine()
        engine.load_subscriptions(file)
        compiled.clear()
        assert {match.subscription for match in engine.match([given])} == {str(n) for n in range(20) if n != 3}
        counts.append(len(compiled))
    assert counts[0] == 0
    assert counts[1] > 0
