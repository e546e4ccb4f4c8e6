"""An index answers as one engine does, however it is spread, and however often subscriptions come and go."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.index.stages import CASES, answers, row_of, rows_of
from triplewire.config import Settings
from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.errors import Refusal, raise_refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages.sources.files import read_rows
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Triple
from triplewire.partition.containment import ContainmentPartitioner
from triplewire.partition.plan import NAMES
from triplewire.pipeline import filter as on_workers
from triplewire.pipeline.index import changes
from triplewire.pipeline.index.build import IndexOptions, Spread, build, change_taxonomy
from triplewire.pipeline.index.open_version import HELD, open_versions, opened
from triplewire.pipeline.index.versions import SERVER, Plan, Version, load
from triplewire.read import read

SETTINGS = Settings(max_bindings=2)
STEPS = tomllib.loads((CASES / "changes.toml").read_text())["step"]


def wanted(engine: Engine, publications: list[Publication]) -> list[tuple[str, ...]]:
    matches = engine.match_batch(to_batch(publications), on_refusal=lambda refusal: None)
    return sorted(map(row_of, matches.to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_index_through_its_changes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = list(read(str(CASES / "publications.nq")))
    batches = rows_of(published)
    monkeypatch.setattr(on_workers, "MOST_ROWS", 1)  # the matches of a publication come in several batches
    engine = Engine(settings=SETTINGS)
    engine.load_subscriptions(CASES / "subscriptions.jsonl")
    version = build(tmp_path, [CASES / "subscriptions.jsonl"], IndexOptions(settings=SETTINGS), Spread(name, 2))
    matches, refused, routed = answers(version, batches)
    assert matches == wanted(engine, published)
    assert len(matches) == 11
    assert any(row[3] == "True" for row in matches), "a match with more bindings than are told"
    assert not refused
    assert bool(routed) == (name != "replicated")
    unchanged = 0  # steps so far that give no version
    for number, step in enumerate(STEPS):
        monkeypatch.setattr(changes, "CHANGES", 0 if step.get("full") else 512)
        said: list[Refusal] = []
        if "subscribe" in step:
            more, replaces = CASES / step["subscribe"], step.get("replace", False)
            version = changes.subscribe(tmp_path, [more], replaces=replaces, on_refusal=said.append).version
            if replaces:
                for parsed in read_rows([more], on_refusal=lambda refusal: None):
                    engine.subscribe(parsed.subscription, replace=True, id=parsed.row.id)
            else:
                engine.load_subscriptions(more, on_refusal=lambda refusal: None)
        else:
            version = changes.unsubscribe(tmp_path, step["unsubscribe"], on_refusal=said.append).version
            for id_ in step["unsubscribe"]:
                engine.unsubscribe(id_)
        assert sorted(refusal.subject for refusal in said) == step["refused"], step["name"]
        assert all("record" in refusal.where for refusal in said if "subscribe" in step), step["name"]
        unchanged += step.get("same", False)
        assert version.name == f"v{number + 2 - unchanged}", step["name"]
        assert version.content.subscriptions == len(engine), step["name"]
        matches = answers(version, batches)[0]
        assert matches == wanted(engine, published), step["name"]
        assert {row[1] for row in matches} >= set(step.get("matched", ())), step["name"]
        assert (version.content.delta, version.content.gone) == ("", ()) or not step.get("full")
        listed = {subscription.id: subscription.text for subscription in changes.held(opened(tmp_path, version.name))}
        assert listed == {subscription.id: subscription.text for subscription in engine.subscriptions}, step["name"]
    assert open_versions() == HELD, "old versions are let go"
    old = load(tmp_path, f"v{version.number - 4}")
    assert answers(old, batches)[0] != answers(version, batches)[0], "an old version stays what it was"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_publication_is_refused_once(name: str, tmp_path: Path) -> None:
    """In two stages as in one, whatever the number of nodes."""
    published = list(read(str(CASES / "publications.nq")))
    bad = to_batch([replace(published[0], id="urn:bad")]).to_pylist()
    bad[0]["triples"][0]["s"] = "no term"
    batches = rows_of(published)
    batches.append(type(batches[0]).from_pylist([*bad, *batches[0].to_pylist()], schema=batches[0].schema))
    version = build(tmp_path, [CASES / "subscriptions.jsonl"], IndexOptions(settings=SETTINGS), Spread(name, 3))
    assert answers(version, batches)[1] == ["publication urn:bad"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_pair_that_stage_1_cannot_decide_is_routed(name: str, tmp_path: Path) -> None:
    """A root takes more steps than it may, and what is below it matches all the same. The reference counts steps for
    each pair, so it is the matcher here."""
    options = IndexOptions(settings=Settings(max_steps=60), matcher="reference")
    published = list(read(str(CASES / "publications.nq")))
    many = "".join(f'<urn:s{n}> <urn:p> "x{n}" <urn:many> .\n' for n in range(200))
    (tmp_path / "many.nq").write_text(many + '<urn:s> <urn:p> "a" <urn:many> .\n')
    published += read(str(tmp_path / "many.nq"))
    engine = options.engine()
    engine.load_subscriptions(CASES / "subscriptions.jsonl")
    version = build(tmp_path / "index", [CASES / "subscriptions.jsonl"], options, Spread(name, 2))
    refused = sorted(f"{refusal.kind} {refusal.subject}" for refusal in engine.match(published).refusals)
    assert refused == ["pair urn:many any p"]
    matches, said, _ = answers(version, rows_of(published))
    assert said == refused
    assert matches == wanted(engine, published)
    assert ("urn:many", "p is a") in [row[:2] for row in matches]


KINDS = {
    "boats": "ASK { ?s a <urn:Boat> }",
    "boats with a name": "ASK { ?s a <urn:Boat> ; <urn:name> ?name }",
    "ferries": "ASK { ?s a <urn:Ferry> }",
    "cars": "ASK { ?s a <urn:Car> }",
    "cars that are gone": "ASK { ?s a <urn:Car> }",
}


def of_kinds(folder: Path, *names: str) -> Path:
    file = folder / f"{len(names)} {names[0]}.jsonl"
    file.write_text("".join(json.dumps({"id": n, "query": KINDS[n], "language": "sparql"}) + "\n" for n in names))
    return file


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_another_taxonomy_is_a_new_version(name: str, tmp_path: Path) -> None:
    """The same subscriptions, with what came and went, answer as if they had been compiled with it; the version before
    stays what it was. What is below what on the nodes may be another thing now."""
    publications = [
        Publication(f"urn:{kind}", (Triple(IRI("urn:s"), RDF_TYPE, IRI(f"urn:{kind}")), named))
        for kind in ("Boat", "Ferry", "Car")
        for named in (Triple(IRI("urn:s"), IRI("urn:name"), Literal(kind)),)
    ]
    boats, cars = (Taxonomy.build([("urn:Ferry", above)]) for above in ("urn:Boat", "urn:Car"))
    index, batches, ignored = tmp_path / "index", rows_of(publications), list[Refusal]()
    files = [of_kinds(tmp_path, "boats", "ferries", "cars"), of_kinds(tmp_path, "cars that are gone")]
    first = build(index, files, IndexOptions(boats, "rdfs"), Spread(name, 2))
    changes.subscribe(index, [of_kinds(tmp_path, "boats with a name")], on_refusal=ignored.append)
    before = changes.unsubscribe(index, ["cars that are gone"], on_refusal=ignored.append).version
    after = change_taxonomy(index, cars)
    held = ["boats", "ferries", "cars", "boats with a name"]
    found = []
    for version, taxonomy in ((before, boats), (after, cars)):
        engine = Engine(taxonomy=taxonomy, entailment="rdfs", matcher="reference")
        engine.load_subscriptions(of_kinds(tmp_path, *held))
        found.append(answers(version, batches)[0])
        assert found[-1] == wanted(engine, publications)
    pairs = [{row[:2] for row in rows} for rows in found]
    assert ("urn:Ferry", "boats") in pairs[0] - pairs[1]
    assert ("urn:Ferry", "cars") in pairs[1] - pairs[0]
    assert (after.name, after.content.subscriptions, after.content.partitioner) == ("v4", 4, name)
    more = changes.subscribe(index, files[1:], on_refusal=ignored.append).version
    assert {row[:2] for row in answers(more, batches)[0]} - pairs[1] == {
        ("urn:Car", "cars that are gone"),
        ("urn:Ferry", "cars that are gone"),
    }
    notes, warnings = list[str](), list[str]()
    last = build(index, files, None, Spread(name, 2), on_note=notes.append, on_warning=lambda *w: warnings.append(w[0]))
    assert notes == [f"the version before {last.name} had a taxonomy, and none was given for this one"]
    assert warnings == ["boats with a name"], "what came since the files were read is told of, across taxonomies"
    assert not ignored
    assert first.content.built == after.content.built == "v1"


@pytest.mark.slow
def test_what_is_contained_joins_its_tree(tmp_path: Path) -> None:
    """On storage as in a process: a newcomer that a root contains is on a node, and is matched there; where its root
    goes, and when all is written anew, it is matched still. Two that contain each other leave one root."""
    case = tomllib.loads((CASES / "joining.toml").read_text())
    (tmp_path / "publications.nq").write_text(case["publications"])
    published = list(read(str(tmp_path / "publications.nq")))
    options = IndexOptions(Taxonomy.build(case["taxonomy"]))
    engine, index = options.engine(), tmp_path / "index"

    def file_of(*wanted: dict[str, str]) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        rows = ({"language": "sparql"} | {k: v for k, v in one.items() if k != "below"} for one in wanted)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        engine.load_subscriptions(path)
        return path

    def subscribe(*wanted: dict[str, str]) -> Version:
        return checked(changes.subscribe(index, [file_of(*wanted)], on_refusal=raise_refusal).version)

    def unsubscribe(*ids: str) -> Version:
        for id in ids:
            engine.unsubscribe(id)
        return checked(changes.unsubscribe(index, ids, on_refusal=raise_refusal).version)

    def checked(version: Version) -> Version:
        assert answers(version, rows_of(published))[0] == wanted(engine, published)
        assert version.content.subscriptions == len(engine)
        return version

    version = checked(build(index, [file_of(*case["index"])], options, Spread("containment", 2)))
    for newcomer in case["newcomer"]:
        version = subscribe(newcomer)
        part = version.content.more.part_of(newcomer["id"])
        assert (part != SERVER) == bool(newcomer["below"]), newcomer["id"]
        if newcomer["below"]:
            assert part in [f"node-{node}" for node in version.plan.routes[newcomer["below"]]], newcomer["id"]
    in_a_process = ContainmentPartitioner(2, World(options.taxonomy, options.operators, options.settings))
    in_a_process.subscribe(engine.subscriptions)
    there = len(opened(index, version.name).server())
    assert there == in_a_process.placement.server_size + 1, "where a newcomer contains a root, both stay roots"
    version = subscribe(
        {"id": "one", "query": "ASK { ?s <urn:t> ?o }"},
        {"id": "the same", "query": "ASK { ?x <urn:t> ?y }"},
        {"id": "less", "query": "ASK { ?x <urn:t> 1 }"},
    )
    assert [version.content.more.part_of(id) for id in ("one", "the same")].count(SERVER) == 1
    assert version.content.more.part_of("less") != SERVER
    unsubscribe("any p", "of two subjects, a new root", "a narrower bound")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "CHANGES", 0)
        version = subscribe({"id": "last", "query": 'ASK { ?s <urn:p> "a" ; <urn:x> ?y }'})
    assert (version.content.delta, version.content.more) == ("", Plan())
    unsubscribe("last", "birds", "below what came before")
