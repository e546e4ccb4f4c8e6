"""`triplewire backtest`: the bytes of `triplewire match`, however the archive is split, and what is said of it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.cli import run
from triplewire.cli.matches import rows_in_order, write_file
from triplewire.errors import ReadError
from triplewire.folders import entries_below
from triplewire.pipeline import backtest as backtesting
from triplewire.pipeline.backtest import Archive, ArchiveFilter, Days, Outcome, day_in_path
from triplewire.pipeline.jobs import compile_filter
from triplewire.pipeline.output import Output
from triplewire.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CASES = Path(__file__).resolve().parents[1] / "cases" / "backtest" / "days.txt"
CONSTRUCT = "CONSTRUCT { ?s <urn:is> ?o } WHERE { ?s ?p ?o }"


@pytest.mark.parametrize("case", CASES.read_text(encoding="utf-8").splitlines()[1:])
def test_the_day_in_a_path(case: str) -> None:
    path, day = case.split()
    assert str(day_in_path(path)) == day.replace("-none-", "None")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example publications, some of them twice, in folders named after days, and one that is filed under none."""
    folder = tmp_path_factory.mktemp("archive")
    for day in ("2026/05/16", "2026/05/17"):
        shutil.copytree(EXAMPLES / "publications" / "lighthouses", folder / day)
    shutil.copy(EXAMPLES / "publications" / "tides.nq", folder / "2026" / "tides-2026-05-18.nq")
    shutil.copy(EXAMPLES / "publications" / "feeds" / "bird-log.atom", folder / "bird-log.atom")
    shutil.copy(EXAMPLES / "publications" / "walks.trig", folder / "walks.trig")
    with contextlib.suppress(OSError):  # where a name has to be UTF-8
        shutil.copy(EXAMPLES / "publications" / "tides.nq", folder / "tides-2026-05-19-\udcff.nq")
    (folder / "2026/05/18").symlink_to(folder / "2026/05/17")
    return folder


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("queries")
    (folder / "all.rq").write_text("SELECT * { ?s ?p ?o }")
    (folder / "graph.rq").write_text(CONSTRUCT)
    shutil.copytree(EXAMPLES / "subscriptions", folder / "more")
    return folder


def matched(queries: Path, archive: Path, folder: Path, suffix: str) -> bytes:
    """What `triplewire match` gives."""
    file = folder / f"match{suffix}"
    command = ["match", "--subscriptions", str(queries), "--publications", str(archive), "--output", str(file)]
    assert run([*command, "--taxonomy", str(EXAMPLES / "taxonomy.ttl")]) == 1
    return file.read_bytes()


@pytest.mark.parametrize("runs_of_a_task", [1, 3, 100])
def test_the_bytes_do_not_depend_on_the_split(
    queries: Path, archive: Path, tmp_path: Path, runs_of_a_task: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers' part without Spark, with the runs of files handed over backwards."""
    monkeypatch.setattr(backtesting, "_RUNS_OF_A_TASK", runs_of_a_task)
    packed = compile_filter(queries, taxonomy=EXAMPLES / "taxonomy.ttl")
    work = ArchiveFilter(packed, Archive(str(archive)))
    runs = work.archive.runs(Days(), 1)
    assert [Path(file) for files in runs for file in files] == [path for path, _ in entries_below(archive)]
    assert len(runs) >= min(runs_of_a_task, 3)
    given = list(enumerate(runs))[::-1]
    batches = [
        pa.record_batch({"place": [place], "paths": [[os.fsencode(path) for path in paths]]}) for place, paths in given
    ]
    for number, batch in enumerate(batches):
        pq.write_table(pa.Table.from_batches(work([batch])), tmp_path / f"part-{number:05}.parquet")
    outcome = Outcome.of(tmp_path)
    for suffix in (".jsonl", ".parquet"):
        write_file(tmp_path / f"out{suffix}", rows_in_order(outcome.matches))
        assert (tmp_path / f"out{suffix}").read_bytes() == matched(queries, archive, tmp_path, suffix), suffix
    assert len({refusal.subject for refusal in outcome.refusals}) == len(outcome.refusals) == 3
    assert outcome.publications == sum(1 for _ in read(str(archive), on_refusal=lambda refusal: None)) >= 20
    assert min(outcome.read_seconds, outcome.match_seconds) > 0


@pytest.mark.usefixtures("spark")  # the command takes the session that is there
def test_the_command(queries: Path, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.parquet"
    start = ["backtest", "--subscription", str(queries), "--archive", str(archive), "--output", str(file)]
    start += ["--taxonomy", str(EXAMPLES / "taxonomy.ttl"), "--matcher", "reference"]  # it waits for no kernel
    assert run(start) == 1, "two files are refused"
    assert file.read_bytes() == matched(queries, archive, tmp_path, ".parquet")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "match.parquet", file], "something was left behind"
    said = capsys.readouterr().err
    assert re.search(r"^  2026-05-16 +(\d+) #+\n  2026-05-17 +\1 #+\n  2026-05-18 ", said, re.MULTILINE)
    assert re.search(r"^for example all matches .+: ", said, re.MULTILINE)
    assert re.search(r"^predicted cost: [\d,.]+ matches a day, [\d,]+ us a publication to match", said, re.MULTILINE)
    assert "hits without a day" in said

    assert run([*start, "--since", "2026-05-17", "--until", "2026-05-17"]) == 1
    said = capsys.readouterr().err
    assert re.findall(r"^  (2026-\S+)", said, re.MULTILINE) == ["2026-05-17"]
    assert re.search(r"^\d publications? left out: ", said, re.MULTILINE)

    assert run([*start, "--since", "2026-05-18", "--until", "2026-05-17"]) == 2
    assert run([*start, "--since", "18 May"]) == 2
    assert run([*start, "--archive", str(tmp_path / "none")]) == 2
    assert run([*start, "--since", "2031-01-01", "--output", str(tmp_path / "none.jsonl")]) == 0
    assert (tmp_path / "none.jsonl").read_bytes() == b""


def test_an_archive_elsewhere_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ReadError, match="a folder that all workers see"):
        Archive("s3a://bucket/feeds")


def test_the_output_of_a_run_is_no_archive(tmp_path: Path) -> None:
    output = Output(tmp_path / "out")
    output.folder.mkdir()
    assert Archive(str(output.folder)).path == str(output.folder)
    output.record(streaming=False)
    with pytest.raises(ReadError, match="the output folder of a pipeline run"):
        Archive(str(output.folder))
