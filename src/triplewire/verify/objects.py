"""The bindings of matches as `Binding` objects, made of rows of term ids (`triplewire.verify.rows`), not all at once.

A row has most in common with the row before it, as they are in order. So each object is a copy of one dictionary, in
which only what differs is replaced; that takes half as long as making each of all its pairs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.model.match import Binding, SharedBinding, row_key, term_key
from triplewire.model.terms import Term
from triplewire.verify.rows import Bindings, Row, Steps, ToTerms, UsedTerms

_TERMS = 1 << 18  # in rows that are put in order together
_ROWS = 1 << 14  # that become objects together: with fewer, the collector looks at all there is far more often

Made: TypeAlias = tuple[Binding, ...]
Selects: TypeAlias = Sequence[Sequence[str]]


def shared(bindings: Bindings, selection: Ids, selections: Selects, terms: ToTerms) -> Iterator[Made]:
    """The bindings of each pair; those of one selection that are the same are one object. `selection` is the place in
    `selections` of the selected variables, each once; `terms` gives terms of the batch by their numbers.

    They are made shortly before they are taken, and let go behind the last pair that has them: of many, where the one
    who takes them keeps none, a part is there at a time."""
    return chain.from_iterable(_all_taken(bindings, selection, selections, terms))


def _all_taken(bindings: Bindings, selection: Ids, selections: Selects, terms: ToTerms) -> Iterator[Iterator[Made]]:
    """What `shared` gives, in portions. Nothing is worked out before the first is asked for."""
    number, first = bindings.alike(selection)
    selects = [selections[place] for place in selection[first].tolist()]
    yield from _taken(number, first, objects(bindings, first, selects, terms))


def _taken(number: Ids, first: Ids, portions: Iterator[list[Made]]) -> Iterator[Iterator[Made]]:
    """What has each `number`. The portions have it in order; first[n] is the place where n is first asked for."""
    last = np.zeros(len(first), np.int64)
    last[number] = np.arange(len(number))
    made: list[Made] = []
    begin = 0
    while begin < len(number):
        made.extend(next(portions))
        end = int(first[len(made)]) if len(made) < len(first) else len(number)
        yield map(made.__getitem__, number[begin:end].tolist())
        for place in np.flatnonzero((last >= begin) & (last < end)).tolist():
            made[place] = ()
        begin = end


def of_few(rows: Sequence[Sequence[Row]], selects: Selects, terms: ToTerms) -> list[Made]:
    """The bindings of few pairs, whose few rows are Python lists in any order: with few, NumPy takes longer."""
    used = sorted(set(chain.from_iterable(chain.from_iterable(rows))) - {-1})
    known: dict[int, Term] = dict(zip(used, terms(np.array(used, np.int64)), strict=True))
    made: dict[tuple[tuple[str, ...], tuple[Row, ...]], Made] = {}
    out: list[Made] = []
    for own, select in zip(rows, selects, strict=True):
        key = tuple(select), tuple(own)
        bindings = made.get(key)
        if bindings is None:
            ordered = own if len(own) == 1 else sorted(own, key=lambda row: row_key(map(known.get, row)))
            named = ([(name, known[id_]) for name, id_ in zip(select, row, strict=True) if id_ >= 0] for row in ordered)
            bindings = made[key] = tuple(map(SharedBinding, named))
        out.append(bindings)
    return out


def objects(
    bindings: Bindings, pairs: NDArray[np.integer[Any]], selects: Selects, terms: ToTerms
) -> Iterator[list[Made]]:
    """The bindings of pairs, of some pairs at a time. `selects` are the selected variables of each, each once.
    Their order depends on the terms alone, not on what else is in the batch."""
    if bindings.answers:
        count = bindings.count.copy()
        count[list(bindings.answers)] = 0  # their rows, if there are any, are not all or not those kept
        bindings = replace(bindings, count=count)
    for begin, end in _portions(bindings.count[pairs] * bindings.width[pairs], _TERMS):
        portion = pairs[begin:end]
        steps, every = _ordered(UsedTerms(bindings, portion), terms)
        for start, stop in _portions(bindings.count[portion], _ROWS):
            with _uncollected():
                made = _made(steps, every, start, stop, selects[begin + start : begin + stop])
            for place, pair in enumerate(portion[start:stop].tolist() if bindings.answers else ()):
                if pair in bindings.answers:
                    made[place] = bindings.answers[pair].bindings
            yield made


def _ordered(used: UsedTerms, terms: ToTerms) -> tuple[Steps, NDArray[Any]]:
    """The steps through rows, and the terms in their order, None for unbound."""
    unbound = int(np.count_nonzero(used.ids < 0))  # it comes first
    stated: list[Term | None] = [*[None] * unbound, *terms(used.ids[unbound:])]
    keys = [("",) if value is None else term_key(value) for value in stated]
    order = np.array(sorted(range(len(stated)), key=keys.__getitem__), np.int64)
    every = np.empty(len(stated), object)
    every[:] = stated
    return used.steps(order), every[order]


def _made(steps: Steps, every: NDArray[Any], start: int, stop: int, selects: Selects) -> list[Made]:
    """The bindings of the pairs from start to stop. What the steps are becomes objects for these only: long lists would
    take the collector long."""
    offset = steps.offset[start : stop + 1]
    own = slice(offset[0], offset[-1])
    columns, completes = steps.column[own].tolist(), steps.completes[own].tolist()
    terms, ends = every[steps.place[own]].tolist(), (offset - offset[0]).tolist()
    is_bound = None not in every[:1]
    copied = SharedBinding if is_bound else _bound
    out: list[Made] = []
    for select, begin, end in zip(selects, ends, ends[1:], strict=False):
        if not select:
            out.append((SharedBinding(),))
        elif end - begin == len(select):  # one row
            items = zip(select, terms[begin:end])  # noqa: B905  # `strict` takes a tenth of the time of all this
            out.append((SharedBinding(items) if is_bound else _bound(dict(items)),))
        else:
            row: dict[str, Any] = dict.fromkeys(select)
            rows = []
            for column, term, is_whole in zip(columns[begin:end], terms[begin:end], completes[begin:end], strict=True):
                row[select[column]] = term
                if is_whole:
                    rows.append(copied(row))
            out.append(tuple(rows))
    return out


def _bound(row: dict[str, Any]) -> SharedBinding:
    return SharedBinding([item for item in row.items() if item[1] is not None])


def _portions(sizes: NDArray[np.integer[Any]], most: int) -> Iterator[tuple[int, int]]:
    """From where to where there are at most so many together, or one has more."""
    so_far = np.cumsum(sizes)
    return pairwise([0, *(np.flatnonzero(np.diff(so_far // most)) + 1).tolist(), len(sizes)])


@contextmanager
def _uncollected() -> Iterator[None]:
    """No search for garbage meanwhile: all that is made is in use."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
