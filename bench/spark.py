"""The pipeline on Spark, from the outside: `triplewire pipeline run` as a stream in a process of its own.

A stream is warm before anything is timed: all workers have read the subscriptions and loaded the kernels. A time is
that from the moment in which a file appears to the moment in which its matches are committed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench import measure, partition
from bench.report import MEGA, Figure
from bench.workloads.catalogue import RTF_SUBSCRIPTIONS, Case, Place, rtf_case
from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.read import read

# --- spark floor -----------------------------------------------------------------------------------------------------
# The least that a micro-batch of Structured Streaming takes: a stream that does nothing, to time others beside.


_PROGRAM = """
import json, os, sys, threading, time
from pathlib import Path
from triplewire.pipeline.session import session_for
from triplewire.pipeline.connect.documents import escape, streamed_files

folder, master = Path(sys.argv[1]), sys.argv[2]
listings, done = folder / "listings", threading.Semaphore(0)
listings.mkdir()

def work(rows, number):
    rows.collect()
    done.release()

with session_for("floor", master=master, log=folder / "log") as spark:
    rows = streamed_files(spark, "json", "path string, length long").load(escape(str(listings)))
    writer = rows.writeStream.trigger(processingTime="0.05 seconds")
    query = writer.option("checkpointLocation", f"file://{folder / 'checkpoint'}").foreachBatch(work).start()
    for number, _ in enumerate(sys.stdin):
        aside = listings / ".aside"
        aside.write_text(json.dumps({"path": "file:/none", "length": 1}) + "\\n")
        begun = time.perf_counter()
        os.rename(aside, listings / f"{number:010}.json")
        if not done.acquire(timeout=600):
            break
        print(time.perf_counter() - begun, flush=True)
    query.stop()
"""


@contextmanager
def empty_stream(folder: Path, master: str) -> Iterator[Callable[[], float]]:
    """An empty stream that is running: a call gives the seconds from a file that appears to the end of its
    micro-batch. Raises `TriplewireError` where the stream fails."""
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(folder), master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )

    def seconds() -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise TriplewireError("an empty stream of Spark's failed", source=str(folder / "said"))
        return float(line)

    try:
        yield seconds
    finally:
        process.communicate()  # the end of its input ends it


# --- spark ------------------------------------------------------------


OF_EMBEDDED, TWO_EXECUTORS = 0.8, 1.8
MORE_PERCENT, VISIBLE_SECONDS, LATENCY_SECONDS = 10, 1.0, 0.25
INDEX_SUBSCRIPTIONS = 1_000_000
EXECUTOR_MEGABYTES = 2_048

_PUBLICATIONS, _A_FILE = 4_096, 16  # each publication has some thousand matches
_RUNS, _SAMPLES, _WARM = 5, 15, 5
_PATIENCE, _PATIENCE_AT_THE_END = 600, 60  # seconds that anything may take, and the end of a stream
_LOOK, _LOOK_AT_MANY, _PAUSE = 0.005, 0.05, 0.6  # seconds between looks for matches of a file, of many; between files
_WATCH, _WATCH_FOR_MANY = 0.02, 0.25  # seconds between a stream's looks for files: for latencies, for throughput
_COUNT = "sum(number & 3 for number in range(100_000_000))"
_ASK = {"language": "sparql", "query": "ASK { ?s <urn:bench:p> ?o }"}


def cases(place: Place) -> list[Case]:
    """RTF as for the pipeline, RTF as a large index, and those of `partition` that have targets."""
    size = place.sized(RTF_SUBSCRIPTIONS)
    out = [rtf_case(place, 50, size), rtf_case(place, 50, place.sized(INDEX_SUBSCRIPTIONS), label="index")]
    return [*out, *partition.aimed_cases(place)]


def measure_pipeline(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """All figures."""
    full = place.size is None
    case, index, *others = given
    files = _files(case.publications, place.work)
    yield from _against_embedded(place, case, files, matcher, full)
    yield from _executors(place, case, files, full)
    yield from _second_worker(place, index, full)
    yield from _visible(place, full)
    yield from partition.aimed(place, others, matcher)


def _files(publications: Path, work: Path) -> list[bytes]:
    """The first `_PUBLICATIONS`, as the contents of files of `_A_FILE` each."""
    sizes = range(_A_FILE, _PUBLICATIONS + 1, _A_FILE)
    ends = [part.bytes for part in measure.split_publications(publications, sizes, work)]
    data = publications.read_bytes()
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


# --- a stream --------------------------------------------------------------------------------------------------------


class Stream:
    """A running stream, with an input folder of its own."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self._process = process
        self._published = 0
        self._committed: set[str] = set()
        self._publications = 0

    def publish(self, contents: Sequence[bytes]) -> float:
        """Let files appear, all at once; returns when."""
        for content in contents:
            self._published += 1
            (self.folder / "aside" / f"{self._published}.nq").write_bytes(content)
        begun = time.perf_counter()
        for number in range(self._published - len(contents) + 1, self._published + 1):
            os.rename(self.folder / "aside" / f"{number}.nq", self.folder / "in" / f"{number}.nq")
        return begun

    def seconds(self, contents: Sequence[bytes], publications: int) -> float:
        """Seconds from files to their committed matches."""
        wanted = self._publications + publications
        begun = self.publish(contents)
        while self.count() < wanted:
            self.wait(begun, _LOOK if len(contents) == 1 else _LOOK_AT_MANY)
        return time.perf_counter() - begun

    def wait(self, begun: float, seconds: float = _LOOK) -> None:
        """Wait a moment. Raises `TriplewireError` where the stream has ended, or all takes too long."""
        if self._process.poll() is not None or time.perf_counter() > begun + _PATIENCE:
            said = (self.folder / "said").read_text(errors="replace").strip().splitlines() or ["it took too long"]
            raise TriplewireError(f"the stream ended: {said[-1]}")
        time.sleep(seconds)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the stream's processes meanwhile, so that its looks for files and its JVMs take no time from others."""
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)

    def count(self) -> int:
        """The publications of all committed micro-batches."""
        for batch in self.new_batches():
            self._publications += json.loads((batch / "_counts.json").read_text())["own"]["publications"]
        return self._publications

    def new_batches(self) -> list[Path]:
        """The folders of micro-batches that were committed since this was last asked."""
        matches = self.folder / "out" / "matches"
        names = [name for name in (os.listdir(matches) if matches.exists() else []) if name not in self._committed]
        self._committed.update(names)
        return [matches / name for name in names]


@contextmanager
def stream(place: Place, master: str, *more: str, watch: float = _WATCH) -> Iterator[Stream]:
    """A stream with these subscriptions, or this index, which looks for new files every `watch` seconds."""
    with tempfile.TemporaryDirectory(dir=place.work) as name:
        folder = Path(name)
        for below in ("in", "aside"):
            (folder / below).mkdir()
        command = [sys.executable, "-m", "triplewire", "pipeline", "run", "--streaming", "--watch", str(watch)]
        command += ["--repeat", "--conf", "triplewire.settle=0", "--master", master, *more]
        if master.startswith("local-cluster"):
            command += ["--conf", f"spark.executor.memory={EXECUTOR_MEGABYTES}m"]
        command += ["--input", str(folder / "in"), "--output", str(folder / "out")]
        with (folder / "said").open("wb") as said:
            environment = {**os.environ, "SPARK_HOME": str(_spark_home(folder))}
            process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
            try:
                yield Stream(folder, process)
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_PATIENCE_AT_THE_END)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _spark_home(folder: Path) -> Path:
    """Where executors write: below SPARK_HOME, which is not to be the installed package."""
    found_at = importlib.util.find_spec("pyspark")
    if found_at is None or found_at.origin is None:
        raise TriplewireError("Spark is not installed", remedy="pip install '.[spark]'")
    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars", "python", "sbin"):
        (home / name).symlink_to(Path(found_at.origin).parent / name)
    return home


# --- throughput and latency ------------------------------------------------------------------------------------------


def _against_embedded(place: Place, case: Case, files: list[bytes], matcher: str, full: bool) -> Iterator[Figure]:
    """Files in, Parquet out, against `match_batch` on the same cores, by turns; and one file at a time, against a
    stream of Spark's that does nothing."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    master = f"local[{cores},2]"
    embedded, publications = _embedded(case, files, matcher, cores)
    with stream(place, master, "--subscriptions", str(case.subscriptions)) as running:
        ways: list[Callable[[], float]] = [embedded, partial(running.seconds, files, publications)]
        rates = _rates(ways, publications)
        latencies, floors = _latencies(running, place, master)
    label = f"{place.sized(RTF_SUBSCRIPTIONS):,} subscriptions"
    yield Figure("spark", f"{label}: embedded match_batch, {cores} threads", rates[0], "publications/s")
    yield Figure("spark", f"{label}: pipeline, files to Parquet", rates[1], "publications/s")
    target = OF_EMBEDDED if full else None
    yield Figure("spark", f"{label}: pipeline over embedded", rates[1] / rates[0], "x", target, at_least=True)
    latency, floor = statistics.median(latencies), statistics.median(floors)
    limit = LATENCY_SECONDS if full else None
    yield Figure("spark", "micro-batch latency, file to match, median", latency, "s", limit)
    yield Figure("spark", "the same of an empty stream of Spark's", floor, "s")
    yield Figure("spark", "micro-batch latency over that of an empty stream", latency / floor, "x")


def _latencies(running: Stream, place: Place, master: str) -> tuple[list[float], list[float]]:
    """The latencies of a stream and of an empty one, by turns."""
    latencies, floors = [], []
    with tempfile.TemporaryDirectory(dir=place.work) as name, empty_stream(Path(name), master) as empty:
        for number in range(-_WARM, _SAMPLES):
            time.sleep(_PAUSE)
            seconds = running.seconds([b"<urn:s> <urn:p> <urn:o> .\n"], 1)
            time.sleep(_PAUSE)
            floor = empty()
            if number >= 0:
                latencies.append(seconds)
                floors.append(floor)
    return latencies, floors


def _rates(ways: Sequence[Callable[[], float]], publications: int) -> list[float]:
    """Publications a second of ways that tell their seconds: each warm, one after the other by turns."""
    for way in (*ways, *ways):
        way()
    seconds = [[way() for way in ways] for _ in range(_RUNS)]
    return [publications / statistics.median(own) for own in zip(*seconds, strict=True)]


def _embedded(case: Case, files: list[bytes], matcher: str, threads: int) -> tuple[Callable[[], float], int]:
    """`match_batch` over the publications, which gives its seconds; and how many publications there are."""
    engine = measure.load(matcher, case.subscriptions)
    batches = [to_batch(read(content)) for content in files]

    def work(first: int) -> None:
        for batch in batches[first::threads]:
            engine.match_batch(batch, on_refusal=lambda refusal: None)

    def once() -> float:
        begun = time.perf_counter()
        running = [threading.Thread(target=partial(work, first)) for first in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return time.perf_counter() - begun

    return once, sum(batch.num_rows for batch in batches)


def _executors(place: Place, case: Case, files: list[bytes], full: bool) -> Iterator[Figure]:
    """Two executors against one, each a process of its own with one core, by turns, while the other is paused."""
    publications = sum(to_batch(read(content)).num_rows for content in files)
    with ExitStack() as open_streams:
        single, double = (
            open_streams.enter_context(
                stream(
                    place,
                    f"local-cluster[{executors},1,{EXECUTOR_MEGABYTES}]",
                    "--subscriptions",
                    str(case.subscriptions),
                    watch=_WATCH_FOR_MANY,
                )
            )
            for executors in (1, 2)
        )
        for running in (single, double):
            running.seconds(files[:1], _A_FILE)  # wait until it has started, as a start must not be paused

        def seconds(measured: Stream, other: Stream) -> float:
            with other.paused():
                return measured.seconds(files, publications)

        def counting(processes: int) -> float:
            with single.paused(), double.paused():
                return _counting(processes)

        ways = [partial(seconds, single, double), partial(seconds, double, single)]
        rates = _rates([*ways, partial(counting, 1), partial(counting, 2)], publications)
    for executors, rate in enumerate(rates[:2], 1):
        yield Figure("spark", f"{executors} executors of one core", rate, "publications/s")
    target = TWO_EXECUTORS if full else None
    yield Figure("spark", "two executors over one", rates[1] / rates[0], "x", target, at_least=True)
    yield Figure("spark", "two processes that only count over one", 2 * rates[3] / rates[2], "x")


def _counting(processes: int) -> float:
    """Seconds in which so many processes count, all at once. Two of them tell what the machine gives to a second one:
    cores may share what they compute with."""
    begun = time.perf_counter()
    started = [subprocess.Popen([sys.executable, "-c", _COUNT]) for _ in range(processes)]
    for process in started:
        process.wait()
    return time.perf_counter() - begun


# --- the index -------------------------------------------------------------------------------------------------------

_OPEN = """
import sys
from triplewire.engine import Engine
def private():
    with open("/proc/self/smaps_rollup") as stream:
        return sum(int(line.split()[1]) for line in stream if line.startswith("Private_")) * 1024
def match(engine):
    for result in engine.match_files(sys.argv[2]):
        len(result)
warm = Engine.load(sys.argv[3])
match(warm)  # kernels, and what is imported when it is needed
before = private()
engine = Engine.load(sys.argv[1])
match(engine)
print(private() - before, flush=True)
sys.stdin.read()
"""


def _second_worker(place: Place, case: Case, full: bool) -> Iterator[Figure]:
    """What a second process adds to memory that opens an index which another one has open, as percent of the index."""
    engine, few = measure.load("trie", case.subscriptions), Engine()
    few.subscribe(_ASK["query"], id="few")
    folders = place.work / "saved-index", place.work / "saved-few"
    for saved, folder in zip((engine, few), folders, strict=True):
        saved.save(str(folder))
    size = sum(file.stat().st_size for file in folders[0].rglob("*") if file.is_file())
    del engine
    source = measure.split_publications(case.publications, (8,), place.work)[0].path
    command = [sys.executable, "-c", _OPEN, str(folders[0]), str(source), str(folders[1])]
    added = []
    with ExitStack() as running:  # at its end their input is closed, by which they end
        for _ in range(2):  # one after the other: what the first has opened by then is there for the second
            process = running.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            added.append(int((process.stdout.readline() if process.stdout is not None else "") or -1))
    shutil.rmtree(folders[0])
    label = f"index of {size / MEGA:,.0f} MB opened by a second process"
    if min(added) < 0:
        yield Figure("spark", label, None, "%", MORE_PERCENT, note="the process that opens it failed")
        return
    yield Figure("spark", label, 100 * added[1] / size, "%", MORE_PERCENT if full else None)


def _visible(place: Place, full: bool) -> Iterator[Figure]:
    """Seconds from the end of `pipeline subscribe` to the first match of the new subscription in a running stream."""
    what, target = "a new subscription visible to a running stream", VISIBLE_SECONDS if full else None
    index, file = place.work / "live-index", place.work / "live.jsonl"
    try:
        _write_row(file, "first")
        _command("pipeline", "index", "--subscriptions", str(file), "--output", str(index))
        with stream(place, "local[1,2]", "--index", str(index)) as running:
            quad = "<urn:s> <urn:bench:p> <urn:o> <urn:{}> .\n"
            running.seconds([quad.format("warm").encode()], 1)
            _write_row(file, "second")
            _command("pipeline", "subscribe", "--index", str(index), str(file))
            begun, number = time.perf_counter(), 0
            while not any(_has(batch, "second") for batch in running.new_batches()):
                number += 1
                if number % 20 == 1:
                    running.publish([quad.format(number).encode()])
                running.wait(begun)
            seconds = time.perf_counter() - begun
    except TriplewireError as error:
        yield Figure("spark", what, None, "s", target, note=str(error))
        return
    yield Figure("spark", what, seconds, "s", target)


def _write_row(file: Path, id_: str) -> None:
    file.write_text(json.dumps({"id": id_, **_ASK}) + "\n")


def _command(*arguments: str) -> None:
    """Run a command. Raises `TriplewireError` where it ends with an error."""
    done = subprocess.run(
        [sys.executable, "-m", "triplewire", *arguments], capture_output=True, text=True, check=False, timeout=_PATIENCE
    )
    if done.returncode not in (0, 1):
        raise TriplewireError(f"triplewire {' '.join(arguments[:2])}: {(done.stderr.strip().splitlines() or [''])[-1]}")


def _has(batch: Path, subscription: str) -> bool:
    tables: list[pa.Table] = [pq.read_table(file, columns=["subscription"]) for file in batch.glob("part-*.parquet")]
    return any(subscription in table["subscription"].to_pylist() for table in tables)
