"""Kills with -9 at random moments of a stream that follows an index, and what is committed in the end.

    python tests/pipeline/faults/campaign.py FOLDER --kills 100 --seed 1 [--cluster]

Files arrive and subscriptions come and go all the time. What is killed: the driver with its JVM, the JVM alone, a
Python worker; with `--cluster`, which starts a standalone cluster with two executors, an executor too. A stream that
has ended is started again. In the end every match must have been told once, with the version that its micro-batch had.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from triplewire.errors import Refusal
from triplewire.pipeline.committed import Status, committed_files
from triplewire.pipeline.index.build import IndexOptions, Spread, build
from triplewire.pipeline.index.changes import subscribe, unsubscribe
from triplewire.pipeline.output import Output
from triplewire.pipeline.session import QUICK_START

TRIPLEWIRE = Path(sys.executable).parent / "triplewire"
ROOT, CHILD, GUEST = "root", "child", "guest"  # CHILD is contained in ROOT; GUEST comes and goes
TEXTS = {
    ROOT: "SELECT ?s { ?s <urn:p> ?o }",
    CHILD: "SELECT ?s { ?s <urn:p> ?o . ?s <urn:q> ?r }",
    GUEST: "SELECT ?o { ?s <urn:p> ?o }",
}
PATIENCE = 900.0  # seconds for a start, or for the next commit
DRIVER, JVM, WORKER, EXECUTOR = "driver", "JVM of the driver", "Python worker", "executor"
KINDS = {False: (DRIVER, WORKER, WORKER, JVM), True: (EXECUTOR, WORKER, EXECUTOR, DRIVER)}


@dataclass
class Outcome:
    """What a campaign did, and what was committed of what was to be."""

    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    stopped: list[str] = field(default_factory=list)  # what streams said that ended by themselves
    batches: int = 0
    versions: int = 0
    wanted: int = 0
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    wrong_version: list[str] = field(default_factory=list)  # matches that the version they name does not give
    letters: int = 0
    wrong_letters: list[str] = field(default_factory=list)  # dead letters that are missing, or are there twice

    def wrong(self) -> list[str]:
        """Everything that ought not to be."""
        return [*self.lost, *self.repeated, *self.wrong_version, *self.wrong_letters]


class Campaign:
    """A stream, its index and its files, in a folder of their own. `master`: "" for this process's machine."""

    def __init__(self, folder: Path, seed: int, master: str = "", environment: dict[str, str] | None = None) -> None:
        self.source, self.index, self.output = folder / "in", folder / "index", Output(folder / "out")
        self.outcome = Outcome()
        self._aside, self._dice, self._master = folder / "aside", random.Random(seed), master
        self._environment = {**os.environ, "TRIPLEWIRE_TIER": "interpreted", **(environment or {})}
        self._said = folder / "said.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self._files = 0
        self._guests: dict[str, bool] = {}  # version -> is GUEST in it?
        for made in (self.source, self._aside):
            made.mkdir(parents=True)
        for id, text in TEXTS.items():
            (self._aside / f"{id}.rq").write_text(text, encoding="utf-8")
        spread = Spread("containment", 2) if master else Spread()
        first = build(self.index, [self._aside / f"{id}.rq" for id in (ROOT, CHILD)], IndexOptions(), spread)
        self._guests[first.name] = False

    def add_file(self) -> None:
        """One file: three publications, two of them for CHILD as well, one that came before, and a wrong line."""
        number = self._files
        quads = [f'<urn:s> <urn:p> "{number}" <urn:g{number}-{graph}> .\n' for graph in range(3)]
        quads += [f'<urn:s> <urn:q> "{number}" <urn:g{number}-{graph}> .\n' for graph in range(2)]
        quads.append('<urn:s> <urn:p> "the same" <urn:again> .\n')
        made = self._aside / f"{number}.nq"
        made.write_text("".join(quads) + "no quad\n", encoding="utf-8")
        made.rename(self.source / made.name)
        self._files += 1

    def change(self) -> None:
        """GUEST comes, or goes."""
        refused: list[Refusal] = []
        if self._guests[f"v{len(self._guests)}"]:
            change = unsubscribe(self.index, [GUEST], on_refusal=refused.append)
        else:
            change = subscribe(self.index, [self._aside / f"{GUEST}.rq"], on_refusal=refused.append)
        assert not refused, refused
        self._guests[change.version.name] = not self._guests[f"v{len(self._guests)}"]

    def start(self, *more: str, point: str = "") -> subprocess.Popen[bytes]:
        """Start the stream. It kills itself at the point, if one is given."""
        begin = (
            [sys.executable, str(Path(__file__).with_name("killed_command.py")), point] if point else [str(TRIPLEWIRE)]
        )
        command = [*begin, "pipeline", "run", "--streaming", "--input", str(self.source)]
        command += ["--index", str(self.index), "--output", str(self.output.folder), *more]
        settings = {**QUICK_START, "triplewire.settle": "0", "spark.driver.memory": "1g"}
        if self._master:
            settings |= {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
        command += [f"--conf={name}={value}" for name, value in settings.items()]
        command += ["--master", self._master or "local[2,2]"]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command, env=self._environment, start_new_session=True, stdout=said, stderr=said
            )
        self.outcome.starts += 1
        return self._process

    def kill(self, kind: str) -> bool:
        """Kill a process of this kind, if there is one."""
        assert self._process is not None
        victims = _processes_of(kind, self._process.pid)
        if self._process.poll() is not None or not victims:
            return False
        victim = self._dice.choice(victims)
        with suppress(ProcessLookupError):
            if kind == DRIVER:
                os.killpg(victim, signal.SIGKILL)
                self._process.wait()
            else:
                os.kill(victim, signal.SIGKILL)
            self.outcome.kills[kind] += 1
            return True
        return False

    def kill_at_random(self, kills: int, kinds: tuple[str, ...]) -> None:
        """Kill so many times, while files arrive. The stream runs in the end."""
        for number in range(kills):
            kind = kinds[number % len(kinds)]
            ends = time.monotonic() + PATIENCE
            while True:
                self._have_it_work()
                self.add_file()
                if self._dice.random() < 0.3:
                    self.change()
                time.sleep(self._dice.random() * 1.5)
                if self.kill(kind):
                    break
                assert time.monotonic() < ends, f"there was no {kind} to kill"
            print(f"{number + 1} of {kills} kills, {self.outcome.starts} starts", file=sys.stderr, flush=True)
        self._have_it_work()

    def interrupt(self) -> subprocess.Popen[bytes]:
        """Have the stream tell all that there is, and end it with Ctrl-C. One that a kill ended is started again."""
        ends = time.monotonic() + PATIENCE
        while not self._all_is_told():
            assert time.monotonic() < ends, self.said()
            if self._process is None or self._process.poll() is not None:
                self.start("--watch", "0.1")
            time.sleep(0.5)
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(PATIENCE)
        return self._process

    def _all_is_told(self) -> bool:
        """Are all files in micro-batches that are committed?"""
        told = self.committed()
        return all((f"urn:g{number}-2", ROOT) in told for number in range(self._files))

    def finish(self) -> None:
        """End the stream that runs, and have another one do what is left."""
        with suppress(subprocess.TimeoutExpired):
            self.interrupt()
        self.close()
        self.add_file()
        assert self.start().wait(PATIENCE) == 1, self.said()  # a line of each file is refused

    def said(self) -> str:
        """What the last stream wrote to its terminal."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Kill what runs."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _have_it_work(self) -> None:
        """Have a stream that has begun a micro-batch: one that ended is started again. Some are not waited for."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None and self._process.returncode > 0:
            self.outcome.stopped += self.said().strip().splitlines()[-1:]
        begun = set(_batches(self.output))
        process = self.start("--watch", "0.1")
        if self._dice.random() < 0.15:
            time.sleep(self._dice.random() * 10)
            return
        self.add_file()
        ends = time.monotonic() + PATIENCE
        while set(_batches(self.output)) == begun and process.poll() is None:
            assert time.monotonic() < ends, f"no micro-batch: {self.said()}"
            time.sleep(0.05)

    def rows(self, part: str = "") -> list[tuple[str, str, str]]:
        """What is committed, of all micro-batches or of one: publication, subscription, version of the index."""
        return [
            (row["publication"], row["subscription"], row["index_version"])
            for file in committed_files(self.output)
            if part in ("", file.parent.name)
            for row in pq.read_table(file).to_pylist()
        ]

    def committed(self) -> Counter[tuple[str, str]]:
        """How often each pair is committed."""
        return Counter((publication, subscription) for publication, subscription, _ in self.rows())

    def look(self) -> None:
        """Compare what was committed with what was to be."""
        outcome, seen = self.outcome, self.committed()
        by_version: dict[str, set[str]] = defaultdict(set)  # publications that ROOT matched
        guests: dict[str, set[str]] = defaultdict(set)
        for publication, subscription, version in self.rows():
            if subscription in (ROOT, GUEST):
                {ROOT: by_version, GUEST: guests}[subscription][version].add(publication)
        parts = {file.parent.name for file in committed_files(self.output)}
        versions = {part: {version for *_, version in self.rows(part)} for part in parts}
        outcome.wrong_version += [f"{part}: {sorted(names)}" for part, names in versions.items() if len(names) > 1]
        graphs = [f"urn:g{number}-{graph}" for number in range(self._files) for graph in range(3)]
        wanted = {(graph, ROOT) for graph in graphs} | {("urn:again", ROOT)}
        wanted |= {(graph, CHILD) for graph in graphs if not graph.endswith("-2")}
        with_guest = {name for name, is_there in self._guests.items() if is_there}
        for version, publications in by_version.items():
            told = guests[version] - {"urn:again"}  # which ROOT and GUEST tell at different times
            right = publications - {"urn:again"} if version in with_guest else set()
            outcome.lost += [f"{name} {GUEST} ({version})" for name in sorted(right - told)]
            outcome.wrong_version += [f"{name} {GUEST} ({version})" for name in sorted(told - right)]
        outcome.wanted = len(wanted) + sum(len(names) for names in guests.values())
        outcome.lost += [" ".join(pair) for pair in sorted(wanted - set(seen))]
        outcome.repeated += [f"{' '.join(pair)}: {count}" for pair, count in sorted(seen.items()) if count > 1]
        outcome.batches, outcome.versions = len(_batches(self.output)), len(self._guests)
        files = sorted(self.output.folder.glob("dead-letter/batch=[0-9]*/*.parquet"))
        letters = Counter(name for file in files for name in pq.read_table(file)["subject"].to_pylist())
        outcome.letters = letters.total()
        poisoned = {str(self.source / f"{number}.nq") for number in range(self._files)}
        outcome.wrong_letters = [name for name, count in letters.items() if count > 1]
        outcome.wrong_letters += sorted(poisoned - {_file_of(name) for name in letters})
        status = Status.of(self.output)
        assert (status.waiting, status.running) == (0, False), status


def _file_of(subject: str) -> str:
    return re.sub(r"(\.nq).*", r"\1", subject)


def _batches(output: Output) -> list[str]:
    """The micro-batches that have begun."""
    try:
        with closing(sqlite3.connect(f"{output.arrivals.as_uri()}?mode=ro", uri=True, timeout=300)) as connection:
            return [
                str(number) for (number,) in connection.execute("SELECT DISTINCT batch FROM files WHERE batch >= 0")
            ]
    except sqlite3.OperationalError:  # there is no file yet, or no table
        return []


def _processes_of(kind: str, stream: int) -> list[int]:
    """The processes of this kind that belong to the stream or, in a cluster, to this process."""
    if kind == DRIVER:
        return [stream]
    commands: dict[int, tuple[int, str]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError, ValueError):
            parent = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(name)] = parent, Path("/proc", name, "cmdline").read_bytes().decode("utf-8", "replace")

    def is_below(process: int, above: int) -> bool:
        while process in commands and process != above:
            process = commands[process][0]
        return process == above

    def is_it(process: int) -> bool:
        parent, command = commands[process]
        if kind == WORKER:  # a fork of the daemon
            return "pyspark.daemon" in command and "pyspark.daemon" in commands.get(parent, (0, ""))[1]
        word = "CoarseGrainedExecutorBackend" if kind == EXECUTOR else "org.apache.spark.deploy.SparkSubmit"
        return word in command and "java" in command

    above = stream if kind == JVM else os.getpid()
    return [process for process in commands if is_it(process) and is_below(process, above)]


@contextmanager
def standalone_cluster(folder: Path, executors: int = 2) -> Iterator[str]:
    """A master and workers of Spark, as processes of this one. The block gets the URL of the master."""
    import pyspark

    from triplewire.pipeline.session import use_java

    use_java()
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    environment |= {"SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
    start, started = [str(home / "bin" / "spark-class")], list[subprocess.Popen[bytes]]()
    log = folder / "master.txt"
    try:
        with log.open("wb") as out:
            command = [*start, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
            started.append(subprocess.Popen([*command, "--webui-port", "0"], env=environment, stdout=out, stderr=out))
        ends = time.monotonic() + PATIENCE
        while not (found := re.search(r"Starting Spark master at (spark://\S+)", log.read_text(errors="replace"))):
            assert time.monotonic() < ends, log.read_text(errors="replace")
            time.sleep(0.1)
        for number in range(executors):
            with (folder / f"worker-{number}.txt").open("wb") as out:
                command = [*start, "org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g"]
                command += ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(folder / f"work-{number}")]
                started.append(subprocess.Popen([*command, found[1]], env=environment, stdout=out, stderr=out))
        yield found[1]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(300)


def main(arguments: list[str]) -> int:
    """Print the outcome as JSON; 1 where something was lost, repeated or matched with another version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cluster", action="store_true")
    given = parser.parse_args(arguments)
    outcome = random_kills(given.folder, given.kills, given.seed, given.cluster)
    print(json.dumps(vars(outcome), indent=1))
    return 1 if outcome.wrong() else 0


def random_kills(folder: Path, kills: int, seed: int, cluster: bool, kinds: tuple[str, ...] = ()) -> Outcome:
    """A whole campaign."""
    folder.mkdir(parents=True, exist_ok=True)
    if not cluster:
        return _campaign(Campaign(folder / "run", seed), kills, kinds or KINDS[False])
    with standalone_cluster(folder) as master:
        there = {"SPARK_LOCAL_IP": "127.0.0.1"}  # else executors look for the driver at the machine's name
        return _campaign(Campaign(folder / "run", seed, master, there), kills, kinds or KINDS[True])


def _campaign(campaign: Campaign, kills: int, kinds: tuple[str, ...]) -> Outcome:
    try:
        campaign.add_file()
        campaign.kill_at_random(kills, kinds)
        campaign.finish()
        campaign.look()
    finally:
        campaign.close()
    return campaign.outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
