"""What calls have cost and how often they were true: learned as they are made, call by call and operator by operator.

A call's probability to be true is (true + s * p) / (evaluated + s): p is its operator's, s says how far that is
believed. Older counts weigh less with each call. What is learned is biased: calls behind a false one are not made. So
in a small share of publications the probabilities are drawn from what is known (Thompson: On the likelihood that one
unknown probability exceeds another, Biometrika 1933): calls that were seldom made then come first now and then. No call
is made that decides nothing. The same counts in give the same order out.
"""

from __future__ import annotations

import random
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from triplewire.forks import new_lock
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.operators.order import learned
from triplewire.operators.order.learned import COLUMNS, TOTALS, Expected, Independence, Rows, is_conditional

if TYPE_CHECKING:  # it brings compiled kernels along
    from triplewire.operators.order.protocol import Conjunctions, Numbers

KEEP = 0.995  # weight of what was learned of a call before, with each time that it is made
KEEP_OPERATOR = 0.9999  # the same for all calls of an operator
BELIEF = 1.0  # calls that the operator's share counts for
SHARE = 0.01  # of true calls, where nothing is known of an operator
LEAST_COST = 1e-3  # seconds: what is quicker costs as much, so that noise changes no order
EXPLORED = 0.02  # share of publications whose probabilities are drawn
FEW = 8  # calls that are counted one by one
LASTS = 16  # publications for which what is expected is not worked out anew, at most
_PART = 8  # at first it is for fewer: for an eighth of the publications so far
_NEAR_0 = 1e-6


class LearnedCalls:
    """The learned counts of one engine. Each call has a row, from its first mention on until nobody needs it. Safe with
    threads."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = new_lock()
        self._seed = seed
        self._publications = 0  # for which an order was asked
        self._exchanges = 0  # times that counts were saved, loaded or merged
        self._operators: dict[str, int] = {}
        self._rows = Rows()
        self._sums = np.zeros((len(COLUMNS), 8))  # by operator
        self._totals = np.zeros((len(TOTALS), 8))
        self._since = np.zeros((len(TOTALS), 8))  # the totals as they were when `take_new_counts` was asked last
        self._let_go: deque[NDArray[np.int64]] = deque()
        self.independence = Independence()

    @property
    def keys(self) -> list[CallKey]:
        """The calls by row."""
        return self._rows.keys

    def rows(self, keys: Iterable[CallKey]) -> NDArray[np.int64]:
        """The rows of calls."""
        with self._lock:
            return np.array([self._row_of(key) for key in keys], np.int64)

    def held(self, keys: Iterable[CallKey], holder: object) -> NDArray[np.int64]:
        """The rows of calls, each once, which the holder needs as long as it exists."""
        with self._lock:
            rows = np.array([self._row_of(key) for key in keys], np.int64)
            self._rows.hold(rows)
        # a finalizer may run in any thread and at any place, also where the lock is held: `tidy` does the work
        weakref.finalize(holder, self._let_go.append, rows).atexit = False
        return rows

    def tidy(self) -> None:
        """Forget the calls that nobody has needed for long: of those that nobody needs, as many stay as are needed."""
        with self._lock:
            while self._let_go:
                self._rows.release(self._let_go.popleft())
            self._rows.forget()

    def rows_if_known(self, keys: Iterable[CallKey]) -> NDArray[np.int64]:
        """The rows of those of the calls that have one."""
        with self._lock:
            return np.array([row for key in keys if (row := self._rows.row.get(key)) is not None], np.int64)

    def operators(self) -> list[str]:
        """The names of the operators, by number."""
        with self._lock:
            return list(self._operators)

    def operator_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The operators of calls, by number."""
        operator: NDArray[np.int32] = self._rows.operator[rows]
        return operator

    def __len__(self) -> int:
        """How many calls have a row."""
        return len(self._rows.row)

    def _row_of(self, key: CallKey) -> int:
        row = self._rows.row.get(key)
        return self._rows.new(key, self._number_of(key.operator)) if row is None else row

    def _number_of(self, operator: str) -> int:
        number = self._operators.setdefault(operator, len(self._operators))
        if number >= self._sums.shape[1]:
            for name in ("_sums", "_totals", "_since"):
                table = getattr(self, name)
                setattr(self, name, np.concatenate((table, np.zeros_like(table)), axis=1))
        return number

    def add(self, rows: NDArray[np.int64], true: NDArray[np.bool_], seconds: NDArray[np.float64]) -> None:
        """Count calls of one publication, each once, and none that failed."""
        with self._lock:
            if len(rows) <= FEW:
                self._add_few(rows.tolist(), true.tolist(), seconds.tolist())
            else:
                self._add(rows, true, seconds)

    def made(self, calls: Sequence[tuple[CallKey, bool, float]]) -> None:
        """Count calls of one publication whose rows nobody holds: which are true, and the seconds that each took. They
        are forgotten as `tidy` says."""
        if not calls:
            return
        keys, true, seconds = zip(*calls, strict=True)
        with self._lock:
            rows = [self._row_of(key) for key in keys]
            if len(rows) <= FEW:
                self._add_few(rows, true, seconds)
            else:
                self._add(np.array(rows), np.array(true, np.bool_), np.array(seconds))
            self._rows.forget()

    def _add(self, rows: NDArray[np.int64], true: NDArray[np.bool_], seconds: NDArray[np.float64]) -> None:
        by_column = np.stack((true.astype(np.float64), np.ones(len(rows)), seconds))
        for number, column in enumerate(by_column):  # much faster than all columns at once
            self._rows.counts[number, rows] = KEEP * self._rows.counts[number, rows] + column
            self._rows.since[number, rows] += column
        operator = self._rows.operator[rows]
        size = self._sums.shape[1]
        by_operator = np.stack([np.bincount(operator, column, size) for column in by_column])
        self._sums = self._sums * KEEP_OPERATOR ** by_operator[1] + by_operator
        self._totals[0] += by_operator[1]
        self._totals[2] += by_operator[2]

    def _add_few(self, rows: Sequence[int], true: Sequence[bool], seconds: Sequence[float]) -> None:
        """The same, number by number: for a call alone that is several times as fast."""
        sums: dict[int, list[float]] = {}
        for row, *values in zip(rows, map(float, true), repeat(1.0), seconds, strict=False):
            of_operator = sums.setdefault(int(self._rows.operator[row]), [0.0, 0.0, 0.0])
            for column, value in enumerate(values):
                self._rows.counts[column, row] = KEEP * self._rows.counts[column, row] + value
                self._rows.since[column, row] += value
                of_operator[column] += value
        for operator, (true_calls, made, spent) in sums.items():
            weight = KEEP_OPERATOR**made
            for column, value in enumerate((true_calls, made, spent)):
                self._sums[column, operator] = self._sums[column, operator] * weight + value
            self._totals[0, operator] += made
            self._totals[2, operator] += spent

    def failed(self, operators: Iterable[str]) -> None:
        """Count calls that failed, by the names of their operators."""
        with self._lock:
            for operator in operators:
                number = self._number_of(operator)
                self._totals[:2, number] += 1

    def look_at_independence(
        self, asked: Conjunctions, candidates: Numbers, likely: NDArray[np.float64], held: Numbers
    ) -> None:
        """Compare how many candidates hold with how many would if calls were independent of each other. Those with a
        call that has hardly been made yet are left out. `likely`: call -> its probability to be true."""
        with self._lock:
            unsure = self._rows.counts[1, asked.row] < Independence.EVALUATED
        log = np.log(likely)
        log[unsure] = np.nan
        with_calls = np.flatnonzero(np.diff(asked.offset))
        chance = np.ones(len(asked.offset) - 1)
        if len(with_calls):
            chance[with_calls] = np.exp(np.add.reduceat(log[asked.call], asked.offset[with_calls]))
        self.independence.add(float(np.nansum(chance[candidates])), float((~np.isnan(chance[held])).sum()))

    def expected(
        self, rows: NDArray[np.int64], declared: Mapping[str, float] | None = None, before: Expected | None = None
    ) -> Expected:
        """What is expected of calls. `declared`: the costs that operators state; others cost what they took. `before`:
        what was expected of the same calls and was not drawn. It is the answer as long as little was learned since."""
        with self._lock:
            self._publications += 1
            now = self._publications, self._exchanges
            # the generator of `random` is made quicker than NumPy's
            is_drawn = random.Random(f"{self._seed} {self._publications}").random() < EXPLORED
            if not is_drawn and before is not None and now[0] < before.until[0] and now[1] == before.until[1]:
                return before
            counts = [column[rows] for column in self._rows.counts]  # much faster than all columns at once
            operator = self._rows.operator[rows]
            likely, cost = self._estimated(counts, operator, declared)
            if is_drawn:
                chance = np.random.default_rng((self._seed, self._publications))
                share = self._share()[operator]
                true, evaluated = counts[0], np.maximum(counts[1], counts[0])
                likely = chance.beta(true + BELIEF * share + _NEAR_0, evaluated - true + BELIEF * (1 - share) + _NEAR_0)
        until = now[0] + min(LASTS, 1 + now[0] // _PART), now[1]
        return Expected(np.clip(1 - likely, _NEAR_0, 1 - _NEAR_0), cost, is_drawn, until)

    def _share(self) -> NDArray[np.float64]:
        share: NDArray[np.float64] = (self._sums[0] + SHARE) / (self._sums[1] + 1)
        return share

    def _estimated(
        self, counts: Iterable[NDArray[np.float64]], operator: NDArray[np.int32], declared: Mapping[str, float] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The probability to be true, and the cost."""
        true, evaluated, seconds = counts
        mean = np.maximum(self._sums[2], LEAST_COST) / np.maximum(self._sums[1], 1)
        likely = (true + BELIEF * self._share()[operator]) / (evaluated + BELIEF)
        cost = np.maximum((seconds + BELIEF * mean[operator]) / (evaluated + BELIEF), LEAST_COST)
        for name, number in self._operators.items():
            if declared and name in declared:
                cost[operator == number] = declared[name]
        return likely, cost

    def drawing(self) -> random.Random | None:
        """One more publication is to be ordered: what draws its probabilities, where they are to be drawn. `chance`
        takes it."""
        with self._lock:
            self._publications += 1
            chance = random.Random(f"{self._seed} {self._publications}")
        return chance if chance.random() < EXPLORED else None

    def chance(self, key: CallKey, declared: float | None, drawing: random.Random | None) -> tuple[float, float]:
        """The same of one call, which need not have a row: its probability to be true, and its cost. `declared`: the
        cost that its operator states."""
        with self._lock:
            row, number = self._rows.row.get(key), self._operators.get(key.operator)
            true, evaluated, seconds = (0.0, 0.0, 0.0) if row is None else self._rows.counts[:, row].tolist()
            sums: list[float] = [0.0, 0.0, 0.0] if number is None else self._sums[:, number].tolist()
        share = (sums[0] + SHARE) / (sums[1] + 1)
        likely = (true + BELIEF * share) / (evaluated + BELIEF)
        if drawing is not None:
            false = max(evaluated, true) - true + BELIEF * (1 - share)
            likely = drawing.betavariate(true + BELIEF * share + _NEAR_0, false + _NEAR_0)
        mean = max(sums[2], LEAST_COST) / max(sums[1], 1)
        learned_cost = max((seconds + BELIEF * mean) / (evaluated + BELIEF), LEAST_COST)
        return min(max(likely, _NEAR_0), 1 - _NEAR_0), learned_cost if declared is None else declared

    def by_operator(self) -> dict[str, dict[str, float]]:
        """Of each operator: calls, those that failed, seconds in all; the share of true calls (`selectivity`) and the
        seconds of a call as they are now. An operator that was never called is left out."""
        with self._lock:
            out = {}
            for name, number in self._operators.items():
                calls, failed, seconds = self._totals[:, number].tolist()
                true, evaluated, spent = self._sums[:, number].tolist()
                if calls and not is_conditional(name):
                    told = {"calls": int(calls), "failed": int(failed), "seconds": seconds}
                    if evaluated:
                        told |= {"selectivity": true / evaluated, "seconds_each": spent / evaluated}
                    out[name] = told
            return out

    def to_json(self) -> dict[str, Any]:
        """All that was learned, as a JSON object, for `restore`."""
        with self._lock:
            self._exchanges += 1  # who saved and who loads go on from the same counts
            table = np.concatenate((self._sums, self._totals))
            operators = {name: table[:, number].tolist() for name, number in self._operators.items()}
            calls = self._rows.lines(self._rows.counts, learned.text_of_key)
            told = {"publications": self._publications, "independence": list(self.independence.sums)}
            return {**told, "operators": operators, "calls": calls}

    def restore(self, told: Mapping[str, Any]) -> None:
        """Put what `to_json` gave in the place of all that was learned here. Raises `ValueError` where it is something
        else; nothing has changed then."""
        publications, independence, operators, calls = _checked(told, len(COLUMNS) + len(TOTALS))
        with self._lock:
            self._publications, self._exchanges = publications, self._exchanges + 1
            self.independence = Independence(independence)
            self._sums[:], self._totals[:], self._since[:] = 0, 0, 0
            self._rows.counts[:], self._rows.since[:] = 0, 0  # count from 0 on
            for name, numbers in operators.items():
                number = self._number_of(name)
                self._sums[:, number], self._totals[:, number] = numbers[:3], numbers[3:]
                self._since[:, number] = numbers[3:]
            for key, numbers in calls:
                row = self._row_of(key)  # it may need larger tables
                self._rows.counts[:, row] = numbers

    def take_new_counts(self) -> dict[str, Any]:
        """What was counted since this was asked last, as a JSON object, for `merge` elsewhere."""
        with self._lock:
            new = self._totals - self._since
            self._since = self._totals.copy()
            operators = {name: new[:, n].tolist() for name, n in self._operators.items() if new[:, n].any()}
            calls = self._rows.lines(self._rows.since, learned.text_of_key)
            self._rows.since[:] = 0
            return {"operators": operators, "calls": calls}

    def merge(self, told: Mapping[str, Any]) -> None:
        """Add what `take_new_counts` of another process gave. Raises `ValueError` where it is something else."""
        _, _, operators, calls = _checked(told, len(TOTALS))
        with self._lock:
            self._exchanges += 1
            for name in operators:
                self._number_of(name)
            rows = [self._row_of(key) for key, _ in calls]
            sums = np.zeros_like(self._sums)
            for row, (_, numbers) in zip(rows, calls, strict=True):
                self._rows.counts[:, row] = KEEP ** numbers[1] * self._rows.counts[:, row] + numbers
                sums[:, self._rows.operator[row]] += numbers
            self._sums = self._sums * KEEP_OPERATOR ** sums[1] + sums
            for name, numbers in operators.items():
                self._totals[:, self._operators[name]] += numbers
                self._since[:, self._operators[name]] += numbers


def _checked(
    told: Mapping[str, Any], length: int
) -> tuple[int, list[float], dict[str, NDArray[np.float64]], list[tuple[CallKey, NDArray[np.float64]]]]:
    """The parts of what `to_json` or `take_new_counts` gave, with so many numbers an operator. Raises `ValueError`."""
    try:
        publications, independence = int(told.get("publications", 0)), told.get("independence", [0.0, 0.0])
        operators = {str(name): learned.numbers_of(numbers) for name, numbers in told["operators"].items()}
        calls = [(learned.key_of(text), learned.numbers_of(numbers)) for text, *numbers in told["calls"]]
        if any(len(numbers) != length for numbers in operators.values()):
            raise ValueError("an operator has too few or too many numbers")
        if any(len(numbers) != len(COLUMNS) for _, numbers in calls) or publications < 0:
            raise ValueError("a call has too few or too many numbers")
        first, second = learned.numbers_of(independence).tolist()
        return publications, [first, second], operators, calls
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"it is nothing that was learned ({type(error).__name__}: {error})") from None
