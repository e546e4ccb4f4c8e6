"""The identity of a match: the content of its publication and the revision of its subscription.

It, and what a CONSTRUCT query makes, are the same for every matcher, in every form of the result, and after saving and
loading.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.samples import EX, iri, item
from triplewire import Engine, Publication, Triple, load_taxonomy, parse, read
from triplewire.encode.schema import to_batch
from triplewire.engine.segments import snapshot
from triplewire.ir.subscription import Subscription, revision_of
from triplewire.model.terms import RDF_TYPE

SOME = [item(f"p{n}", f"w{n % 3}") for n in range(6)]
TITLE = "SELECT ?t { ?s rss:title ?t }"
MADE = f"CONSTRUCT {{ ?s <{EX}called> [ <{EX}as> ?t ] }} {{ ?s rss:title ?t }}"
NOTHING_MADE = f"CONSTRUCT {{ ?t <{EX}of> ?s }} {{ ?s rss:title ?t }}"
RULES = {
    "titled": f"search <{EX}T> t register t where t.<{EX}year> > 3",
    "named": f"search titled t register t where t.<{EX}year> < 9",
}


def engine_of(matcher: str) -> Engine:
    engine = Engine(matcher=matcher)
    for id_, query in (("title", TITLE), ("made", MADE), ("nothing", NOTHING_MADE), ("é\ud800", TITLE)):
        engine.subscribe(query, id=id_, prefixes={"z": EX})
    for id_, rule in RULES.items():
        engine.subscribe(rule, "mdv", id=id_)
    return engine


MATCHES_ALL = Publication("all", (*item("all", "w", 5).triples, Triple(iri("all"), RDF_TYPE, iri("T"))))


def revisions(engine: Engine) -> dict[str, str]:
    """Of all subscriptions, as their matches tell them."""
    found = {match.subscription: match.revision for match in engine.match(MATCHES_ALL)}
    assert len(found) == len(engine.subscriptions)
    return found


def test_in_every_form(matcher: str) -> None:
    engine = engine_of(matcher)
    found = engine.match(SOME)
    assert len(found) == 4 * len(SOME)
    contents = {one.id: one.content_hash for one in SOME}
    assert [match.content for match in found] == [contents[match.publication] for match in found]
    stated = {one.id: one.revision for one in engine.subscriptions}
    assert [match.revision for match in found] == [stated[match.subscription] for match in found]
    rows = engine.match_batch(to_batch(SOME)).to_pylist()
    told = ("publication", "content", "revision", "construct")
    assert [[row[name] for name in told] for row in rows] == [
        [match.to_json()[name] for name in told] for match in found
    ]
    graphs = {row["construct"] for row in rows if row["subscription"] == "made"}
    line = f'<{EX}p1> <{EX}called> _:c14n0 .\n_:c14n0 <{EX}as> "w1" .\n'
    assert line in graphs
    assert len(graphs) == len(SOME)
    assert {row["construct"] for row in rows if row["subscription"] == "nothing"} == {""}
    assert {row["construct"] for row in rows if row["subscription"] in ("title", "é\\ud800")} == {None}


def test_two_contents_of_one_id(matcher: str) -> None:
    engine = engine_of(matcher)
    found = engine.match([item("p", "first"), item("p", "second"), item("p", "first")])
    contents = [match.content for match in found if match.subscription == "title"]
    assert contents[0] == contents[2] != contents[1]


def test_what_entailment_adds_is_not_content(matcher: str, tmp_path: Path) -> None:
    file = tmp_path / "classes.ttl"
    file.write_text(f"<{EX}year> <http://www.w3.org/2000/01/rdf-schema#domain> <{EX}Dated> .")
    engine = Engine(matcher=matcher, taxonomy=load_taxonomy(file), entailment="rdfs")
    engine.subscribe(f"ASK {{ ?s a <{EX}Dated> }}", id="dated")
    (match,) = engine.match(SOME[0])
    assert match.content == SOME[0].content_hash
    assert engine.match_batch(to_batch(SOME[:1])).column("content").to_pylist() == [match.content]


def test_a_file_read_as_columns_and_as_objects(matcher: str, tmp_path: Path) -> None:
    file = tmp_path / "some.nq"
    file.write_text(f'<{EX}s> <{EX}p> "a\\u0041\\n" <urn:g> .\n_:b <{EX}p> _:c <urn:g> .\n', encoding="utf-8")
    engine = Engine(matcher=matcher)
    engine.subscribe("ASK { ?s ?p ?o }", id="any")
    (wanted,) = read(str(file))
    assert [match.content for found in engine.match_files(file) for match in found] == [wanted.content_hash]


@pytest.mark.parametrize("index", [True, False])
def test_revisions_stay(matcher: str, index: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the delta and in segments, merged or not, by file, saved and loaded."""
    engine = engine_of(matcher)
    before = revisions(engine)
    assert before == {one.id: one.revision for one in engine.subscriptions}
    assert len(set(before.values())) == len(before) - 1, "two have one text"
    engine.save(tmp_path / "saved", index=index)
    assert revisions(Engine.load(tmp_path / "saved")) == before
    engine.settle()
    assert revisions(engine) == before
    monkeypatch.setattr(snapshot, "DELTA", 1)
    assert revisions(engine_of(matcher)) == before
    lines = (tmp_path / "rows.jsonl").open("w", encoding="utf-8")
    with lines:
        for id_, query in (("title", TITLE), ("made", MADE)):
            row = {"id": id_, "language": "sparql", "query": query, "prefixes": {"z": EX}}
            lines.write(json.dumps(row) + "\n")
    loaded = Engine(matcher=matcher)
    loaded.load_subscriptions(tmp_path / "rows.jsonl")
    assert revisions(loaded) == {id_: before[id_] for id_ in ("title", "made")}


def test_another_text_is_another_revision() -> None:
    """Of the text, its language, prefixes and base; what is the same in other words is another text."""
    ways = {
        revision_of("sparql", TITLE, {}, ""),
        revision_of("gql", TITLE, {}, ""),
        revision_of("sparql", f"{TITLE} ", {}, ""),
        revision_of("sparql", TITLE, {"a": "urn:b"}, ""),
        revision_of("sparql", TITLE, {"a": "urn:c"}, ""),
        revision_of("sparql", TITLE, {}, "urn:b"),
        revision_of("sparql", "é\ud800\x00", {}, ""),
    }
    assert len(ways) == 7
    assert all(len(way) == 16 for way in ways)
    two = {"a": "urn:b", "c": "urn:d"}
    assert revision_of("sparql", TITLE, two, "") == revision_of("sparql", TITLE, dict(reversed(two.items())), "")
    assert revision_of("sparql", "ASK { ?s ?p ?o }", {}, "") == "d6e378cec2a6480a", "the same in every version"


def test_a_subscription_without_a_text_has_the_revision_of_its_tree(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    for id_, query in (("a", TITLE), ("b", TITLE), ("c", "SELECT ?t { ?s ?p ?t }")):
        engine.subscribe(replace(parse(query), id=id_, text=""))
    told = revisions(engine)
    assert told["a"] == told["b"] != told["c"]
    assert isinstance(engine.subscriptions[0], Subscription)


def test_a_replaced_text(matcher: str) -> None:
    engine = engine_of(matcher)
    (before,) = (match.revision for match in engine.match(SOME[0]) if match.subscription == "title")
    old = engine.match(SOME[0])
    engine.unsubscribe("title")
    engine.subscribe(TITLE.replace("?t", "?title"), id="title")
    (after,) = (match.revision for match in engine.match(SOME[0]) if match.subscription == "title")
    assert before != after
    assert [match.revision for match in old if match.subscription == "title"] == [before], "as it was then"


def test_another_rule_is_another_revision_of_what_names_it(matcher: str, tmp_path: Path) -> None:
    """At any depth; and in one engine, a rule keeps the meaning and the revision that it was registered with."""
    over = {"over": f"search named n register n where n.<{EX}year> != 4"}

    def registered(titled: str) -> Engine:
        engine = Engine(matcher=matcher)
        for id_, rule in (RULES | over | {"titled": titled}).items():
            engine.subscribe(rule, "mdv", id=id_)
        return engine

    engine, other = registered(RULES["titled"]), registered(f"search <{EX}T> t register t where t.<{EX}year> > 4")
    told, changed = revisions(engine), revisions(other)
    assert told == {one.id: one.revision for one in engine.subscriptions}
    assert {id_ for id_ in told if told[id_] != changed[id_]} == {"titled", "named", "over"}
    engine.subscribe(f"search <{EX}T> t register t where t.<{EX}year> > 4", "mdv", id="titled", replace=True)
    assert revisions(engine) == told | {"titled": changed["titled"]}
    engine.save(tmp_path / "saved")
    assert revisions(Engine.load(tmp_path / "saved")) == told | {"titled": changed["titled"]}
    engine.subscribe(RULES["named"], "mdv", id="named", replace=True)
    assert revisions(engine)["named"] == changed["named"]


def test_a_rule_that_adds_nothing_counts(matcher: str) -> None:
    """It means what the name of a class would mean, and is another text."""
    engine = Engine(matcher=matcher)
    engine.subscribe(f"search <{EX}T> t register t", "mdv", id=f"{EX}T")
    engine.subscribe(f"search <{EX}T> t register t", "mdv", id="over")
    told = revisions(engine)
    assert told["over"] == {one.id: one.revision for one in engine.subscriptions}["over"]
