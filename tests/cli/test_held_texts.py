"""A run whose texts are more than are held in memory writes them to a file that is mapped, and gives the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.runner import triplewire
from triplewire.cli.matches import held
from triplewire.cli.matches.held import HeldTexts
from triplewire.encode.strings import TextColumn

QUERIES = {
    "c": "CONSTRUCT { ?s <urn:q> ?o } { ?s <urn:p> ?o }",
    "s": "SELECT ?o { ?s <urn:p> ?o }",
    "t": "SELECT ?s ?o { ?s <urn:p> ?o }",
}
PUBLICATIONS = 40


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    for name, query in QUERIES.items():
        (tmp_path / f"{name}.rq").write_text(query)
    lines = [f'<urn:s{n}> <urn:p> "é {n} {m}" <urn:g{n}> .\n' for n in range(PUBLICATIONS) for m in range(n % 3 + 1)]
    (tmp_path / "p.nq").write_text("".join(lines))
    queries = [part for name in QUERIES for part in ("--subscriptions", str(tmp_path / f"{name}.rq"))]
    return ["match", *queries, "--publications", str(tmp_path / "p.nq")]


@pytest.mark.parametrize("most", [0, 500, 5_000])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_the_file_is_the_same(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, suffix: str
) -> None:
    monkeypatch.setattr("triplewire.engine.result._AT_ONCE", 5)
    files = [tmp_path / f"out{number}{suffix}" for number in range(2)]
    for file, held_bytes in zip(files, (held.MOST, most), strict=True):
        monkeypatch.setattr(held, "MOST", held_bytes)
        done = triplewire(*arguments, "--output", file)
        assert done.code == 0, done.err
    first, second = (file.read_bytes() for file in files)
    assert first == second
    if suffix == ".parquet":
        assert len(pq.read_table(files[0])) == len(QUERIES) * PUBLICATIONS
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("triplewire")) == []


def test_no_more_than_so_many_bytes_stay_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(held, "MOST", 100)
    texts = HeldTexts(tmp_path / "out.jsonl")
    for number in range(50):
        texts.add(TextColumn.of([b"%03d" % number * 10, b""]), {number: b"g%02d" % number} if number % 2 else {})
        in_memory = sum(len(column.text) for column in texts.bindings if column.text.base is None)
        in_memory += sum(len(graph) for graph in texts.graphs.values() if isinstance(graph, bytes))
        assert in_memory <= 100
    assert len(texts.bindings) == 50
    for number, column in enumerate(texts.bindings):
        assert column.text.tobytes() == b"%03d" % number * 10
        assert column.offset.tolist() == [0, 30, 30]
    assert {row: bytes(graph) for row, graph in texts.graphs.items()} == {n: b"g%02d" % n for n in range(1, 50, 2)}


def test_a_file_that_cannot_be_written_is_told(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full: no traceback, and no file that is half of what it should be."""
    monkeypatch.setattr(held, "MOST", 0)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open("/dev/full", "r+b"))  # noqa: SIM115  # as the real one
    done = triplewire(*arguments, "--output", tmp_path / "out.jsonl")
    assert done.code == 74
    said = f"No space left on device for the bindings of this run, which memory is not to hold: '{tmp_path}'"
    assert done.err == f"triplewire: [Errno 28] {said}\n"
    assert not (tmp_path / "out.jsonl").exists()
