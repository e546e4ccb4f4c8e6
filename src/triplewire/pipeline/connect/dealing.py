"""Deals the files of a Spark job to its tasks by size.

Tasks get smaller towards the end of the job, and the one with most bytes begins first: docs/decisions/092 and 093.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

_OF_A_TASK = 256  # files, at most
_PARTS = 16  # the smallest task is this part of the files that each processor reads: a sixteenth


def dealt(sizes: Sequence[int], at_a_time: int) -> list[int]:
    """The task of each file: as many bytes for each task as goes by its share, and that with most of them first. The
    largest file goes to the task that has least of its share so far, then the next one. `at_a_time`: how many tasks
    Spark does at a time."""
    shares = _shares(len(sizes), at_a_time)
    tasks = len(shares)
    task_of, files, load = [0] * len(sizes), [0] * tasks, [0] * tasks
    least = [(0.0, task) for task in range(tasks)]  # a heap of those that have room
    for file in sorted(range(len(sizes)), key=lambda file: -sizes[file]):
        _, task = heapq.heappop(least)
        task_of[file] = task
        files[task] += 1
        load[task] += sizes[file]
        if files[task] < _OF_A_TASK:
            heapq.heappush(least, (load[task] / shares[task], task))
    place = {task: at for at, task in enumerate(sorted(range(tasks), key=lambda task: -load[task]))}
    return [place[task] for task in task_of]


def _shares(files: int, at_a_time: int) -> list[int]:
    """How many of equal files each task is to have: half of its part of those that are left, so that none has much to
    do when the others are done ("Guided self-scheduling", Polychronopoulos and Kuck, IEEE ToC 36(12), 1987)."""
    shares: list[int] = []
    least = max(1, files // (_PARTS * at_a_time))
    while files:
        share = min(max(-(-files // (2 * at_a_time)), least), _OF_A_TASK, files)
        shares.append(share)
        files -= share
    return shares
