"""`match --same`: a run tells a match once, in each form of its output, and `Match.told_as` says the same."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from runner import triplewire

from triplewire import Engine, read
from triplewire.errors import ArgumentError

FILE = Path(__file__).parent.parent / "cases/told/same.toml"
CASES = tomllib.loads(FILE.read_text(encoding="utf-8"))["case"]


@pytest.fixture
def folder(case: dict[str, Any], tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, text in case["documents"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _wanted(case: dict[str, Any], rule: str, folder: Path) -> list[str]:
    return [id.replace("FOLDER", f"file://{folder}") for id in case["told"][rule]]


@pytest.mark.parametrize("rule", ["all", "item", "id", "bindings"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_rows(case: dict[str, Any], rule: str, folder: Path, tmp_path: Path) -> None:
    chosen = [] if rule == "all" else ["--same", rule]
    wanted = _wanted(case, rule, folder)
    command = ["match", case["query"], folder, *chosen]
    assert [row["publication"] for row in triplewire(*command, "--format", "jsonl").rows] == wanted
    assert [row["publication"] for row in triplewire(*command, "--format", "jsonl", "--no-bindings").rows] == wanted
    for more in ([], ["--no-bindings"]):
        done = triplewire(*command, "--output", tmp_path / "out.parquet", *more)
        assert pq.read_table(tmp_path / "out.parquet")["publication"].to_pylist() == wanted
        assert f"{len(wanted)} match" in done.err
        assert ("told before" in done.err) is (len(wanted) < len(case["told"]["all"]))
    table = triplewire(*command, "--format", "table").out
    assert table.count(wanted[0].rpartition("/")[0]) == len(wanted)


@pytest.mark.parametrize("rule", ["item", "id", "bindings"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_told_as(case: dict[str, Any], rule: str, folder: Path) -> None:
    engine = Engine()
    engine.subscribe(case["query"], id="q")
    first = {match.told_as(rule): match.publication for match in reversed(list(engine.match(read(folder))))}
    assert sorted(first.values()) == sorted(_wanted(case, rule, folder))


def test_another_rule_is_refused() -> None:
    engine = Engine()
    engine.subscribe("ASK { ?s ?p ?o }", id="q")
    (match,) = engine.match(read(b"<urn:s> <urn:p> 1 ."))
    with pytest.raises(ArgumentError, match="item, id, bindings"):
        match.told_as("title")
    assert triplewire("match", "ASK { ?s ?p ?o }", "-", "--same", "title", stdin=b"").code == 2
