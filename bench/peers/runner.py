"""Runs the systems on the same workloads, checks that their answers are the engine's, and then times them by turns."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers import workloads
from bench.peers.serving import rows_of
from bench.report import MEGA, MICROS, Figure
from bench.workloads.catalogue import Case, Place

TURNS = 3
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
LUCENE, MOKACCINO, CLIPS, DROOLS = "Lucene Monitor", "mokaccino", "CLIPS", "Drools"
POSTGRES, OXIGRAPH = "PostgreSQL", "pyoxigraph"
_MODULES = {MOKACCINO: "mokaccino", CLIPS: "clips", POSTGRES: "postgres", OXIGRAPH: "oxigraph"}
_JAVA = {LUCENE: ("lucene", "Percolator"), DROOLS: ("drools", "Rules")}  # folder with the pom, class of the main method
_PACKAGES = {MOKACCINO: "mokaccino", CLIPS: "clips", POSTGRES: "psycopg", OXIGRAPH: "pyoxigraph"}
EXACT = (CLIPS, DROOLS, POSTGRES, OXIGRAPH)  # the others do not join, so that they find more
OWN_VARIABLE = "TRIPLEWIRE_BENCH_SYSTEM"  # NAME=COMMAND: a system of the reader's own, in each round


@dataclass(frozen=True)
class Round:
    """A workload at a size; the systems that get it; how many times as long as the engine the best of some takes at
    least, the target at full size; and the publications of a pass. The others get publications one by one, and the
    engine a file of all, which is how each is fastest: in passes of 200 it takes half as long again for each."""

    workload: str
    size: int
    systems: tuple[str, ...]
    targets: tuple[tuple[tuple[str, ...], float], ...] = ()
    publications: int = 1_000

    @property
    def name(self) -> str:
        """As `--only` takes it."""
        return f"{self.workload}-{self.size}"


ROUNDS = (
    Round("mixed", 10_000, (LUCENE, MOKACCINO), (((LUCENE, MOKACCINO), 15),)),
    Round("mixed", 100_000, (LUCENE, MOKACCINO, CLIPS), (((LUCENE, MOKACCINO), 150), ((CLIPS,), 600))),
    Round("text", 100_000, (LUCENE, MOKACCINO, POSTGRES), (((LUCENE, MOKACCINO), 100), ((POSTGRES,), 40))),
    Round("graph", 10_000, (CLIPS, DROOLS), (((CLIPS, DROOLS), 300),)),
    Round("mixed", 1_000, (OXIGRAPH,), publications=200),
)
LARGEST = max(each.size for each in ROUNDS)


class Absent(Exception):
    """A system is not there. The text says why."""


def peers_cases(place: Place) -> list[Case]:
    """A folder a round. A size that is asked for takes the place of the largest."""
    cases = []
    for number, each in enumerate(ROUNDS):
        if place.only and each.name not in place.only:
            continue
        size = min(each.size, place.sized(each.size))
        folder = getattr(workloads, each.workload)(place, size, each.publications)
        cases.append(Case(str(number), folder / "subscriptions.jsonl", folder / "publications.nq"))
    return cases


def peers_figures(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """Times, memory, and time to register of each system, and the ratios to the engine."""
    for case in cases:
        yield from measured(ROUNDS[int(case.label)], case.subscriptions.parent, place.size is None)


@dataclass
class Running:
    """A system that has registered its queries, in `seconds`, with so many bytes; and the seconds of its passes."""

    process: subprocess.Popen[str]
    folder: Path
    seconds: float
    bytes: int
    passes: list[float]
    log: Path

    def ask(self, line: str) -> Any:
        """What it answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return _said(self.process, self.log)

    def answers(self) -> dict[str, frozenset[str]]:
        """Publication -> the ids of its queries."""
        file = self.folder / f"answers-{self.process.pid}"
        self.ask(f"answers {file}")
        return {id: frozenset(ids) for id, ids in rows_of(file) if ids}


def _said(process: subprocess.Popen[str], log: Path) -> Any:
    """The next line of a system, whose errors are in `log`. Raises `Absent`."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        code, errors = process.wait(), log.read_text(encoding="utf-8", errors="replace").strip()
        raise Absent(f"it ended with exit code {code}: {errors[-200:]}")
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict) or "seconds" not in said:
        raise Absent(f"it said {line.strip()[:80]!r}, which is no object with seconds (`bench/peers/__init__.py`)")
    return said


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[Running]:
    """A system on the last core of this machine, which all its threads share, in turn with the others. Raises
    `Absent`."""
    core = max(os.sched_getaffinity(0))
    log = folder / f"{os.getpid()}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )  # fmt: skip
    try:
        said = _said(process, log)
        yield Running(process, folder, said["seconds"], said.get("bytes", 0), [], log)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def command_of(system: str) -> list[str]:
    """The command that starts a system. Raises `Absent`."""
    if system in (own := own_system()):
        return own[system]
    if system in _JAVA:
        jars = _java(*_JAVA[system])
        return ["java", "-Xmx4g", "-XX:+UseSerialGC", "-cp", f"{jars}/*:{jars}", _JAVA[system][1]]
    if importlib.util.find_spec(_PACKAGES[system]) is None:
        raise Absent(f"pip install {_PACKAGES[system]}")
    return [sys.executable, "-m", f"bench.peers.{_MODULES[system]}"]


def own_system() -> dict[str, list[str]]:
    """The name and the command of the reader's own system, if there is one."""
    name, _, command = os.environ.get(OWN_VARIABLE, "").partition("=")
    return {name: shlex.split(command)} if command else {}


def _java(name: str, main: str) -> Path:
    """A folder with the jars and the compiled program, made once. Raises `Absent`."""
    sources = Path(__file__).with_name(name)
    texts = b"".join(file.read_bytes() for file in sorted(sources.iterdir()))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "triplewire", f"bench-{name}")
    folder = cache / hashlib.sha256(texts).hexdigest()[:16]
    if not folder.is_dir():
        if not all(map(shutil.which, ("mvn", "javac"))):
            raise Absent("mvn and a JDK are needed")
        part = folder.with_suffix(f".{os.getpid()}")
        copied = ["mvn", "-B", "-q", "-f", str(sources / "pom.xml"), _COPY, "-DincludeScope=runtime"]
        made = [*copied, f"-DoutputDirectory={part}"]
        compiled = ["javac", "--release", "17", "-cp", f"{part}/*", "-d", str(part), str(sources / f"{main}.java")]
        for command in (made, compiled):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
            if done.returncode:
                shutil.rmtree(part, ignore_errors=True)
                raise Absent(f"{command[0]}: {(done.stdout + done.stderr).strip()[-200:]}")
        part.rename(folder)
    return folder


def measured(each: Round, folder: Path, is_full: bool) -> Iterator[Figure]:
    """The figures of a workload at a size."""
    with ExitStack() as stack:
        size = sum(1 for _ in rows_of(folder / "queries.jsonl"))
        label = f"{each.workload} {size:,}"
        ours = stack.enter_context(running([sys.executable, "-m", "bench.peers.engine"], folder))
        expected, at_work = ours.answers(), dict[str, Running]()
        for system in (*each.systems, *own_system()):
            try:
                at_work[system] = stack.enter_context(running(command_of(system), folder))
                note = wrong(expected, at_work[system].answers(), system in EXACT)
            except (Absent, OSError) as error:
                yield Figure("peers", f"{label}: {system}", None, note=f"left out: {error}")
                at_work.pop(system, None)
                continue
            if note.startswith("wrong"):
                yield Figure("peers", f"{label}: {system}", None, MICROS, 0.0, note=note)
                del at_work[system]
            else:
                yield Figure("peers", f"{label}: {system}: answers", 1.0, note=note)
        systems = {"triplewire": ours, **at_work}
        ours.ask("pass")  # a warm-up: it gave its answers in another way, the others in that of a pass
        for _ in range(TURNS):
            for one in systems.values():
                one.passes.append(one.ask("pass")["seconds"])
        count = sum(1 for _ in rows_of(folder / "publications.jsonl"))
        yield from _figures(label, systems, count, each, is_full)


def wrong(expected: dict[str, frozenset[str]], answers: dict[str, frozenset[str]], is_exact: bool) -> str:
    """What differs from the engine's answers: beginning with "wrong" where a match is missing, or one is too many of a
    system that joins."""
    missing = sum(len(ids - answers.get(id, frozenset())) for id, ids in expected.items())
    more = sum(len(ids - expected.get(id, frozenset())) for id, ids in answers.items())
    total = sum(map(len, expected.values()))
    said = f"{total:,} matches, {missing:,} missing, {more:,} more"
    return f"wrong: {said}" if missing or (more and is_exact) else said


def _figures(label: str, systems: dict[str, Running], count: int, each: Round, is_full: bool) -> Iterator[Figure]:
    """Microseconds, megabytes and seconds of each system for `count` publications; and of the targets, how many times
    as long as the engine."""
    micros = {name: statistics.median(one.passes) / count * 1e6 for name, one in systems.items()}
    for name, one in systems.items():
        yield Figure("peers", f"{label}: {name}", micros[name], MICROS)
        yield Figure("peers", f"{label}: {name}: registered in", one.seconds, "s")
        yield Figure("peers", f"{label}: {name}: memory", one.bytes / MEGA, "MB")
    for names, target in each.targets:
        there = [name for name in names if name in systems]
        if there:
            best = min(there, key=micros.__getitem__)
            ratio = micros[best] / micros["triplewire"]
            yield Figure("peers", f"{label}: {best} over triplewire", ratio, "x", target if is_full else None, True)
    ours = systems["triplewire"]
    for name, one in systems.items():
        if name != "triplewire" and each.size == LARGEST and one.bytes > 0:
            yield Figure("peers", f"{label}: memory over {name}", ours.bytes / one.bytes, "x", 1.0 if is_full else None)
    searchers = [systems[name] for name in (LUCENE, MOKACCINO) if name in systems]
    if each.workload == "mixed" and each.size == LARGEST and searchers:
        sooner = ours.seconds / min(one.seconds for one in searchers)
        name = f"{label}: time to register over the better of Lucene Monitor and mokaccino"
        yield Figure("peers", name, sooner, "x", 1.0 if is_full else None)
