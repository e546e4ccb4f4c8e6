"""Matches as Arrow columns: byte for byte what the `Match` objects say, in their order, for every matcher."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amounts import MATCHERS, examples
from engine.generated import WORLD, groups, publications
from engine.samples import EX, iri, item
from engine.test_result_portions import QUERIES
from triplewire import Engine, Publication, Triple, UnsupportedQuery
from triplewire.config import Settings
from triplewire.encode import matches as columns
from triplewire.encode.schema import MATCHES, to_batch
from triplewire.engine import MatchResult, incoming, result
from triplewire.engine.segments import snapshot
from triplewire.errors import LimitError
from triplewire.ir.nodes import And
from triplewire.ir.subscription import Subscription
from triplewire.model.match import bindings_to_json, graph_text
from triplewire.model.packed import pack
from triplewire.model.terms import BlankNode, Literal
from triplewire.read import read
from triplewire.read.taxonomy import load_taxonomy


def valid(text: str) -> str:
    """The text as Arrow can hold it: lone surrogates are escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def of_objects(found: MatchResult) -> list[dict[str, object]]:
    """The rows that the objects make."""
    return [
        {
            "publication": valid(match.publication),
            "subscription": valid(match.subscription),
            "bindings": valid(json.dumps(bindings_to_json(match.bindings), ensure_ascii=False)),
            "truncated": match.truncated,
            "matched_at": match.matched_at,
            "construct": None if match.construct is None else graph_text(match.construct),
            "content": match.content,
            "revision": match.revision,
        }
        for match in found
    ]


def check(found: MatchResult) -> pa.Table:
    """The columns are those of the objects."""
    table = found.to_arrow()
    assert table.schema == MATCHES
    table.validate(full=True)
    assert table.to_pylist() == of_objects(found)
    return table


def subscribed(matcher: str, settings: Settings) -> Engine:
    engine = Engine(matcher=matcher, settings=settings)
    for number in range(2 * len(QUERIES)):
        engine.subscribe(QUERIES[number % len(QUERIES)], id=f"s{number * 7 % 100:03}")
    return engine


@pytest.mark.parametrize("most", [1000, 3, 1])
def test_columns_are_those_of_the_objects(monkeypatch: pytest.MonkeyPatch, matcher: str, most: int) -> None:
    """ASK, CONSTRUCT, unbound and cut; in one part or many, of one segment or several, at once or in portions."""
    some = [item(f"p{n % 9}{n:02}", f'{n % 10} "é"\n') for n in range(20)]
    engine = subscribed(matcher, Settings(max_bindings=most))
    table = check(engine.match(some))
    assert table.num_rows == 20 * 2 * len(QUERIES)
    assert any(table.column("truncated").to_pylist()) is (most < 1000)
    assert engine.match_batch(to_batch(some)).schema == MATCHES
    wanted = table.drop(["matched_at"])
    for name, size in (("_AT_ONCE", 7), ("_IN_TURN", 2)):
        monkeypatch.setattr(result, name, size)
    monkeypatch.setattr(incoming, "_LEAST", 3)
    monkeypatch.setattr(incoming, "ROWS", 30)
    found = engine.match(some)
    assert len(found.parts) > 3
    assert check(found).drop(["matched_at"]) == wanted
    monkeypatch.setattr(snapshot, "DELTA", 3)
    engine = subscribed(matcher, Settings(max_bindings=most, merge_subscriptions=1))
    assert check(engine.match(some)).drop(["matched_at"]) == wanted
    assert engine.match_batch(to_batch(some)).drop_columns(["matched_at"]) == pa.record_batch(
        wanted.combine_chunks().to_batches()[0]
    )


def test_nothing_matches(matcher: str) -> None:
    engine = subscribed(matcher, Settings())
    nothing = [Publication("none", ())]
    assert check(engine.match(nothing)).num_rows == 0
    batch = engine.match_batch(to_batch(nothing))
    assert (batch.num_rows, batch.schema) == (0, MATCHES)


def test_text_that_is_no_utf8(matcher: str) -> None:
    """Lone surrogates, in ids and in terms of every sort, are told as escapes."""
    engine = Engine(matcher=matcher)
    for id_ in ("plain", "broken\ud800", "b\udfff\ud800"):
        engine.subscribe("SELECT * { ?s ?p ?o }", id=id_)
    literals = [Literal(f"\ud83d{n}\x00\x1f\x7f\udead\\", *more) for n, more in enumerate(((), ("urn:\ud801",)))]
    triples = [
        Triple(s, iri("p\udbff"), o) for s in (BlankNode("b"), iri("\udc00s")) for o in (*literals, iri("o\ud7ff"))
    ]
    check(engine.match([Publication("p\udfff", tuple(triples)), Publication("p", tuple(triples[:1]))]))
    batch = engine.match_batch(to_batch([Publication("p", tuple(triples[:3]))]))
    assert batch.num_rows == 3
    assert all("\\ud83d" in text for text in batch.column("bindings").to_pylist())


@pytest.mark.parametrize("matcher", MATCHERS)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    trees=st.lists(st.tuples(groups, st.booleans()), max_size=6),
    some=st.lists(publications, max_size=3),
    limits=st.sampled_from([(50, 100_000), (2, 100_000), (5, 30)]),
)
def test_generated_matches(
    matcher: str, trees: list[tuple[And, bool]], some: list[Publication], limits: tuple[int, int]
) -> None:
    most, steps = limits
    engine = Engine(
        matcher=matcher,
        taxonomy=WORLD.taxonomy,
        operators={},
        settings=replace(WORLD.settings, max_bindings=most, max_steps=steps),
    )
    for number, (tree, ask) in enumerate(trees):
        with suppress(UnsupportedQuery):  # nothing positive is asked for
            engine.subscribe(Subscription(f"s{number}", "sparql", "", () if ask else ("y", "x"), tree, ask))
    check(engine.match([replace(one, id=str(number)) for number, one in enumerate(some)]))


def test_examples(matcher: str, examples: Path) -> None:
    engine = Engine(matcher=matcher, taxonomy=load_taxonomy(examples / "taxonomy.ttl"))
    engine.load_subscriptions(examples / "subscriptions", on_refusal=lambda refusal: None)
    some = list(read(str(examples / "publications"), on_refusal=lambda refusal: None))
    assert check(engine.match(some)).num_rows > 30


def test_long_texts_go_to_several_batches(monkeypatch: pytest.MonkeyPatch, matcher: str) -> None:
    engine = subscribed(matcher, Settings())
    found = engine.match([item(f"p{n}", "x" * 50) for n in range(9)])
    whole = check(found)
    monkeypatch.setattr(columns, "BYTES", 1_000)
    batches = [batch for part in found.parts for batch in part.batches()]
    assert len(batches) > 10
    assert pa.Table.from_batches(batches) == whole
    assert columns.combined(pa.Table.from_batches(batches)).to_pylist() == whole.to_pylist()
    monkeypatch.setattr(columns, "MOST_BYTES", 1_000)
    with pytest.raises(LimitError, match=r"the column '.*' of the matches has .* holds 1,000"):
        columns.combined(whole)


def test_bindings_that_no_batch_holds_are_refused_by_their_pair(monkeypatch: pytest.MonkeyPatch, matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe("SELECT ?o { ?s ?p ?o }", id="wide")
    found = engine.match([item("p1", "short"), item("p2", "x" * 900)])
    monkeypatch.setattr(columns, "MOST_BYTES", 800)
    with pytest.raises(LimitError, match=r"the bindings of 'wide' have [\d,]+ bytes, .*holds 800") as raised:
        found.to_arrow()
    assert raised.value.source == "p2"
    assert len(list(found)) == 2


def test_texts_of_bindings_are_made_without_the_terms_of_a_publication(tmp_path: Path) -> None:
    """A thousand matches, each with other bindings: no term becomes an object."""
    triples = tuple(Triple(iri("s"), iri(f"p{n}"), Literal(f"text {n} {k}")) for n in range(1_000) for k in range(3))
    rows = [
        {"id": f"s{number:04}", "language": "sparql", "query": f"SELECT ?o {{ ?s <{EX}p{number}> ?o }}"}
        for number in range(1_000)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    engine = Engine()
    engine.load_subscriptions(tmp_path / "rows.jsonl")
    read_packed = Publication.of_packed("p", pack(triples))
    found = engine.match(read_packed)
    texts = [texts.bindings for part in found.parts for texts in part.texts()]
    assert sum(map(len, texts)) == 1_000
    assert "triples" not in vars(read_packed)
    made = found.to_arrow().to_pylist()
    assert len({row["bindings"] for row in made}) == 1_000
    assert made == of_objects(found)


def test_equal_bindings_are_one_text() -> None:
    engine = Engine()
    for number in range(50):
        engine.subscribe(QUERIES[number % 2], id=f"s{number}")
    found = engine.match([item(f"p{n}", "same") for n in range(4)])
    texts = [texts.bindings for part in found.parts for texts in part.texts()]
    assert [(len(column), len(column.offset) - 1) for column in texts] == [(200, 5)]
