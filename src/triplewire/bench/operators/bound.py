"""How few calls an event needs at least, whoever chooses them and whatever is known: a proven lower bound.

Of a subscription that matches, all calls have to be made. Of any other one, a false call: the calls made hit the set
of false calls of each. The smallest such hitting set has no fewer calls than the smallest fractional one, and that, by
duality of linear programs, no less than any fractional packing: weights of subscriptions, of which no call has more
than 1 in all. Such a packing is computed by a primal-dual method (Chambolle, Pock: A first-order primal-dual algorithm
for convex problems, JMIV 2011) and then scaled until no call has more than 1, which makes it a proof by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triplewire.bench.workloads.operators import CallWorkload, Truths

_STEPS = 300  # past that the packing grows by less than 0.1 %


def least_calls(workload: CallWorkload, truth: Truths, steps: int = _STEPS) -> float:
    """The lower bound for an event."""
    count = len(workload.offset) - 1
    subscription = np.repeat(np.arange(count), np.diff(workload.offset))
    is_false = ~truth[workload.predicate]
    matches = np.bincount(subscription, is_false, count) == 0
    needed = len(np.unique(workload.predicate[matches[subscription]]))
    if not is_false.any():
        return float(needed)
    _, rows = np.unique(subscription[is_false], return_inverse=True)
    _, calls = np.unique(workload.predicate[is_false], return_inverse=True)
    return needed + _packed(rows, calls, steps)


def _packed(rows: NDArray[np.int64], calls: NDArray[np.int64], steps: int) -> float:
    """The weight of a packing: `rows` (ascending) and `calls` are the pairs of a subscription and a false call."""
    first = np.append(0, np.flatnonzero(np.diff(rows)) + 1)
    row_step, call_step = 1 / np.bincount(rows), 1 / np.bincount(calls)
    hit, ahead, packing = np.zeros(len(call_step)), np.zeros(len(call_step)), np.zeros(len(row_step))
    for _ in range(steps):
        packing = np.maximum(0, packing + row_step * (1 - np.add.reduceat(ahead[calls], first)))
        more = np.maximum(0, hit - call_step * (1 - np.bincount(calls, packing[rows])))
        hit, ahead = more, 2 * more - hit
    load = np.bincount(calls, packing[rows])
    return float((packing / np.maximum(np.maximum.reduceat(load[calls], first), 1)).sum())
