"""`python -m bench`: tiny runs of every workload, the forms of the report, two matchers, wrong usage."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from amounts import MATCHERS
from bench import handover, measure, nodes, partition
from bench.command import BENCH, LONG, NAMES
from bench.experiments import EXPERIMENTS
from bench.nodes import AGAIN, DRAWINGS, MATCHING, Points, figures
from bench.report import Figure, from_line, summary, table_line, to_line, to_svg
from bench.run import BenchPlan
from bench.workloads import catalogue as workloads
from bench.workloads.catalogue import WORKLOADS, Place
from cli.runner import Done, triplewire


def bench(*arguments: object) -> Done:
    """Run `python -m bench` in this process."""
    return triplewire(*arguments, program=BENCH)


KEYS = ["workload", "name", "value", "unit", "target", "met"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_all_matchers_give_the_same_counts(workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "RTF_PUBLICATIONS", 300)
    for case in WORKLOADS[workload](Place(tmp_path, 60)):
        source = measure.split_publications(case.publications, (12,), tmp_path)[0]
        counts = {}
        for name in MATCHERS:
            engine = measure.load(name, case.subscriptions)
            stats = measure.match(engine, source)
            counts[name] = (stats.publications, stats.triples, stats.matches, stats.truncated)
        expected = counts["reference"]
        assert expected[0] == source.count
        assert all(found == expected for found in counts.values()), f"{case.label}: {counts}"


def test_a_run_reports_counts_and_times(tmp_path: Path) -> None:
    file, picture = tmp_path / "rows.json", tmp_path / "rows.svg"
    done = bench("gtopss", "--matcher", "reference", "--subscriptions", 60, "--json", file, "--plot", picture)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(list(row) == KEYS for row in rows)
    figures = {row["name"].removeprefix("table 1: "): row["value"] for row in rows}
    assert figures["subscriptions"] == 60
    assert figures["triples a publication"] == pytest.approx(90, abs=1)
    assert figures["matches a publication"] == 1
    assert {"load", "match rows from N-Quads bytes", "index memory", "peak memory", "candidates a match"} <= set(
        figures
    )
    assert all(row["target"] is None and row["met"] is None for row in rows), "targets hold at full size only"
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")
    assert "1/1" in done.err
    assert len(done.out.splitlines()) == len(rows) + 1


def test_two_matchers_are_paired(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = bench("gtopss", "--compare", "reference", "reference", "--subscriptions", 40, "--json", file)
    assert done.code == 0, done.err
    figures = {row["name"]: row["value"] for row in map(json.loads, file.read_text().splitlines())}
    assert figures["table 1: matches of reference over those of reference"] == 1
    assert figures["table 1: reference faster than reference"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "known: rtf"),
        (["rtf", "--matcher", "none"], "no matcher named 'none'"),
        (["rtf", "--compare", "reference", "none"], "no matcher named 'none'"),
        (["rtf", "--compare", "reference"], "2 arguments"),
        (["rtf", "--subscriptions", "0"], "greater than or equal to 1"),
        (["rtf", "--data", "not/there"], "is no folder"),
        (["rtf", "--json", "not/there/rows.json"], "cannot be written"),
        (["rtf", "--plot", "not/there/rows.svg"], "cannot be written"),
        (["rtf", "--only", "mixed-10000"], "it needs papers or peers"),
        (["operators", "--figures", "."], "it needs papers"),
        (["peers", "--only", "mixed-1"], "known: mixed-10000"),
        ([], "WORKLOAD"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    done = bench(*arguments)
    assert done.code == (73 if "written" in said else 2)
    assert said in done.err


def test_a_step_that_fails_is_a_row_and_the_run_goes_on(tmp_path: Path) -> None:
    """Here the folder of real data lacks its publications."""
    file = tmp_path / "rows.json"
    done = bench("rtf", "--data", tmp_path, "--subscriptions", 5, "--json", file)
    assert done.code == 0
    (row,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (row["value"], row["met"]) == (None, False)
    assert "mixed-5000.nq.gz does not exist" in done.err
    assert "MISSED" in done.out


def test_every_target_of_the_full_run_is_named() -> None:
    assert list(EXPERIMENTS)[: len(WORKLOADS)] == list(WORKLOADS), "the short ones come first"
    assert list(EXPERIMENTS)[-1] == "rtf-huge"
    in_all = BenchPlan("all", "trie").names()
    assert set(EXPERIMENTS) - set(in_all) == set(LONG), "they take long, and run by their names only"
    assert set(NAMES) <= set(EXPERIMENTS)


def test_what_a_caller_takes_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets are those of the full size."""
    monkeypatch.setattr(workloads, "RTF_PUBLICATIONS", 20)
    monkeypatch.setattr(handover, "_TURNS", 1)
    place = Place(tmp_path, 60)
    rows = list(handover.handover_figures(place, handover.handover_cases(place), "reference"))
    assert all(row.value is not None and row.value > 0 and row.target is None for row in rows)
    assert {"ids as a list / len(result)", "JSON Lines with bindings / len(result)"} <= {row.name for row in rows}


@pytest.mark.slow
def test_partitioning_at_a_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares of the index follow from the workload; no target, as none is stated for this size."""
    monkeypatch.setattr(partition, "_PUBLICATIONS", 60)
    monkeypatch.setattr(partition, "_TIMED", 10)
    monkeypatch.setattr(partition, "_SEEN", 10)
    monkeypatch.setattr(partition, "NODES", (2,))
    monkeypatch.setattr(partition, "PERCENTS", (90,))
    monkeypatch.setattr(nodes, "_RUNS", 1)
    place = Place(tmp_path, 60)
    rows = list(partition.measure(place, partition.cases(place), "reference"))
    shares = {row.name: row.value for row in rows if row.name.endswith("server index after containment")}
    for percent in partition.OVERLAPS:
        share = shares[f"overlap {percent} %: server index after containment"]
        assert share == pytest.approx(100 - percent, abs=6)
    claims = [row for row in rows if row.name.startswith("figure 9") and row.unit == "held"]
    kinds = {f"9i{kind}" for kind in (AGAIN, MATCHING)}
    assert {row.name.split(":")[0].removeprefix("figure ") for row in claims} == {f"9{x}" for x in "cdefghi"} | kinds
    assert {row.value for row in claims} == {0.0, 1.0}
    assert all(row.note for row in claims)
    assert all(row.value is not None and row.target is None for row in rows)


def test_the_index_of_many_subscriptions(tmp_path: Path) -> None:
    """Section 7 of the cluster paper, with fewer: half of them are contained in others."""
    points = Points()
    assert list(partition.section_7(Place(tmp_path, 200), points))
    (entries,) = points.lines["7"][nodes.CONTAINMENT].values()
    assert entries == pytest.approx(100, abs=10)
    (drawing,) = [drawing for drawing in DRAWINGS if drawing.name == "7"]
    ((_, measured, held, why),) = drawing.claims(points.lines["7"])
    assert measured.endswith("of 200 (containment)")
    assert why
    assert not held


def points_of(figure: str, lines: dict[str, dict[float, float]]) -> Points:
    points = Points()
    for line, values in lines.items():
        for place, value in values.items():
            points.add(figure, line, place, value)
    return points


def test_claims_of_the_cluster_paper_can_fail() -> None:
    each = "containment, server's index on each node"
    said = {"containment": {0: 10.0, 1: 11, 6: 19}, "merging": {0: 10.0, 1: 12, 6: 41}, each: {0: 10.0, 1: 9, 6: 21}}
    held = {row.name.removeprefix("figure 9i: "): row.value for row in figures(points_of("9i", said))}
    assert held == {
        "containment: the throughput grows with the nodes": 1,
        "containment: 200 % with 6 nodes": 0,
        f"{each}: the throughput grows with the nodes, from one on": 1,
        f"{each}: 200 % with 6 nodes": 1,
        "merging: the throughput grows with the nodes": 1,
        "merging: 400 % with 6 nodes": 1,
        "merging is faster than containment": 1,
    }
    rows = list(figures(points_of("9d", {"containment": {0: 100.0, 25: 75, 50: 76}})))
    assert [row.value for row in rows] == [0, 0]
    assert "+52.0%" in rows[0].note


def test_rows_say_whether_their_target_is_met() -> None:
    assert Figure("w", "n", 1.0, "s").met is None
    assert Figure("w", "n", 1.0, "s", 1.0).met
    assert not Figure("w", "n", 1.1, "s", 1.0).met
    assert Figure("w", "n", 2.0, "x", 1.8, at_least=True).met
    missed = Figure("w", "n", 0.9, "x", 1.8, at_least=True)
    assert missed.missed_by() == "50% short"
    assert Figure("w", "n", 15.0, "s", 10.0).missed_by() == "50% over"
    assert Figure("w", "n", None, "s", 10.0, note="no room").missed_by() == "no room"
    assert Figure("w", "n", 15.0, "s", 10.0, note="a.b 90%").missed_by() == "50% over (a.b 90%)"
    assert "MISSED, 50% short" in table_line(missed)
    assert list(summary([missed, Figure("w", "m", 1, "s", 2)])) == ["1 of 2 targets met", "missed: w: n: 50% short"]
    assert from_line(to_line(missed)) == missed


def test_the_picture_shows_targets_where_there_are_any() -> None:
    rows = [
        Figure("w", "<n>", 3.0, "us/x", 2.0),
        Figure("w", "fast", 5_000.0, "x", 1_000, at_least=True),
        Figure("w", "c", 7),
    ]
    picture = to_svg(rows, "a & b")
    tree = ET.fromstring(picture)
    assert picture.count("<rect") == 2
    assert picture.count("<line") == 1
    assert "&lt;n&gt;" in picture
    widths = [float(bar.get("width", "0")) for bar in tree.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[0] > widths[1], "what misses its target is longer than what meets it"


def test_a_profile_names_what_took_the_time() -> None:
    def slow() -> int:
        return sum(number * number for number in range(200_000))

    first, *_ = measure.profile(slow).split(", ")
    assert first.startswith(("test_bench_command.<genexpr>", "<built-in method builtins.sum>"))
