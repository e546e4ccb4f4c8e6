"""Sinks of plain rows, without Spark: what they get of matches, and once or again."""

from __future__ import annotations

import base64
import hmac
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pipeline.connect.servers import receiver
from triplewire import Engine, Literal, Publication
from triplewire.model.terms import IRI, Triple
from triplewire.net.addresses import Connections, address
from triplewire.notify import LETTER, MATCH, LetterRecord, MatchRecord, Part, SqliteSink, WebhookSink, json_text
from triplewire.pipeline.rows import DEAD_LETTERS, MATCH_ROWS

LETTERS = [LetterRecord(f"{number:032x}", "publication", f"urn:{number}", "", "\u2028 '\"", "") for number in range(3)]


def records() -> list[MatchRecord]:
    engine = Engine(matcher="reference")
    engine.subscribe("SELECT ?o WHERE { ?s <urn:p> ?o }", id="größe")
    engine.subscribe("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", id="graph")
    publications = [Publication(f"urn:{n}", [Triple(IRI("urn:s"), IRI("urn:p"), Literal(f"é{n}"))]) for n in range(2)]
    return [MatchRecord.of(match, "v1") for match in engine.match(publications)]


def in_table(file: Path, name: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(f'SELECT * FROM "{name}" ORDER BY identity').fetchall()


def test_records_have_the_columns_of_the_output() -> None:
    assert list(MatchRecord._fields) == ["identity", *MATCH_ROWS.names]
    assert list(LetterRecord._fields) == ["identity", *DEAD_LETTERS.names]


def test_a_record_is_a_json_object() -> None:
    records_of_matches = records()
    values = [json.loads(json_text(record)) for record in records_of_matches]
    assert {value["identity"] for value in values} == {record.identity for record in records_of_matches}
    assert len({value["identity"] for value in values}) == 4
    first = next(value for value in values if (value["publication"], value["subscription"]) == ("urn:0", "größe"))
    assert first["bindings"] == [{"o": {"type": "literal", "value": "é0"}}]
    assert (first["truncated"], first["construct"], first["index_version"]) == (False, None, "v1")
    assert any(value["construct"] == '<urn:s> <urn:q> "é1" .\n' for value in values)
    assert json.loads(json_text(LETTERS[1])) == LETTERS[1]._asdict()


def test_a_table_has_each_row_once(tmp_path: Path) -> None:
    file, rows, part = tmp_path / "told.db", records(), Part("0a", 0, MATCH)
    sink = SqliteSink(address(f"sqlite:{file}#matches"), MATCH)
    sink.check("0a")
    for _ in range(2):
        assert sink.deliver(rows, part) == []
        assert in_table(file, "matches") == [("0a", 0, *row) for row in sorted(rows)]
    sink.deliver(rows[:1], replace(part, replaces=True))
    sink.deliver(rows[1:2], replace(part, batch=1))
    assert {row[1:3] for row in in_table(file, "matches")} == {(0, rows[0].identity), (1, rows[1].identity)}


def test_a_webhook_gets_signed_requests() -> None:
    with receiver() as hook:
        settings = {"allow_private_addresses": "true", "secret": "whsec_" + base64.b64encode(b"key").decode()}
        sink = WebhookSink(address(hook.url, Connections({hook.url: settings})))
        hook.answers = [(200, {}), (422, {})]
        (refused,) = sink.deliver(LETTERS, Part("s", 7, LETTER))
        assert (refused.kind, refused.subject[:4]) == ("delivery", "s-7-")
        assert sorted(body for _, body in hook.requests) == [json_text(row).encode() for row in LETTERS]
        for headers, body in hook.requests:
            assert headers["idempotency-key"] == headers["webhook-id"] == f"s-7-{json.loads(body)['identity']}"
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            wanted = base64.b64encode(hmac.digest(b"key", signed, "sha256")).decode()
            assert headers["webhook-signature"] == f"v1,{wanted}"


def test_nothing_of_it_needs_spark() -> None:
    code = "import sys, triplewire.sources, triplewire.notify, triplewire.net.transport; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "triplewire.sources.poller" in loaded
    assert not [name for name in loaded if name.startswith(("pyspark", "triplewire.pipeline", "triplewire.engine"))]
