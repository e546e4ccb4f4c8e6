"""Thresholds in order: where the value of a node lies among the constants of comparisons.

A scale holds constants that are ordered alike: lenient numbers, lenient instants, strict numbers of one kind, strict
dates of one datatype with or without a zone. Scales are made from postings ("n", "i", "N", "M" of
`triplewire.clauses.node_tests.postings`). How terms are read: `triplewire.clauses.node_tests.values`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import Strings, grouped, to_bytes, to_text
from triplewire.clauses.node_tests.postings import ORDERS, RANKED, Posting
from triplewire.encode.batch import Ids, Offsets
from triplewire.ir.values.compare import Value, value_of
from triplewire.ir.values.dates import Moment, lenient_instant
from triplewire.ir.values.numbers import Number, convert, lenient_number, to_double
from triplewire.model.terms import Literal

ScaleKey: TypeAlias = tuple[str | int, ...]
"""("n",), ("i",), ("N", kind of number), ("M", datatype, 1 with a zone and 0 without)"""

Places: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]
"""How many constants lie below each value, and how many below it or at it; -1 where there is no value."""

StrictPlaces: TypeAlias = tuple[int, int, int, int]
"""Of one value: how many constants lie below it, and up to it, for `> >= =`; the same for `< <=`."""

EXACT_DIGITS = 15  # decimals of so many digits are in the order of their doubles, and equal where those are
_LEAST, _MOST = -290, 290  # adjusted exponents between which that is so
_ZONES = 14 * 3_600  # how far a zone may lie from UTC, in seconds


def read_constant(posting: Posting) -> tuple[ScaleKey, Any]:
    """The scale of a posting, and its constant's value there: something that sorts."""
    kind, constant = str(posting[0]), str(posting[2])
    if kind == "n":
        return ("n",), lenient_number(constant)
    if kind == "i":
        return ("i",), lenient_instant(constant)
    value = value_of(Literal(constant, str(posting[3])))
    if isinstance(value, Number):
        return ("N", value.kind), value.value
    assert isinstance(value, Moment)
    return ("M", value.datatype, int(value.zone is not None)), value.instant


def is_exact(value: Any) -> bool:
    """Does `near` of the value tell it from all other exact ones?"""
    if isinstance(value, Decimal):
        digits = bytes(value.as_tuple().digits).rstrip(b"\0")
        return not value or (len(digits) <= EXACT_DIGITS and _LEAST < value.adjusted() < _MOST)
    return not value[1]


def near(value: Any) -> float | int:
    """A number that is in the order of the values: the nearest double, the second of an instant."""
    return to_double(value) if isinstance(value, Decimal) else int(value[0])


@dataclass(frozen=True)
class Scale:
    """Constants in ascending order, each once, as postings have them; `datatype` is empty on a lenient scale, which has
    `keys` (`near`) and `exact` instead."""

    key: ScaleKey
    lexical: Strings
    datatype: Strings
    keys: NDArray[np.generic]
    exact: NDArray[np.bool_]

    @cached_property
    def values(self) -> list[Any]:
        """The constants' values; read when they are first asked for."""
        name = str(self.key[0])
        pairs = zip(self.lexical, self.datatype, strict=True)
        return [read_constant((name, "=", to_text(lexical), to_text(datatype)))[1] for lexical, datatype in pairs]

    @cached_property
    def inexact(self) -> NDArray[np.int64]:
        """How many of the constants before each are not exact."""
        return np.concatenate(([0], np.cumsum(~self.exact))).astype(np.int64)

    def places(self, near: NDArray[np.generic], exact: NDArray[np.bool_], value: Callable[[int], Any]) -> Places:
        """Where values lie on a lenient scale. `value(i)` reads value i exactly, where that is asked for."""
        low = np.searchsorted(self.keys, near, "left").astype(np.int32)
        high = np.searchsorted(self.keys, near, "right").astype(np.int32)
        doubtful = (low < high) & (~exact | (self.inexact[high] > self.inexact[low]))
        for i in np.flatnonzero(doubtful).tolist():
            low[i], high[i] = self._bisected(value(i), int(low[i]), int(high[i]))
        return low, high

    def lenient_place(self, near: float | int, value: Any) -> tuple[int, int]:
        """Where one value lies on a lenient scale, read exactly."""
        low, high = int(np.searchsorted(self.keys, near, "left")), int(np.searchsorted(self.keys, near, "right"))
        return self._bisected(value, low, high) if low < high else (low, high)

    def _bisected(self, value: Any, low: int, high: int) -> tuple[int, int]:
        return bisect_left(self.values, value, low, high), bisect_right(self.values, value, low, high)

    def strict_places(self, value: Value) -> StrictPlaces | None:
        """Where a strict value lies: below and up to it for `> >= =`, then for `< <=`; None where nothing is known.

        The two differ between a time with and one without a zone, whose order is open within 14 hours.
        """
        if self.key[0] == "N":
            return self._numeric_places(value) if isinstance(value, Number) else None
        if not isinstance(value, Moment) or value.datatype != self.key[1]:
            return None
        seconds, fraction = value.instant
        if (value.zone is not None) == bool(self.key[2]):
            low, high = self._bisected((seconds, fraction), 0, len(self.values))
            return low, high, low, high
        surely_later = bisect_left(self.values, (seconds - _ZONES, fraction))
        maybe_earlier = bisect_right(self.values, (seconds + _ZONES, fraction))
        return surely_later, surely_later, maybe_earlier, maybe_earlier

    def _numeric_places(self, number: Number) -> StrictPlaces | None:
        if number.value != number.value:
            return None  # NaN is in no order
        kind = int(self.key[1])
        common = max(kind, number.kind)
        wanted = convert(number, common)

        def converted(constant: Any) -> Any:  # promotion keeps the order
            return convert(Number(kind, constant), common)

        low = bisect_left(self.values, wanted, key=converted)
        high = bisect_right(self.values, wanted, key=converted)
        return low, high, low, high


@dataclass(frozen=True)
class ScaleTests:
    """A scale with its tests. `later`, `earlier` and `unequal` are the range groups of `> >=`, of `< <=` and of `!=`,
    -1 without any; the first two are one where every place on the scale is certain. `point_*`: rank -> its slice of
    the tests for `=`."""

    scale: Scale
    later: int
    earlier: int
    unequal: int
    point_offset: Offsets
    point_test: Ids
    known: dict[Literal, StrictPlaces | None] = field(default_factory=dict, compare=False, repr=False)
    """Places of strict values, remembered between batches (`triplewire.clauses.node_tests.values`)."""


RangeTest: TypeAlias = tuple[int, int, str, int]
"""A range test: its number, group, operator and rank."""


def collect_scales(pairs: Iterable[tuple[Posting, int]]) -> tuple[tuple[ScaleTests, ...], list[RangeTest]]:
    """The scales of postings with their tests, and the range tests."""
    rows: dict[ScaleKey, list[tuple[Any, Posting, int]]] = {}
    for posting, test in pairs:
        key, value = read_constant(posting)
        rows.setdefault(key, []).append((value, posting, test))
    scales: list[ScaleTests] = []
    range_tests: list[RangeTest] = []
    groups = 0
    for key in sorted(rows, key=str):
        scale, ranks = _build_scale(key, rows[key])
        ranked = [(test, str(posting[1]), rank) for (_, posting, test), rank in zip(rows[key], ranks, strict=True)]
        ordered = [row for row in ranked if row[1] in ORDERS]
        points = [row for row in ranked if row[1] not in RANKED]
        unequal_tests = [row for row in ranked if row[1] == "!="]
        later = earlier = unequal = -1
        if ordered:
            later, earlier = groups, groups + (key[0] == "M")
            groups = earlier + 1
            range_tests += [(test, later if op[0] == ">" else earlier, op, rank) for test, op, rank in ordered]
        if unequal_tests:
            unequal, groups = groups, groups + 1
            range_tests += [(test, unequal, op, rank) for test, op, rank in unequal_tests]
        order, offset = grouped((rank for _, _, rank in points), len(scale.lexical))
        tests = np.array([test for test, _, _ in points], np.int32)[order]
        scales.append(ScaleTests(scale, later, earlier, unequal, offset, tests))
    return tuple(scales), range_tests


def _build_scale(key: ScaleKey, rows: Sequence[tuple[Any, Posting, int]]) -> tuple[Scale, list[int]]:
    """The scale of constants, and the rank of each."""
    order = sorted(range(len(rows)), key=lambda i: rows[i][0])
    ranks = [0] * len(rows)
    distinct: list[int] = []
    for i in order:
        if not distinct or rows[distinct[-1]][0] != rows[i][0]:
            distinct.append(i)
        ranks[i] = len(distinct) - 1
    lenient = key[0] in ("n", "i")
    values = [rows[i][0] for i in distinct] if lenient else []
    keys = np.array([near(value) for value in values], np.float64 if key[0] == "n" else np.int64)
    exact = np.array([is_exact(value) for value in values], np.bool_)
    lexical = Strings.of([to_bytes(str(rows[i][1][2])) for i in distinct])
    datatype = Strings.of([b"" if lenient else to_bytes(str(rows[i][1][3])) for i in distinct])
    return Scale(key, lexical, datatype, keys, exact), ranks
