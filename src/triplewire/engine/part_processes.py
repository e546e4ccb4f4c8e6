"""Parts of subscription files, each loaded by a process of its own: `python -m triplewire.engine.part_processes TASK`.

The process writes a line of JSON for what it has done so far: how many subscriptions; in the end what became of the
part, or what it failed of. It ends when nobody reads that. What is loaded, and how: `triplewire.engine.part_loading`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from triplewire.child_process import end, started
from triplewire.engine.part_loading import LoadedPart, LoadTask, load_part
from triplewire.errors import StoreError, TriplewireError, text_of_raised

_REMEDY = "where it has taken too much memory or room on the disk, load with workers=1, which takes less"
_CHUNK = 1 << 16


@dataclass
class _Process:
    """A process, and what it has told: subscriptions so far, then what became of its part."""

    process: subprocess.Popen[bytes]
    came: bytearray = field(default_factory=bytearray)
    subscriptions: int = 0
    loaded: LoadedPart | None = None

    def read(self) -> int:
        """Read what it says; returns how many subscriptions are new. Raises `StoreError` where it has failed or ended
        before it was done."""
        assert self.process.stdout is not None
        data, before = os.read(self.process.stdout.fileno(), _CHUNK), self.subscriptions
        if not data:
            raise StoreError(f"a process that loads subscriptions has ended ({end(self.process)})", remedy=_REMEDY)
        self.came += data
        *lines, self.came[:] = self.came.split(b"\n")
        for said in map(json.loads, lines):
            if isinstance(said, str):
                raise StoreError(f"a process that loads subscriptions has failed: {said}", remedy=_REMEDY)
            if isinstance(said, list):
                self.loaded = LoadedPart(*said)
            else:
                self.subscriptions = said
        return self.subscriptions - before


def run(tasks: Sequence[LoadTask]) -> Generator[int, None, list[LoadedPart]]:
    """Have each task done by a process of its own; see `part_loading.Run`. Raises `StoreError` where one fails."""
    processes: list[_Process] = []
    try:
        with selectors.DefaultSelector() as selector:
            for task in tasks:
                task.write()
                processes.append(_Process(_started(task)))
                selector.register(processes[-1].process.stdout, selectors.EVENT_READ, processes[-1])  # type: ignore[arg-type]  # it is there
            while (wanted := _wanted(processes)) and not all(process.loaded for process in wanted):
                for key, _ in selector.select():
                    yield key.data.read()
                    if key.data.loaded:
                        selector.unregister(key.fileobj)
        return [process.loaded for process in wanted if process.loaded]
    finally:
        for process in processes:
            end(process.process)


def _started(task: LoadTask) -> subprocess.Popen[bytes]:
    try:
        return started(__name__, str(task.path("task")), environment={"OPENBLAS_NUM_THREADS": "1"})
    except OSError as error:
        raise StoreError(f"a process that loads subscriptions cannot be started: {error}", remedy=_REMEDY) from error


def _wanted(processes: Sequence[_Process]) -> Sequence[_Process]:
    """Those up to the first one whose part was not read to its end, or has stopped."""
    for number, process in enumerate(processes, 1):
        if process.loaded and (process.loaded.has_stopped or not process.loaded.is_whole):
            return processes[:number]
    return processes


def main(path: str) -> None:
    """Do the task in a file."""
    task, out = LoadTask.read(path), sys.stdout
    sys.stdout = sys.stderr  # whatever else is written goes nowhere
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        try:
            said: object = load_part(task, lambda count: print(count, file=out, flush=True))
        except BrokenPipeError:
            raise
        except (TriplewireError, OSError, MemoryError) as error:
            said = text_of_raised(error)
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
