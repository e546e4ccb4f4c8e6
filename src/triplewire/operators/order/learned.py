"""Tables of what was learned of operator calls: a row a call, found by its text. Who learns: `statistics`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.forks import new_lock
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.model.terms import IRI, Literal, made_iri, made_literal, text_of

COLUMNS = ("true", "evaluated", "seconds")  # decayed, of a call and of an operator
TOTALS = ("calls", "failed", "seconds")  # of an operator
LEAST = 4_096  # calls that nobody needs and that are kept all the same, in case that somebody needs them again
_LONGEST = 256  # characters of the arguments of such a call: an argument may be as long as a literal
_CONDITIONS = " where "
_NOBODY = CallKey("", ())


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of each call: the probability that it is false, above 0 and below 1, and its cost. `is_drawn`:
    the probabilities are drawn from what is known, for this publication only. `until`: it holds for
    publications before that number, as long as counts were saved, loaded and merged so many times and no more."""

    false: NDArray[np.float64]
    cost: NDArray[np.float64]
    is_drawn: bool = False
    until: tuple[int, int] = (0, 0)


class Rows:
    """Calls by row. A row is free again once its call is forgotten. Whoever uses it holds a lock."""

    def __init__(self) -> None:
        self.row: dict[CallKey, int] = {}
        self.keys: list[CallKey] = []
        self.operator = np.zeros(64, np.int32)
        self.counts = np.zeros((len(COLUMNS), 64))
        self.since = np.zeros((len(COLUMNS), 64))  # what was counted since somebody asked last, not decayed
        self._holders = np.zeros(64, np.int32)
        self._idle: dict[int, None] = {}  # rows that nobody holds, the oldest first
        self._long: set[int] = set()  # rows of calls with long arguments
        self._leaving: list[int] = []  # those of them that were idle
        self._free: deque[int] = deque()

    def new(self, key: CallKey, operator: int) -> int:
        """A row for a call that has none."""
        if self._free:
            row = self._free.popleft()
            self.keys[row] = key
        else:
            row = len(self.keys)
            self.keys.append(key)
            if row == len(self.operator):
                for name in ("operator", "counts", "since", "_holders"):
                    table = getattr(self, name)
                    setattr(self, name, np.concatenate((table, np.zeros_like(table)), axis=-1))
        self.row[key], self.operator[row] = row, operator
        self._idle[row] = None
        if sum(len(text_of(term)) for term in key.arguments if term is not None) > _LONGEST:
            self._long.add(row)
            self._leaving.append(row)
        return row

    def hold(self, rows: NDArray[np.int64]) -> None:
        """One more needs these."""
        self._holders[rows] += 1
        for row in rows.tolist():
            self._idle.pop(row, None)

    def release(self, rows: NDArray[np.int64]) -> None:
        """One of those who held them does not need them any more."""
        self._holders[rows] -= 1
        idle = rows[self._holders[rows] == 0].tolist()
        self._idle.update(dict.fromkeys(idle))
        self._leaving += [row for row in idle if row in self._long]

    def forget(self) -> None:
        """Of the calls that nobody needs, leave as many as are needed by somebody, and at least `LEAST`, but none with
        long arguments: what they have in common is counted by operator."""
        for row in self._leaving:
            if row in self._idle:
                self._forget(row)
        self._leaving.clear()
        most = max(LEAST, len(self.row) - len(self._idle))
        while len(self._idle) > most:
            self._forget(next(iter(self._idle)))

    def _forget(self, row: int) -> None:
        del self._idle[row], self.row[self.keys[row]]
        self.keys[row] = _NOBODY
        self._long.discard(row)
        self.counts[:, row] = self.since[:, row] = 0
        self._free.append(row)

    def lines(self, table: NDArray[np.float64], text_of: Callable[[CallKey], str]) -> list[list[Any]]:
        """The calls that a table counts, as text with their numbers, in the order of the texts."""
        counted = [row for row in np.flatnonzero(table[1] > 0).tolist() if row < len(self.keys)]
        return sorted([text_of(self.keys[row]), *table[:, row].tolist()] for row in counted)


class Independence:
    """How many subscriptions hold, and how many would if calls were independent of each other, as all orders assume.
    Safe with threads."""

    KEEP = 0.95  # with each publication that is looked at
    EVERY = 16  # publications of which one is looked at
    EVALUATED = 8  # times that each call of a subscription was made, so that it counts
    WRONG, LEAST = 2.0, 8.0  # times as many, or as few; with fewer subscriptions nothing is said

    def __init__(self, sums: Sequence[float] = (0.0, 0.0)) -> None:
        self._lock = new_lock()
        self._looked = 0
        self.sums = (float(sums[0]), float(sums[1]))  # expected, observed

    def is_due(self) -> bool:
        """Should the next publication be looked at?"""
        with self._lock:
            self._looked += 1
            return self._looked % self.EVERY == 0

    def add(self, expected: float, observed: float) -> None:
        """What was expected of a publication, and what came of it."""
        with self._lock:
            before = self.sums
            self.sums = self.KEEP * before[0] + expected, self.KEEP * before[1] + observed

    def fault(self) -> str:
        """What to say where calls depend on each other; "" where they do not, as far as is known."""
        expected, observed = self.sums
        if max(expected, observed) < self.LEAST or 1 / self.WRONG < (observed + 1) / (expected + 1) < self.WRONG:
            return ""
        return (
            f"operator calls depend on each other: {observed:.0f} subscriptions held where {expected:.0f} would if the "
            "calls were independent, as their order assumes"
        )


def numbers_of(values: Any) -> NDArray[np.float64]:
    """Numbers from 0 on. Raises `ValueError` where these are none."""
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise ValueError(f"no list of numbers: {values!r:.60}")
    numbers = np.array(values, np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise ValueError(f"a number is not from 0 on: {values!r:.60}")
    return numbers


def conditional(call: CallKey, conditions: str) -> CallKey:
    """Under which it is learned how often a call holds together with conditions over its outputs: as if these belonged
    to the operator."""
    return CallKey(f"{call.operator}{_CONDITIONS}{conditions}", call.arguments)


def is_conditional(operator: str) -> bool:
    """Is it a name of `conditional`, and no operator's?"""
    return _CONDITIONS in operator


def text_of_key(key: CallKey) -> str:
    """A call as text: a JSON array of the operator's name and its arguments. An IRI is [value], a literal [text,
    datatype, language]; an output is []."""
    terms = [
        [term.lexical, term.datatype, term.language] if isinstance(term, Literal)
        else [term.value] if isinstance(term, IRI) else []
        for term in key.arguments
    ]  # fmt: skip
    return json.dumps([key.operator, *terms], separators=(",", ":"))


def key_of(text: str | bytes) -> CallKey:
    """The call of a text. Raises `ValueError` or `TypeError` where it is none."""
    operator, *terms = json.loads(text)
    if not isinstance(operator, str) or not all(isinstance(part, str) for term in terms for part in term):
        raise ValueError("a call is a name and arrays of texts")
    arguments = (None if not term else made_iri(*term) if len(term) == 1 else made_literal(*term) for term in terms)
    return CallKey(operator, tuple(arguments))
