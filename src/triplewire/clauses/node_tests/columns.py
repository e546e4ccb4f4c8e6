"""Columns of byte strings, and slices of numbers: what flat arrays are made of.

Also: objects that hold arrays, as files have them (`flat`, `unflat`), and terms of a batch as Python objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Ids, Offsets, Terms
from triplewire.encode.names import Names, strings_at
from triplewire.encode.strings import joined
from triplewire.model.packed import literal_with
from triplewire.model.terms import Literal

Number = TypeVar("Number", np.int32, np.int64)
Arrays: TypeAlias = dict[str, NDArray[np.generic]]


def to_bytes(text: str) -> bytes:
    """UTF-8; a lone surrogate, which only a program can write, stays what it is."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """The string that `to_bytes` made this of."""
    return data.decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Strings(Sequence[bytes]):
    """Byte strings, one behind the other."""

    text: Bytes
    offset: Offsets  # one longer than there are strings

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Strings:
        """From Python's byte strings."""
        return cls(*joined(parts))

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, row: int) -> bytes:  # type: ignore[override]  # no slices
        if row >= len(self):
            raise IndexError(row)
        return self.text[self.offset[row] : self.offset[row + 1]].tobytes()

    def take(self, rows: NDArray[np.integer[Any]]) -> Strings:
        """Some of the strings, in this order."""
        return Strings(*strings_at(self.text, self.offset[rows], self.offset[rows + 1]))

    def names(self, seed: int) -> Names:
        """The table of these strings, which are distinct."""
        return Names.of(self.text, self.offset, seed)

    def __iter__(self) -> Iterator[bytes]:
        data, ends = self.text.tobytes(), self.offset.tolist()
        return (data[start:end] for start, end in pairwise(ends))


def ends(lengths: NDArray[np.integer[Any]]) -> Offsets:
    """Offsets of slices with these lengths."""
    offset = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offset[1:])
    return offset


def slices(offset: Offsets | Ids, rows: NDArray[np.integer[Any]]) -> tuple[Offsets, NDArray[np.int64]]:
    """The slices of some rows, put one behind the other: their offsets, and where all that is in them was."""
    lengths = offset[rows + 1] - offset[rows]
    taken = ends(lengths)
    return taken, np.arange(taken[-1]) + np.repeat(offset[:-1][rows] - taken[:-1], lengths)


def concatenated(offsets: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """The offsets of slices that are put one behind the other."""
    ends = np.cumsum([0, *(offset[-1] for offset in offsets)]).tolist()
    shifted: list[NDArray[Number]] = [offset[1:] + end for offset, end in zip(offsets, ends, strict=False)]
    return np.concatenate([offsets[0][:1], *shifted])


def inverse(order: NDArray[np.integer[Any]]) -> Ids:
    """Of each of the numbers 0 .. n-1, its place in an order of them."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def grouped(rows: Iterable[int] | NDArray[np.integer[Any]], count: int) -> tuple[Ids, Offsets]:
    """The positions in `rows` of each of the numbers 0 .. count - 1, ascending, and where each slice begins."""
    row = rows if isinstance(rows, np.ndarray) else np.fromiter(rows, np.int64)
    return np.argsort(row, kind="stable").astype(np.int32), ends(np.bincount(row, minlength=count))


def prefixed(prefix: str, arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """The arrays under longer names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """The arrays that `prefixed` named."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


_FORM = "form"


def flat(value: Any) -> Arrays:
    """A dataclass as arrays by name, for `unflat`. It may hold arrays, further dataclasses, also in tuples and under
    keys of a dictionary, and what JSON can hold. Fields that are not compared, as they keep what was worked out, are
    left out."""
    arrays: Arrays = {}
    form = json.dumps(_taken_apart(value, "", arrays), separators=(",", ":"))
    return arrays | {_FORM: np.frombuffer(form.encode("ascii"), np.uint8)}


def _taken_apart(value: Any, name: str, arrays: Arrays) -> Any:
    """What JSON can say of a value. Its arrays are put down by name, behind that of the value."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    before = f"{name}." if name else ""
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
        whole = {field: _taken_apart(part, before + field, arrays) for field, part in parts.items()}
        return {"class": type(value).__name__, "parts": whole}
    if isinstance(value, dict):
        return {"keys": {key: _taken_apart(part, before + key, arrays) for key, part in value.items()}}
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        return {"items": [_taken_apart(part, f"{before}{place}", arrays) for place, part in enumerate(value)]}
    return value


def unflat(arrays: Mapping[str, NDArray[Any]], classes: Sequence[type]) -> Any:
    """What `flat` made these arrays of, without a copy of them; `classes`: those of its dataclasses. Raises `KeyError`
    or `ValueError` where something is missing."""
    by_name = {cls.__name__: cls for cls in classes}

    def put_together(form: Any) -> Any:
        match form:
            case {"array": name}:
                return arrays[name]
            case {"class": name, "parts": parts}:
                return by_name[name](**{field: put_together(part) for field, part in parts.items()})
            case {"keys": parts}:
                return {key: put_together(part) for key, part in parts.items()}
            case {"items": parts} | list(parts):
                return tuple(map(put_together, parts))
        return form

    return put_together(json.loads(arrays[_FORM].tobytes()))


def text_of(terms: Terms, term: int) -> str:
    """The text of a term."""
    return to_text(terms.text[terms.start[term] : terms.end[term]].tobytes())


def literal_of(terms: Terms, term: int) -> Literal:
    """A term that is a literal."""
    return literal_with(text_of(terms, term), terms.suffixes[terms.suffix[term]])
