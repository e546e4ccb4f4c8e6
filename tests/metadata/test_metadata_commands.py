"""The commands of providers and repositories over files: what they print, resume and refuse, with their exit codes."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from databases import ON_SPARK
from metadata.metadata_serving import TOKEN, provider_at
from triplewire.cli import run
from triplewire.metadata.backbone import Writing
from triplewire.metadata.messages import Put
from triplewire.metadata.provider import Provider

TERMS = "http://terms.example/"
RULE = f"PREFIX : <{TERMS}> search Server s register s where s.memory > 64"
EVENTS = [
    {"seq": 1, "op": "add", "path": "one.ttl", "content": f"<#s> a <{TERMS}Server> ; <{TERMS}memory> 128 ."},
    {"seq": 2, "op": "add", "path": "two.ttl", "content": f"<#s> a <{TERMS}Server> ; <{TERMS}memory> 32 ."},
    {"seq": 3, "op": "update", "path": "two.ttl", "content": f"<#s> a <{TERMS}Server> ; <{TERMS}memory> 65 ."},
    {"seq": 4, "op": "delete", "path": "one.ttl"},
]

Called = Callable[..., tuple[int, list[dict[str, object]], str]]


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    """Runs a command in an empty folder; returns its exit code, the lines of JSON, and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TRIPLEWIRE_TOKEN", TOKEN)

    def call(*arguments: str) -> tuple[int, list[dict[str, object]], str]:
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines() if line.startswith("{")], out + err

    return call


def written(name: str, *rows: object) -> str:
    """A file of JSON Lines in the current folder."""
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


@pytest.mark.parametrize("new_database", ["sqlite", ON_SPARK], indirect=True)
def test_events_are_applied_once_and_in_order(called: Called, database_url: str) -> None:
    store = ("--store", database_url)
    assert called("metadata", "init", *store)[0] == 0
    rules = written("rules.jsonl", {"id": "big", "language": "mdv", "query": RULE})
    assert called("metadata", "subscribe", *store, "--repository", "north", rules)[1] == [
        {"rule": "big", "resources": []}
    ]
    assert called("metadata", "apply", *store, written("events.jsonl", *EVENTS[:2]))[0] == 0
    told = called("metadata", "results", *store)[1]
    assert told == [{"repository": "north", "rule": "big", "resources": ["file:///one.ttl#s"]}]
    code, _, said = called("metadata", "apply", *store, written("events.jsonl", *EVENTS), "--batch", "1")
    assert (code, "2 events behind 2" in said) == (0, True)
    code, _, said = called("metadata", "delete", *store, "none.ttl", "none.ttl")
    assert (code, "file:///none.ttl: there is no such document" in said, "0 documents deleted" in said) == (
        0,
        True,
        True,
    )
    assert called("metadata", "results", *store)[1][0]["resources"] == ["file:///two.ttl#s"]
    assert called("metadata", "unsubscribe", *store, "--repository", "north", "big")[0] == 0
    assert called("metadata", "results", *store)[1] == []
    assert called("metadata", "unsubscribe", *store, "--repository", "north", "big")[0] == 2


ODD_EVENTS: list[tuple[Any, str]] = [
    ({**EVENTS[0], "seq": math.inf}, "seq is inf, and no number from 1"),
    ({**EVENTS[0], "seq": 1.7}, "seq is 1.7, and no number from 1"),
    ({**EVENTS[0], "seq": 0}, "seq is 0, and no number from 1"),
    ({**EVENTS[0], "content": None}, "content is None, and no text"),
    ({**EVENTS[0], "path": None}, "path is None, and no text"),
    ([EVENTS[0]], "list indices must be integers"),
]


def test_a_list_of_events_that_is_cut_off_is_applied_up_to_there(called: Called) -> None:
    lines = b"".join(json.dumps({**EVENTS[0], "seq": seq}).encode() + b"\n" for seq in range(1, 4_000))
    Path("events.jsonl.gz").write_bytes(gzip.compress(lines)[:-64])
    store = ("--store", "sqlite:///provider.db")
    code, _, said = called("metadata", "apply", *store, "events.jsonl.gz", "--batch", "100")
    assert (code, "events.jsonl.gz: damaged gzip: " in said) == (74, True)
    Path("events.jsonl.gz").write_bytes(gzip.compress(lines))
    code, _, said = called("metadata", "apply", *store, "events.jsonl.gz")
    assert (code, re.search(r"events behind [\d,]+00", said) is not None) == (0, True)


def test_what_is_wrong_is_refused_with_its_place_and_the_rest_goes_on(called: Called) -> None:
    store = ("--store", "sqlite:///provider.db")
    rows = [{"seq": 1, "op": "put", "path": "a.ttl"}, {**EVENTS[0], "seq": 2}, {**EVENTS[1], "seq": 1}, {"op": "add"}]
    rows.append({**EVENTS[0], "seq": 3, "path": "http://an example/"})
    code, _, said = called("metadata", "apply", *store, written("events.jsonl", *rows))
    assert code == 1
    assert "events.jsonl (record 1): it is no event: there is no op 'put'" in said
    assert "events.jsonl (record 3): it is no event: seq 1 comes behind 2" in said
    assert "events.jsonl (record 4): it is no event: 'seq' is missing" in said
    assert "events.jsonl (record 5): it is no event: " in said
    assert "1 event" in said
    code, _, said = called("metadata", "apply", *store, written("odd.jsonl", *(row for row, _ in ODD_EVENTS)))
    assert (code, "0 events" in said) == (1, True)
    for record, (_, reason) in enumerate(ODD_EVENTS, 1):
        assert f"odd.jsonl (record {record}): it is no event: {reason}" in said
    Path("bad.ttl").write_text("<#s> a")
    code, _, said = called("metadata", "register", *store, "bad.ttl", "events.jsonl")
    assert (code, "refused publication file:///bad.ttl" in said) == (1, True)
    wrong = written("rules.jsonl", {"id": "wrong", "language": "mdv", "query": "search A a\nregister b"},
                    {"id": "odd", "language": "sparql", "query": "ASK {}"})  # fmt: skip
    code, _, said = called("metadata", "subscribe", *store, "--repository", "north", wrong)
    assert code == 1
    assert "rules.jsonl (record 1), query 2:10" in said
    assert "it is in sparql" in said
    assert called("metadata", "subscribe", *store, "--repository", "", wrong)[0] == 2
    assert called("metadata", "results", "--store", "mysql://x")[0] == 2
    assert called("metadata", "results")[0] == 2
    code, _, said = called("metadata", "serve", "--store", "spark:registry")
    assert (code, "spark:registry is no store: sqlite:///FILE or postgresql://..." in said) == (2, True)
    code, _, said = called("metadata", "serve", *store, "--peer", "nonsense")
    assert (code, "Invalid value for --peer: 'nonsense' is no address of a provider" in said) == (2, True)
    assert called("metadata", "results", "--provider", "http://127.0.0.1:9")[0] == 69


@pytest.mark.parametrize(
    "command",
    [
        ("metadata", "results"),
        ("metadata", "delete", "one.ttl"),
        ("metadata", "browse"),
        ("metadata", "unsubscribe", "--repository", "north", "big"),
        ("repository", "results"),
        ("repository", "query", "search Server s register s"),
        ("repository", "move", "--to", "http://127.0.0.1:9"),
    ],
    ids=" ".join,
)
def test_a_store_that_is_not_there_is_not_made_by_who_asks_it(called: Called, command: tuple[str, ...]) -> None:
    """The file is absent; then there is one of the other kind, a provider in place of a repository or the other way."""
    code, _, said = called(*command, "--store", "sqlite:///mistyped.db")
    assert (code, "sqlite:///mistyped.db: there is no such store; give the store of" in said) == (74, True)
    assert not Path("mistyped.db").exists()
    Path("rows.ttl").write_text(f"<#s> <{TERMS}memory> 3 .")
    other = ("repository", "register", "--local") if command[0] == "metadata" else ("metadata", "register")
    assert called(*other, "--store", "sqlite:///other.db", "rows.ttl")[0] == 0
    code, _, said = called(*command, "--store", "sqlite:///other.db")
    assert (code, "sqlite:///other.db: it holds another store, or none; give the store of" in said) == (74, True)


def test_a_base_is_an_iri_and_stays_once_there_are_documents(called: Called) -> None:
    store = ("--store", "sqlite:///provider.db")
    assert called("metadata", "init", *store, "--base", "nonsense")[0] == 2
    assert called("metadata", "init", *store)[0] == 0
    assert called("metadata", "apply", *store, written("events.jsonl", EVENTS[0]))[0] == 0
    code, _, said = called("metadata", "init", *store, "--base", "http://docs.example/")
    assert (code, "names of its documents are resolved against file:///; leave --base out" in said) == (74, True)
    assert called("metadata", "init", *store, "--base", "file:///")[0] == 0


def test_a_store_of_another_version_is_refused(called: Called, database_url: str) -> None:
    with Provider.open(database_url) as provider:
        provider.database.write(lambda c: c.exec_driver_sql("ALTER TABLE md_documents DROP COLUMN version"))
    code, _, said = called("metadata", "results", "--store", database_url)
    assert code == 74
    assert "another version of Triplewire has written it: table md_documents has no column version" in said


def test_picks_become_rules_that_are_shown_first(called: Called) -> None:
    store = ("--store", "sqlite:///provider.db")
    called("metadata", "apply", *store, written("events.jsonl", *EVENTS[:3]))
    assert f"{TERMS}Server   2" in called("metadata", "browse", *store)[2]
    assert "file:///two.ttl#s" in called("metadata", "browse", *store, f"{TERMS}Server")[2]
    pick = ("metadata", "browse", *store, "--repository", "north", "--yes", "--pick", f"{TERMS}Server")
    shown = called(*pick, "--condition", "c.memory > 100")[2]
    assert f"PREFIX : <{TERMS}>\nsearch <{TERMS}Server> c\nregister c\nwhere c.memory > 100\n" in shown
    assert called("metadata", "results", *store)[1][0]["resources"] == ["file:///one.ttl#s"]
    assert called("metadata", "browse", *store, "--repository", "north", "--pick", f"{TERMS}None")[0] == 2


def test_a_repository_follows_asks_and_moves(called: Called, new_database: Callable[[], str]) -> None:
    cache = ("--store", "sqlite:///north.db")
    with Provider.open(new_database()) as provider, provider_at(Writing(provider)) as address:
        rules = written("rules.jsonl", {"id": "big", "language": "mdv", "query": RULE})
        follow = ("repository", "follow", "--provider", address, *cache, "--name", "north", "--once")
        assert called(*follow, "--rules", rules)[0] == 0
        wrong = written("rules.jsonl", {"id": "big", "language": "mdv", "query": RULE.replace(">", "above")})
        code, _, said = called(*follow, "--rules", wrong)
        assert (code, "rules.jsonl (record 1), query 1:" in said) == (1, True)
        assert [rule.query for _, rule in provider.registry.rules("north")] == [RULE]  # the one before stays
        assert called("metadata", "apply", "--provider", address, written("events.jsonl", *EVENTS))[0] == 0
        assert called(*follow)[0] == 0
        assert called("repository", "results", *cache)[1] == [{"rule": "big", "resources": ["file:///two.ttl#s"]}]
        Path("mine.ttl").write_text(f"<file:///two.ttl#s> <{TERMS}price> 3 .")
        assert called("repository", "register", *cache, "mine.ttl")[0] == 2  # it does not say --local
        assert called("repository", "register", *cache, "--local", "mine.ttl")[0] == 0
        code, _, said = called("repository", "register", *cache, "--local", "--delete", "none.ttl")
        assert (code, "warning file:///none.ttl: there is no such document" in said) == (0, True)
        query = f"PREFIX : <{TERMS}> search big s register s where s.price < 4"
        (answer,) = called("repository", "query", *cache, query)[1]
        assert answer["resource"] == "file:///two.ttl#s"
        with Provider.open(new_database()) as second, provider_at(Writing(second)) as other:
            for number in range(provider.version):  # so that it is not behind
                second.apply([Put(f"urn:{number}", b"")])
            assert called("repository", "move", *cache, "--to", other)[0] == 0
            assert [rule.id for _, rule in second.registry.rules("north")] == ["big"]
            assert list(provider.registry.rules("north")) == []
        assert called("repository", "results", *cache)[1] == [{"rule": "big", "resources": []}]


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_a_store_that_cannot_be_made(called: Called, folder: str) -> None:
    code, _, said = called("metadata", "init", "--store", f"sqlite:///{folder}/new.db")
    assert code == 73
    assert f"{folder}/new.db: it cannot be written" in said
