"""N-Quads, N-Triples and JSON Lines through a pipe.

Publications come while it is open, and, but for pauses, do not depend on how the bytes come.
"""

from __future__ import annotations

import io
import os
import random
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triplewire import Settings, read
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.read import pipes

FOLDER = Path(__file__).parents[1] / "cases/pipes"
CASES = tomllib.loads((FOLDER / "n_quads.toml").read_text("utf-8"))["case"]
QUIET = tomllib.loads((FOLDER / "quiet.toml").read_text("utf-8"))["case"]


@pytest.fixture(autouse=True)
def without_pauses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause of a busy machine counts, but in tests of pauses."""
    if "pauses" not in request.node.name:
        monkeypatch.setattr(pipes, "QUIET", 60_000)


class Pipe:
    """A pipe that is read in a thread of its own: `publications` are those that came so far."""

    def __init__(self, **options: Any) -> None:
        self.publications: list[Publication] = []
        self.refusals: list[str] = []
        self._came = threading.Condition()
        reader, self._writer = os.pipe()
        self._thread = threading.Thread(target=self._read, args=(reader, options), daemon=True)
        self._thread.start()

    def _read(self, reader: int, options: dict[str, Any]) -> None:
        with open(reader, "rb") as stream:
            for publication in read(stream, on_refusal=lambda refusal: self.refusals.append(str(refusal)), **options):
                with self._came:
                    self.publications.append(publication)
                    self._came.notify()

    def write(self, data: bytes) -> None:
        """Write bytes."""
        while data:
            data = data[os.write(self._writer, data) :]

    def wait(self, count: int) -> list[str]:
        """Id and size of all publications, once so many are there."""
        with self._came:
            self._came.wait_for(lambda: len(self.publications) >= count, 300)
            return self.shown()

    def shown(self) -> list[str]:
        """Id and size of the publications that are there."""
        return [f"{publication.id} {len(publication.triples)}" for publication in self.publications]

    def close(self) -> list[str]:
        """End the pipe; all publications."""
        os.close(self._writer)
        self._thread.join()
        return self.shown()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_publications_come_while_the_pipe_is_open(case: dict[str, Any]) -> None:
    pipe, expected = Pipe(), []
    for text, now in zip(case["writes"], case["publications"], strict=False):
        pipe.write(text.encode())
        expected += now
        if now:
            assert pipe.wait(len(expected)) == expected
    assert sorted(pipe.close()) == sorted(expected + case["publications"][-1])
    refused = case.get("refused", [])
    assert len(pipe.refusals) == len(refused), pipe.refusals
    for said, begin in zip(pipe.refusals, refused, strict=False):
        assert said.startswith(begin), said


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_how_the_bytes_come_changes_nothing(case: dict[str, Any]) -> None:
    chance, data = random.Random(case["name"]), "".join(case["writes"]).encode()
    expected = [one for now in case["publications"] for one in now]
    for size in (1, 7, 30, 1 << 16):
        pipe = Pipe()
        while data:
            end = chance.randint(1, size)
            pipe.write(data[:end])
            data = data[end:]
        data = "".join(case["writes"]).encode()
        assert sorted(pipe.close()) == sorted(expected)


@pytest.mark.parametrize("case", QUIET, ids=[case["name"] for case in QUIET])
def test_what_came_is_handed_on_where_the_pipe_pauses(case: dict[str, Any]) -> None:
    pipe, expected = Pipe(), []
    for text, now in zip(case["writes"], case["publications"], strict=False):
        pipe.write(text.encode())
        expected += now
        assert pipe.wait(len(expected)) == expected
        time.sleep(0.4)
        assert pipe.shown() == expected, "nothing more has come"
    assert sorted(pipe.close()) == sorted(expected + case["publications"][-1])
    assert len(pipe.refusals) == len(case.get("refused", [])), pipe.refusals
    for said, begin in zip(pipe.refusals, case.get("refused", []), strict=True):
        assert said.startswith(begin), said


def test_json_lines_in_a_file_are_those_of_a_pipe_that_does_not_pause(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"@id": "urn:a", "urn:p": 1}\n\n{"urn:p": {"@id": ""}}\nwrong\n[{"@id": "urn:s", "urn:p": 2}]'
    (tmp_path / "a.jsonl").write_bytes(data)
    refused: list[str] = []
    wanted = list(read(tmp_path / "a.jsonl", on_refusal=lambda refusal: refused.append(str(refusal))))
    pipe, name = Pipe(), wanted[1].source
    pipe.write(data)
    pipe.close()
    assert [one.id for one in wanted] == ["urn:a", f"file://{name}#3", f"file://{name}#5"]
    assert [one.id for one in pipe.publications] == ["urn:a", "urn:triplewire:input#3", "urn:triplewire:input#5"]
    assert [len(one.triples) for one in pipe.publications] == [len(one.triples) for one in wanted] == [1, 1, 1]
    assert len(refused) == len(pipe.refusals) == 1
    assert refused[0].startswith(f"refused publication {name}:4"), refused


def lines(count: int) -> Iterator[str]:
    """Graphs of one to five lines, with literals and IRIs of all kinds."""
    chance = random.Random(5)
    objects = ["<urn:o>", "_:b.c", '"a \\" . "', '"é"@fr', '"5"^^<urn:int>']
    for graph in range(count):
        for number in range(chance.randint(1, 5)):
            yield f"<urn:s{number}> <urn:p> {chance.choice(objects)} <urn:g{graph}> .\n"


def test_graphs_in_runs_are_those_of_the_file() -> None:
    """So many that they come in many pieces; N-Quads whose graphs lie together say the same in a file and a pipe."""
    data = "".join(lines(20_000)).encode()
    wanted = list(read(io.BytesIO(data)))
    pipe = Pipe()
    pipe.write(data)
    pipe.close()
    assert len(wanted) == 20_000
    assert [(one.id, one.content_hash) for one in pipe.publications] == [(one.id, one.content_hash) for one in wanted]
    assert pipe.refusals == []


def test_graphs_that_alternate_are_those_of_the_file() -> None:
    chance = random.Random(7)
    pairs = [
        [f'<urn:s> <urn:p> "{n}" <urn:g{2 * k + n % 2}> .\n' for n in range(chance.randint(2, 9))] for k in range(999)
    ]
    data = "".join(line for pair in pairs for line in pair).encode()
    wanted, pipe = list(read(io.BytesIO(data))), Pipe()
    pipe.write(data)
    pipe.close()
    assert [(one.id, one.content_hash) for one in pipe.publications] == [(one.id, one.content_hash) for one in wanted]
    assert pipe.refusals == []


def test_what_is_held_has_a_limit() -> None:
    pipe = Pipe(settings=Settings(max_input_bytes=2_000))
    for number in range(40):
        lines = f"<urn:s> <urn:p> <urn:o> <urn:g> .\n<urn:s> <urn:p> <urn:{'o' * 200}> <urn:g{number}> .\n"
        pipe.write(lines.encode())
    assert pipe.close() == []
    assert len(pipe.refusals) == 1
    assert "have more than" in pipe.refusals[0]


def test_a_file_that_is_standard_input_is_a_file(tmp_path: Path) -> None:
    """There, the lines of a graph may be anywhere."""
    file = tmp_path / "a.nq"
    file.write_text("".join(f'<urn:s> <urn:p> "{n}" <urn:g{n % 2}> .\n' for n in range(6)))
    with file.open("rb") as stream:
        assert [(one.id, len(one.triples)) for one in read(stream)] == [("urn:g0", 3), ("urn:g1", 3)]


def test_subjects_are_of_the_whole_pipe() -> None:
    pipe = Pipe(split="subject")
    pipe.write(
        b"<urn:a> <urn:p> <urn:o> <urn:g> .\n<urn:b> <urn:p> <urn:o> <urn:h> .\n<urn:a> <urn:q> <urn:o> <urn:h> .\n"
    )
    assert sorted(pipe.close()) == ["urn:a 2", "urn:b 1"]


def test_a_graph_has_its_limit_the_pipe_has_none() -> None:
    pipe = Pipe(settings=Settings(max_input_bytes=2_000))
    for number in range(200):
        pipe.write(f"<urn:s> <urn:p> <urn:o> <urn:g{number}> .\n".encode())
        pipe.wait(number - 1)
    pipe.write(b"".join(b'<urn:s> <urn:p> "%d" <urn:long> .\n' % number for number in range(200)))
    assert len(pipe.close()) == 199
    assert len(pipe.refusals) == 1
    assert pipe.refusals[0].endswith(": it has more than 2,000 bytes; raise max_input_bytes")


def test_without_a_receiver_the_first_refusal_is_raised() -> None:
    reader, writer = os.pipe()
    os.write(
        writer, b"".join(b"<urn:s> <urn:p> <urn:o> <urn:%b> .\n" % graph for graph in (b"g", b"h", b"i")) + b"wrong\n"
    )
    os.close(writer)
    with open(reader, "rb") as stream:
        publications = read(stream)
        assert next(publications).id == "urn:g"
        with pytest.raises(ReadError, match="not N-Triples or N-Quads") as raised:
            next(publications)
    assert raised.value.line == 4
