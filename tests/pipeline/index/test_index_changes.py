"""An index answers as one engine does, however it is spread, and however often subscriptions come and go."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.index.stages import CASES, answers, row_of, rows_of
from triplewire.config import Settings
from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.errors import Refusal
from triplewire.model.publication import Publication
from triplewire.partition.plan import NAMES
from triplewire.pipeline import filter as on_workers
from triplewire.pipeline.filter import sources_of
from triplewire.pipeline.index import changes
from triplewire.pipeline.index.build import IndexOptions, Spread, build
from triplewire.pipeline.index.open_version import HELD, open_versions
from triplewire.pipeline.index.versions import load
from triplewire.read import read

SETTINGS = Settings(max_bindings=2)
STEPS = tomllib.loads((CASES / "changes.toml").read_text())["step"]


def wanted(engine: Engine, publications: list[Publication]) -> list[tuple[str, ...]]:
    batch = to_batch(publications)
    matches = engine.match_batch(batch, on_refusal=lambda refusal: None)
    sources = sources_of(batch, matches).to_pylist()
    return sorted(row_of({**row, "source": source}) for row, source in zip(matches.to_pylist(), sources, strict=True))


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
    for number, step in enumerate(STEPS):
        monkeypatch.setattr(changes, "CHANGES", 0 if step.get("full") else 512)
        said: list[Refusal] = []
        if "subscribe" in step:
            more = CASES / step["subscribe"]
            version = changes.subscribe(tmp_path, [more], on_refusal=said.append).version
            engine.load_subscriptions(more, on_refusal=lambda refusal: None)
        else:
            version = changes.unsubscribe(tmp_path, step["unsubscribe"], on_refusal=said.append).version
            for id_ in step["unsubscribe"]:
                engine.unsubscribe(id_)
        assert sorted(refusal.subject for refusal in said) == step["refused"], step["name"]
        assert all("record" in refusal.where for refusal in said if "subscribe" in step), step["name"]
        assert version.name == f"v{number + 2}"
        assert version.content.subscriptions == len(engine), step["name"]
        matches = answers(version, batches)[0]
        assert matches == wanted(engine, published), step["name"]
        assert {row[1] for row in matches} >= set(step.get("matched", ())), step["name"]
        assert (version.content.delta, version.content.gone) == ("", ()) or not step.get("full")
    assert open_versions() == HELD, "old versions are let go"
    assert answers(load(tmp_path, "v3"), batches)[0] != answers(version, batches)[0], "an old version stays what it was"


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
