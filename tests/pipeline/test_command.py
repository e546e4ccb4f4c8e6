"""`triplewire pipeline run` and `demo`, as a user types them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from triplewire.cli import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TRIPLEWIRE = Path(sys.executable).parent / "triplewire"
MATCHES = 40  # of the example subscriptions in the example publications
NOISE = re.compile(r"Traceback|\bWARN|log4j|Exception|incubator")


def pairs(folder: Path) -> list[tuple[str, str]]:
    tables = [ds.dataset(file).to_table() for file in sorted((folder / "matches").rglob("*.parquet"))]
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted((row["publication"], row["subscription"]) for row in rows)


def pipeline_run(source: Path, output: Path, *more: str) -> int:
    arguments = ["--subscriptions", str(EXAMPLES / "subscriptions"), "--taxonomy", str(EXAMPLES / "taxonomy.ttl")]
    return run(["pipeline", "run", "--input", str(source), "--output", str(output), *arguments, *more])


@pytest.mark.usefixtures("spark")  # the command takes the session that is there
def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pipeline_run(EXAMPLES / "publications", tmp_path) == 1, "one input is refused"
    out, said = capsys.readouterr()
    assert out == "", "results go to files, messages to standard error"
    assert len(pairs(tmp_path)) == MATCHES
    assert len(re.findall(r"^refused publication .*unfinished-notice\.ttl:5:", said, re.MULTILINE)) == 1
    assert f"{MATCHES} matches in 43 publications, 1 refused" in said
    assert not NOISE.search(said)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("command", ["pipeline run --input", "backtest --archive"])
def test_no_subscription_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    none, source, out = tmp_path / "none.jsonl", tmp_path / "in", tmp_path / "out.jsonl"
    none.touch()
    source.mkdir()
    shutil.copy(EXAMPLES / "publications" / "tides.nq", source)
    assert run([*command.split(), str(source), "--subscriptions", str(none), "--output", str(out)]) == 0
    said = capsys.readouterr().err
    assert f"warning {none}: the file is empty" in said
    assert "0 matches in 3 publications" in said


@pytest.mark.usefixtures("spark")
def test_a_stream_tells_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    start = ["--streaming", "--master", "local[2]", "--conf=triplewire.settle=0", "--conf", "triplewire.horizon=1.5"]
    for name, more in (("a.nq", []), ("b.nq", []), ("c.nq", ["--repeat"])):
        shutil.copy(EXAMPLES / "publications" / "tides.nq", source / name)
        assert pipeline_run(source, out, *start, *more) == 0
    said = capsys.readouterr().err
    assert [int(count) for count in re.findall(r"(\d+) matches in", said)] == [2, 0, 2]
    assert said.count("publications, 2 told before (") == 1

    assert run(["pipeline", "status", "--output", str(out), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    counts = {"batches": 3, "publications": 9, "matches": 4, "refused": 0, "repeats": 2, "waiting": 0}
    assert {name: status[name] for name in counts} == counts
    assert (status["running"], status["last_batch"], status["last_publications"]) == (False, 2, 3)
    assert status["candidates"] >= status["matches"] + status["repeats"]
    assert status["candidates"] == 3 * status["last_candidates"]  # the same file three times
    assert run(["pipeline", "status", "--output", str(out)]) == 0
    assert re.search(r"^matches +4 \(2 more were told before\)$", capsys.readouterr().out, re.MULTILINE)
    metrics = (out / "_metrics.prom").read_text(encoding="utf-8")
    assert "# TYPE triplewire_matches_total counter\ntriplewire_matches_total 4\n" in metrics
    assert "\ntriplewire_waiting_files 0\n" in metrics
    assert f"\ntriplewire_candidates_total {status['candidates']}\n" in metrics


RULES = {"item": 2, "id": 1, "bindings": 1}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("rule", RULES)
def test_what_a_stream_tells_again(tmp_path: Path, capsys: pytest.CaptureFixture[str], rule: str) -> None:
    """An item that comes again in a channel whose title counts, and then changed, where the query does not look."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    query = tmp_path / "titles.rq"
    query.write_text("SELECT ?t { ?i rss:title ?t }", encoding="utf-8")
    start = ["pipeline", "run", "--input", str(source), "--output", str(out), "--subscriptions", str(query)]
    start += ["--streaming", "--master", "local[2]", "--conf=triplewire.settle=0", "--same", rule]
    for hour, text in enumerate(("a", "a", "b")):
        item = f"<item><guid>urn:1</guid><title>T</title><description>{text}</description></item>"
        feed = f"<rss version='2.0'><channel><title>L ({hour})</title>{item}</channel></rss>"
        (source / f"{hour}.rss").write_text(feed, encoding="utf-8")
        assert run(start) == 0
    said = capsys.readouterr().err
    assert sum(int(count) for count in re.findall(r"(\d+) match(?:es)? in", said)) == RULES[rule]
    assert "earlier version" not in said


@pytest.mark.usefixtures("spark")
def test_run_without_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, expected in (([], 0), ([], 0), (["--streaming"], 2)):
        assert pipeline_run(EXAMPLES / "publications" / "tides.nq", tmp_path, *more) == expected
    said = capsys.readouterr().err
    assert "takes the place of 2 matches" in said
    assert "it holds the results of a batch run, and this is a stream" in said
    assert len(pairs(tmp_path)) == 2


WRONG = {
    "no such input": ["--input", "absent", "--output", "out"],
    "no such subscriptions": ["--input", str(EXAMPLES), "--output", "out", "--subscriptions", "absent.rq"],
    "no such taxonomy": ["--input", str(EXAMPLES), "--output", "out", "--taxonomy", "absent.ttl"],
    "an unknown matcher": ["--input", str(EXAMPLES), "--output", "out", "--matcher", "psychic"],
    "watching a batch": ["--input", str(EXAMPLES), "--output", "out", "--watch", "5"],
    "no setting": ["--input", str(EXAMPLES), "--output", "out", "--conf", "spark.ui.enabled"],
    "repeating a batch": ["--input", str(EXAMPLES), "--output", "out", "--repeat"],
    "telling a batch once": ["--input", str(EXAMPLES), "--output", "out", "--same", "id"],
    "all and once": ["--input", str(EXAMPLES), "--output", "out", "--streaming", "--repeat", "--same", "id"],
    "no number of seconds": ["--input", str(EXAMPLES), "--output", "out", "--conf", "triplewire.settle=soon"],
    "less than no time": ["--input", str(EXAMPLES), "--output", "out", "--conf", "triplewire.horizon=-1"],
    "no setting of a stream": ["--input", str(EXAMPLES), "--output", "out", "--conf", "triplewire.horizn=1"],
    "no master": ["--input", str(EXAMPLES), "--output", "out", "--master", "somewhere"],
    "output in the input": ["--input", ".", "--output", "out"],
    "a remote output": ["--input", str(EXAMPLES), "--output", "s3a://bucket/out"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG.keys())
def test_wrong_usage(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["pipeline", "run", "--subscriptions", str(EXAMPLES / "subscriptions"), *arguments]) == 2
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_failure_of_spark_is_one_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here: a worker that cannot be started."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "no-python"))
    assert pipeline_run(EXAMPLES / "publications", tmp_path / "out") == 69
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("triplewire: Spark failed: ")
    assert "no-python" in said
    log = re.search(r"see (\S+)$", said)
    assert log is not None
    assert "no-python" in Path(log[1]).read_text(encoding="utf-8")


def test_the_first_demo_on_a_machine(tmp_path: Path) -> None:
    """The whole demo in a process of its own, on the Java from the package index and with nothing compiled, which
    nobody waits for: quiet, complete, and exit code 0."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "basename", "cat", "chmod", "dirname", "env", "id", "ls", "ps", "sh", "uname"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    environment = {"PATH": str(tools), "HOME": str(tmp_path)}
    command = [str(TRIPLEWIRE), "pipeline", "demo", "--output", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert not NOISE.search(said), said
    assert (tmp_path / ".cache" / "triplewire").is_dir(), "another Java was taken"
    assert "compil" not in said
    assert not list(tmp_path.glob("out/_index/*/server/index.*")), "the index of a compiled engine was saved"
    assert len(pairs(tmp_path / "out")) == MATCHES
    assert '"puffin" at word 1, "chick" at word 2' in done.stdout
    assert "Bird > WaterBird > SeaBird > Puffin" in done.stdout
    assert "?year = 1931 < 1950" in done.stdout
    assert "unfinished-notice.ttl:5:" in done.stderr
    assert "1 input was refused" in done.stdout
    assert "without a match: kraken" in done.stdout


# --- the README ------------------------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("spark")
def test_the_readme_s_pipeline_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the README shows; its other commands run in tests/docs."""
    lines = README.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("triplewire pipeline run")]
    assert commands
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    for _, *arguments in commands:
        assert run(arguments) == 1, "one example is malformed on purpose"
        folder = Path(arguments[arguments.index("--output") + 1])
        assert len(pairs(tmp_path / folder)) == MATCHES


@pytest.mark.usefixtures("spark")
def test_the_readme_s_program_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for text in (README, (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")):
        programs = re.findall(r"^```py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        assert programs
        for program in programs:
            exec(compile(program, "a document", "exec"), names)
    assert re.search(r"puffin-chicks\|\s+3\|", capsys.readouterr().out)


def test_the_readme_s_queries_are_the_examples() -> None:
    shown = re.findall(r"^```(?:gql|sparql|mdv|predicates)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    kept = {file.read_text(encoding="utf-8") for file in (EXAMPLES / "subscriptions").iterdir()}
    assert len(shown) == 4
    assert set(shown) <= kept
