"""The filter on plain Arrow batches: what a Spark worker calls, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from triplewire.config import Settings
from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.errors import Refusal, StoreError
from triplewire.languages import parse
from triplewire.model.match import bindings_to_json
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.pipeline.filter import IndexFilter
from triplewire.pipeline.index.open_version import HELD, open_versions, openings
from triplewire.pipeline.jobs import compile_filter
from triplewire.pipeline.rows import OUTCOME_ROWS, PUBLICATION_ROWS, refused, widened
from triplewire.read import read

HERE = """
class Here:
    name, parameters = "here", ()
    def evaluate(self, publication, arguments):
        return True

operators = (Here(),)
"""
TITLES = "SELECT ?title WHERE { ?item rss:title ?title FILTER ftcontains(?title, 'puffin*') }"


@pytest.fixture
def published(examples: Path) -> list[Publication]:
    return list(read(str(examples / "publications"), on_refusal=lambda refusal: None))


def rows(publications: list[Publication], size: int = 10) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(publications), size):
        yield widened(to_batch(publications[start : start + size]), PUBLICATION_ROWS)


def test_the_answers_are_the_engine_s(examples: Path, published: list[Publication]) -> None:
    packed = compile_filter(examples / "subscriptions", taxonomy=examples / "taxonomy.ttl")
    found = [row for batch in packed(rows(published)) for row in batch.to_pylist()]
    wanted = packed.opened().server().match(published)
    assert len(wanted) > 30
    assert [(row["publication"], row["subscription"]) for row in found] == [
        (match.publication, match.subscription) for match in wanted
    ]
    assert [json.loads(row["bindings"]) for row in found] == [bindings_to_json(match.bindings) for match in wanted]
    sources = {one.id: one.source for one in published}
    assert all(row["source"] == sources[row["publication"]] for row in found)


def test_of_publications_with_one_id_the_last_one_is_the_source() -> None:
    engine = Engine()
    engine.subscribe("ASK { ?s ?p ?o }", id="any")
    triple = Triple(IRI("urn:s"), IRI("urn:p"), IRI("urn:o"))
    some = [Publication(id_, (triple,), source) for id_, source in (("a", "1"), ("b", "2"), ("a", "3"), ("c", ""))]
    found = [row for batch in compile_filter(engine)(rows(some)) for row in batch.to_pylist()]
    assert [(row["publication"], row["source"]) for row in found] == [("a", "3"), ("b", "2"), ("a", "3"), ("c", "")]


def test_every_batch_has_the_columns_in_their_order(examples: Path, published: list[Publication]) -> None:
    """Spark takes columns by position."""
    packed = compile_filter(examples / "subscriptions")
    assert {batch.schema for batch in packed(rows(published))} == {OUTCOME_ROWS}


def test_a_refused_input_is_passed_on() -> None:
    refusal = Refusal("publication", "a.ttl", "a.ttl:1:7", "not Turtle", "mend it")
    engine = Engine()
    engine.subscribe(TITLES, id="titles")
    found = [
        row for batch in compile_filter(engine)([refused([refusal], PUBLICATION_ROWS)]) for row in batch.to_pylist()
    ]
    assert [Refusal(**row["refusal"]) for row in found] == [refusal]
    assert found[0]["publication"] is None


def test_a_pair_that_cannot_be_decided_is_a_refusal(published: list[Publication]) -> None:
    engine = Engine(matcher="reference", settings=Settings(max_steps=3))  # its steps are those counted here
    engine.subscribe("SELECT * WHERE { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }", id="many")
    engine.subscribe("ASK { ?s <urn:nothing> ?o }", id="few")
    found = [row for batch in compile_filter(engine)(rows(published)) for row in batch.to_pylist()]
    refusals = [Refusal(**row["refusal"]) for row in found if row["refusal"]]
    assert {refusal.kind for refusal in refusals} == {"pair"}
    assert sum(refusal.subject.endswith(" many") for refusal in refusals) == len(published)
    assert not any(refusal.subject.endswith(" few") for refusal in refusals)
    assert all("max_steps" in refusal.remedy for refusal in refusals)


def test_a_row_that_is_no_publication_is_a_refusal(published: list[Publication]) -> None:
    engine = Engine()
    engine.subscribe("ASK { ?s ?p ?o }", id="any")
    bad = {"id": "urn:bad", "source": "", "published": None, "triples": [{"s": "no term", "p": "<urn:p>", "o": '"x"'}]}
    batch = pa.RecordBatch.from_pylist([bad], schema=PUBLICATION_ROWS)
    found = [row for one in compile_filter(engine)([batch, *rows(published[:1])]) for row in one.to_pylist()]
    assert [row["refusal"]["subject"] for row in found if row["refusal"]] == ["urn:bad"]
    assert [row["publication"] for row in found if not row["refusal"]] == [published[0].id]


def test_a_worker_compiles_each_version_once(published: list[Publication]) -> None:
    def packed(text: str) -> IndexFilter:
        engine = Engine()
        engine.subscribe(text, id="one")
        return compile_filter(engine)

    before = openings()
    same = [packed(TITLES) for _ in range(3)]
    assert len({one.version for one in same}) == 1
    for one in same:
        list(one(rows(published)))
    assert openings() - before == 1
    others = [packed(f"ASK {{ ?s <urn:p{number}> ?o }}") for number in range(4)]
    for one in others:
        list(one(rows(published)))
    assert openings() - before == 5
    assert open_versions() == HELD


def test_the_limits_travel(published: list[Publication]) -> None:
    """A publication that is larger than the default allows is matched where the limit was raised."""
    large = replace(published[0], triples=tuple(Triple(IRI("urn:s"), IRI("urn:p"), Literal(str(n))) for n in range(50)))
    for limit, expected in ((49, ["refusal"]), (50, ["publication"])):
        engine = Engine(settings=Settings(max_triples=limit))
        engine.subscribe("ASK { ?s ?p ?o }", id="any")
        found = [row for batch in compile_filter(engine)(rows([large])) for row in batch.to_pylist()]
        assert [name for row in found for name in ("publication", "refusal") if row[name]] == expected


def test_rules_that_name_rules_travel_together(published: list[Publication]) -> None:
    engine = Engine()
    prefix = "PREFIX : <http://kestrelcoast.example/terms#>\n"
    engine.subscribe(prefix + "search Ferry f register f where f.capacity > 100", "mdv", id="BigFerry")
    engine.subscribe(prefix + "search BigFerry b register b where b.built > 1990", "mdv", id="NewBigFerry")
    found = [row for batch in compile_filter(engine)(rows(published)) for row in batch.to_pylist()]
    assert sorted(row["subscription"] for row in found) == ["BigFerry", "NewBigFerry"]


@pytest.mark.parametrize(("entailment", "boats"), [("none", 1), ("rdfs", 2)])
def test_the_entailment_travels(
    examples: Path, published: list[Publication], tmp_path: Path, entailment: str, boats: int
) -> None:
    """A sailing ferry is a ferry where subclasses count."""
    rule = tmp_path / "ferries.mdv"
    rule.write_text("PREFIX : <http://kestrelcoast.example/terms#>\nsearch Ferry f register f", encoding="utf-8")
    packed = compile_filter(rule, taxonomy=examples / "taxonomy.ttl", entailment=entailment)
    found = [row for batch in packed(rows(published)) for row in batch.to_pylist()]
    assert len(found) == boats


def test_one_subscription_or_several() -> None:
    one = parse("ASK { ?s ?p ?o }", id="any")
    assert compile_filter(one) == compile_filter([one])
    assert [known.id for known in compile_filter(one).opened().server().subscriptions] == ["any"]


def test_operators_that_were_not_given_are_told_of_at_once(examples: Path) -> None:
    """And not by each worker."""
    file = OperatorFile("here.py", HERE)
    engine = Engine(operators=operators_of([file]))
    engine.subscribe("here()", "predicates", id="calls")
    assert [known.id for known in compile_filter(engine, operators=[file]).opened().server().subscriptions] == ["calls"]
    with pytest.raises(StoreError, match="operators that were not given: here"):
        compile_filter(engine)


def test_the_filter_needs_no_spark() -> None:
    code = (
        "import sys, triplewire.pipeline.filter as f; from triplewire.pipeline import match_publications, publications;"
        "print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
