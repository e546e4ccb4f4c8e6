"""Deals the files of a Spark job to its tasks by size.

Tasks get smaller towards the end of the job, and the one with most bytes begins first: docs/decisions/036.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

_OF_A_TASK = 256  # files, at most
_PARTS = 16  # the smallest task is this part of the files that each processor reads: a sixteenth


def assign_tasks(sizes: Sequence[int], at_a_time: int) -> list[int]:
    """File -> the number of its task; task 0 has most bytes. Files are taken from the largest to the smallest, and each
    goes to the task that has the fewest bytes for its share so far. `at_a_time`: how many tasks Spark does at a
    time."""
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
    """Task -> its share, in files of equal size: half of an even split of the files that are left, so that the last
    tasks are small ("Guided self-scheduling", Polychronopoulos and Kuck, IEEE ToC 36(12), 1987)."""
    shares: list[int] = []
    least = max(1, files // (_PARTS * at_a_time))
    while files:
        share = min(max(-(-files // (2 * at_a_time)), least), _OF_A_TASK, files)
        shares.append(share)
        files -= share
    return shares
