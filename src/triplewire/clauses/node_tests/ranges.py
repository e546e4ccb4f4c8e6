"""Thresholds in order: where the value of a node lies among the constants of comparisons, and those of a batch's terms.

A scale holds constants that are ordered alike: lenient numbers, lenient instants, strict numbers of one kind, strict
dates of one datatype with or without a zone. Scales are made from postings ("n", "i", "N", "M" of
`triplewire.clauses.node_tests.postings`).
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

from triplewire.clauses.kernels import pairs as kernels
from triplewire.clauses.node_tests.columns import Strings, grouped, literal_of, text_of, to_bytes, to_text
from triplewire.clauses.node_tests.lookup import Pairs
from triplewire.clauses.node_tests.postings import ORDERS, RANKED, Posting
from triplewire.encode.batch import BLANK_KIND, LITERAL_KIND, Batch, Ids, Offsets, Terms
from triplewire.ir.values.compare import Value, value_of
from triplewire.ir.values.dates import DATE_TIME, MOMENTS, Moment, lenient_instant
from triplewire.ir.values.numbers import NUMERIC, Number, convert, lenient_number, to_double
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.text.numbers import date_like
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
    """Places of strict values, remembered between batches."""


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
    posting_of: dict[Any, Posting] = {}
    for value, posting, _ in rows:
        posting_of.setdefault(value, posting)
    distinct = sorted(posting_of)
    rank = {value: place for place, value in enumerate(distinct)}
    lenient = key[0] in ("n", "i")
    values = distinct if lenient else []
    keys = np.array([near(value) for value in values], np.float64 if key[0] == "n" else np.int64)
    exact = np.array([is_exact(value) for value in values], np.bool_)
    lexical = Strings.of([to_bytes(str(posting_of[value][2])) for value in distinct])
    datatype = Strings.of([b"" if lenient else to_bytes(str(posting_of[value][3])) for value in distinct])
    return Scale(key, lexical, datatype, keys, exact), [rank[value] for value, _, _ in rows]


# --- the terms of a batch --------------------------------------------------------------------------------------------

_MOST_KNOWN = 100_000  # places of strict values that are remembered, a scale
_SHORT = 64  # characters of a literal that is remembered
_UNKNOWN: StrictPlaces = (-1, -1, -1, -1)
_NO_PAIRS: Pairs = np.zeros(0, np.int32), np.zeros(0, np.int32)


def places(batch: Batch, scales: Sequence[ScaleTests], groups: int) -> tuple[Places, list[Pairs]]:
    """The places of all terms in all range groups (`low` and `high` of Features), and the pairs of tests for `=`."""
    low, high = np.full((2, groups, len(batch.terms)), -1, np.int32)
    readers = {"n": _numbers, "i": _instants}
    pairs = [readers.get(str(tests.scale.key[0]), _strict)(batch.terms, tests, low, high) for tests in scales]
    return (low, high), pairs


def _points(scale: ScaleTests, rows: Ids, low: Ids, high: Ids) -> Pairs:
    """The tests for `=` of the constants between low and high, where low is not -1."""
    if not len(scale.point_test):
        return _NO_PAIRS
    offset, tests = fixed(scale.point_offset, scale.point_test)
    count = room = 2 * len(rows)
    while count >= room:
        room = count + 1
        row, test = np.empty(room, np.int32), np.empty(room, np.int32)
        count = kernels.tests_between(rows, low, high, offset, tests, row, test)
    return row[:count], test[:count]


def _numbers(terms: Terms, tests: ScaleTests, low: Ids, high: Ids) -> Pairs:
    """Fills in the places of the numbers; the pairs of tests for `=`."""
    scale = tests.scale
    below, upto, unknown = (np.empty(len(terms), np.int32) for _ in range(3))
    keys, inexact = fixed(scale.keys, scale.inexact)
    count = kernels.number_places(terms.kind, terms.number_state, terms.number, keys, inexact, below, upto, unknown)
    if rows := unknown[:count].tolist():  # doubles do not tell these from constants
        values = [lenient_number(text_of(terms, row)) for row in rows]
        doubles = np.array([near(value) for value in values])
        below[rows], upto[rows] = scale.places(doubles, np.zeros(count, np.bool_), values.__getitem__)
    if tests.later >= 0:
        kernels.group_places(terms.kind, below, upto, False, low[tests.later], high[tests.later])
    if tests.unequal >= 0:
        kernels.group_places(terms.kind, below, upto, True, low[tests.unequal], high[tests.unequal])
    return _points(tests, np.arange(len(terms), dtype=np.int32), below, upto)


def _instants(terms: Terms, tests: ScaleTests, low: Ids, high: Ids) -> Pairs:
    """Fills in the places of dates and times; the pairs of tests for `=`."""
    is_date_like = np.zeros(len(terms), np.bool_)
    date_like(terms.text, terms.start, terms.end, is_date_like)
    rows = np.flatnonzero(is_date_like & (terms.kind != BLANK_KIND)).astype(np.int32)
    read = [lenient_instant(text_of(terms, row)) for row in rows.tolist()]
    rows = rows[[instant is not None for instant in read]]
    instants = [instant for instant in read if instant is not None]
    seconds = np.array([instant[0] for instant in instants], np.int64)
    exact = np.array([not instant[1] for instant in instants], np.bool_)
    below, upto = tests.scale.places(seconds, exact, instants.__getitem__)
    if tests.later >= 0:
        literal = terms.kind[rows] == LITERAL_KIND  # an IRI is equal to a label, but not in order with it
        low[tests.later, rows[literal]], high[tests.later, rows[literal]] = below[literal], upto[literal]
    if tests.unequal >= 0:
        low[tests.unequal, rows], high[tests.unequal, rows] = below, upto
    return _points(tests, rows, below, upto)


def _strict(terms: Terms, tests: ScaleTests, low: Ids, high: Ids) -> Pairs:
    """Fills in the places of the literals that have a value on a strict scale; the pairs of tests for `=`."""
    rows, below, upto = [], [], []
    if tests.unequal >= 0:
        # 0 for what is not on the scale, as no constant is equal to it; -1 for literals of unknown value, as one may be
        has_datatype = np.array([suffix[:1] not in ("", "@") for suffix in terms.suffixes], np.bool_)
        typed = np.flatnonzero(has_datatype[terms.suffix] & (terms.kind == LITERAL_KIND)).tolist()
        low[tests.unequal] = high[tests.unequal] = 0
        unknown = [row for row in typed if value_of(literal_of(terms, row)) is None]
        low[tests.unequal, unknown] = high[tests.unequal, unknown] = -1
    datatypes = NUMERIC
    if tests.scale.key[0] == "M":  # the stamps are on the scale of dateTime as well
        name = str(tests.scale.key[1])
        datatypes = frozenset(other for other in MOMENTS if other == name or (name, other[-5:]) == (DATE_TIME, "Stamp"))
    is_typed = np.array([suffix in datatypes for suffix in terms.suffixes], np.bool_)
    for row in np.flatnonzero(is_typed[terms.suffix] & (terms.kind == LITERAL_KIND)).tolist() if is_typed.any() else ():
        value_places = _strict_places(tests, literal_of(terms, row))
        if value_places is None:
            continue
        rows.append(row)
        below.append(value_places[0])
        upto.append(value_places[1])
        if tests.later >= 0:
            low[tests.later, row], high[tests.later, row] = value_places[:2]
            if tests.earlier != tests.later:
                low[tests.earlier, row], high[tests.earlier, row] = value_places[2:]
        if tests.unequal >= 0:  # between the two, it is not known
            low[tests.unequal, row], high[tests.unequal, row] = value_places[0], value_places[3]
    return _points(tests, np.array(rows, np.int32), np.array(below, np.int32), np.array(upto, np.int32))


def _strict_places(tests: ScaleTests, literal: Literal) -> StrictPlaces | None:
    """As `Scale.strict_places`, which is asked once of short literals. Any thread may come here."""
    value_places = tests.known.get(literal, _UNKNOWN)
    if value_places is _UNKNOWN:
        value_places = tests.scale.strict_places(value_of(literal))
        if len(literal.lexical) <= _SHORT:
            if len(tests.known) >= _MOST_KNOWN:
                tests.known.clear()
            tests.known[literal] = value_places
    return value_places
