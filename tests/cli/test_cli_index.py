"""`pipeline list` and `pipeline subscribe --replace`: what an index holds, and a text in the place of another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runner import triplewire

ROWS = [
    {"id": "b", "language": "sparql", "query": "ASK { ?s <urn:p> ?o }", "prefixes": {}, "base": ""},
    {
        "id": "a",
        "language": "gql",
        "query": "SELECT * WHERE (?s, <urn:p>, 1)",
        "prefixes": {"x": "urn:"},
        "base": "urn:b",
    },
]
OTHER = {"id": "b", "language": "sparql", "query": "ASK { ?s <urn:q> ?o }", "prefixes": {}, "base": ""}
NEW = OTHER | {"id": "c"}


def _lines(*rows: dict[str, object]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    file = tmp_path / "queries.jsonl"
    file.write_bytes(_lines(*ROWS))
    assert triplewire("pipeline", "index", "--subscriptions", file, "--output", tmp_path / "live").code == 0
    return tmp_path / "live"


def test_list(index: Path) -> None:
    done = triplewire("pipeline", "list", "--index", index)
    assert (done.code, done.rows) == (0, [ROWS[1], ROWS[0]]), "by their ids, as rows that --subscriptions takes"
    table = triplewire("pipeline", "list", "--index", index, "--format", "table").out
    assert "ASK { ?s <urn:p> ?o }" in table
    assert triplewire("pipeline", "unsubscribe", "--index", index, "a", "b").code == 0
    assert triplewire("pipeline", "list", "--index", index).out == ""
    assert "no subscriptions" in triplewire("pipeline", "list", "--index", index, "--format", "table").out
    absent = triplewire("pipeline", "list", "--index", index.parent / "absent")
    assert (absent.code != 0, "there is no such directory" in absent.err) == (True, True)


@pytest.mark.parametrize("from_pipe", [False, True])
def test_replace(index: Path, tmp_path: Path, from_pipe: bool) -> None:
    wrong = ROWS[1] | {"query": "SELECT"}
    file = tmp_path / "other.jsonl"
    file.write_bytes(_lines(OTHER, NEW, wrong))
    given = "-" if from_pipe else file
    command = ["pipeline", "subscribe", "--index", index, given]
    taken = triplewire(*command, stdin=_lines(OTHER, NEW, wrong))
    assert (taken.code, taken.err.count("the id is taken")) == (1, 1)
    assert triplewire("pipeline", "unsubscribe", "--index", index, "c").code == 0
    done = triplewire(*command, "--replace", stdin=_lines(OTHER, NEW, wrong))
    assert done.code == 1
    assert f"{given}" in next(line for line in done.err.splitlines() if "refused subscription a" in line)
    assert "1 subscription added, 1 replaced, 1 refused; " in done.err
    assert triplewire("pipeline", "list", "--index", index).rows == [ROWS[1], OTHER, NEW]
    again = triplewire(*command, "--replace", stdin=_lines(OTHER, NEW, wrong))
    assert "0 subscriptions added, 0 replaced, 1 refused; " in again.err
    assert " v4 has 3 subscriptions " in again.err
