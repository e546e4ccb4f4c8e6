"""`triplewire match`: the rows, their order and forms; what is refused is named while the rest goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.runner import triplewire
from triplewire import Engine
from triplewire.read import read
from triplewire.read.taxonomy import load_taxonomy

A, B = "a.ttl", "b.ttl"


def test_rows(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "title.rq", "--subscriptions", "year.gql", B, A)
    assert (done.code, done.err) == (0, "")
    a, b = ((folder / name).as_uri() for name in (A, B))
    rows = done.rows
    contents = {one.id: one.content_hash for one in read(A, B)}
    assert [row.pop("content") for row in rows] == [contents[id_] for id_ in (b, a, a)]
    first, again, other = (row.pop("revision") for row in rows)
    assert first == again != other
    assert [row.pop("construct") for row in rows] == [None, None, None]
    assert rows == [
        {
            "publication": b,
            "subscription": "title",
            "bindings": [{"t": {"type": "literal", "value": "Winter"}}],
            "truncated": False,
        },
        {
            "publication": a,
            "subscription": "title",
            "bindings": [{"t": {"type": "literal", "value": "Olympic games in Rio"}}],
            "truncated": False,
        },
        {
            "publication": a,
            "subscription": "year",
            "bindings": [
                {"y": {"type": "literal", "value": "2016", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}}
            ],
            "truncated": False,
        },
    ]


SPELLINGS = {
    "words": ["--subscriptions", "title.rq", "--subscriptions", "year.gql", A, B],
    "repeated": [
        "--subscriptions",
        "title.rq",
        "--subscriptions",
        "year.gql",
        "--publications",
        A,
        "--publications",
        B,
    ],
    "mixed": ["--publications", A, B, "--subscriptions=title.rq", "--subscriptions", "year.gql", "--format", "jsonl"],
}


@pytest.mark.parametrize("arguments", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_several_files_after_one_flag_or_many(folder: Path, arguments: list[str]) -> None:
    done = triplewire("match", *arguments)
    assert (done.code, len(done.rows)) == (0, 3)


def test_all_languages_refusals_and_order(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", folder, "--publications", folder, "--taxonomy", "classes.tsv")
    assert done.code == 1
    found = [(row["publication"].rsplit("/", 1)[-1], row["subscription"]) for row in done.rows]
    graphs = [("urn:p:0", ["title"]), ("urn:p:1", ["title"]), ("urn:p:2", ["games", "title"])]
    expected = [
        (A, ["ask", "games", "title", "year"]),
        (B, ["ask", "snow", "title", "weather"]),
        *graphs,  # of many.nq
        *graphs,  # of many.nq.gz
    ]
    assert found == [(publication, name) for publication, names in expected for name in names]
    lines = done.err.splitlines()
    for name in ("refused subscription wrong", "refused subscription group", "broken.ttl:1:"):
        assert any(name in line for line in lines), name
    assert "Traceback" not in done.err


def test_bad_subscriptions_are_named_while_the_others_match(folder: Path) -> None:
    queries = {
        "parens": "SELECT * { ?s ?p ?o FILTER " + "(" * 9_000 + "1" + ")" * 9_000 + " }",
        "groups": "SELECT * " + "{" * 20_000 + "}" * 20_000,
        "limit": "SELECT * { ?s ?p ?o } LIMIT 1",
        "fine": "SELECT * { ?s ?p ?o }",
    }
    rows = [json.dumps({"id": id_, "language": "sparql", "query": query}) for id_, query in queries.items()]
    rows.insert(1, "{no json")
    rows.insert(2, '{"id": "latin", "language": "latin", "query": "amo"}')
    Path("deep.jsonl").write_text("\n".join(rows), encoding="utf-8")
    done = triplewire("match", "--subscriptions", "deep.jsonl", "--publications", A)
    assert done.code == 1
    assert {row["subscription"] for row in done.rows} == {"fine"}
    lines = done.err.splitlines()
    assert len(lines) == 5
    for name in ("parens", "groups", "limit", "deep.jsonl (record 2)", "latin"):
        assert sum(name in line for line in lines) == 1, (name, lines)
    assert all(line.startswith("refused subscription ") for line in lines)


def test_standard_input(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "title.rq", "--publications", "-", stdin=(folder / A).read_bytes())
    assert (done.code, len(done.rows)) == (0, 1)
    rows = (folder / "rows.jsonl").read_bytes()
    done = triplewire("match", "--subscriptions", "-", "--publications", A, stdin=rows)
    assert (done.code, [row["subscription"] for row in done.rows]) == (1, ["ask", "games"])


def test_gzip(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "rows.jsonl.gz", "--publications", "many.nq.gz")
    assert [(row["publication"], row["subscription"]) for row in done.rows] == [("urn:p:2", "games")]


def test_no_bindings(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "title.rq", "--publications", "many.nq", "--no-bindings")
    assert done.rows[0] == {"publication": "urn:p:0", "subscription": "title", "truncated": False}


def test_truncated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPLEWIRE_MAX_BINDINGS", "1")
    Path("all.rq").write_text("SELECT * { ?s ?p ?o }")
    (row,) = triplewire("match", "--subscriptions", "all.rq", "--publications", A).rows
    assert (len(row["bindings"]), row["truncated"]) == (1, True)


def test_unknown_class_is_a_warning_only(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "rows.jsonl", "--publications", "many.nq")
    assert [line for line in done.err.splitlines() if line.startswith("warning subscription weather: ")]


@pytest.mark.parametrize("more", [[], ["--no-bindings"]], ids=["bindings", "no bindings"])
def test_output_files_hold_the_same(folder: Path, more: list[str]) -> None:
    start = ["match", "--subscriptions", "title.rq", "--subscriptions", "rows.jsonl", "--publications", folder, *more]
    rows = triplewire(*start).rows
    assert len(rows) > 5
    done = triplewire(*start, "--output", "out.jsonl", "--format", "jsonl")
    assert (done.code, done.out) == (1, "")
    assert f"{len(rows)} matches" in done.err
    assert [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()] == rows
    assert triplewire(*start, "--output", "out.parquet").code == 1
    table = pq.read_table("out.parquet")
    names = ["publication", "subscription", "truncated"] if more else [*rows[0]]
    assert table.column_names == names
    stored = [row | ({"bindings": json.loads(row["bindings"])} if not more else {}) for row in table.to_pylist()]
    assert stored == rows
    assert not list(folder.glob(".*"))


def test_a_failure_leaves_the_old_output(folder: Path) -> None:
    Path("out.jsonl").write_text("old")
    done = triplewire(
        "match", "--subscriptions", "title.rq", "--publications", A, "--taxonomy", "broken.ttl", "--output", "out.jsonl"
    )
    assert done.code == 74
    assert "broken.ttl" in done.err
    assert len(done.err.splitlines()) == 1
    assert Path("out.jsonl").read_text() == "old"


def test_table(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "title.rq", "--publications", "many.nq", "--format", "table")
    lines = done.out.splitlines()
    assert lines[0].split() == ["publication", "subscription", "bindings"]
    assert lines[2].split() == ["urn:p:0", "title", "?t", "=", '"x"']
    nothing = triplewire("match", "--subscriptions", "year.gql", "--publications", "many.nq", "--format", "table")
    assert nothing.out == "no matches\n"


def test_hostile_text_does_not_reach_the_terminal(folder: Path) -> None:
    Path("evil.nq").write_text('<urn:s> <http://e.org/title> "\\u001B[31m[bold]red" <urn:p> .\n')
    for form in ("table", "jsonl"):
        done = triplewire("match", "--subscriptions", "title.rq", "--publications", "evil.nq", "--format", form)
        assert "\x1b" not in done.out
        assert "[bold]red" in done.out


def test_stats(folder: Path) -> None:
    start = ["match", "--subscriptions", "title.rq", "--subscriptions", "rows.jsonl", "--publications", A, B, "many.nq"]
    for more in ([], ["--no-bindings"]):
        begun = time.perf_counter()
        done = triplewire(*start, *more, "--stats", "stats.json")
        took = time.perf_counter() - begun
        stats = json.loads(Path("stats.json").read_text("utf-8"))
        assert stats["publications"] == 5
        assert stats["triples"] == 8
        assert stats["matches"] == len(done.rows)
        assert stats["truncated"] == 0
        assert stats["candidates"] >= stats["matches"]
        assert stats["peak_bytes"] > 1 << 20
        seconds = stats["seconds"]
        assert {"start", "load", "read", "select", "verify", "write"} <= seconds.keys()
        assert all(value >= 0 for value in seconds.values())
        # whatever else this process has done so far is "start"
        assert sum(value for stage, value in seconds.items() if stage != "start") <= took


@pytest.mark.usefixtures("without_kernels")
def test_stats_of_a_process(folder: Path) -> None:
    """The stages add up to what an observer of the whole process measures."""
    command = ["match", "--subscriptions", "rows.jsonl", "--publications", "many.nq", "--stats", "stats.json"]
    begun = time.perf_counter()
    start = "from triplewire.cli import main; main()"
    subprocess.run([sys.executable, "-c", start, *command], cwd=folder, check=False, capture_output=True)
    took = time.perf_counter() - begun
    seconds = json.loads(Path("stats.json").read_text("utf-8"))["seconds"]
    assert sum(seconds.values()) <= took * 1.02 + 0.01  # the system counts a process's age in hundredths
    assert sum(seconds.values()) >= took * 0.5


def test_stats_that_cannot_be_written(folder: Path) -> None:
    done = triplewire("match", "--subscriptions", "title.rq", "--publications", A, "--stats", "nowhere/stats.json")
    assert done.code == 73
    assert "--stats" in done.err


NAMES = [f"{letter}{number}" for letter in "zaé\U0001f600" for number in (1, 10, 2)]


def test_many_rows_in_order(folder: Path) -> None:
    """Publications as they are read, the subscriptions of each by code points."""
    rows = [{"id": name, "language": "sparql", "query": "ASK { ?s ?p ?o }"} for name in NAMES]
    Path("many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    quads = "".join(f'<urn:s> <urn:p> "x" <urn:{name}> .\n' for name in NAMES)
    Path("first.nq").write_text(quads, "utf-8")
    Path("second.nq").write_text(quads.replace("urn:z", "urn:b"), "utf-8")
    start = ["match", "--subscriptions", "many.jsonl", "--publications", "first.nq", "second.nq", "--no-bindings"]
    expected = [(f"urn:{p}".replace(*change), s) for change in ("zz", "zb") for p in NAMES for s in sorted(NAMES)]
    done = triplewire(*start)
    assert [(row["publication"], row["subscription"]) for row in done.rows] == expected
    assert list(done.rows[0]) == ["publication", "subscription", "truncated"]
    triplewire(*start, "--output", "out.parquet")
    table = pq.read_table("out.parquet")
    assert list(zip(*(table.column(n).to_pylist() for n in ("publication", "subscription")), strict=True)) == expected
    assert {str(table.schema.field(name).type) for name in ("publication", "subscription")} == {"string"}


def test_files_are_the_objects_byte_for_byte(folder: Path, examples: Path) -> None:
    """JSON Lines and the bindings of Parquet are what `json.dumps` makes of the matches; no data frames are loaded."""
    engine = Engine(taxonomy=load_taxonomy(examples / "taxonomy.ttl"))
    engine.load_subscriptions(examples / "subscriptions", on_refusal=lambda refusal: None)
    odd = {'é"\\': "SELECT ?o ?n { ?s ?p ?o }", "z\t": "CONSTRUCT { ?s <urn:é> [ ?p ?o ] } { ?s ?p ?o }"}
    rows = [{"id": name, "language": "sparql", "query": query} for name, query in odd.items()]
    Path("odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    Path("odd.nq").write_text('<urn:s> <urn:p> "\\"\\\\\\n\\u0001\\u007F\U0001f600"@en <urn:é\U0001f600> .\n', "utf-8")
    engine.load_subscriptions("odd.jsonl")
    publications = [*read(str(examples / "publications"), "odd.nq", on_refusal=lambda refusal: None)]
    matches = engine.match(publications)
    assert len(matches) > 40
    wanted = [json.dumps(match.to_json(), ensure_ascii=False) for match in matches]
    start = [
        "match",
        "--subscriptions",
        examples / "subscriptions",
        "--subscriptions",
        "odd.jsonl",
        "--taxonomy",
        examples / "taxonomy.ttl",
    ]
    start += ["--publications", examples / "publications", "odd.nq", "--output"]
    command = [*map(str, start)]
    script = "import sys; from triplewire.cli import run; start = sys.argv[1:]\n"
    script += "print(*(run([*start, name]) for name in ('out.jsonl', 'out.parquet')), 'pandas' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, *command], check=False, capture_output=True, text=True, cwd=folder
    )
    assert done.stdout == "1 1 False\n", done.stderr
    assert Path("out.jsonl").read_bytes() == "".join(f"{line}\n" for line in wanted).encode("utf-8", "backslashreplace")
    stored = pq.read_table("out.parquet").to_pylist()
    assert [
        json.dumps(row, ensure_ascii=False).replace('"@"', bindings)
        for row in stored
        if (bindings := row["bindings"]) and row.update(bindings="@") is None
    ] == [line.encode("utf-8", "backslashreplace").decode() for line in wanted]


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("form", ["jsonl", "no bindings"])
def test_rows_come_while_the_pipe_is_open(folder: Path, form: str) -> None:
    """A graph is matched when two others have begun; the order is that of the pipe."""
    command = ["match", "--subscriptions", "title.rq", "--publications", "-"]
    start = [sys.executable, "-c", "from triplewire.cli import main; main()", *command]
    names = ["urn:g3", "urn:g1", "urn:g2"]
    with subprocess.Popen(
        [*start, "--no-bindings"] if form == "no bindings" else start,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = []
        for name in names:
            process.stdin.write(f'<urn:s> <http://e.org/title> "{name}" <{name}> .\n'.encode())
            if name == names[-1]:
                found.append(process.stdout.readline().decode())
        process.stdin.close()
        found += [line.decode() for line in process.stdout]
    assert process.returncode == 0
    assert [name for line in found for name in names if name in line] == names
    if form == "jsonl":
        assert [json.loads(line)["bindings"][0]["t"]["value"] for line in found] == names


@pytest.mark.usefixtures("without_kernels")
def test_a_graph_that_comes_again_in_a_pipe_is_told(folder: Path) -> None:
    command = ["match", "--subscriptions", "title.rq", "--publications", "-", "--no-bindings"]
    lines = "".join(f'<urn:s> <http://e.org/title> "{n}" <urn:g{n % 3}> .\n' for n in range(6))
    start = [sys.executable, "-c", "from triplewire.cli import main; main()", *command]
    done = subprocess.run(start, input=lines, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert [json.loads(line)["publication"] for line in done.stdout.splitlines()] == ["urn:g0", "urn:g1", "urn:g2"] * 2
    assert done.stderr.count("warning ") == done.stderr.count("comes again after its end") == 1
    Path("mixed.nq").write_text(lines)
    with open("mixed.nq") as stream:
        done = subprocess.run(start, stdin=stream, cwd=folder, capture_output=True, text=True, check=False)
    assert [json.loads(line)["publication"] for line in done.stdout.splitlines()] == ["urn:g0", "urn:g1", "urn:g2"]
    assert done.stderr == ""


def test_the_reasons_of_each_match(folder: Path) -> None:
    query = 'SELECT ?t { ?s <http://e.org/title> ?t FILTER ftcontains(?t, "games") }'
    done = triplewire("match", query, "a.ttl", "many.nq", "--why", "--format", "jsonl")
    plain = triplewire("match", query, "a.ttl", "many.nq", "--format", "jsonl")
    assert [row | {"why": 0} for row in done.rows] == [row | {"why": 0} for row in plain.rows]
    assert [row["why"][-1] for row in done.rows] == [
        "?t = \"Olympic games in Rio\": 'games' is word 1",
        "?t = \"games\": 'games' is word 0",
    ]
    table = triplewire("match", query, "a.ttl", "--why", "--no-bindings", "--format", "table").out
    assert "'games' is word 1" in table
    triplewire("match", query, "a.ttl", "--why", "--output", "why.jsonl")
    assert "'games' is word 1" in (folder / "why.jsonl").read_text()
    assert triplewire("match", query, "a.ttl", "--why", "--output", "why.parquet").code == 2
