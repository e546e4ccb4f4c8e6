"""FROM narrows a subscription to publications of a source, in each matcher.

They come as objects, files, batches, saved and loaded, alone and in batches, beside conditions that only an evaluation
decides, and beside operators.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from amounts import MATCHERS
from shared_data import ROOT
from triplewire import Engine, Publication, read
from triplewire.encode.schema import to_batch
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.terms import IRI, Literal
from triplewire.operators import built_in_operators

CASES = tomllib.loads((ROOT / "tests" / "cases" / "origins" / "names.toml").read_text(encoding="utf-8"))["case"]
RSS = "http://purl.org/rss/1.0/"
ITEM = f"<urn:item:{{0}}> a <{RSS}item> ; <{RSS}title> 'Item {{0}} of all' ; <urn:n> {{0}} ."
QUERIES = {
    "all": "SELECT ?t WHERE (?x, title, ?t)",
    "publications": "SELECT ?t FROM Publications WHERE (?x, title, ?t)",
    "a": "SELECT ?t FROM a WHERE (?x, title, ?t)",
    "b": "SELECT ?t FROM feeds/b.ttl WHERE (?x, title, ?t)",
    "a or b": 'SELECT ?t FROM "a.ttl", b WHERE (?x, title, ?t)',
    "nowhere": "SELECT ?t FROM nowhere WHERE (?x, title, ?t)",
    "joined": 'SELECT * FROM a WHERE (?x, title, ?t), (?x, <urn:n>, ?n) SUCHTHAT (?n > 1 AND ?t FTCONTAINS "item")',
    "evaluated": "SELECT * FROM b WHERE (?x, title, ?t), (?x, <urn:n>, ?n) SUCHTHAT (?n < 9 OR ?t = ?n)",
    "called": "SELECT * FROM b WHERE (?x, title, ?t) SUCHTHAT NOT op:language(en)",
}
FITS = {
    "all": "1234",
    "publications": "1234",
    "a": "12",
    "b": "34",
    "a or b": "1234",
    "nowhere": "",
    "joined": "2",
    "evaluated": "34",
    "called": "34",
}
EXPECTED = {(subscription, f"urn:item:{item}") for subscription, items in FITS.items() for item in items}


@pytest.fixture
def feeds(tmp_path: Path) -> Path:
    folder = tmp_path / "feeds"
    folder.mkdir()
    (folder / "a.ttl").write_text(ITEM.format(1) + ITEM.format(2))
    (folder / "b.ttl").write_text(ITEM.format(3) + ITEM.format(4))
    return folder


def _engine(matcher: str) -> Engine:
    engine = Engine(matcher=matcher)
    for name, text in QUERIES.items():
        engine.subscribe(text, "gql", id=name)
    return engine


@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_same_in_every_matcher_and_batch(matcher: str, feeds: Path, tmp_path: Path) -> None:
    engine = _engine(matcher)
    publications = list(read(feeds, split="subject"))
    assert len(publications) == 4
    for some in (publications, [*publications * 40], publications[::-1]):
        assert {(match.subscription, match.publication) for match in engine.match(some)} == EXPECTED
    alone = [match for one in publications for match in engine.match(one)]
    assert {(match.subscription, match.publication) for match in alone} == EXPECTED
    assert all(match.bindings[0]["t"].lexical.startswith("Item") for match in alone)
    rows = engine.match_batch(to_batch(publications)).to_pylist()
    assert {(row["subscription"], row["publication"]) for row in rows} == EXPECTED
    files = [match for result in engine.match_files(str(feeds), split="subject") for match in result]
    assert {(match.subscription, match.publication) for match in files} == EXPECTED
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved", matcher=matcher)
    assert {(match.subscription, match.publication) for match in loaded.match(publications)} == EXPECTED
    assert engine.unknown_sources == ["nowhere"]


def test_operators_of_a_program_do_not_matter(feeds: Path) -> None:
    engine = Engine(operators={})
    engine.subscribe(QUERIES["a"], "gql", id="a")
    assert [match.publication for match in engine.match(read(feeds, split="subject"))] == ["urn:item:1", "urn:item:2"]
    assert engine.unknown_sources == []


def test_what_was_removed_stays_away(feeds: Path) -> None:
    engine = _engine("trie")
    engine.unsubscribe("a")
    found = {(match.subscription, match.publication) for match in engine.match(read(feeds, split="subject"))}
    assert found == {pair for pair in EXPECTED if pair[0] != "a"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["why"])
def test_names(case: dict[str, object]) -> None:
    prefixes = "".join(f"@prefix {name}: <{PREDECLARED[name]}> . " for name in ("dcterms", "foaf"))
    (given,) = read(f"{prefixes}{case.get('channel', '<urn:item> a <urn:C>')} .".encode())
    publication = Publication("urn:item", given.triples, str(case["source"]))
    operator = built_in_operators()["fromSource"]
    for wanted in ("is", "not"):
        for name in case[wanted]:  # type: ignore[attr-defined]  # a list of names
            assert operator.evaluate(publication, (Literal(name),)) is (wanted == "is"), name
    assert operator.evaluate(publication, (IRI("urn:other"),)) is False
