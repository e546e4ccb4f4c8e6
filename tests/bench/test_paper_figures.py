"""`python -m bench papers`: tiny runs of each figure, its claims on made-up lines, its generator, its files."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from amounts import usually
from bench import nodes
from bench.command import BENCH
from bench.papers import claims, mdv, points
from bench.papers.figures import FIGURES, PaperFigure
from bench.papers.points import Points
from bench.papers.runner import NAMES, judged_again, update, verdicts, write
from bench.papers.workload import PUBLICATIONS, GraphSetting, write_subscriptions, write_taxonomy
from bench.workloads.corpus import to_nquads
from cli.runner import triplewire
from triplewire.engine import Engine
from triplewire.read import read
from triplewire.read.taxonomy import load_taxonomy

pytestmark = pytest.mark.xdist_group("figures")  # one worker makes what all share


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Points:
    return Points(tmp_path_factory.mktemp("papers"), 40, lambda said: None)


@pytest.mark.parametrize("figure", FIGURES[:: usually(4, 1)], ids=lambda figure: figure.name)
def test_each_figure_is_measured_and_judged(
    figure: PaperFigure, tiny: Points, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.papers.measured.LEAST_SECONDS", 0.0)
    figure = replace(figure, places=(figure.places[0], figure.places[-1]))
    lines, left_out = tiny.lines(figure)
    assert not left_out
    assert {len(line) for line in lines.values()} == {len({tiny.scaled(figure, place) for place in figure.places})}
    rows = list(verdicts(figure, lines, left_out))
    assert rows
    assert all(row.held or row.note for row in rows), "a claim that does not hold has a reason"
    reasons = [claim.reason(lines) for claim in figure.claims]
    assert all(reasons)
    assert not any("no line" in reason for reason in reasons), "what a reason counts is measured"
    counts = [line for line in lines if line.endswith(tuple(f": {count}" for count in figure.counts))]
    write(tmp_path, figure.name, figure.title, figure.varies, figure.up, lines, counts)
    name = figure.name.replace("/", "-")
    picture = (tmp_path / f"{name}.svg").read_text()
    ET.fromstring(picture)
    assert picture.count("<polyline") == len(lines) - len(counts) > 0
    with (tmp_path / f"{name}.csv").open(newline="") as table:
        assert len(list(csv.reader(table))) == 1 + sum(map(len, lines.values()))


@pytest.mark.parametrize("figure", mdv.FIGURES[:: usually(5, 1)], ids=lambda figure: figure.name)
def test_each_figure_of_metadata_is_measured_and_judged(figure: PaperFigure, tmp_path: Path) -> None:
    lines = mdv.lines_of(figure, tmp_path, 1_000, lambda said: None)
    assert set(lines) == set(figure.matchers)
    assert all(value > 0 for line in lines.values() for value in line.values())
    rows = list(verdicts(figure, lines, []))
    assert len(rows) == len(figure.claims)
    assert all(row.held or row.note for row in rows)


@pytest.mark.parametrize(
    ("check", "lines", "held"),
    [
        (claims.rises("a"), {"a": [1, 2, 3]}, True),
        (claims.rises("a"), {"a": [1, 3, 2]}, False),
        (claims.rises("a", slack=0.4), {"a": [1, 3, 2]}, True),
        (claims.rises("a", slack=0.4), {"a": [2, 2, 2]}, False),
        (claims.falls("a", "b"), {"a": [3, 2, 1], "b": [2, 1, 0]}, True),
        (claims.falls("a", "b"), {"a": [3, 2, 1], "b": [2, 1, 1]}, False),
        (claims.linear("a", 0.05), {"a": [1, 2, 3]}, True),
        (claims.linear("a", 0.05), {"a": [1, 2.9, 3]}, False),
        (claims.grows_by("a", 1.5, 2.5), {"a": [1, 9, 2]}, True),
        (claims.grows_by("a", 1.5, 2.5), {"a": [1, 9, 3]}, False),
        (claims.grows_faster("a", "b"), {"a": [1, 5, 9], "b": [5, 6, 9]}, True),
        (claims.grows_faster("b", "a"), {"a": [1, 5, 9], "b": [5, 6, 9]}, False),
        (claims.below("a", "b"), {"a": [1, 2, 3], "b": [2, 3, 4]}, True),
        (claims.below("a", "b"), {"a": [1, 2, 3], "b": [2, 1, 4]}, False),
        (claims.below("a", "b", 3.0, last=True), {"a": [1, 2, 3], "b": [2, 1, 9]}, True),
        (claims.below("a", "b", 4.0, last=True), {"a": [1, 2, 3], "b": [9, 9, 9]}, False),
        (claims.steady("a", 1.5), {"a": [2, 3, 2]}, True),
        (claims.steady("a", 1.5), {"a": [2, 4, 2]}, False),
        (claims.levels_off("a", 1.5), {"a": [9, 3, 2]}, True),
        (claims.levels_off("a", 1.5), {"a": [2, 2, 4]}, False),
        (claims.alike("a", "b", 1.5), {"a": [2, 3, 4], "b": [3, 2, 4]}, True),
        (claims.alike("a", "b", 1.4), {"a": [2, 3, 4], "b": [3, 2, 4]}, False),
        (claims.slows("a"), {"a": [5, 7, 9]}, True),
        (claims.slows("a"), {"a": [2, 3, 9]}, False),
    ],
)
def test_claims_hold_and_fail(check: object, lines: dict[str, list[float]], held: bool) -> None:
    assert callable(check)
    made = {name: dict(enumerate(values, 1)) for name, values in lines.items()}
    outcome = check(made)
    assert outcome.held is held
    assert outcome.measured


@pytest.mark.parametrize(
    "setting",
    [
        GraphSetting(400, ratio=0.5),
        GraphSetting(400, edges=8, stars=4, ratio=1.0),
        GraphSetting(400, ratio=2.0, overlap=90, constraints=True),
    ],
    ids=str,
)
def test_the_generator_keeps_its_parameters(setting: GraphSetting, tmp_path: Path) -> None:
    """The default matcher and the papers' give as many matches as the ratio says, and the texts what is asked for."""
    file, taxonomy = tmp_path / "subscriptions.jsonl", tmp_path / "classes.ttl"
    write_taxonomy(taxonomy)
    publications = list(read(to_nquads(write_subscriptions(setting, file, 1))))
    texts = [json.loads(line)["query"] for line in file.read_text().splitlines()]
    assert len(texts) == setting.subscriptions
    assert len(publications) == PUBLICATIONS
    assert np.median([text.count("(<") + text.count("(?") for text in texts]) in (setting.edges, setting.edges + 1)
    assert max(text.count(f"?x{setting.stars - 1}") > 0 for text in texts)
    assert not any(f"?x{setting.stars}" in text for text in texts)
    assert any("ISA" in text for text in texts) is setting.constraints
    answers = []
    for matcher in ("trie", "gtopss", "reference"):
        engine = Engine(matcher=matcher, taxonomy=load_taxonomy(taxonomy))
        engine.load_subscriptions(file)
        answers.append({(match.publication, match.subscription) for match in engine.match(publications)})
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) >= PUBLICATIONS * setting.matches


def test_a_reason_has_the_counts_of_its_run() -> None:
    claim = claims.Claim(
        "falls", claims.falls("a"), claims.counted("{:,.0f} and {:,.1f} of {:.0f}", ("b", 0), ("b", 2), ("a", -1))
    )
    lines = {"a": {1: 5.0, 2: 6.0}, "b": {2: 2_500.0, 1: 1_000.0}}
    assert claim.reason(lines) == "1,000 and 2,500.0 of 6"
    assert "no line 'b'" in claim.reason({"a": {1: 5.0}})


def test_overlap_makes_fewer_edges(tmp_path: Path) -> None:
    (figure,) = [replace(figure, places=(5, 95)) for figure in FIGURES if figure.name == "000/9c"]
    line = Points(tmp_path, 2_000, lambda said: None).lines(figure)[0]["gtopss: matrix"]
    assert line[95] < line[5]


def test_a_matcher_that_takes_too_long_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "LONGEST_SECONDS", 0.0)
    (figure,) = [figure for figure in FIGURES if figure.name == "000/10b"]
    lines, left_out = Points(tmp_path, 20, lambda said: None).lines(figure)
    assert {len(line) for line in lines.values()} == {1}
    assert all("was not measured past" in said for said in left_out)
    assert len(left_out) == len(figure.matchers)


def test_the_command(tmp_path: Path) -> None:
    rows, folder = tmp_path / "rows.json", tmp_path / "figures"
    arguments = ("papers", "--subscriptions", 100, "--only", "002/6", "--json", rows, "--figures", folder)
    done = triplewire(*arguments, program=BENCH)
    assert done.code == 0, done.err
    written = [json.loads(line) for line in rows.read_text().splitlines()]
    assert {row["figure"] for row in written} == {"002/6"}
    assert all(set(row) == {"figure", "claim", "measured", "held", "note"} for row in written)
    assert {file.name for file in folder.iterdir()} == {"002-6.csv", "002-6.svg", "claims.json", "README.md"}
    again = triplewire("papers", "--again", "--figures", folder, program=BENCH)
    assert again.code == 0, again.err
    assert again.out == done.out, "the tables tell the same"
    assert "- 002/6: at most 100 subscriptions" in (folder / "README.md").read_text()
    assert triplewire("papers", "--again", program=BENCH).code == 2
    wrong = triplewire("papers", "--only", "000/9z", program=BENCH)
    assert wrong.code == 2
    assert "known: 000/9a" in wrong.err


@pytest.mark.parametrize("name", ["9i", "10, matching alone"])
def test_tables_of_clusters_are_judged_again(name: str, tmp_path: Path) -> None:
    """As 001/9i in the folder of all claims, but for the last digits of what was measured."""
    (drawing,) = [drawing for drawing in nodes.DRAWINGS if drawing.name == name]
    lines = {line: {1: 100.0, 2: 150.0} for line in (nodes.CONTAINMENT, nodes.MERGING)}
    if name.startswith("10"):
        lines = {"one engine": {90: 25.0, 99: 25.0}, "2 nodes": {90: 80.0, 99: 110.0}}
    write(tmp_path, f"001/{name}", drawing.name, drawing.across, drawing.up, lines)
    rows = list(judged_again([f"001/{name.partition(',')[0]}"], tmp_path))
    assert {row.claim.rpartition(": ")[2]: row.held for row in rows} == {
        text.rpartition(": ")[2]: held for text, _, held, _ in drawing.claims(lines)
    }
    assert {row.held for row in rows} == {True, False}
    assert all(row.held != bool(row.note) for row in rows), "a claim that does not hold has a reason"


def test_the_page_has_a_row_a_claim_and_the_sizes_of_each_figure(tmp_path: Path) -> None:
    """A further run replaces the claims of its figures, and leaves those of others."""
    first = [
        claims.Verdict("000/9b", "old", "2", True),
        claims.Verdict("000/9a", "a | b", "1", True),
        claims.Verdict("002/6", "c", "3", True),
    ]
    update(tmp_path, first, 500)
    update(tmp_path, [claims.Verdict("000/9b", "c", "2", False, "why")], None)
    lines = (tmp_path / "README.md").read_text().splitlines()
    assert any("2 of 3 claims hold" in line for line in lines)
    assert "- 000/9a: at most 500 subscriptions." in lines
    assert "- 000/9b: the paper's sizes." in lines
    assert any(
        line.startswith("- 002/6: at most 500 subscriptions; a point is the mean of 10 workloads") for line in lines
    )
    rows = [line for line in lines if line.startswith("| 00") and line[5] == "/"]
    assert rows[:2] == ["| 000/9a | a / b | 1 | yes |  |", "| 000/9b | c | 2 | no | why |"]
    assert len(rows) == 3
    assert len(NAMES) == len(set(NAMES))
