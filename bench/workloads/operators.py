"""Subscriptions of operator calls, and events that say which calls are true (operators paper, section 5.2).

`generated` is the paper's generator. It leaves open how likely each predicate is true; `RECIPES` are two ways to say
so, each with 0.2 % of the subscriptions matching. `real` reads a workload of predicates over records of articles.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MATCHED = 0.002  # of the subscriptions, in the mean
SHORTEST = 3  # predicates of a subscription, at least
REAL = "operator-{}.gz"
_LIKELIEST = 1 - 1e-6
_GROUP = 50  # correlated predicates that have one cause

Truths = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CallWorkload:
    """Subscriptions 0 .. n-1 with the predicates of each, and the probability that an event satisfies a predicate."""

    offset: NDArray[np.int32]
    predicate: NDArray[np.int64]
    true: NDArray[np.float64]

    def event(self, chance: np.random.Generator, shared: float = 0.0) -> Truths:
        """Which predicates a random event satisfies. `shared`: of the predicates, the share whose truth has one cause
        with that of others, 50 of them together; their probabilities stay what they are."""
        own = chance.random(len(self.true))
        if shared:
            cause = np.repeat(chance.random(len(own) // _GROUP + 1), _GROUP)[: len(own)]
            own = np.where(chance.random(len(own)) < shared, cause, own)
        return own < self.true


def equal(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the odds of being true, up to a constant: the same for all predicates."""
    return np.zeros(len(weight))


def inverse(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same where the odds are in inverse proportion to the popularity: what many ask for is rare."""
    return -np.log(weight)


RECIPES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "equal odds": equal,
    "odds as 1 / popularity": inverse,
}


def generated(
    subscriptions: int, predicates: int, longest: int, alpha: float | None, recipe: str, chance: np.random.Generator
) -> CallWorkload:
    """The paper's generator. `alpha`: the exponent of the popularity's Zipf distribution; None: uniform in [0, 1]."""
    weight = 1 - chance.random(predicates) if alpha is None else np.arange(1, predicates + 1.0) ** -alpha
    bounds = np.cumsum(weight / weight.sum())
    bounds[-1] = 1.0
    length = chance.integers(SHORTEST, longest + 1, subscriptions)
    there = np.arange(longest) < length[:, None]
    drawn = np.searchsorted(bounds, chance.random((subscriptions, longest)))
    while True:  # each predicate once
        ordered = np.sort(np.where(there, drawn, -1 - np.arange(longest)), axis=1)
        again = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not again.any():
            break
        drawn[again] = np.searchsorted(bounds, chance.random((int(again.sum()), longest)))
    offset = np.append(0, np.cumsum(length)).astype(np.int32)
    predicate = drawn[there].astype(np.int64)
    return CallWorkload(offset, predicate, _fitted(offset, predicate, RECIPES[recipe](weight)))


def _fitted(offset: NDArray[np.int32], predicate: NDArray[np.int64], odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probabilities for these logarithms of odds, shifted until the right share of subscriptions matches."""
    low, high = -60.0, 60.0
    true: NDArray[np.float64] = np.zeros(len(odds))
    for _ in range(100):
        shift = (low + high) / 2
        true = np.clip(1 / (1 + np.exp(-(odds + shift))), 1 - _LIKELIEST, _LIKELIEST)
        matched = np.exp(np.add.reduceat(np.log(true)[predicate], offset[:-1])).mean()
        low, high = (shift, high) if matched < MATCHED else (low, shift)
    return true


def costs(predicates: int, chance: np.random.Generator) -> NDArray[np.float64]:
    """What a call of each predicate costs, in seconds: log-normal around 10 ms, 95 % of them within four decades."""
    seconds: NDArray[np.float64] = 0.01 * np.exp(np.log(10) * chance.standard_normal(predicates))
    return seconds


def real_folder(data: Path | None) -> Path | None:
    """Where the real workload lies: the folder that is given, or the one of shared data beside the project."""
    for folder in (data, Path.cwd().parent / "shared" / "data" / "10-workloads"):
        if folder is not None and (folder / REAL.format("events-1000.tsv")).is_file():
            return folder
    return None


def real(folder: Path, events: int) -> tuple[CallWorkload, list[Truths]]:
    """The real workload and its first events. `true` has the predicates' shares over other records."""
    with gzip.open(folder / REAL.format("predicates.tsv"), "rt", encoding="utf-8") as rows:
        next(rows)
        true = np.array([float(row.rsplit("\t", 1)[1]) for row in rows])
    with gzip.open(folder / REAL.format("subscriptions-80k.txt"), "rt", encoding="utf-8") as rows:
        lists = [[int(number) for number in row.split()] for row in rows]
    offset = np.append(0, np.cumsum([len(calls) for calls in lists])).astype(np.int32)
    predicate = np.array([number for calls in lists for number in calls], np.int64)
    truths: list[Truths] = []
    with gzip.open(folder / REAL.format("events-1000.tsv"), "rt", encoding="utf-8") as rows:
        next(rows)
        for row in rows:
            if len(truths) == events:
                break
            truth = np.zeros(len(true), np.bool_)
            truth[[int(number) for number in row.rstrip("\n").split("\t")[1].split()]] = True
            truths.append(truth)
    return CallWorkload(offset, predicate, np.clip(true, 1 - _LIKELIEST, _LIKELIEST)), truths
