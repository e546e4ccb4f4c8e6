"""Subscribe, match, unsubscribe: what is registered when, what a result holds, and that no pair disturbs another."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from engine.samples import EX, Stub, iri, item, read_while_writing
from triplewire import (
    BlankNode,
    Engine,
    LanguageError,
    Literal,
    MatchResult,
    Publication,
    Refusal,
    Settings,
    Subscription,
    Taxonomy,
    Triple,
    TriplewireError,
    parse,
    plugins,
)
from triplewire.encode import schema
from triplewire.encode.schema import MATCHES, to_batch
from triplewire.errors import ReadError, SubscriptionError
from triplewire.extend import Argument, Verdict
from triplewire.model.terms import RDF_TYPE, made_blank

TITLES = "SELECT ?t WHERE { ?s rss:title ?t }"
NEW = f"SELECT ?y WHERE {{ ?s <{EX}year> ?y FILTER(?y > 2003) }}"


def pairs(result: MatchResult) -> list[tuple[str, str]]:
    return [(match.publication, match.subscription) for match in result]


def test_order_counts_and_bindings(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    for id_ in ("b", "a", "c"):
        engine.subscribe(TITLES, id=id_)
    engine.subscribe(NEW, id="new")
    before = dt.datetime.now(dt.UTC)
    result = engine.match([item("z", "one", 2001), item("y", "two")])
    assert pairs(result) == [(p, s) for p, ids in (("z", "abc"), ("y", ["a", "b", "c", "new"])) for s in ids]
    assert (result.publications, len(result), result.truncated) == (2, 7, 0)
    assert result.pairs >= 7
    assert result.refusals == []
    assert result[0].bindings == ({"t": Literal("one")},)
    assert result[0].matched_at is not None
    assert before <= result[0].matched_at <= dt.datetime.now(dt.UTC)
    assert [match.publication for match in result[:2]] == ["z", "z"]


def test_the_same_bindings_are_one_object() -> None:
    engine = Engine()
    texts = {
        "a": "SELECT ?t ?y { ?s rss:title ?t OPTIONAL { ?s <http://e/none> ?y } }",  # evaluated
        "b": TITLES,
        "c": f"SELECT ?t {{ ?s rss:title ?t . ?s <{EX}year> ?y }}",
        "d": f"SELECT ?year {{ ?s rss:title ?t . ?s <{EX}year> ?year }}",
        "e": "SELECT ?u { ?s rss:title ?u }",
        "f": "ASK { ?s rss:title ?t }",
        "ö": "ASK { ?s rss:title ?t }",
    }
    for id_, text in texts.items():
        engine.subscribe(text, id=id_)
    result = engine.match([item("z", "one", 2001), item("y", "one", 2001)])
    found = {(match.publication, match.subscription): match.bindings for match in result}
    assert list(found) == [(p, id_) for p in "zy" for id_ in texts]
    for p in "zy":
        title = ({"t": Literal("one")},)
        assert [found[p, id_] for id_ in "abce"] == [title, title, title, ({"u": Literal("one")},)]
        assert found[p, "d"][0].keys() == {"year"}
        assert found[p, "f"] == found[p, "ö"] == ({},)
        assert found[p, "b"] is found[p, "c"]
        assert found[p, "a"] is not found[p, "b"]


def test_one_publication_or_none(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(TITLES)
    assert len(engine.match(item("a", "one"))) == 1
    assert len(engine.match([])) == 0
    assert len(Engine(matcher=matcher).match(item("a", "one"))) == 0


def test_ids(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(TITLES, id="s2")
    assert [engine.subscribe(TITLES).id for _ in range(2)] == ["s1", "s3"]
    compiled = parse(TITLES, id="mine")
    assert engine.subscribe(compiled).id == "mine"
    assert engine.subscribe(compiled, id="other").id == "other"
    with pytest.raises(SubscriptionError, match="mine: the id is taken"):
        engine.subscribe(TITLES, id="mine")
    assert [s.id for s in engine.subscriptions] == ["s2", "s1", "s3", "mine", "other"]


def test_a_refused_subscription_leaves_nothing_behind(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    with pytest.raises(LanguageError):
        engine.subscribe("SELECT", id="bad")
    with pytest.raises(TriplewireError, match="there is no language"):
        engine.subscribe("x", "latin")
    assert engine.subscriptions == ()
    engine.subscribe(TITLES, id="bad")


def test_unsubscribe(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(TITLES, id="a")
    engine.subscribe(TITLES, id="b")
    assert engine.unsubscribe("a")
    assert not engine.unsubscribe("a")
    assert pairs(engine.match(item("p", "x"))) == [("p", "b")]
    engine.subscribe(TITLES, id="a")
    assert pairs(engine.match(item("p", "x"))) == [("p", "a"), ("p", "b")]


def test_a_match_call_sees_the_subscriptions_of_its_beginning(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(TITLES, id="first")

    def publications() -> Iterator[Publication]:
        yield item("a", "x")
        engine.subscribe(TITLES, id="second")
        engine.unsubscribe("first")
        yield item("b", "x")

    assert pairs(engine.match(publications())) == [("a", "first"), ("b", "first")]
    assert pairs(engine.match(item("c", "x"))) == [("c", "second")]


def test_threads(matcher: str) -> None:
    """Readers always see a whole state: the pair of subscriptions registered and removed together stays together."""
    engine = Engine(matcher=matcher)
    engine.subscribe(TITLES, id="always")
    publication = item("p", "x")

    def work(number: int) -> None:
        for turn in range(40):
            engine.subscribe(TITLES, id=f"{number}-{turn}")
            assert engine.unsubscribe(f"{number}-{turn}")

    def look() -> None:
        ids = [match.subscription for match in engine.match(publication)]
        assert ids == sorted(ids)
        assert "always" in ids
        assert len(ids) <= 4

    read_while_writing(work, look, writers=3)
    assert pairs(engine.match(publication)) == [("p", "always")]


def test_a_failing_operator_refuses_its_pair_alone(matcher: str) -> None:
    answers = {"good": True, "no": False}
    engine = Engine(matcher=matcher, operators={"mob": Stub("mob", 0, dict(answers))})
    engine.subscribe("mob()", "predicates", id="mob")
    engine.subscribe(TITLES, id="titles")
    result = engine.match([item("good", "x"), item("broken", "x"), item("no", "x")])
    assert pairs(result) == [("good", "mob"), ("good", "titles"), ("broken", "titles"), ("no", "titles")]
    assert [(r.kind, r.subject) for r in result.refusals] == [("pair", "broken mob")]
    assert "mob" in result.refusals[0].reason


def test_a_limit_refuses_its_pair_alone(matcher: str) -> None:
    engine = Engine(matcher=matcher, settings=Settings(max_steps=500))
    engine.subscribe(TITLES, id="cheap")
    engine.subscribe("SELECT * WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", id="dear")
    triples = tuple(Triple(iri(str(n)), iri("p"), iri("o")) for n in range(20))
    big = Publication("big", (*triples, *item("x", "x").triples))
    result = engine.match([big, item("small", "x")])
    assert ("big", "cheap") in pairs(result)
    assert ("small", "cheap") in pairs(result)
    found = [match for match in result if (match.publication, match.subscription) == ("big", "dear")]
    if found:  # a matcher may see sooner that there are more bindings than are kept
        assert found[0].truncated
        assert found[0].bindings
    else:
        assert [r.subject for r in result.refusals if r.subject == "big dear"] == ["big dear"]
        assert "max_steps" in str(result.refusals[0])


def test_truncated(matcher: str) -> None:
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=2))
    engine.subscribe("SELECT ?p WHERE { ?s ?p ?o }", id="all")
    result = engine.match(item("p", "x"))
    assert (len(result[0].bindings), result[0].truncated, result.truncated) == (2, True, 1)


def test_unknown_classes_are_warned_of(matcher: str) -> None:
    engine = Engine(matcher=matcher, taxonomy=Taxonomy.build([(EX + "UofT", EX + "University")]))
    known = engine.subscribe(f"SELECT * WHERE ((?a, ?b, ?c) SUCHTHAT (?c ISA <= <{EX}University>))", "gql")
    assert known.warnings == ()
    unknown = engine.subscribe(f"SELECT * WHERE ((?a, ?b, ?c) SUCHTHAT (?c ISA <= <{EX}Zoo>))", "gql")
    assert len(unknown.warnings) == 1
    assert "Zoo" in unknown.warnings[0]


def test_operators_are_checked(matcher: str) -> None:
    engine = Engine(matcher=matcher, operators={"one": Stub("one", 1, {})})
    stranger = parse("mob(a)", "predicates", operators={"mob": Stub("mob", 1, {})})
    with pytest.raises(SubscriptionError, match=r"no operator named 'mob'.*known: fromSource, one"):
        engine.subscribe(stranger, id="x")
    two = parse("one(a, b)", "predicates", operators={"one": Stub("one", 2, {})})
    with pytest.raises(SubscriptionError, match="takes 1 argument, not 2"):
        engine.subscribe(two, id="x")


def test_a_rule_may_name_a_registered_rule(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    prefix = f"PREFIX e: <{EX}>\n"
    engine.subscribe(prefix + "search e:Provider c register c where c.e:memory > 64", "mdv", id="Big")
    engine.subscribe("search Big b register b where b.<" + EX + "host> contains 'passau'", "mdv", id="both")
    publication = Publication(
        "p",
        (
            Triple(iri("1"), RDF_TYPE, iri("Provider")),
            Triple(iri("1"), iri("memory"), Literal("92")),
            Triple(iri("1"), iri("host"), Literal("uni-passau.de")),
        ),
    )
    assert pairs(engine.match(publication)) == [("p", "Big"), ("p", "both")]
    engine.unsubscribe("Big")
    assert pairs(engine.match(publication)) == [("p", "both")]


def test_construct(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    template = "?s e:named ?t . _:n e:of ?s . _:n e:t ?t . ?t e:x ?s"
    engine.subscribe(f"CONSTRUCT {{ {template} }} WHERE {{ ?s rss:title ?t }}", id="c", prefixes={"e": EX})
    two = Publication("two", (*item("a", "x").triples, *item("b", "y").triples))
    graph = engine.match(two)[0].construct
    assert graph is not None
    assert Triple(iri("a"), iri("named"), Literal("x")) in graph
    assert len(graph) == 6  # a literal is no subject: the last line of the template gives nothing
    nodes = {t.subject for t in graph if t.predicate == iri("of")}
    assert len(nodes) == 2
    assert all(isinstance(node, BlankNode) for node in nodes)
    for node in nodes:
        assert {t.predicate for t in graph if t.subject == node} == {iri("of"), iri("t")}


def test_a_constructed_blank_node_is_new(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(f"CONSTRUCT {{ ?s <{EX}x> [] }} WHERE {{ ?s <{EX}p> ?o }}", id="c")
    labels = [f"{stem}{n}{rest}" for stem in ("c", "cc", "b") for n in range(3) for rest in ("", "_0", "_1")]
    triples = tuple(Triple(made_blank(label), iri("p"), iri("o")) for label in labels)
    graph = engine.match(Publication("p", triples))[0].construct
    assert graph is not None
    assert len({t.object for t in graph}) == len(labels)
    assert not {t.object for t in graph} & {t.subject for t in graph}


def test_match_batch(matcher: str) -> None:
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=1))
    engine.subscribe(TITLES, id="titles")
    engine.subscribe("ASK { ?s rss:title ?t }", id="ask")
    batch = engine.match_batch(to_batch([item("a", "x"), Publication("nothing", ()), item("b", "é")]))
    assert batch.schema == MATCHES
    rows = batch.to_pylist()
    assert [(r["publication"], r["subscription"]) for r in rows] == [
        ("a", "ask"),
        ("a", "titles"),
        ("b", "ask"),
        ("b", "titles"),
    ]
    assert json.loads(rows[3]["bindings"]) == [{"t": {"type": "literal", "value": "é"}}]
    assert json.loads(rows[0]["bindings"]) == [{}]
    assert rows[0]["matched_at"].tzinfo is not None


def test_an_arrow_batch_becomes_columns_without_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each publication becomes an object only where an operator has to see it, with all that its row says."""
    read: list[str] = []
    known: list[tuple[object, ...]] = []

    class Seen(Stub):
        def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
            known.append((publication.id, publication.source, publication.published))
            return super().evaluate(publication, arguments)

    def from_batch(rows: pa.RecordBatch, **given: Any) -> Iterator[Publication]:
        for publication in real(rows, **given):
            read.append(publication.id)
            yield publication

    real = schema.from_batch
    monkeypatch.setattr(schema, "from_batch", from_batch)
    some = [item(f"p{n:03}", f"title {n}") for n in range(200)]
    rows = to_batch([item("before", "x"), *some]).slice(1)
    engine = Engine(operators={"seen": Seen("seen", 0, {one.id: one.id == "p007" for one in some})})
    engine.subscribe(TITLES, id="titles")
    found = engine.match_batch(rows).to_pylist()
    assert [row["publication"] for row in found] == [one.id for one in some]
    assert read == []
    engine.subscribe('SELECT ?t { ?s rss:title ?t FILTER ftcontains(?t, "7") }', id="seven")
    engine.subscribe("seen()", "predicates", id="seen")
    found = engine.match_batch(rows).to_pylist()
    assert [row["publication"] for row in found if row["subscription"] == "seen"] == ["p007"]
    assert [row["publication"] for row in found if row["subscription"] == "seven"] == ["p007"]
    assert sorted(read) == [one.id for one in some]
    assert sorted(set(known)) == sorted((one.id, one.source, one.published) for one in some)


def test_match_batch_hands_over_what_it_refuses(matcher: str) -> None:
    engine = Engine(matcher=matcher, operators={"mob": Stub("mob", 0, {})})
    engine.subscribe("mob()", "predicates", id="mob")
    engine.subscribe(TITLES, id="titles")
    good = to_batch([item("a", "x")])
    bad = pa.RecordBatch.from_pylist([{"id": "", "triples": []}], schema=good.schema)
    batch = pa.Table.from_batches([bad, good]).combine_chunks().to_batches()[0]
    refusals: list[Refusal] = []
    assert engine.match_batch(batch, on_refusal=refusals.append).num_rows == 1
    assert [(r.kind, r.subject) for r in refusals] == [("publication", "(no id)"), ("pair", "a mob")]
    with pytest.raises(ReadError, match="has no id"):
        engine.match_batch(batch)
    with pytest.raises(SubscriptionError, match="a mob"):
        engine.match_batch(good)


def test_unknown_matcher() -> None:
    with pytest.raises(TriplewireError, match=r"no matcher named 'magic'.*known: reference"):
        Engine(matcher="magic")


def test_subscriptions_of_the_engine_are_values(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    one = engine.subscribe(TITLES, id="a", prefixes={"x": EX})
    assert isinstance(one, Subscription)
    assert engine.subscriptions == (one,)
    assert one.prefixes == (("x", EX),)


def test_a_plug_in_that_is_no_matcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plugins.BUILT_IN["matcher"], "odd", "json:dumps")
    with pytest.raises(TriplewireError, match="IndexMaker"):
        Engine(matcher="odd")
