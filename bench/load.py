"""What it takes to load subscriptions, beside other ways.

They are another checkout of this project, systems of today, an index that an earlier command has left, and one by one.
The other checkout is the folder that `TRIPLEWIRE_BENCH_BEFORE` names; without it, nothing is measured beside one. All
is measured by turns on one core, in processes of their own, whose kernels are loaded; and what a second core brings.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.peers import workloads
from bench.peers.runner import LUCENE, MOKACCINO, Absent, command_of, running
from bench.report import Figure
from bench.workloads import mixed
from bench.workloads.catalogue import (
    GRAPH_SUBSCRIPTIONS,
    RTF_SUBSCRIPTIONS,
    Case,
    Place,
    document_case,
    rtf_case,
)
from bench.workloads.corpus import Document
from triplewire.errors import TriplewireError

BEFORE_VARIABLE = "TRIPLEWIRE_BENCH_BEFORE"
OVER_BEFORE = {"rtf": 1 / 6, "graph": 1 / 4, "mdv": 1 / 4, "sparql": 1 / 4}
OVER_PEERS = {MOKACCINO: 1.0, LUCENE: 0.1}
AGAIN, SUBSCRIBED_OVER, TWO_CORES = 0.1, 3.0, 1.7
TURNS = 3
_RULES = 40_000
_IN_PARTS = 3_000_000  # of which one process makes several segments, too
_SUBSCRIBED = 1_000  # subscriptions that are added one by one
_PUBLICATIONS = 200  # beside the queries of the peers; nothing asks for them here

_LOAD = f"""
import json, sys, time
from pathlib import Path
from triplewire import Engine
file, some = Path(sys.argv[1]), Path(sys.argv[2])
with file.open("rb") as lines:
    some.write_bytes(b"".join(line for line, _ in zip(lines, range(300))))
ready = Engine()
ready.load_subscriptions(some)
ready.subscribe("SELECT * {{ ?s ?p ?o }}", id="all")
ready.settle()
engine, begun = Engine(), time.process_time()
engine.load_subscriptions(file)
engine.settle()
seconds, count = time.process_time() - begun, len(engine)
rows = [json.loads(line) for line in some.open()]
for number in range(2 * len(rows) + {_SUBSCRIBED}):
    if number == 2 * len(rows):  # all their templates are known
        begun = time.process_time()
    row = rows[number % len(rows)]
    engine.subscribe(row["query"], row["language"], id=f"one {{number}}")
print(json.dumps([seconds, count, (time.process_time() - begun) / {_SUBSCRIBED} * 1e6]))
"""


_LOAD_IN_PARTS = """
import sys, time
from triplewire import Engine
from triplewire.config import Settings
ready = Engine()
ready.subscribe("SELECT * { ?s ?p ?o }", id="all")
ready.settle()
engine, begun = Engine(settings=Settings(max_input_bytes=1 << 40)), time.perf_counter()
engine.load_subscriptions(sys.argv[1], workers=int(sys.argv[2]))
print(time.perf_counter() - begun)
"""


def load_cases(place: Place) -> list[Case]:
    """The subscriptions of each language."""
    rules, graphs = max(1, place.sized(_RULES) // len(mixed.RULE_TYPES)), place.sized(GRAPH_SUBSCRIPTIONS)

    def write(path: Path) -> list[Document]:
        mixed.write_rules(path, rules)
        return mixed.providers(1, rules)

    graph = document_case(place, graphs)
    sparql = workloads.graph(place, graphs, _PUBLICATIONS)
    return [
        rtf_case(place, 50, place.sized(RTF_SUBSCRIPTIONS), label="rtf"),
        Case("graph", graph.subscriptions, graph.publications),
        place.case("mdv", f"load-mdv-{rules}", write),
        Case("sparql", sparql / "subscriptions.jsonl", sparql / "publications.nq"),
    ]


def load_figures(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """Times to load, and their ratios."""
    is_full, named = place.size is None, os.environ.get(BEFORE_VARIABLE)
    subscribed = 0.0
    for case in cases:
        ours, theirs, each = [], [], []
        for _ in range(TURNS):
            seconds, micros = _loaded(Path.cwd(), case.subscriptions)
            ours.append(seconds)
            each.append(micros)
            if named:
                theirs.append(_loaded(Path(named), case.subscriptions)[0])
        yield Figure("load", f"{case.label}: load", statistics.median(ours), "s")
        if case.label == "rtf":
            subscribed = statistics.median(each)
            yield Figure("load", "rtf: one more of a known template, subscribed", subscribed, "us")
        if named:
            ratio = statistics.median(ours) / statistics.median(theirs)
            target = OVER_BEFORE[case.label] if is_full else None
            yield Figure("load", f"{case.label}: load over that of the other checkout", ratio, "x", target)
    yield from _beside_peers(workloads.mixed(place, place.sized(RTF_SUBSCRIPTIONS), _PUBLICATIONS), subscribed, is_full)
    yield from _again(cases[0], place, is_full)
    yield from _in_parts(place, is_full)


def _loaded(checkout: Path, subscriptions: Path) -> tuple[float, float]:
    """The seconds of processor time that a checkout takes to load a file, and the microseconds for one more
    subscription. Raises `TriplewireError` where it does not load all."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _LOAD, str(subscriptions), str(Path(folder, "some.jsonl"))],
            cwd=folder, env=environment, capture_output=True, text=True, check=False, preexec_fn=_one_core,
        )  # fmt: skip
    if done.returncode:
        raise TriplewireError(f"{checkout} does not load {subscriptions.name}: {done.stderr.strip()[-300:]}")
    seconds, count, micros = json.loads(done.stdout.splitlines()[-1])
    with subscriptions.open("rb") as lines:
        if count != sum(1 for _ in lines):
            raise TriplewireError(f"{checkout} loads {count:,} subscriptions only of {subscriptions.name}")
    return seconds, micros


def _one_core() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _beside_peers(folder: Path, subscribed: float, is_full: bool) -> Iterator[Figure]:
    """The time to register the same conditions over that of other systems. `subscribed`: microseconds of one more."""
    for system, target in OVER_PEERS.items():
        ours, theirs = list[float](), list[float]()
        try:
            for _ in range(TURNS):
                for command, its_seconds in (
                    (command_of(system), theirs),
                    ([sys.executable, "-m", "bench.peers.engine"], ours),
                ):
                    with running(command, folder) as one:
                        its_seconds.append(one.seconds)
        except (Absent, OSError) as error:
            yield Figure("load", f"rtf: {system}", None, note=f"left out: {error}")
            continue
        median = statistics.median(theirs)
        yield Figure("load", f"rtf: {system}: registered in", median, "s")
        ratio = statistics.median(ours) / median
        yield Figure("load", f"rtf: load over {system}", ratio, "x", target if is_full else None)
        if system == MOKACCINO:
            with (folder / "queries.jsonl").open("rb") as lines:
                micros = median / sum(1 for _ in lines) * 1e6
            most = SUBSCRIBED_OVER if is_full else None
            yield Figure("load", f"rtf: one more over one of {system}", subscribed / micros, "x", most)


def _again(case: Case, place: Place, is_full: bool) -> Iterator[Figure]:
    """The time of a command over the same files with an index that the first one has left, over that of the first; and
    the same of processor time."""
    few, seconds, processor = place.work / "load-few.nq", [], [_of_children()]
    with case.publications.open("rb") as lines:
        few.write_bytes(b"".join(line for line, _ in zip(lines, range(400), strict=False)))
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            command = [
                sys.executable,
                "-m",
                "triplewire",
                "match",
                "--subscriptions",
                str(case.subscriptions),
                str(few),
            ]
            begun = time.perf_counter()
            subprocess.run(
                [*map(str, command), "--no-bindings", "--cache", cache], stdout=subprocess.DEVNULL, check=False
            )
            seconds.append(time.perf_counter() - begun)
            processor.append(_of_children())
    first, again = seconds
    its_first, its_again = processor[1] - processor[0], processor[2] - processor[1]
    yield Figure("load", "rtf: first command with --cache", first, "s")
    yield Figure("load", "rtf: second over first, of processor time", its_again / its_first, "x")
    yield Figure("load", "rtf: second over first", again / first, "x", AGAIN if is_full else None)


def _of_children() -> float:
    """The seconds of processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _in_parts(place: Place, is_full: bool) -> Iterator[Figure]:
    """How many times as fast two processes load one file as one does, each on a core of its own."""
    file, seconds = rtf_case(place, 50, place.sized(_IN_PARTS)).subscriptions, []
    for workers in (1, 2):
        command = [sys.executable, "-c", _LOAD_IN_PARTS, str(file), str(workers)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    ratio = seconds[0] / seconds[1]
    yield Figure("load", "rtf: one process over two", ratio, "x", TWO_CORES if is_full else None, at_least=True)
