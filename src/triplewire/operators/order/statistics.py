"""What calls have cost and how often they were true: learned as they are made, call by call and operator by operator.

A call's probability to be true is (true + s * p) / (evaluated + s): p is its operator's, s says how far that is
believed. Older counts weigh less with each call. What is learned is biased: calls behind a false one are not made, and
nothing corrects that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.ir.evaluation.unknown import CallKey
from triplewire.operators.order.keys import key_of, text_of
from triplewire.operators.order.protocol import Expected

KEEP = 0.995  # weight of what was learned before, with each call
BELIEF = 1.0  # calls that the operator's share counts for
SHARE = 0.01  # of true calls, where nothing is known of an operator
LEAST_COST = 1e-3  # seconds: what is quicker costs as much, so that noise changes no order
COLUMNS = ("true", "evaluated", "seconds")


class LearnedCalls:
    """The learned counts of one engine. Each call has a row, from its first mention on. Safe with threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._row: dict[CallKey, int] = {}
        self._operators: dict[str, int] = {}
        self.keys: list[CallKey] = []
        self._operator = np.zeros(64, np.int32)  # row -> its operator
        self._calls = np.zeros((3, 64))  # COLUMNS, by row
        self._sums = np.zeros((3, 8))  # COLUMNS, by operator

    def rows(self, keys: Iterable[CallKey]) -> NDArray[np.int64]:
        """The rows of calls."""
        with self._lock:
            return np.array([self._row_of(key) for key in keys], np.int64)

    def rows_if_known(self, keys: Iterable[CallKey]) -> NDArray[np.int64]:
        """The rows of those of the calls that have one."""
        with self._lock:
            return np.array([row for key in keys if (row := self._row.get(key)) is not None], np.int64)

    def operators(self) -> list[str]:
        """The names of the operators, by number."""
        with self._lock:
            return list(self._operators)

    def operator_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The operators of calls, by number."""
        operator: NDArray[np.int32] = self._operator[rows]
        return operator

    def _row_of(self, key: CallKey) -> int:
        row = self._row.get(key)
        if row is None:
            row = self._row[key] = len(self.keys)
            self.keys.append(key)
            if row == len(self._operator):
                self._operator = np.concatenate((self._operator, np.zeros_like(self._operator)))
                self._calls = np.concatenate((self._calls, np.zeros_like(self._calls)), axis=1)
            self._operator[row] = self._number_of(key.operator)
        return row

    def _number_of(self, operator: str) -> int:
        number = self._operators.setdefault(operator, len(self._operators))
        if number >= self._sums.shape[1]:
            self._sums = np.concatenate((self._sums, np.zeros_like(self._sums)), axis=1)
        return number

    def add(self, rows: NDArray[np.int64], true: NDArray[np.bool_], seconds: NDArray[np.float64]) -> None:
        """Count calls of one publication, each once, and none that failed."""
        more = np.stack((true.astype(np.float64), np.ones(len(rows)), seconds))
        with self._lock:
            self._calls[:, rows] = KEEP * self._calls[:, rows] + more
            operator = self._operator[rows]
            for column in range(len(COLUMNS)):
                self._sums[column] += np.bincount(operator, more[column], self._sums.shape[1])

    def expected(self, rows: NDArray[np.int64], declared: Mapping[str, float] | None = None) -> Expected:
        """What is expected of calls. `declared`: the costs that operators state; others cost what they took."""
        with self._lock:
            true, evaluated, seconds = self._calls[:, rows]
            sums, operator, names = self._sums.copy(), self._operator[rows], list(self._operators)
        share = (sums[0] + SHARE) / (sums[1] + 1)
        mean = np.maximum(sums[2], LEAST_COST) / np.maximum(sums[1], 1)
        likely = (true + BELIEF * share[operator]) / (evaluated + BELIEF)
        cost = (seconds + BELIEF * mean[operator]) / (evaluated + BELIEF)
        cost = np.maximum(cost, LEAST_COST)
        for number, name in enumerate(names):
            if declared and name in declared:
                cost[operator == number] = declared[name]
        return Expected(np.clip(1 - likely, 1e-6, 1 - 1e-6), cost)

    def merge(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Count what `to_json` of another engine, or of another worker, gave as well."""
        for line in rows:
            key = key_of(line["call"])
            with self._lock:
                row = self._row_of(key)
                counts = np.array([float(line[name]) for name in COLUMNS])
                self._calls[:, row] += counts
                self._sums[:, self._operator[row]] += counts

    def to_json(self) -> list[dict[str, Any]]:
        """The calls that were made, as JSON objects, for `merge`."""
        with self._lock:
            made = np.flatnonzero(self._calls[1] > 0).tolist()
            return [
                {"call": text_of(self.keys[row]), **dict(zip(COLUMNS, self._calls[:, row].tolist(), strict=True))}
                for row in made
            ]
