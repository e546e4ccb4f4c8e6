"""What a run or a stream has done so far, and what waits: from its output folder, without Spark.

`Status.of` reads it; `write_metrics` puts the same figures into `_metrics.prom`, in the text format of Prometheus,
whose node exporter collects it.
"""

from __future__ import annotations

import fcntl
import time
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.parquet as pq

from triplewire.folders import replace_text
from triplewire.pipeline.output import DEAD_LETTER, MATCHES, Output
from triplewire.pipeline.results.committed import check_output
from triplewire.pipeline.results.counts import last_batch, last_counts
from triplewire.state_file import connected

METRICS = "_metrics.prom"

_COUNTED = ("batches", "publications", "matches", "refused", "repeats", "candidates")


@dataclass(frozen=True)
class Status:
    """The state of an output folder. The counts are those of all committed micro-batches (1 for a batch run); `refused`
    has what starts of a stream refused beside them, too.

    `waiting` are the files that were seen and are in no committed micro-batch, `oldest_seconds` how long the first of
    them has waited; None for a batch run, and for files of another file system, which Spark looks for itself. `version`
    is that of the subscriptions of the last start; `index_version` that of the index of the last micro-batch.
    """

    streaming: bool
    running: bool
    batches: int = 0
    publications: int = 0
    matches: int = 0
    refused: int = 0
    repeats: int = 0
    candidates: int = 0
    waiting: int | None = None
    oldest_seconds: float | None = None
    version: str = ""
    index_version: str | int | None = None
    last_batch: int | None = None
    last_committed: str = ""
    last_seconds: float = 0.0
    last_publications: int = 0
    last_matches: int = 0
    last_candidates: int = 0

    @classmethod
    def of(cls, output: Output) -> Status:
        """Of an output folder. Raises `TriplewireError` where it is none."""
        check_output(output)
        record = output.last_record() or {}
        streaming = record.get("streaming") is True
        matches = output.folder / MATCHES
        if not matches.exists():  # a batch run was killed as it took the place of the one before
            matches = output.replaced / MATCHES
        figures: dict[str, Any] = {}
        counts = last_counts(matches)
        if counts is not None:
            figures |= asdict(counts.total) | {"last_committed": counts.committed, "last_seconds": counts.seconds}
            figures |= {"last_publications": counts.own.publications, "last_matches": counts.own.matches}
            figures |= {"last_candidates": counts.own.candidates}
            figures |= {"index_version": counts.more.get("index_version")}
        figures["refused"] = figures.get("refused", 0) + _refused_beside(output)
        number = last_batch(matches)
        if streaming and record.get("remote") is not True:
            figures["waiting"], figures["oldest_seconds"] = _waiting(output, number)
        version = record.get("subscriptions")
        return cls(
            streaming, _is_running(output), version=version if isinstance(version, str) else "", last_batch=number,
            **figures,
        )  # fmt: skip

    def as_metrics(self) -> str:
        """In the text format of Prometheus."""
        lines: list[str] = []
        for name in _COUNTED:
            lines += _metric(
                f"triplewire_{name}_total", "counter", f"{name}, of all micro-batches", getattr(self, name)
            )
        gauges = {
            "waiting_files": ("files seen and not yet matched", self.waiting),
            "oldest_waiting_seconds": ("how long the first of them has waited", self.oldest_seconds),
            "last_batch_seconds": ("how long the last micro-batch took", self.last_seconds),
            "last_batch_publications": ("publications of the last micro-batch", self.last_publications),
            "last_batch_matches": ("matches of the last micro-batch", self.last_matches),
            "last_batch_candidates": ("candidates of the last micro-batch", self.last_candidates),
            "written_timestamp_seconds": ("when this was written", round(time.time(), 3)),
        }
        for name, (what, value) in gauges.items():
            if value is not None:
                lines += _metric(f"triplewire_{name}", "gauge", what, value)
        return "\n".join(lines) + "\n"


def write_metrics(output: Output) -> None:
    """Write `_metrics.prom`, so that nobody reads half of it."""
    replace_text(output.folder / METRICS, Status.of(output).as_metrics())


def _metric(name: str, kind: str, what: str, value: float) -> list[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}", f"{name} {value}"]


def _is_running(output: Output) -> bool:
    """Does a process hold the folder? A start that comes in this moment waits for us (`output.Output.prepare`)."""
    try:
        with open(output.folder / "_lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _refused_beside(output: Output) -> int:
    """What starts of a stream refused beside the micro-batches."""
    count = 0
    for file in (output.folder / DEAD_LETTER).glob("batch=-*/driver-*.parquet"):
        count += sum(kind != "warning" for kind in pq.read_table(file, columns=["kind"])["kind"].to_pylist())
    return count


def _waiting(output: Output, number: int | None) -> tuple[int, float | None]:
    """The files that were taken for micro-batches after this one, and how long the first of them has waited."""
    if not output.arrivals.exists():
        return 0, None
    with connected(output.arrivals) as connection:
        query = "SELECT count(*), min(taken) FROM files WHERE batch > ?"
        waiting, taken = connection.execute(query, (-1 if number is None else number,)).fetchone()
    return waiting, round(max(time.time() - taken, 0.0), 3) if waiting else None
