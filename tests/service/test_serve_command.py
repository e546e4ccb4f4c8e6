"""`triplewire serve`, and the commands that talk to it, as people start them."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.connect.servers import free_port
from service.serving import TOKEN, Serving, serving
from triplewire.cli import run
from triplewire.store.database import Database, now
from triplewire.store.tables import publications, sources, targets

pytestmark = pytest.mark.xdist_group("serve")  # one worker makes what all share
QUERY = 'SELECT ?title { ?item rss:title ?title FILTER ftcontains(?title, "puffin*") }'
TTL = '<urn:{0}> <http://purl.org/rss/1.0/title> "{1}" .'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served") / "data", "--log-format", "json") as made:
        yield made


def test_from_a_subscription_to_its_end(service: Serving, tmp_path: Path) -> None:
    made = json.loads(service.out("subscribe", QUERY, "--id", "puffins", "--title", "Puffins", "--json"))
    (tmp_path / "ticket").write_text(made["ticket"] + "\n")
    (tmp_path / "news.ttl").write_text(TTL.format("1", "A puffin"))
    assert service.out("publish", str(tmp_path / "news.ttl"), "--wait").endswith(": matches 1 subscription\n")
    assert service.out("publish", "-", "--wait", given=TTL.format("1", "A puffin")).endswith(" (was there)\n")
    (event,) = map(json.loads, service.out("tail", "puffins", "--no-follow").splitlines())
    assert (event["subscription"], event["type"], event["title"]) == ("puffins", "matched", "A puffin")
    for which in ([], ["puffins"]):
        assert service.out("tail", *which, "--no-follow", "--after", str(event["number"] - 1)).count("\n") == 1
        assert service.out("tail", *which, "--no-follow", "--after", str(event["number"])) == ""
    assert "expires" in service.out("renew", "puffins", "--seconds", "3600")
    by_ticket = ["--ticket-file", str(tmp_path / "ticket")]
    assert "expires" in service.out("renew", "puffins", *by_ticket, TRIPLEWIRE_TOKEN="")
    service.out("unsubscribe", "puffins", *by_ticket, TRIPLEWIRE_TOKEN="")
    assert service.run("renew", "puffins").code == 2


def test_a_query_of_a_file(service: Serving, tmp_path: Path) -> None:
    (tmp_path / "query.rq").write_text(QUERY)
    assert "of-a-file" in service.out("subscribe", f"@{tmp_path / 'query.rq'}", "--id", "of-a-file")


def test_what_is_refused_stops_nothing_else(service: Serving, tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<urn:broken> <urn:p> ")
    (tmp_path / "b.ttl").write_text(TTL.format("b", "Whole"))
    done = service.run("publish", str(tmp_path), str(tmp_path / "b.ttl"), "--json")
    assert done.code == 1
    assert [json.loads(line)["new"] for line in done.out.splitlines()] == [True, False]
    assert f"refused publication {tmp_path / 'a.ttl'}" in done.err


REFUSED = {
    "a query": (["subscribe", "SELECT WHERE {"], {}, 2, "the query:1:"),
    "no lists of feeds": (["import", "-"], {}, 2, "the document:1:"),
    "no token": (["subscribe", QUERY], {"TRIPLEWIRE_TOKEN": ""}, 2, "TRIPLEWIRE_TOKEN, or --token-file FILE"),
    "a wrong token": (["publish", "-"], {"TRIPLEWIRE_TOKEN": "x" * 32}, 2, "triplewire token create"),
    "nothing of this id": (["tail", "absent"], {}, 2, "there is no subscription 'absent'"),
    "no service": (["publish", "-"], {"TRIPLEWIRE_SERVICE": "http://127.0.0.1:9"}, 69, "does not answer"),
    "no address": (["publish", "-", "--service", "ftp://a"], {}, 2, "no address of a service"),
    "no file of a token": (["publish", "-", "--token-file", "absent"], {}, 2, "absent does not exist"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refusals(service: Serving, case: tuple[list[str], dict[str, str], int, str]) -> None:
    arguments, environment, code, part = case
    done = service.run(*arguments, given=TTL.format("x", "x"), **environment)
    assert (done.code, done.out) == (code, "")
    assert part in done.err


def test_a_token_while_it_runs(service: Serving) -> None:
    ann, bob = (
        service.out("token", "create", "--data", str(service.folder), "--owner", name).split()[-1]
        for name in ("ann", "bob")
    )
    service.out("subscribe", QUERY, "--id", "of-ann", TRIPLEWIRE_TOKEN=ann)
    assert service.get("/subscriptions/of-ann", ann)[0] == 200
    assert service.get("/subscriptions/of-ann", bob)[0] == 404
    file = service.folder / "broker.db"
    with sqlite3.connect(file) as connection:
        assert ann not in "".join(connection.iterdump())


def test_metrics_are_for_who_may_read_them(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--metrics-from", "192.0.2.0/24", TRIPLEWIRE_METRICS_TOKEN="of-metrics") as service:
        assert service.get("/metrics")[0] == 401
        assert service.get("/metrics", "x")[0] == 401
        ann = service.out("token", "create", "--data", str(service.folder), "--owner", "ann").split()[-1]
        assert service.get("/metrics", ann)[0] == 401
        assert [service.get("/metrics", token)[0] for token in ("of-metrics", TOKEN)] == [200, 200]


def test_no_secret_is_logged(service: Serving) -> None:
    service.out("subscribe", QUERY, "--id", "logged", "--json")
    feed = json.loads(service.get("/subscriptions/logged", TOKEN)[1])["feed"]
    key = feed.rpartition("/")[2].partition(".")[0]
    grant = "abcdefghijklmnopqrstuvwx"
    for path in (f"/s/{key}.atom", f"/webhooks/7-{grant}", f"/absent?token={TOKEN}", "/absent?api_key=0123456789"):
        service.get(path)
    lines = [json.loads(line) for line in service.said().splitlines() if line.startswith("{")]
    assert {"time", "level", "logger", "message"} == {name for line in lines for name in line}
    said = service.said()
    assert "/absent?token=..." in said
    assert f"/s/{key.partition('-')[0]}-..." in said
    for secret in (key, TOKEN, "0123456789", key.partition("-")[2], grant):
        assert secret not in said


def test_sigterm_ends_it_well(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as service:
        (tmp_path / "news.ttl").write_text(TTL.format("1", "A puffin"))
        service.out("publish", str(tmp_path / "news.ttl"))
        assert service.end() == 0
    with serving(tmp_path / "data") as service:
        assert service.out("publish", str(tmp_path / "news.ttl")).endswith(" (was there)\n")


def test_a_port_or_a_folder_that_another_process_has(
    service: Serving, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--data", str(tmp_path / "data"), "--port", str(port)]) == 75
    assert f"another process listens at port {port}" in capsys.readouterr().err
    done = service.run("serve", "--data", str(service.folder), "--port", "0")
    assert done.code == 2
    port = free_port()
    done = service.run("serve", "--data", str(service.folder), "--port", str(port))
    assert done.code == 75
    assert "another process serves it" in done.err


def test_networks_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--port", str(free_port()), "--metrics-from", "127.0.0.1,everybody"]
    assert run(["serve", "--data", str(tmp_path / "data"), *options]) == 2
    assert "metrics_from: 'everybody'" in capsys.readouterr().err


def test_who_has_no_token_is_told_how_to_make_one(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--owner", "ann", TRIPLEWIRE_TOKEN="") as service:
        assert f"triplewire token create --data {service.folder} --owner ann" in service.said()


def test_more_subscriptions_than_an_owner_may_have(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--most-subscriptions", "2") as service:
        for id in ("a", "b"):
            service.out("subscribe", QUERY, "--id", id)
        done = service.run("subscribe", QUERY, "--id", "c")
        assert (done.code, "has 2 subscriptions" in done.err) == (2, True)
        service.out("unsubscribe", "a")
        service.out("subscribe", QUERY, "--id", "c")


def doctor(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, str]]]:
    code = run(["doctor", "--data", str(folder), "--json"])
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    return code, {row["about"]: row for row in rows}


Spoil = Callable[[Path, Database], None]


def _refused(folder: Path, database: Database) -> None:
    values = {"id": "x", "content": "", "source": "", "received": now(), "title": "", "link": "", "body": b""}
    row = {**values, "state": "refused", "tries": 2, "reason": "it crashed"}
    database.write(lambda connection: connection.execute(publications.insert().values(row)))


def _waiting(folder: Path, database: Database) -> None:
    values = {"id": "x", "content": "", "source": "", "received": now() - 3600, "title": "", "link": "", "body": b""}
    row = {**values, "state": "accepted", "tries": 0, "reason": ""}
    database.write(lambda connection: connection.execute(publications.insert().values(row)))


def _broken_feed(folder: Path, database: Database) -> None:
    values = {"id": "bird-log", "owner": "ann", "kind": "poll", "url": "https://a.example/", "title": "", "ticket": b""}
    row = {**values, "may_subscribe": False, "anonymous": False, "state": '{"failures": 4}', "created": now()}
    database.write(lambda connection: connection.execute(sources.insert().values(row)))


def _private_webhook(folder: Path, database: Database) -> None:
    values = {"subscription": 1, "kind": "webhook", "address": "http://127.0.0.1:9999/hook", "secret": ""}
    row = {
        **values,
        "settings": "{}",
        "state": "active",
        "failures": 0,
        "created": now(),
        "form": "",
        "host": "h",
        "until": 0.0,
    }
    database.write(lambda connection: connection.execute(targets.insert().values(row)))


def _overwritten(folder: Path, database: Database) -> None:
    database.close()  # else it would write its WAL over that
    (folder / "broker.db").write_bytes(b"no database" * 100)


FAULTS: dict[str, tuple[Spoil, str]] = {
    "dead letters": (_refused, "triplewire deadletter list"),
    "matching": (_waiting, "is a service running?"),
    "feeds": (_broken_feed, "GET /sources"),
    "webhooks": (_private_webhook, "allow_private_addresses"),
    "database": (_overwritten, ""),
}


@pytest.mark.parametrize("about", FAULTS)
def test_the_doctor_names_each_fault(about: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(tmp_path, capsys)[1]["database"]["state"] == "note"
    with Database.open(f"sqlite:///{tmp_path / 'broker.db'}") as database:
        code, findings = doctor(tmp_path, capsys)
        assert (code, {row["state"] for row in findings.values()} - {"fine", "note"}) == (0, set())
        FAULTS[about][0](tmp_path, database)
    code, findings = doctor(tmp_path, capsys)
    assert (code, findings[about]["state"]) == (1, "fault")
    assert FAULTS[about][1] in findings[about]["remedy"]
    assert all(row["remedy"] for row in findings.values() if row["state"] != "fine")


def doors_of(service: Serving) -> dict[str, object]:
    """The paths of all doors that this service has."""
    paths: dict[str, object] = json.loads(service.get("/openapi.json")[1])["paths"]
    return paths


def test_lists_in_opml(service: Serving, tmp_path: Path) -> None:
    if "/opml" not in doors_of(service):
        pytest.skip("this service takes no OPML")
    service.out("subscribe", QUERY, "--id", "listed", "--title", "Listed")
    lists = [tmp_path / "first.opml", tmp_path / "second.opml"]
    service.out("export", "--output", str(lists[0]))
    service.out("import", str(lists[0]))
    service.out("export", "--output", str(lists[1]))
    assert lists[0].read_bytes() == lists[1].read_bytes()
    assert "Listed" in lists[0].read_text()
    wrong = '<opml version="2.0"><body><outline text="w" xmlUrl="http://127.0.0.1/feed"/></body></opml>'
    done = service.run("import", "-", given=wrong)
    assert (done.code, "0 of 1 outlines were taken" in done.err) == (1, True)


def test_dead_letters(tmp_path: Path) -> None:
    with Database.open(f"sqlite:///{tmp_path / 'broker.db'}") as database:
        _refused(tmp_path, database)
    with serving(tmp_path) as service:
        if "/deadletters" not in doors_of(service):
            pytest.skip("this service shows no dead letters")
        (letter,) = map(json.loads, service.out("deadletter", "list", "--json").splitlines())
        assert letter["publication"] == "x"
        assert "it crashed" in service.out("deadletter", "show", str(letter["number"]))
        assert str(letter["number"]) in service.out("deadletter", "list")
        service.out("deadletter", "drop", str(letter["number"]))
        assert "no dead letters" in service.out("deadletter", "list")
        assert service.run("deadletter", "retry", str(letter["number"])).code == 2


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, findings = doctor(tmp_path / "absent", capsys)
    assert (code, findings["folder"]["state"], findings["database"]["state"]) == (0, "note", "note")
    assert run(["backup", "--data", str(tmp_path / "absent"), "--output", str(tmp_path / "copy")]) == 74
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_nests_deep_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep.toml").write_text("port = " + "[" * 5_000)
    for option, code in (("config dump --data x --config", 74), ("operators --operators", 2)):
        assert run([*option.split(), str(tmp_path / "deep.toml")]) == code
        assert "recursion" in capsys.readouterr().err
