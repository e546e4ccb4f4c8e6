"""What arrays from a file have to be before any code trusts them: type, shape, and what numbers they may hold.

A schema says it of each array by name. Sizes have names, too: the first array that has a size of a name tells how much
it is, and all others have to agree. All checks read the arrays once, from end to end, in blocks that stay near the
processor. They raise `ValueError`, which says what is wrong with which array.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 18  # numbers that are looked at together
Size: TypeAlias = "str | int"
"""A number, or the name of one: "clauses"; "clauses+1" is one more."""


class Column(NamedTuple):
    """One array. Its numbers are from `least` on, and below `below` where that is given. An array of `offsets` begins
    with 0, never falls, and ends with the size of that name."""

    kind: str  # NumPy's name of the type; "u1|i4" is one of them
    shape: tuple[Size, ...]
    below: Size = ""
    least: int = 0
    offsets: Size = ""


Schema: TypeAlias = "Mapping[str, Column]"
Sizes: TypeAlias = "dict[str, int]"


def check(schema: Schema, arrays: Mapping[str, NDArray[Any]], part: str, sizes: Mapping[str, int]) -> Sizes:
    """Raises `ValueError` where an array is missing or not as its column says. `part` stands before the names in
    messages; `sizes` are those that are known. Returns them with those that the arrays tell."""
    known: Sizes = dict(sizes)
    for name, column in schema.items():
        if name not in arrays:
            raise ValueError(f"the array {part}.{name} is missing")
        array = arrays[name]
        kinds = [np.dtype(kind) for kind in column.kind.split("|")]
        if array.dtype not in kinds:
            raise ValueError(f"the array {part}.{name} holds {array.dtype}, not {' or '.join(map(str, kinds))}")
        if array.ndim != len(column.shape) or not all(map(_agrees, array.shape, column.shape, [known] * array.ndim)):
            stated = ", ".join(f"{size}" for size in column.shape)
            raise ValueError(f"the array {part}.{name} has the shape {array.shape}, not ({stated})")
    for name, column in schema.items():
        _check_numbers(column, arrays[name], f"{part}.{name}", known)
    return known


def _agrees(length: int, size: Size, sizes: Sizes) -> bool:
    """Is the length that of the size? It says what a size is that is not known."""
    if isinstance(size, int):
        return length == size
    name, plus, more = size.partition("+")
    length -= int(more) if plus else 0
    return length >= 0 and sizes.setdefault(name, length) == length


def _number(size: Size, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    name, plus, more = size.partition("+")
    return sizes[name] + (int(more) if plus else 0)


def _check_numbers(column: Column, array: NDArray[Any], name: str, sizes: Sizes) -> None:
    if column.offsets != "":
        end = _number(column.offsets, sizes)
        if array[0] != 0 or array[-1] != end or not is_ascending(array):
            raise ValueError(f"the offsets {name} do not go from 0 up to {end:,}")
    elif column.below != "":
        below = _number(column.below, sizes)
        if not is_within(array, column.least, below):
            raise ValueError(f"the array {name} holds a number that is not between {column.least} and {below - 1:,}")
    elif array.dtype.kind == "i" and column.least > np.iinfo(array.dtype).min and not is_within(array, column.least):
        raise ValueError(f"the array {name} holds a number below {column.least}")


def blocks(length: int) -> Iterator[tuple[int, int]]:
    """The beginning and the end of blocks that are looked at together."""
    return ((begin, min(begin + BLOCK, length)) for begin in range(0, length, BLOCK))


def is_within(array: NDArray[Any], least: int, below: int | None = None) -> bool:
    """Are all numbers from `least` on, and below `below`?"""
    flat = array.reshape(-1)
    parts = (flat[begin:end] for begin, end in blocks(len(flat)))
    return all(least <= part.min() and (below is None or part.max() < below) for part in parts)


def is_ascending(array: NDArray[Any]) -> bool:
    """Is no number below the one before it?"""
    return not any((array[begin + 1 : end + 1] < array[begin:end]).any() for begin, end in blocks(len(array) - 1))


def require(holds: bool | np.bool_, what: str) -> None:
    """Raises `ValueError` where something does not hold."""
    if not holds:
        raise ValueError(what)


def from_json(array: NDArray[Any], name: str) -> Any:
    """What an array says as JSON. Raises `ValueError` where it says nothing."""
    try:
        return json.loads(array.tobytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the array {name} is no JSON") from error


# --- tables of strings -----------------------------------------------------------------------------------------------

_NAMES = {
    "text": Column("u1", ("bytes",)),
    "offset": Column("i8", ("strings+1",), offsets="bytes"),
    "hash": Column("u8", ("strings",)),
    "slots": Column("i4", ("places",), below="strings", least=-1),
    "seed": Column("i8", (1,)),
    "kind": Column("u1", ("kinds",)),
}


def check_names(arrays: Mapping[str, NDArray[Any]], part: str, strings: int | None = None, terms: bool = False) -> int:
    """Check a table of strings (`triplewire.encode.names.Names`), of so many `strings` where that is known, whose
    kinds are those of `terms` or empty. Returns how many strings there are."""
    sizes = check(_NAMES, arrays, part, {} if strings is None else {"strings": strings})
    count, places = sizes["strings"], sizes["places"]
    require(sizes["kinds"] == (count if terms else 0), f"the array {part}.kind has not a kind for each string")
    # with free places, and each string there, every look-up ends
    require(places & (places - 1) == 0 and places > count, f"the array {part}.slots has {places:,} places")
    there = np.zeros(count + 1, np.bool_)
    slots = arrays["slots"]
    for begin, end in blocks(places):
        there[slots[begin:end]] = True  # of free places, the last
    filled = sum(int(np.count_nonzero(slots[begin:end] >= 0)) for begin, end in blocks(places))
    require(filled == count and there[:count].all(), f"the array {part}.slots has not each string once")
    return count
