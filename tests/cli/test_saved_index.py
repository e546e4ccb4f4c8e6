"""`triplewire match --cache`: the same rows, warnings and refusals as without it, and nothing read twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.runner import Done, triplewire
from triplewire.cli import saved_index

PUBLICATION = '<urn:s> <urn:p1> "x" . <urn:s> <urn:q> <urn:o> .'


def _file(changed: int, name: str = "queries.jsonl") -> None:
    """Sixty subscriptions, of which one is refused and one has a warning; a few differ by `changed`."""
    rows = {f"q{n}": f"SELECT * WHERE {{ ?s <urn:p{n % 3}> ?o }}" for n in range(60)}
    rows |= {f"q{n}": f'SELECT * WHERE {{ ?s <urn:p1> "x" . ?s <urn:q> ?o{n} }}' for n in range(changed)}
    rows |= {"wrong": "SELECT * {", "odd": "SELECT * WHERE { ?s <http://purl.org/dc/elements/1.1/titel> ?o }"}
    lines = (json.dumps({"id": id, "language": "sparql", "query": query}) + "\n" for id, query in rows.items())
    Path(name).write_text("".join(lines), "utf-8")


def _match(*more: str, name: str = "queries.jsonl") -> Done:
    return triplewire("match", "--subscriptions", name, "--publications", "p.ttl", "--format", "jsonl", *more)


def _as_told(done: Done) -> tuple[int, str, list[str]]:
    told = [line for line in done.err.splitlines() if "changed" not in line]
    return done.code, done.out, sorted(told)


@pytest.mark.slow
def test_the_next_command_finds_the_index(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_index, "_LEAST", 1)
    cache = str(tmp_path_factory.mktemp("cache"))
    Path("p.ttl").write_text(PUBLICATION, "utf-8")
    for changed in (0, 0, 5):
        _file(changed)
        wanted, done = _match(), _match("--cache", cache)
        assert _as_told(done) == _as_told(wanted)
        assert ("0 new subscriptions, 5 changed, 0 gone" in done.err) == (changed > 0)
    for changed, told, name in (
        (7, "2 changed", "queries.jsonl"),  # of what was saved with five
        (7, "2 changed", "queries.jsonl"),  # met again, and saved
        (7, "", "queries.jsonl"),
        (8, "1 changed", "others.jsonl"),  # of the newest index of other files
    ):
        _file(changed, name)
        wanted, done = _match(name=name), _match("--cache", cache, name=name)
        assert _as_told(done) == _as_told(wanted)
        assert told in done.err
        assert ("changed" in done.err) == bool(told)


@pytest.mark.slow
def test_files_that_hold_nothing_are_refused_unless_they_may(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_index, "_LEAST", 1)
    cache = str(tmp_path_factory.mktemp("cache"))
    Path("p.ttl").write_text(PUBLICATION, "utf-8")
    _file(0)
    Path("empty.jsonl").touch()
    for more in (("--allow-empty",), (), ("--allow-empty",), ()):
        given = ("--subscriptions", "empty.jsonl", *more)
        wanted, done = _match(*given), _match("--cache", cache, *given)
        assert _as_told(done) == _as_told(wanted)
        assert ("the file is empty" in done.err) == (not more)


@pytest.mark.slow
def test_what_operators_look_into_is_looked_at_again(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_index, "_LEAST", 1)
    cache = str(tmp_path_factory.mktemp("cache"))
    geo = "http://www.w3.org/2003/01/geo/wgs84_pos#"
    Path("p.ttl").write_text(f"<urn:s> <{geo}lat> 1 ; <{geo}long> 1 .", "utf-8")
    Path("near.pred").write_text("inPlace(square)", "utf-8")
    corners = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]
    square = {"type": "Feature", "id": "square", "geometry": {"type": "Polygon", "coordinates": [corners]}}
    for places in ("", "places.json", "places.json"):
        monkeypatch.setenv("TRIPLEWIRE_PLACES", places)
        wanted, done = _match(name="near.pred"), _match("--cache", cache, name="near.pred")
        assert _as_told(done) == _as_told(wanted)
        assert (done.code, len(done.rows)) == ((0, 1) if places else (1, 0))
        Path("places.json").write_text(json.dumps({"type": "FeatureCollection", "features": [square]}), "utf-8")
