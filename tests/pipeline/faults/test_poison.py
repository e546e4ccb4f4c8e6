"""Faults under a stream with an index, in one session.

They are a version that is damaged, publications that no parser takes, a subscription that explodes. The stream goes on
or stops with the reason; nothing is lost and nothing is twice.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipeline.runs import dead_letters_in
from triplewire.config import Settings
from triplewire.pipeline.committed import committed_files
from triplewire.pipeline.index.build import IndexOptions, build
from triplewire.pipeline.index.pins import IndexSource
from triplewire.pipeline.output import Output
from triplewire.pipeline.run import PipelineRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

PLAIN = "SELECT ?s { ?s <urn:p> ?o }"
EXPLODES = 'SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(CONCAT(STR(?c), STR(?f), STR(?i)) = "never") }'
POISON = {
    "binary.nq": bytes(range(256)) * 64,
    "cut.rdf": b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description',
    "entities.rdf": b'<!DOCTYPE r [<!ENTITY a "xxxxxxxxxx">' + b"".join(
        b'<!ENTITY %c "&%c;&%c;&%c;&%c;&%c;&%c;&%c;&%c;">' % (name + 1, *[name] * 8) for name in range(97, 112)
    ) + b"]><r>&p;</r>",
    "bomb.nq.gz": gzip.compress(bytes(1 << 20)) * 64,
    "deep.jsonld": b'{"a":' * 100_000,
    "nothing.ttl": b"@prefix : <urn:> . :s :p",
}  # fmt: skip


def until(holds: Callable[[], bool], stream: threading.Thread) -> None:
    ends = time.monotonic() + 300
    while not holds():
        assert stream.is_alive(), "the stream has ended"
        assert time.monotonic() < ends, "it does not come"
        time.sleep(0.1)


def publish(source: Path, name: str, triples: int = 1) -> None:
    lines = [f'<urn:{name}> <urn:p> "{number}" <urn:{name}> .\n' for number in range(triples)]
    aside = source.parent / f"{name}.nq"
    aside.write_text("".join(lines), encoding="utf-8")
    aside.rename(source / aside.name)


def told(folder: Path) -> Counter[tuple[str, str]]:
    rows = (row for file in committed_files(Output(folder)) for row in pq.read_table(file).to_pylist())
    return Counter((row["publication"], row["subscription"]) for row in rows)


def test_a_damaged_version_poison_and_an_explosion(spark: SparkSession, tmp_path: Path) -> None:
    source, index, folder, notes = tmp_path / "in", tmp_path / "index", tmp_path / "out", list[str]()
    source.mkdir()
    for name, text in (("plain", PLAIN), ("explodes", EXPLODES), ("later", f"{PLAIN} ")):
        (tmp_path / f"{name}.rq").write_text(text, encoding="utf-8")
    options = IndexOptions(settings=Settings(max_input_bytes=16 << 20, max_steps=50_000))
    build(index, [tmp_path / "plain.rq", tmp_path / "explodes.rq"], options)
    output = Output(folder)
    output.prepare(source, True)
    given = IndexSource(index, folder, on_note=notes.append)
    job = PipelineRun(str(source), given, output, settings=options.settings)
    stream = threading.Thread(target=lambda: job.stream(spark, 0.2, settle=0.0), daemon=True)
    stream.start()
    try:
        publish(source, "first")
        until(lambda: told(folder) == {("urn:first", "plain"): 1}, stream)
        damaged = build(index, [tmp_path / "later.rq"], options)
        (file,) = (index / damaged.content.parts["server"]).glob("index*")
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        for name, content in POISON.items():
            (source / name).write_bytes(content)
        publish(source, "large", 300)
        until(lambda: ("urn:large", "plain") in told(folder), stream)
        # a version after it is right again
        build(index, [tmp_path / "plain.rq", tmp_path / "later.rq"], options)
        publish(source, "last")
        until(lambda: ("urn:last", "later") in told(folder), stream)
    finally:
        job.stop.set()
        stream.join(300)
        output.release()
    assert told(folder) == {(f"urn:{name}", "plain"): 1 for name in ("first", "large", "last")} | {
        ("urn:last", "later"): 1
    }
    (note,) = notes
    assert "it is damaged" in note or "damaged" in note
    assert note.endswith("matching goes on with v1")
    letters = Counter((letter.kind, Path(letter.subject).name) for letter in dead_letters_in(folder))
    assert letters == {**{("publication", name): 1 for name in POISON}, ("pair", "urn:large explodes"): 1}
