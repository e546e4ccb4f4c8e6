"""The least that a micro-batch of Structured Streaming takes: a stream that does nothing, to time others beside.

It reads small files of JSON, calls Python once a micro-batch and collects what there is. What it takes is Spark's
own: looking for files, its logs, planning, one job of one task. It runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from triplewire.errors import TriplewireError

_PROGRAM = """
import json, os, sys, threading, time
from pathlib import Path
from triplewire.pipeline.session import session_for
from triplewire.pipeline.connect.globs import escape, streamed_files

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
