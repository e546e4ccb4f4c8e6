"""`triplewire check`: errors and warnings of subscriptions and taxonomies, without publications."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.runner import triplewire


def test_errors_warnings_and_the_exit_code(folder: Path) -> None:
    (folder / "typing.rq").write_text("SELECT ?t WHERE { ?i rss:titel ?t FILTER (?nothing > 3) }")
    (folder / "box.pred").write_text("locIn(60, 10, 50, 20)")
    done = triplewire("check", "typing.rq", "box.pred", "title.rq")
    assert done.code == 0
    assert done.out.splitlines() == [
        "typing.rq: warning: ?nothing is used, but nothing binds it",
        "typing.rq: warning: rss:titel is no term of that vocabulary; did you mean rss:title?",
        "box.pred: warning: no place lies in this box: its south, 60, is above its north, 50; "
        "write locIn(south, west, north, east)",
    ]
    assert done.err == "3 subscriptions: 0 errors, 3 warnings\n"
    wrong = triplewire("check", "wrong.rq", "rows.jsonl", "title.rq", "--json")
    assert wrong.code == 1
    assert [(row["kind"], row["subject"], row["where"]) for row in wrong.rows] == [
        ("error", "wrong", "wrong.rq:1:43"),
        ("error", "group", "rows.jsonl (record 2), query 1:9"),
        ("warning", "weather", "rows.jsonl (record 4)"),
    ]
    assert wrong.err == "6 subscriptions: 2 errors, 1 warning\n"


@pytest.mark.parametrize("id_", ["rules", "r", "json", "1", "other"])
def test_a_line_names_the_row_whatever_its_id(folder: Path, id_: str) -> None:
    file, row = folder / "rules.jsonl", {"id": id_, "language": "sparql"}
    file.write_text(json.dumps(row | {"query": "SELECT ?v { ?s ?p ?v FILTER (?v > 5 && ?v < 3) }"}))
    assert triplewire("check", file.name).out.startswith(f"rules.jsonl (record 1) {id_}: warning: no value")
    file.write_text(json.dumps(row | {"query": "SELECT * { ?s ?p"}) + "\n{}\n")
    error, nothing = triplewire("check", file.name).out.splitlines()
    assert error.startswith(f"rules.jsonl (record 1) {id_}, query 1:17: error: found")
    assert nothing.startswith("rules.jsonl (record 2): error: ")
    told = triplewire("match", "--subscriptions", file.name, "--publications", "many.nq").err
    assert f"refused subscription {id_} rules.jsonl (record 1), query 1:17: found" in told
    assert "refused subscription rules.jsonl (record 2): " in told


def test_taxonomies_among_the_files_hold_for_the_subscriptions(folder: Path) -> None:
    assert triplewire("check", "rows.jsonl", "classes.tsv").out.count("warning") == 0
    assert triplewire("check", "rows.jsonl", "--taxonomy", "classes.tsv").out.count("warning") == 0
    (folder / "circle.tsv").write_text("http://e.org/Weather\thttp://e.org/Snow\n")
    done = triplewire("check", "title.rq", "classes.tsv", "circle.tsv")
    assert done.code == 1
    assert "error: the classes form a cycle" in done.out
    (folder / "nothing.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    assert "nothing.ttl: warning: it states no class" in triplewire("check", "nothing.ttl").out


@pytest.mark.parametrize(
    "text",
    [
        "id,query\nstorm,SELECT * { ?s ?p ?o }\nrain,SELECT * { ?s ?q ?o }\n",
        "storm\tSELECT * { ?s ?p ?o }\nrain\tASK { ?s ?q ?o }\n",
        'id,language,query\nstorm,predicates,"language(en)"\n',
        'storm,"PREFIX x: <urn:x> SELECT * { ?s x:p ?o }"\n',
        "near,search C c register c where c.p = 5\n",
        '[{"id": "storm", "query": "SELECT * { ?s ?p ?o }"}]',
    ],
)
def test_queries_in_place_of_a_taxonomy(folder: Path, text: str) -> None:
    (folder / "subs.csv").write_text(text)
    done = triplewire("check", "subs.csv")
    assert done.code == 1
    assert done.out.startswith("subs.csv:")
    assert "error: it holds queries: were subscriptions meant?; write them as JSON Lines" in done.out
    (folder / "classes.csv").write_text('Query,Text\n"Search, engine",Machine\nselect,verb\n')
    assert triplewire("check", "classes.csv").code == 0


def test_a_folder(examples: Path) -> None:
    done = triplewire("check", examples / "subscriptions", examples / "taxonomy.ttl")
    assert (done.code, done.out) == (0, "")
    assert done.err == "18 subscriptions and a taxonomy of 32 classes: 0 errors, 0 warnings\n"


@pytest.mark.parametrize("arguments", [[], ["nowhere.rq"], ["https://example.org/queries.rq"]])
def test_wrong_usage(folder: Path, arguments: list[str]) -> None:
    assert triplewire("check", *arguments).code == 2
