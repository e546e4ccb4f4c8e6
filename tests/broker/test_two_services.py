"""Several services over one PostgreSQL: what one accepts another one tells, also when the first was killed."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import psycopg

from service.serving import Serving, serving
from waiting import until

QUAD = '<urn:{0}> <urn:title> "{0}" <urn:{0}> .'


def told(service: Serving) -> list[str]:
    lines = service.out("tail", "--no-follow").splitlines()
    return [json.loads(line)["publication"] for line in lines]


def test_a_service_that_is_killed_is_no_loss(server: str, tmp_path: Path) -> None:
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    (tmp_path / "database").write_text(f"{server.rpartition('/')[0]}/{name}\n")
    (tmp_path / "feed-secret").write_text("of both")
    options = ["--database-file", str(tmp_path / "database"), "--feed-secret-file", str(tmp_path / "feed-secret")]
    with serving(tmp_path / "first", *options) as first, serving(tmp_path / "second", *options) as second:
        made = json.loads(first.out("subscribe", "SELECT ?t { ?s <urn:title> ?t }", "--id", "all", "--json"))
        shown = json.loads(second.get("/subscriptions/all", second.environment["TRIPLEWIRE_TOKEN"])[1])
        keys = [one["feed"].rpartition("/")[2] for one in (made, shown)]
        assert keys[0] == keys[1]
        second.out("publish", "-", "--wait", given=QUAD.format("a"))
        first.out("publish", "-", "--wait", given=QUAD.format("b"))
        first.process.kill()
        second.out("publish", "-", given=QUAD.format("c"))
        until(lambda: len(told(second)) >= 3)
        assert sorted(told(second)) == ["urn:a", "urn:b", "urn:c"]
        token = second.out("token", "create", "--data", str(second.folder), *options, "--owner", "ann").split()[-1]
        assert second.get("/subscriptions/all", token)[0] == 404
        done = second.run("doctor", "--data", str(second.folder), *options, "--json")
        findings = {row["about"]: row for row in map(json.loads, done.out.splitlines())}
        assert (done.code, findings["clock"]["state"]) == (0, "fine")
        assert re.search(r"the database is \d+\.\d s off", findings["clock"]["what"])
