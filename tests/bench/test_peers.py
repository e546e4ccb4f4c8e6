"""Other systems find what the engine finds, pair by pair: only then does a comparison of their times say anything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench.joins import beside_clips
from bench.peers import pathway, runner
from bench.peers.clips import Rules
from bench.peers.mokaccino import Percolator
from bench.peers.oxigraph import Asked
from bench.peers.runner import (
    DROOLS,
    EXACT,
    LUCENE,
    OWN_VARIABLE,
    ROUNDS,
    Absent,
    Round,
    command_of,
    measured,
    peers_cases,
    running,
    wrong,
)
from bench.peers.serving import Peer, rows_of
from bench.peers.workloads import graph, mixed, text, tuples_of
from bench.workloads import catalogue, corpus
from bench.workloads.catalogue import SEED, Case, Place
from bench.workloads.mdv_documents import document
from bench.workloads.mdv_documents import mixed as mixed_rules
from bench.workloads.mixed import write_documents
from docs.blocks import ROOT, blocks
from triplewire import Engine, read
from triplewire.errors import TriplewireError
from triplewire.metadata.registry import Registry

PUBLICATIONS, SUBSCRIPTIONS = 120, 300


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Graph subscriptions, and the publications that half of them are cut from with some others."""
    subscriptions, publications = tmp_path / "s.jsonl", tmp_path / "p.nq"
    documents = write_documents(subscriptions, SUBSCRIPTIONS, SEED)
    publications.write_bytes(corpus.to_nquads(documents[:PUBLICATIONS]))
    return Case("some", subscriptions, publications)


def engine_of(case: Case) -> Engine:
    engine = Engine()
    engine.load_subscriptions(case.subscriptions)
    return engine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where workloads are written."""
    return Place(tmp_path_factory.mktemp("peers"))


def expected_of(folder: Path) -> dict[str, frozenset[str]]:
    """Publication -> the ids of its queries."""
    engine = Engine()
    engine.load_subscriptions(folder / "subscriptions.jsonl")
    expected: dict[str, frozenset[str]] = {}
    for match in engine.match(list(read(folder / "publications.nq"))):
        expected[match.publication] = expected.get(match.publication, frozenset()) | {match.subscription}
    return expected


SYSTEMS = {
    "CLIPS": (Rules, True),
    "mokaccino": (Percolator, False),
    "pyoxigraph": (Asked, True),
}
"""Name -> the system, and whether it joins; one without joins may find more."""


@pytest.mark.parametrize("workload", [mixed, text, graph])
def test_the_same_answers(
    workload: Callable[[Place, int, int], Path], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "RTF_PUBLICATIONS", 300)
    folder = workload(place, SUBSCRIPTIONS, 200)
    expected = expected_of(folder)
    ids, queries = zip(*rows_of(folder / "queries.jsonl"), strict=True)
    assert sum(map(len, expected.values())) > PUBLICATIONS
    publications = list(rows_of(folder / "publications.jsonl"))
    for name, (system, joins) in SYSTEMS.items():
        peer: Peer = system(queries)
        answers = {id: frozenset(ids[n] for n in peer.matching(one)) for id, one in publications}
        said = wrong(expected, answers, joins)
        assert not said.startswith("wrong"), f"{name}: {said}"


@pytest.mark.parametrize(("name", "workload"), [(LUCENE, mixed), (LUCENE, text), (DROOLS, graph)])
def test_the_same_answers_of_a_program_in_java(
    name: str, workload: Callable[[Place, int, int], Path], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Maven and a JDK are: its libraries come from Maven Central."""
    monkeypatch.setattr(catalogue, "RTF_PUBLICATIONS", 300)
    folder = workload(place, SUBSCRIPTIONS, 200)
    try:
        command = command_of(name)
    except Absent as reason:
        pytest.skip(f"{name}: {reason}")
    with running(command, folder) as system:
        for _ in range(2):  # facts of a publication are gone after it
            said = wrong(expected_of(folder), system.answers(), name in EXACT)
            assert not said.startswith("wrong"), said


def test_the_example_of_a_system_of_ones_own(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the page, beside another in a round; and how one that fails is told."""
    monkeypatch.setattr(catalogue, "RTF_PUBLICATIONS", 300)
    (example,) = [block for block in blocks(ROOT / "docs" / "peers.md") if block.language == "py"]
    toy = tmp_path / "toy.py"
    toy.write_text(example.text, encoding="utf-8")
    folder = mixed(place, SUBSCRIPTIONS, 200)
    systems: dict[str, list[str]] = {}
    for name, command in {
        "toy": f"{sys.executable} {toy}",
        "mute": f"{sys.executable} -c pass",
        "loud": "echo ready for",
        "broken": f"{sys.executable} -c 'raise SystemExit(\"no licence\")'",
    }.items():
        monkeypatch.setenv(OWN_VARIABLE, f"{name}={command}")
        systems |= runner.own_system()
    monkeypatch.setattr(runner, "own_system", lambda: systems)
    rows = measured(Round("mixed", SUBSCRIPTIONS, ()), folder, False)
    told = {figure.name.partition(": ")[2]: figure for figure in rows}
    assert told["toy: answers"].note.startswith(f"{sum(map(len, expected_of(folder).values())):,} matches, 0 missing")
    assert (told["toy"].value or 0) > (told["triplewire"].value or 0) > 0
    assert "exit code 0" in told["mute"].note
    assert "'ready for" in told["loud"].note
    assert "no licence" in told["broken"].note


def test_what_systems_share_loads_no_engine() -> None:
    """Data, their generators, the side of a system and the runner."""
    modules = (
        "workloads.catalogue",
        "papers.workload",
        "peers.fields",
        "peers.serving",
        "peers.workloads",
        "peers.runner",
    )
    imports = ", ".join(f"bench.{name}" for name in modules)
    told = subprocess.run(
        [sys.executable, "-c", f"import sys, {imports}; print(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(told.stdout.split())
    assert {f"bench.{name}" for name in modules} <= loaded
    parts = ("engine", "select", "verify", "clauses", "kernels")
    assert not [name for name in loaded if name.startswith(tuple(f"triplewire.{part}" for part in parts))]


def test_one_round_alone(place: Place) -> None:
    small = [each for each in ROUNDS if each.workload == "graph"]
    cases = peers_cases(replace(place, size=50, only=tuple(each.name for each in small)))
    assert [ROUNDS[int(case.label)] for case in cases] == small
    assert 0 < len(small) < len(ROUNDS)


def test_answers_that_are_wrong_are_told() -> None:
    assert wrong({"p": frozenset("ab")}, {"p": frozenset("a")}, False).startswith("wrong: 2 matches, 1 missing, 0 more")
    assert wrong({"p": frozenset("a")}, {"p": frozenset("ab")}, True).startswith("wrong: 1 matches, 0 missing, 1 more")
    assert wrong({"p": frozenset("a")}, {"p": frozenset("ab")}, False) == "1 matches, 0 missing, 1 more"


def test_the_ratio_is_told_with_its_target(case: Case, tmp_path: Path) -> None:
    clips, ratio = beside_clips(engine_of(case), case, tmp_path, 300.0)
    assert clips.value is not None
    assert ratio.value is not None
    assert (ratio.target, ratio.at_least) == (300.0, True)


def test_other_answers_are_no_ratio(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matching = Rules.matching
    monkeypatch.setattr(Rules, "matching", lambda rules, one: {*matching(rules, one), -1})
    (row,) = beside_clips(engine_of(case), case, tmp_path, 1.0)
    assert row.value is None
    assert not row.met
    assert "CLIPS finds" in row.note


def test_more_than_patterns_is_refused() -> None:
    engine = Engine()
    engine.subscribe("SELECT ?x { ?x <urn:p> ?y FILTER (?y > 3) }", id="a number")
    with pytest.raises(TriplewireError, match="a number"):
        tuples_of(next(iter(engine.subscriptions)))


def test_pathway_holds_what_a_registry_holds(tmp_path: Path) -> None:
    """Where it is installed: `pip install pathway`, 105 MB."""
    pytest.importorskip("pathway", reason="pathway is not installed")
    rules, documents = mixed_rules(80), [document(number, 10) for number in range(20)]
    seconds, held = pathway.updates(rules, documents, 10, [11])
    assert len(seconds) == 1
    with Registry.open(f"sqlite:///{tmp_path / 'registry.db'}") as registry:
        registry.subscribe("north", rules)
        registry.apply([*documents, *(document(number, 11) for number in range(10))])
        assert {(rule, name) for _, rule, names in registry.results() for name in names} == held
