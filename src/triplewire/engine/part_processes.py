"""Processes of this machine that load parts of subscription files.

Each is `python -m triplewire.engine.part_processes TASK`. What is loaded, and how: `triplewire.engine.part_loading`.
Such a process writes what it failed of, and ends with the one that started it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from triplewire.child_process import end, started
from triplewire.engine.arguments import Workers
from triplewire.engine.part_loading import LoadTask, load_part
from triplewire.errors import StoreError, TriplewireError, text_of_raised

_REMEDY = "where it has taken too much memory or room on the disk, load with workers=1, which takes less"


def workers_here(count: int) -> Workers:
    """So many processes of this machine, this one among them, each with as many rows."""
    return Workers([1.0] * count, run)


@contextmanager
def run(tasks: Sequence[LoadTask]) -> Iterator[Callable[[], None]]:
    """A process for each task; see `Workers`. Raises `StoreError` where one cannot be started, or fails."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for task in tasks:
            processes.append(_started(task))
        yield lambda: _wait_for(processes)
    finally:
        for process in processes:
            end(process)


def _started(task: LoadTask) -> subprocess.Popen[bytes]:
    path = task.path("task")
    try:
        path.write_bytes(pickle.dumps(task))
        return started("triplewire.engine.part_processes", str(path), environment={"OPENBLAS_NUM_THREADS": "1"})
    except OSError as error:
        raise StoreError(f"a process that loads subscriptions cannot be started: {error}", remedy=_REMEDY) from error


def _wait_for(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), True)
        said = process.stdout.read().decode(errors="replace").strip()
        if process.wait():
            what = f"failed: {said}" if said else f"ended ({end(process)})"
            raise StoreError(f"a process that loads subscriptions has {what}", remedy=_REMEDY)


def main(path: str) -> None:
    """Do the task in a file."""
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        load_part(pickle.loads(Path(path).read_bytes()))
    except (TriplewireError, OSError, MemoryError) as error:
        print(text_of_raised(error))
        sys.exit(1)


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is written to it, so that this ends with who might
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
