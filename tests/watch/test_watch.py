"""A watch: feeds from a real server and files, told once; killed, locked, and asked what it does."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.runner import Done, triplewire
from sources.feed_server import Web, served
from triplewire.net.addresses import Connections
from triplewire.pipeline.output import Output
from triplewire.sources import Poller
from waiting import until

HERE = Path(__file__).parent
QUERY = "SELECT ?item { ?item a rss:item }"
TITLES = 'SELECT ?t { ?item rss:title ?t FILTER ftcontains(?t, "puffin") }'


@pytest.fixture
def web() -> Iterator[Web]:
    with served() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a subscription and a file of connections, which is the current one."""
    (tmp_path / "items.rq").write_text(QUERY)
    (tmp_path / "connect.toml").write_text('["http://127.0.0.1"]\nallow_private_addresses = true\nattempts = 2\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIPLEWIRE_TIER", "interpreted")
    return tmp_path


def watch(source: str, output: str = "out", *more: object) -> Done:
    given = ("--subscriptions", "items.rq", "--sources", source, "--output", output, "--connect", "connect.toml")
    return triplewire("watch", *given, "--once", *more)


def rows(name: str = "out/matches.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def told(name: str = "out/matches.jsonl") -> list[str]:
    return [row["publication"] for row in rows(name)]


def status(output: str = "out") -> dict[str, Any]:
    shown: dict[str, Any] = triplewire("watch", "--output", output, "--status", "--json").rows[0]
    return shown


def make_due(output: str = "out") -> None:
    """Let all feeds be due, as time would."""
    with closing(sqlite3.connect(f"{output}/_inbox/feeds.sqlite")) as connection, connection:
        connection.execute("UPDATE feeds SET due = 0")


def item(*names: str) -> bytes:
    inner = "".join(f"<item><guid isPermaLink='false'>urn:{name}</guid><title>{name}</title></item>" for name in names)
    return f"<rss version='2.0'><channel><title>t</title>{inner}</channel></rss>".encode()


def test_items_of_feeds_are_told_once(folder: Path, web: Web) -> None:
    web.pages |= {"/a": (200, {}, item("a")), "/b": (200, {}, item("b"))}
    Path("mine.feeds").write_text(f"# mine\n{web.root}/a\n{web.root}/b\n{web.root}/absent\nftp://no.example/\n")
    done = watch("mine.feeds")
    assert done.code == 1
    assert "2 matches in 2 publications" in done.err
    assert sorted(told()) == ["urn:a", "urn:b"]
    letters = rows("out/dead-letters.jsonl")
    assert sorted(letter["subject"] for letter in letters) == ["ftp://no.example/", f"{web.root}/absent"]
    web.paths()
    assert watch("mine.feeds").code == 1  # the wrong address is said again
    assert web.paths() == [], "none is due"
    web.pages["/a"] = 200, {}, item("c", "a")
    make_due()
    assert "1 match in 2 publications, 1 told before" in watch("mine.feeds").err
    assert sorted(told()) == ["urn:a", "urn:b", "urn:c"]
    assert len(rows("out/dead-letters.jsonl")) == 2, "what was refused is recorded once"
    shown = status()
    assert (shown["publications"], shown["matches"], shown["repeats"]) == (4, 3, 1)
    assert (shown["running"], shown["waiting"]) == (False, 0)
    states = {feed["address"].rpartition("/")[2]: feed for feed in shown["feeds"]}
    assert states["absent"]["state"] == "failed 2 times"
    assert states["absent"]["reason"] == "the feed's server answers 404"
    assert states["a"]["state"] == "ok"
    assert states["a"]["last"] < states["a"]["next"] < states["absent"]["next"]
    text = triplewire("watch", "--output", "out", "--status").out
    assert "feeds         3: 1 failed, 2 ok" in text
    assert "failed 2 times, asked 20" in text


def test_one_feed_into_a_database_with_reasons(folder: Path, web: Web) -> None:
    (folder / "items.rq").write_text(TITLES)
    web.pages["/a"] = 200, {}, item("First puffin chick", "Terns")
    assert watch(f"{web.root}/a", "sqlite:found.db", "--why").code == 0
    with closing(sqlite3.connect("found.db")) as connection:
        ((publication, why),) = connection.execute("SELECT publication, why FROM matches").fetchall()
        assert connection.execute("SELECT count(*) FROM dead_letters").fetchone() == (0,)
    assert "puffin" in publication
    assert json.loads(why)[-1] == "?t = \"First puffin chick\": 'puffin' is word 1"
    assert status("sqlite:found.db")["matches"] == 1
    shown = watch(f"{web.root}/a", "other", "--why", "--format", "text").out
    assert shown.splitlines()[-1].strip() == "because ?t = \"First puffin chick\": 'puffin' is word 1"


def test_files_are_read_as_they_come(folder: Path) -> None:
    source = folder / "in"
    source.mkdir()
    (source / "a.rss").write_bytes(item("a"))
    (source / "wrong.ttl").write_text("<a> <b>")
    (source / "many.jsonl").write_text('{"@id": "urn:j", "@type": "http://purl.org/rss/1.0/item"}\n{"urn:p": 1}\n')
    of_item = '{"@id": "urn:page", "@graph": {"@id": "urn:i", "@type": "http://purl.org/rss/1.0/item"}}'
    (source / "page.html").write_text(f'<html><script type="application/ld+json">{of_item}</script></html>')
    done = watch("in")
    assert (done.code, sorted(told())) == (1, ["urn:a", "urn:j", "urn:page"])
    assert "wrong.ttl:1:" in done.err
    assert "0 matches in 0 publications" in watch("in").err
    (source / "a.rss").write_bytes(item("a", "b"))
    assert "has changed since it was read" in watch("in").err
    assert sorted(told()) == ["urn:a", "urn:b", "urn:j", "urn:page"]
    assert watch("in", "in/out").code == 2, "a watch does not read what it writes"
    assert watch("absent").code == 2


def test_a_changed_configuration_is_tried_at_once(folder: Path, web: Web) -> None:
    web.pages["/a"] = 404, {}, b""
    for _ in range(2):
        watch(f"{web.root}/a")
    assert web.paths() == ["/a"], "it waits, as it has failed"
    connect = Path("connect.toml").read_text()
    Path("connect.toml").write_text(f'{connect}authorization = "Bearer hidden"\n')
    web.pages["/a"] = 200, {}, item("a")
    watch(f"{web.root}/a")
    assert [headers.get("authorization") for _, headers in web.asked] == ["Bearer hidden"]
    assert told() == ["urn:a"]
    assert b"hidden" not in Path("out/_inbox/feeds.sqlite").read_bytes()


def test_secrets_of_addresses_are_nowhere_but_in_the_list(folder: Path, web: Web) -> None:
    """A feed whose items have no ids, so that these come from the address; one that fails; one that is none."""
    unnamed = b"<rss version='2.0'><channel><title>t</title><item><title>x</title></item></channel></rss>"
    web.pages["/a?token=HIDDEN1"] = 200, {}, unnamed
    lines = f"{web.root}/a?token=HIDDEN1\n{web.root}/b?x=1&api_key=HIDDEN2\nhttps://me:HIDDEN3@c.example/feed\n"
    Path("mine.feeds").write_text(lines)
    done = watch("mine.feeds", "out", "--format", "jsonl", "--dead-letters-to", "sqlite:letters.db")
    assert done.code == 1
    assert told() == [f"{web.root}/a?token=***#1"]
    assert web.paths() == ["/a?token=HIDDEN1", "/b?x=1&api_key=HIDDEN2"]
    assert "https://***@c.example/feed" in done.err
    shown = triplewire("watch", "--output", "out", "--status")
    assert f"{web.root}/b?x=1&api_key=***" in shown.out
    kept = [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "mine.feeds"]
    states = folder / "out/_inbox/feeds.sqlite"
    assert states.stat().st_mode & 0o077 == 0, "addresses are kept where only their owner reads"
    kept.remove(states.read_bytes())
    assert len(kept) > 5
    assert not any(b"HIDDEN" in text for text in (*kept, done.out.encode(), done.err.encode(), shown.out.encode()))
    wrong = "https://me:HIDDEN4@c.example/"
    with_list = ("watch", "--output", "o", "--subscriptions", "items.rq", "--sources")
    for command in (
        ("match", QUERY),
        with_list,
        ("pipeline", "run", "--output", "o", "--subscriptions", ".", "--input"),
    ):
        done = triplewire(*command, wrong)
        assert done.code == 2
        assert "https://***@c.example/" in done.err
        assert "HIDDEN" not in done.err


def test_two_watches_do_not_write_to_one_output(folder: Path) -> None:
    (folder / "in").mkdir()
    command = [sys.executable, "-m", "triplewire", "watch", "--subscriptions", "items.rq", "--sources", "in"]
    running = subprocess.Popen([*command, "--output", "out"], stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: Path("out/_watch.json").exists())
        done = watch("in")
        assert done.code == 75
        assert "another watch writes to it" in done.err
        assert status()["running"] is True
        (folder / "in/a.rss").write_bytes(item("a"))
        until(lambda: Path("out/matches.jsonl").read_bytes().endswith(b"\n"))
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 0, said
    assert "1 match in 1 publication" in said
    assert watch("in").code == 0


def test_a_sink_that_cannot_be_reached_loses_nothing(folder: Path, web: Web) -> None:
    """The next start delivers what was not."""
    web.pages["/a"] = 200, {}, item("a")
    (folder / "wrong.db").mkdir()
    assert watch(f"{web.root}/a", "out", "--to", "sqlite:wrong.db/x/y.db#m").code != 0
    hook = f"{web.root}/hook"  # it takes no POST
    done = watch(f"{web.root}/a", "out", "--to", hook)
    assert done.code not in (0, 2)
    assert status()["waiting"] == 1
    assert watch(f"{web.root}/a").code == 0
    assert told() == ["urn:a"], "a file has each match once"
    assert status()["waiting"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("point", ["in the ledger", "after the ledger", "delivering", "delivered", "done", "removed"])
def test_kill_9_loses_nothing_and_tells_once(point: str, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    for number in range(3):
        (source / f"{number}.nt").write_text(f'<urn:s> <urn:p> "{number}" .\n')
    (source / "wrong.ttl").write_text("<a> <b>")
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent}"}

    def run(point: str) -> int:
        command = [sys.executable, str(HERE / "killed_watch.py"), str(source), str(out), point]
        return subprocess.run(command, env=environment, check=False, timeout=300).returncode

    assert run(point) == -signal.SIGKILL
    (source / "3.nt").write_text('<urn:s> <urn:p> "3" .\n')
    assert run("") == 0
    identities = [row["identity"] for row in rows(str(out / "matches.jsonl"))]
    assert len(identities) == len(set(identities)) == 4
    with closing(sqlite3.connect(out / "told.db")) as connection:
        assert sorted(identities) == [row[0] for row in connection.execute("SELECT identity FROM matches ORDER BY 1")]
        assert connection.execute("SELECT count(DISTINCT subject) FROM letters").fetchone() == (1,)
    assert list((out / "_inbox/documents").iterdir()) == []


def test_a_watch_loads_neither_spark_nor_numba(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in/a.rss").write_bytes(item("a"))
    code = (
        "import sys; from triplewire.cli import run; code = run(sys.argv[1:]);"
        "print(code, sorted({'pyspark', 'numba', 'py4j'} & set(sys.modules)))"
    )
    command = ["watch", "--subscriptions", "items.rq", "--sources", "in", "--output", "out", "--once"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "0 []\n", done.stderr
    assert told() == ["urn:a"]


def test_the_status_of_a_pipeline_has_its_feeds(folder: Path, web: Web) -> None:
    web.pages["/b"] = 200, {}, item("b")
    output = Output(folder / "live")
    output.prepare(folder / "x.feeds", True)
    output.record(streaming=True, remote=True)
    output.release()
    feeds = [f"{web.root}/a?token=HIDDEN", f"{web.root}/b"]
    Poller(feeds, output.inbox, Connections.read(folder / "connect.toml")).poll()
    shown = triplewire("pipeline", "status", "--output", "live").out
    assert "feeds         2: 1 failed, 1 ok" in shown
    assert f"{web.root}/a?token=***\n    failed 1 time, asked 20" in shown
    assert "the feed's server answers 404" in shown
    status = triplewire("pipeline", "status", "--output", "live", "--json").rows[0]
    assert [feed["state"] for feed in status["feeds"]] == ["failed 1 time", "ok"]
