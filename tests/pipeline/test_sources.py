"""Files to publications on Spark: the same ids, sources, triples and refusals as `triplewire.read.read` gives."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from triplewire.config import Settings
from triplewire.encode.schema import to_batch
from triplewire.errors import ReadError, Refusal
from triplewire.folders import entries_of
from triplewire.pipeline import sources
from triplewire.pipeline.connect.documents import escape
from triplewire.pipeline.session import use_utf8
from triplewire.pipeline.sources import FileReader, local_path, publications
from triplewire.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

TURTLE = '<http://a.example/x> <http://a.example/p> "a" .\n'
QUADS = "".join(f'<urn:s> <urn:p> "{n}" <urn:g{n}> .\n' for n in range(300))
NAMES = [
    "plain.ttl",
    "with space.ttl",
    "per%20cent.ttl",
    "glob[1]{2}*?.ttl",
    "größe.ttl",
    "comma,semi;colon.ttl",
    "key=value/nested.ttl",
    "_aside/in a folder.ttl",
    "_name.ttl",
    "_key=value.ttl",
    "_metadata_old/nested.ttl",
    "copy.ttl._COPYING_",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of many names and kinds, some of them malformed."""
    made = tmp_path / "in put [x]"
    for name in NAMES:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(TURTLE, encoding="utf-8")
    (made / "quads.nq.gz").write_bytes(gzip.compress(QUADS.encode()))
    (made / "empty.ttl").touch()
    (made / "broken.ttl").write_text("<http://a> <http://b> ", encoding="utf-8")
    (made / "half.nq").write_text(QUADS[:500], encoding="utf-8")
    (made / "binary.bin").write_bytes(bytes(range(256)))
    (made / "not.gz").write_bytes(gzip.compress(QUADS.encode())[:100])
    (made / "loop.ttl").symlink_to(made / "loop.ttl")
    (made / "all").symlink_to(made)
    (made / "elsewhere").symlink_to(Path(__file__).parent)
    (made / ".hidden.ttl").write_text(TURTLE, encoding="utf-8")
    return made


def embedded(path: Path, **options: object) -> tuple[list[dict[str, object]], list[Refusal]]:
    refusals: list[Refusal] = []
    found = list(read(str(path), on_refusal=refusals.append, **options))  # type: ignore[arg-type]  # tests' own options
    return sorted(to_batch(found).to_pylist(), key=str), sorted(refusals, key=str)


def on_spark(spark: SparkSession, path: str | Path, **options: object) -> tuple[list[dict[str, object]], list[Refusal]]:
    rows = publications(spark, path, **options).toArrow().to_pylist()  # type: ignore[arg-type]  # tests' own options
    refusals = [Refusal(**row["refusal"]) for row in rows if row["refusal"]]
    beside = {"refusal", "file_beside"}  # columns that matching uses
    found = [{k: v for k, v in row.items() if k not in beside} for row in rows if not row["refusal"]]
    return sorted(found, key=str), sorted(refusals, key=str)


def test_the_same_as_read(spark: SparkSession, folder: Path) -> None:
    wanted, refused = embedded(folder)
    assert len(wanted) >= len(NAMES) + 300
    assert len(refused) >= 4
    assert on_spark(spark, folder) == (wanted, refused)


@pytest.mark.parametrize("split", ["item", "document", "subject"])
def test_the_examples_in_every_split(spark: SparkSession, examples: Path, split: str) -> None:
    wanted = embedded(examples / "publications", split=split)
    assert len(wanted[0]) > 10
    assert on_spark(spark, examples / "publications", split=split) == wanted


def test_one_file(spark: SparkSession, folder: Path) -> None:
    for name in ("glob[1]{2}*?.ttl", "_name.ttl", "quads.nq.gz", "empty.ttl"):
        assert on_spark(spark, folder / name) == embedded(folder / name)


def test_a_glob(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    shutil.copytree(folder, plain, symlinks=True)
    wanted = [embedded(file) for file in plain.glob("[!.]*.ttl")]  # a broken link is refused
    found, refused = on_spark(spark, f"{plain}/*.ttl")
    assert found == sorted((row for rows, _ in wanted for row in rows), key=str)
    assert refused == sorted((refusal for _, refusals in wanted for refusal in refusals), key=str)
    assert len(found) >= 7


def test_a_glob_of_all_depths(spark: SparkSession, tmp_path: Path) -> None:
    """It names a file by each folder above it as well, and each is read once."""
    for name in ("a.ttl", "_aside.ttl", "deep/er/b.ttl", "deep/_aside.ttl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TURTLE, encoding="utf-8")
    assert on_spark(spark, f"{tmp_path}/**") == embedded(tmp_path)


def test_a_limit_refuses_a_file_by_name(spark: SparkSession, folder: Path) -> None:
    settings = Settings(max_input_bytes=400)
    wanted, refused = embedded(folder, settings=settings)
    assert any("max_input_bytes" in refusal.remedy for refusal in refused)
    assert on_spark(spark, folder, settings=settings) == (wanted, refused)


def test_nothing_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        publications(spark, tmp_path / "absent")


def test_an_empty_folder(spark: SparkSession, tmp_path: Path) -> None:
    assert on_spark(spark, tmp_path) == ([], [])


def test_content_from_elsewhere() -> None:
    """What Spark hands over where a worker cannot open the file: its bytes, or none if there are too many."""
    reader, refusals = FileReader(), list[Refusal]()
    found = list(reader._read("s3a://bucket/a.nq.gz", 10, gzip.compress(QUADS.encode()), refusals))
    assert (len(found), found[0].source, refusals) == (300, "s3a://bucket/a.nq.gz", [])
    assert list(reader._read("s3a://bucket/huge.nq", 3 * 2**30, None, refusals)) == []
    assert [(r.kind, r.subject) for r in refusals] == [("publication", "s3a://bucket/huge.nq")]
    assert "max_input_bytes" in refusals[0].remedy


def test_an_ill_formed_feed_is_a_warning_among_the_refusals(tmp_path: Path) -> None:
    feed = tmp_path / "feed.rss"
    feed.write_text("\n<?xml version='1.0'?><rss><channel><item><pubDate>2024-05-01</pubDate></item></channel></rss>")
    rows = {}
    for as_written in (False, True):
        files = pa.RecordBatch.from_pylist([{"path": f"file:{feed}".encode(), "length": 1, "content": None}])
        batches = FileReader(as_written=as_written)([files])
        rows[as_written] = [row for batch in batches for row in batch.to_pylist()]
        assert [row["refusal"]["kind"] for row in rows[as_written] if row["refusal"]] == ["warning"]
    assert "dateTime" in str(rows[False][0]["triples"])
    assert "dateTime" not in str(rows[True][0]["triples"])


def test_names_that_are_not_utf8(spark: SparkSession, tmp_path: Path) -> None:
    try:
        (tmp_path / "\udcff").mkdir()
        (tmp_path / "\udcff" / "\udce9.ttl").write_text(TURTLE, encoding="utf-8")
    except OSError:
        pytest.skip("this file system holds no such names")
    (tmp_path / "\udce9 left").symlink_to(tmp_path / "nowhere")
    found, refusals = on_spark(spark, tmp_path)
    assert [row["id"] for row in found] == [f"file://{tmp_path}/%FF/%E9.ttl"]
    assert (found, len(refusals)) == (embedded(tmp_path)[0], 1)
    assert "No such file" in refusals[0].reason


def test_what_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here: a folder and a file that are gone when a worker comes."""
    for name in ("good", "gone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.ttl").write_text(TURTLE, encoding="utf-8")

    def listed(folder: Path) -> Iterator[tuple[Path, str]]:
        yield from entries_of(folder)
        yield folder / "left", "the folder cannot be read: No such file or directory"
        shutil.rmtree(tmp_path / "gone")

    monkeypatch.setattr(sources, "entries_of", listed)
    monkeypatch.delattr(type(spark), "read")  # its listing ends at the first folder that it cannot read
    found, refusals = on_spark(spark, tmp_path)
    assert [row["source"] for row in found] == [str(tmp_path / "good" / "a.ttl")]
    assert {os.path.relpath(refusal.subject, tmp_path) for refusal in refusals} == {"left", "gone/a.ttl"}
    assert all("cannot be read: No such file" in refusal.reason for refusal in refusals)


def test_a_glob_of_all_depths_does_not_go_through_links(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.ttl").write_text(TURTLE, encoding="utf-8")
    (tmp_path / "deep" / "all").symlink_to(tmp_path)
    found, refusals = on_spark(spark, f"{tmp_path}/**")
    assert [row["source"] for row in found] == [str(tmp_path / "deep" / "a.ttl")]
    assert [refusal.subject for refusal in refusals] == [str(tmp_path / "deep" / "all")]


@pytest.mark.skipif(sys.platform != "linux", reason="Java takes the names of files from elsewhere there")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LANG": "de_DE.ISO-8859-1"}, "C.UTF-8"),
        ({"LANG": "de_DE.UTF-8"}, None),
        ({"LC_CTYPE": "C.utf8", "LANG": "C"}, None),
    ],
)
def test_java_spells_all_names(before: dict[str, str], after: str | None) -> None:
    use_utf8(before)
    assert before.get("LC_ALL") == after


def test_names() -> None:
    assert local_path("file:/a b%20/c") == local_path("file:///a b%20/c") == "/a b%20/c"
    assert local_path("a") == os.path.abspath("a")
    assert escape("/a[1]{b}*?\\") == r"/a\[1\]\{b\}\*\?\\"
