"""The terms of a batch, read on the scales of range tests: where each lies among the constants.

The scales: `triplewire.clauses.node_tests.ranges`. Numbers come read with the batch; what is left is read once a
distinct term.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.ranges import Scale, ScaleTests, StrictPlaces, near
from triplewire.clauses.node_tests.substrings import Pairs
from triplewire.clauses.node_tests.term_objects import literal_of, text_of
from triplewire.encode.batch import BLANK_KIND, LITERAL_KIND, Batch, Ids, Terms
from triplewire.ir.values.compare import value_of
from triplewire.ir.values.dates import DATE_TIME, MOMENTS, Instant, lenient_instant
from triplewire.ir.values.numbers import NUMERIC, lenient_number
from triplewire.kernels import places as kernels
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.text.dates import date_like
from triplewire.model.terms import Literal

_MOST_KNOWN = 100_000  # places of strict values that are remembered, a scale
_SHORT = 64  # characters of a literal that is remembered
_UNKNOWN: StrictPlaces = (-1, -1, -1, -1)
_NO_PAIRS: Pairs = np.zeros(0, np.int32), np.zeros(0, np.int32)

Ranks = tuple[NDArray[np.int32], NDArray[np.int32]]
"""`low` and `high` of Features, of shape (groups, terms)."""


def places(batch: Batch, scales: Sequence[ScaleTests], groups: int) -> tuple[Ranks, list[Pairs]]:
    """The places of all terms in all range groups, and the pairs of tests for `=`."""
    both = np.full((2, groups, len(batch.terms)), -1, np.int32)
    low, high = both[0], both[1]
    pairs: list[Pairs] = []
    for scale in scales:
        name = scale.scale.key[0]
        if name == "n":
            pairs.append(_numbers(batch, scale, low, high))
            continue
        if name != "i":
            pairs.append(_strict(batch, scale, low, high))
            continue
        rows, below, upto = _instants(batch, scale.scale)
        pairs.append(_points(scale, rows, below, upto))
        if scale.later >= 0:
            literal = batch.terms.kind[rows] == LITERAL_KIND  # an IRI is equal to a label, but not in order with it
            low[scale.later, rows[literal]] = below[literal]
            high[scale.later, rows[literal]] = upto[literal]
        if scale.unequal >= 0:
            low[scale.unequal, rows], high[scale.unequal, rows] = below, upto
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


def _numbers(batch: Batch, tests: ScaleTests, low: NDArray[np.int32], high: NDArray[np.int32]) -> Pairs:
    """Fills in the places of the numbers; the pairs of tests for `=`."""
    terms, scale = batch.terms, tests.scale
    below, upto, left = np.empty(len(terms), np.int32), np.empty(len(terms), np.int32), np.empty(len(terms), np.int32)
    keys, inexact = fixed(scale.keys, scale.inexact)
    count = kernels.number_places(terms.kind, terms.number_state, terms.number, keys, inexact, below, upto, left)
    for term in left[:count].tolist():
        value = lenient_number(text_of(terms, term))
        below[term], upto[term] = scale.lenient_place(near(value), value)
    if tests.later >= 0:
        kernels.group_places(terms.kind, below, upto, False, low[tests.later], high[tests.later])
    if tests.unequal >= 0:
        kernels.group_places(terms.kind, below, upto, True, low[tests.unequal], high[tests.unequal])
    return _points(tests, np.arange(len(terms), dtype=np.int32), below, upto)


def _instants(batch: Batch, scale: Scale) -> tuple[Ids, Ids, Ids]:
    terms = batch.terms
    is_date_like = np.zeros(len(terms), np.bool_)
    date_like(terms.text, terms.start, terms.end, is_date_like)
    is_date_like &= terms.kind != BLANK_KIND
    rows: list[int] = []
    instants: list[Instant] = []
    for row in np.flatnonzero(is_date_like).tolist():
        instant = lenient_instant(text_of(terms, row))
        if instant is not None:
            rows.append(row)
            instants.append(instant)
    seconds = np.array([instant[0] for instant in instants], np.int64)
    exact = np.array([not instant[1] for instant in instants], np.bool_)
    low, high = scale.places(seconds, exact, lambda i: instants[i])
    return np.array(rows, np.int32), low, high


def _strict(batch: Batch, tests: ScaleTests, low: NDArray[np.int32], high: NDArray[np.int32]) -> Pairs:
    """Fills in the places of the literals that have a value on a strict scale; the pairs of tests for `=`."""
    rows, below, upto = [], [], []
    if tests.unequal >= 0:
        low[tests.unequal] = high[tests.unequal] = _off_scale(batch.terms)
    for row in _typed(batch, NUMERIC if tests.scale.key[0] == "N" else _datatypes(str(tests.scale.key[1]))).tolist():
        value_places = _strict_places(tests, literal_of(batch.terms, row))
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


def _off_scale(terms: Terms) -> Ids:
    """The place of each term among the constants of a strict scale that it is not on: 0, as none of them is equal to
    it. -1 for a literal whose value is unknown, as it may be equal to one."""
    below = np.zeros(len(terms), np.int32)
    is_typed = np.array([suffix[:1] not in ("", "@") for suffix in terms.suffixes], np.bool_)
    for row in np.flatnonzero(is_typed[terms.suffix] & (terms.kind == LITERAL_KIND)).tolist():
        below[row] = -1 if value_of(literal_of(terms, row)) is None else 0
    return below


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


def _datatypes(datatype: str) -> frozenset[str]:
    """The datatypes whose values lie on a scale of dates."""
    return frozenset(name for name in MOMENTS if name == datatype or (datatype == DATE_TIME and name.endswith("Stamp")))


def _typed(batch: Batch, datatypes: frozenset[str]) -> NDArray[np.int64]:
    """The literals of these datatypes."""
    if datatypes.isdisjoint(batch.terms.suffixes):
        return np.zeros(0, np.int64)
    wanted = np.array([suffix in datatypes for suffix in batch.terms.suffixes], np.bool_)
    return np.flatnonzero(wanted[batch.terms.suffix] & (batch.terms.kind == LITERAL_KIND))
