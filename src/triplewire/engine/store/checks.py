"""The arrays of a saved segment beside its clauses and its index, checked before anything trusts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import under
from triplewire.clauses.schema import Column, Schema, blocks, check, check_names, from_json, require
from triplewire.engine.segments.segment import Selection

_SEGMENT: Schema = {
    "start": Column("i8", ("subscriptions",)),
    "length": Column("i4", ("subscriptions",), least=1),
    "rank": Column("i4", ("subscriptions",), below="subscriptions"),
    "selection": Column("i4", ("subscriptions",), below="selections"),
    "construct": Column("u1", ("subscriptions",), below=2),
    "pinned": Column("i4", ("pinned",), below="subscriptions"),
    "selections": Column("u1", ("bytes",)),
    "operators": Column("u1", ("more bytes",)),
}


def check_segment(arrays: Mapping[str, NDArray[Any]], text_bytes: int) -> int:
    """Check what is saved of a segment whose texts have so many bytes. Returns how many subscriptions there are. Raises
    `ValueError`."""
    selections = len(selections_of(arrays))
    operators_of(arrays)
    count = check(_SEGMENT, arrays, "segment", {"selections": selections})["subscriptions"]
    check_names(under("ids", arrays), "ids", count)
    start, length, end = arrays["start"], arrays["length"], 0
    for first, last in blocks(count):
        lengths = length[first:last].astype(np.int64)
        ends = end + np.cumsum(lengths)
        require(np.array_equal(start[first:last], ends - lengths), "the texts do not follow each other")
        end = int(ends[-1])
    require(end == text_bytes, f"the texts have {end:,} bytes, and their file {text_bytes:,}")
    there = np.zeros(count, np.bool_)
    there[arrays["rank"]] = True
    require(there.all(), "the array rank has not each number once")
    require((np.diff(arrays["pinned"]) > 0).all(), "the array pinned is out of order")
    return count


def check_selected(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check that clauses, which are right by themselves, select as many variables as their subscriptions name. Raises
    `ValueError`."""
    names = np.array([len(set(selection or ())) for selection in selections_of(arrays)], np.int64)
    selected, selection = arrays["clauses.table.selected"], arrays["selection"]
    for begin, end in blocks(len(selected)):
        same = np.array_equal(selected[begin:end], names[selection[begin:end]])
        require(same, "the array clauses.table.selected is not that of the selections")


def selections_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[Selection, ...]:
    """The selected variables that occur. Raises `ValueError` where the array says something else."""
    selections = from_json(arrays["selections"], "selections")
    is_right = isinstance(selections, list) and all(
        names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
        for names in selections
    )
    require(is_right, "the array selections has no lists of names")
    return tuple(None if names is None else tuple(names) for names in selections)


def operators_of(arrays: Mapping[str, NDArray[Any]]) -> frozenset[tuple[str, int]]:
    """The operators that are called, with the number of arguments. Raises `ValueError` as `selections_of`."""
    operators = from_json(arrays["operators"], "operators")
    is_right = isinstance(operators, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int
        for pair in operators
    )
    require(is_right, "the array operators has no pairs of names and numbers")
    return frozenset((name, count) for name, count in operators)
