"""Runs an order of calls over events whose outcomes are known, and tells which calls it made."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.bench.workloads.operators import CallWorkload, Truths
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.kernels.calls.event import FALSE, TRUE
from triplewire.model.terms import Literal
from triplewire.operators.order.named import order_named
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Expected
from triplewire.operators.order.statistics import LearnedCalls

_NOTHING = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Run:
    """What an order took in the mean of some events."""

    calls: float
    cost: float
    planning: float  # seconds


def known_chances(workload: CallWorkload, order: str, events: list[Truths]) -> Run:
    """An order that is told how likely each predicate is true, as in the paper; each call costs the same."""
    asked = Conjunctions.of(workload.offset, workload.predicate)
    expected = Expected(1 - workload.true[asked.row], np.ones(len(asked.row)))
    plan, runs = order_named(order), []
    for truth in events:
        begun = time.perf_counter()
        made = calls_made(plan, asked, truth, expected)
        runs.append((len(made), float(len(made)), time.perf_counter() - begun))
    return Run(*np.mean(runs, axis=0).tolist())


def learning(workload: CallWorkload, order: str, events: list[Truths], cost: NDArray[np.float64] | None = None) -> Run:
    """An order that learns from event to event, and knows nothing at first. `cost`: seconds of a call, by predicate."""
    learned = LearnedCalls()
    numbers, dense = np.unique(workload.predicate, return_inverse=True)
    rows = learned.rows([CallKey("holds", (Literal(str(number)),)) for number in numbers.tolist()])
    asked = Conjunctions.of(workload.offset, rows[dense])
    predicate = np.empty(len(asked.row), np.int64)  # call -> predicate
    predicate[np.searchsorted(asked.row, rows)] = numbers
    plan, runs = order_named(order), []
    for truth in events:
        begun = time.perf_counter()
        made = calls_made(plan, asked, truth[predicate], learned.expected(asked.row), direct=True)
        planning = time.perf_counter() - begun
        seconds = np.full(len(made), 0.01) if cost is None else cost[predicate[made]]
        learned.add(asked.row[made], truth[predicate[made]], seconds)
        runs.append((len(made), float(seconds.sum()), planning))
    return Run(*np.mean(runs, axis=0).tolist())


def calls_made(
    order: CallOrder, asked: Conjunctions, truth: Truths, expected: Expected, direct: bool = False
) -> NDArray[np.int32]:
    """The calls that an order makes of an event, in turn. `truth`: by predicate; with `direct` by call."""
    outcomes = np.where(truth if direct else truth[asked.row], TRUE, FALSE).astype(np.int8)
    everybody = np.arange(len(asked.offset) - 1, dtype=np.int32)
    event = asked.begun(everybody, _NOTHING, np.zeros(0, np.int8))
    plan = order.plan(event, asked, expected)
    made: list[NDArray[np.int32]] = [_NOTHING]
    portion = next(plan, None)
    while portion is not None:
        came = outcomes[portion.calls]
        if portion.guesses:
            surprise = np.flatnonzero((came == TRUE) != np.array(portion.guesses))
            came = came[: surprise[0] + 1] if len(surprise) else came
        made.append(portion.calls[: len(came)])
        try:
            portion = plan.send(came)
        except StopIteration:
            break
    return np.concatenate(made)
