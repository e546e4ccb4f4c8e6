"""The cache of outcomes on disk. Operators count their calls.

Outcomes are used again by content and version, bounded, shared by processes, never wrong where the cache is damaged.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amounts import usually
from cli.runner import triplewire
from operators.scenes import Counting, publication
from triplewire import Engine, Publication, Settings
from triplewire.errors import ArgumentError
from triplewire.extend import Argument, Parameter
from triplewire.model.terms import IRI, Literal, Triple, made_blank, made_iri
from triplewire.operators.calling import cache as caches
from triplewire.operators.calling.cache import OutcomeCache

MATCHERS = ["reference", "trie"]


class Versioned:
    """Is the argument even? It counts its calls, states a version, and may fail or bind."""

    parameters = (Parameter("x"),)

    def __init__(self, counting: Counting, name: str = "even", version: str = "1", fails: bool = False) -> None:
        self.counting, self.name, self.version, self.fails = counting, name, version, fails

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Any:
        self.counting.asked[publication.id, self.name, arguments] += 1
        if self.fails:
            raise RuntimeError("no answer")
        (argument,) = arguments
        if argument is None:
            return [(IRI("urn:a"),), (Literal.tagged("b", "en"),), (Literal("5"),)]
        return int(getattr(argument, "lexical", "0")) % 2 == 0


def engine(folder: Path | OutcomeCache | None, counting: Counting, matcher: str = "trie", **given: Any) -> Engine:
    operators = given.pop("operators", (Versioned(counting),))
    made = Engine(matcher=matcher, operators={o.name: o for o in operators}, operator_cache=folder, **given)
    made.settle()
    return made


def subscribed(made: Engine, count: int = 6) -> Engine:
    for number in range(count):
        made.subscribe(f"even({number})", "predicates", id=f"s{number}")
    made.subscribe("ASK { ?s ?p ?x FILTER(op:even('4') || op:even('5')) }", id="either")
    return made


def ids(result: Any) -> list[tuple[str, str]]:
    return [(match.publication, match.subscription) for match in result]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_outcomes_are_used_again_for_the_same_content(matcher: str, tmp_path: Path) -> None:
    counting = Counting()
    first = subscribed(engine(tmp_path, counting, matcher)).match(publication("urn:p", "a p 1", "a q 2"))
    assert len(counting.asked) == 6
    assert first.stats.operators.reused <= 2
    counting.asked.clear()
    again = subscribed(engine(tmp_path, counting, matcher)).match(publication("urn:other", "a q 2", "a p 1"))
    assert not counting.asked, "another id and another order of triples are the same content"
    assert [subscription for _, subscription in ids(again)] == [subscription for _, subscription in ids(first)]
    assert again.stats.operators.calls == 0
    assert again.stats.operators.reused >= 6
    subscribed(engine(tmp_path, counting, matcher)).match(publication("urn:p", "a p 2"))
    assert len(counting.asked) == 6, "other content"


@pytest.mark.parametrize(
    "other",
    [{"version": "2"}, {"version": ""}, {"name": "odd"}],
    ids=["another version", "no version", "another operator"],
)
def test_what_is_no_answer_to_this_call(other: dict[str, str], tmp_path: Path) -> None:
    counting = Counting()
    engine_ = engine(tmp_path, counting)
    engine_.subscribe("even(1)", "predicates")
    engine_.match(publication("urn:p", "a p 1"))
    counting.asked.clear()
    for _ in range(2):
        changed = engine(tmp_path, counting, operators=(Versioned(counting, **other),))
        changed.subscribe(f"{other.get('name', 'even')}(1)", "predicates")
        changed.match(publication("urn:p", "a p 1"))
    assert counting.asked.total() == (2 if other.get("version") == "" else 1)


def test_failures_are_not_kept(tmp_path: Path) -> None:
    counting = Counting()
    for _ in range(2):
        failing = engine(tmp_path, counting, operators=(Versioned(counting, fails=True),))
        failing.subscribe("even(1)", "predicates")
        assert len(failing.match(publication("urn:p", "a p 1")).refusals) == 1
    assert counting.asked.total() == 2


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    counting = Counting()
    bindings = []
    for _ in range(2):
        binding = engine(tmp_path, counting)
        binding.subscribe("even(?x)", "predicates")
        (match,) = binding.match(publication("urn:p", "a p 1"))
        bindings.append(match.bindings)
    assert bindings[0] == bindings[1]
    assert len(bindings[0]) == 3
    assert counting.asked.total() == 1


def test_blank_nodes_and_attachments(tmp_path: Path) -> None:
    """A blank node has another name in the next publication; an attachment is content as well."""
    counting = Counting()
    for name in ("x", "y"):
        blank = engine(tmp_path, counting)
        blank.subscribe("SELECT * { ?s ?p ?o CALL even(?o) }")
        blank.match(Publication("urn:p", (Triple(made_iri("urn:s"), made_iri("urn:p"), made_blank(name)),)))
    assert counting.asked.total() == 2
    counting.asked.clear()
    for data in (b"1", b"2", b"1"):
        attached = engine(tmp_path, counting)
        attached.subscribe("even(1)", "predicates")
        attached.match(Publication("urn:p", (), attachments={"image": data}))
    assert counting.asked.total() == 2


def damages() -> Iterator[tuple[str, Any]]:
    yield "no database", lambda data: b"nonsense" * 1_000
    yield "cut", lambda data: data[: len(data) // 2]
    yield "empty", lambda data: b""
    yield "zeros", lambda data: data[:4096] + bytes(len(data) - 4096)
    yield "an outcome", lambda data: data.replace(b"true", b"null").replace(b"false", b"null!")
    yield "a lie", lambda data: data.replace(b"false", b" true")
    for seed in range(usually(3, 8)):
        yield f"bytes {seed}", lambda data, seed=seed: scattered(data, seed)


def scattered(data: bytes, seed: int) -> bytes:
    chance, out = random.Random(seed), bytearray(data)
    for _ in range(200):
        out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


@pytest.mark.parametrize("damage", [pytest.param(change, id=name) for name, change in damages()])
def test_a_damaged_file_is_begun_anew(damage: Any, tmp_path: Path) -> None:
    counting = Counting()
    document = publication("urn:p", "a p 1")
    whole = OutcomeCache(tmp_path)
    expected = ids(subscribed(engine(whole, counting), 300).match(document))
    whole.close()
    (file,) = tmp_path.glob("*.sqlite")
    file.write_bytes(damage(file.read_bytes()))
    for _ in range(2):
        notes: list[str] = []
        cache = OutcomeCache(tmp_path, on_note=notes.append)
        assert ids(subscribed(engine(cache, counting), 300).match(document)) == expected
        assert all("begun anew" in note for note in notes), notes
        cache.close()
    counting.asked.clear()
    assert ids(subscribed(engine(tmp_path, counting), 300).match(document)) == expected
    assert not counting.asked, "it works again"


def test_it_is_bounded_and_what_was_not_used_goes(tmp_path: Path) -> None:
    cache = OutcomeCache(tmp_path, 300_000)
    contents = [number.to_bytes(32, "big") for number in range(60)]
    for content in contents:
        cache.read(contents[0])
        for call in range(100):
            cache.add(content, b"operator", f"call {call} {'x' * 60}", "true")
        cache.flush()
        (file,) = tmp_path.glob("*.sqlite")
        assert file.stat().st_size <= 400_000
    assert len(cache.read(contents[0])) == 100, "it was used all the time"
    assert not cache.read(contents[1])
    assert len(cache.read(contents[-1])) == 100
    cache.close()


WORK = """
import sys
from triplewire.operators.calling import cache as caches
from triplewire.operators.calling.cache import OutcomeCache
cache = OutcomeCache(sys.argv[1])
for number in range(150):
    content = (number % 30).to_bytes(32, "big")
    for call in range(20):
        cache.add(content, b"o", f"{call}", str((number % 30) * 100 + call))
    for _, call, outcome in cache.read(content):
        assert outcome == str((number % 30) * 100 + int(call)), outcome
cache.close()
"""


@pytest.mark.slow
def test_several_processes_share_it(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", WORK, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(process.communicate(timeout=300)[1], process.returncode) for process in running] == [("", 0)] * 3
    cache = OutcomeCache(tmp_path)
    assert [len(cache.read(number.to_bytes(32, "big"))) for number in range(30)] == [20] * 30
    cache.close()


def test_where_another_process_is_at_it_for_long_it_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "_BUSY", 0.1)
    OutcomeCache(tmp_path).read(b"")
    (file,) = tmp_path.glob("*.sqlite")
    notes: list[str] = []
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    counting = Counting()
    result = subscribed(engine(OutcomeCache(tmp_path, on_note=notes.append), counting)).match(
        [publication(f"urn:{n}", f"a p {n}") for n in range(30)]
    )
    other.close()
    assert len(ids(result)) == 30 * 4
    assert len(notes) == 1
    assert "busy" in notes[0]


def test_where_it_cannot_be_written_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    counting = Counting()
    with pytest.warns(RuntimeWarning, match="no cache of operators"):
        result = subscribed(engine(tmp_path / "file", counting)).match(publication("urn:p", "a p 1"))
    assert len(ids(result)) == 4
    with pytest.raises(ArgumentError, match="operator_cache"):
        Engine(operator_cache=3)  # type: ignore[arg-type]  # what the test is about


def test_a_damaged_file_where_no_other_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    (tmp_path / "outcomes-v1-1.sqlite").write_bytes(b"damage" * 1_000)
    monkeypatch.setattr(Path, "touch", refused)
    notes: list[str] = []
    cache = OutcomeCache(tmp_path, on_note=notes.append)
    assert cache.read(bytes(32)) == []
    assert [note.partition(": ")[2] for note in notes] == [
        "there is no cache of operators, as it cannot be used: [Errno 13] Permission denied: "
        f"'{tmp_path / 'outcomes-v1-2.sqlite'}'"
    ]


def test_the_size_is_a_setting(tmp_path: Path) -> None:
    made = engine(tmp_path, Counting(), settings=Settings(operator_cache_bytes=123))
    assert made._compiler.world.recall._cache.most_bytes == 123  # type: ignore[union-attr]


def test_explained_as_reused(tmp_path: Path) -> None:
    counting = Counting()
    document = publication("urn:p", "a p 1")
    subscribed(engine(tmp_path, counting)).match(document)
    counting.asked.clear()
    (call,) = subscribed(engine(tmp_path, counting)).explain("s4", document).calls.made
    assert (call.call, call.reused) == ('even("4")', "the cache of operators")
    assert not counting.asked


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os\nfrom triplewire.extend import Parameter\n"
        "class Even:\n    name, parameters, version = 'even', (Parameter('x'),), '1'\n"
        "    def evaluate(self, publication, arguments):\n"
        f"        with open({str(tmp_path / 'log')!r}, 'a') as log: log.write('.')\n"
        "        return True\n"
        "operators = (Even(),)\n"
    )
    (tmp_path / "p.nq").write_bytes(b'<urn:s> <urn:p> "1" <urn:g> .\n')
    given = ["--query", "even(1)", "--language", "predicates", "--publications", str(tmp_path / "p.nq")]
    given += ["--operators", str(tmp_path / "mine.py"), "--operator-cache", str(tmp_path / "cache")]
    for _ in range(2):
        done = triplewire("match", *given, "--format", "jsonl")
        assert (done.code, len(done.rows)) == (0, 1)
    assert (tmp_path / "log").read_text() == "."
