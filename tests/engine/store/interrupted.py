"""Saves that are killed. Run as a program: it forks children that save, and ends them with SIGKILL.

    python interrupted.py FOLDER first|again COUNT SEED       prints {"before" | "after": how many} as JSON

"first": there is no folder before. "again": an engine was saved there. COUNT children are killed at random moments, and
one child at each call by which a save changes the disk. After each, the folder holds the engine before or the engine
after, whole; nothing else is left of it after the next save.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.store.all_sorts import build, data_files
from triplewire import Engine
from triplewire.engine.store.directory import MANIFEST


def killed(work: Callable[[], object], wait: Callable[[int], None]) -> bool:
    """Do the work in a child process; was it killed before it ended? `wait` gets the child's number."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    wait(child)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def dying(work: Callable[[], object], number: int) -> Callable[[], object]:
    """The work, killed at its call of this number that changes the disk."""

    def traced() -> object:
        left = number

        def hook(event: str, _: tuple[Any, ...]) -> None:
            nonlocal left
            if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.truncate", "fcntl.flock"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        return work()

    return traced


def main(place: str, kind: str, count: str, seed: str, step: str) -> None:
    """Kill, look, and save again: at `count` random moments, and at every `step`-th call that changes the disk."""
    folder, drawn, seen = Path(place), random.Random(int(seed)), {"before": 0, "after": 0}
    before, after = build(3), build(4)
    sizes = {"before": len(before.subscriptions), "after": len(after.subscriptions)}

    def prepared() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if kind == "again":
            before.save(folder)

    def looked() -> None:
        if kind == "first" and not (folder / MANIFEST).exists():
            found = sizes["before"]
        else:
            found = len(Engine.load(folder).subscriptions)
        seen[{size: name for name, size in sizes.items()}[found]] += 1
        after.save(folder)
        assert len(Engine.load(folder).subscriptions) == sizes["after"]
        assert len(data_files(folder)) == 4
        assert len(list(folder.iterdir())) == 5

    prepared()
    begun = time.perf_counter()
    after.save(folder)
    seconds = time.perf_counter() - begun
    for _ in range(int(count)):
        prepared()
        moment = drawn.uniform(0, 1.5 * seconds)

        def kill(child: int, moment: float = moment) -> None:
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)

        killed(lambda: after.save(folder), kill)
        looked()
    number, was_killed = 0, True
    while was_killed:
        prepared()
        number += int(step)
        was_killed = killed(dying(lambda: after.save(folder), number), lambda child: None)
        looked()
    assert number > 15
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
