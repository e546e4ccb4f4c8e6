"""The operator calls that subscriptions need, all of them to hold, as flat arrays.

Which these are: `triplewire.ir.normal_form.calls`. A call is a string in a table of names, so that segments are merged,
saved and loaded without an object a call.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.mapped_zeros import compact_zeros
from triplewire.clauses.node_tests.columns import Arrays, prefixed, slices, under
from triplewire.encode.batch import Ids
from triplewire.encode.names import Names
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.operators.order.keys import key_of, text_of

_SEED = 0x9E3779B9


@dataclass(frozen=True, slots=True)
class RequiredCalls:
    """Subscription -> the operator calls that must all hold; none for a subscription that is no such conjunction."""

    names: Names
    offset: Ids
    call: Ids

    @property
    def keys(self) -> list[CallKey]:
        """The calls by number."""
        return [key_of(self.names[number]) for number in range(len(self.names))]

    def arrays(self) -> Arrays:
        """All of it as flat arrays, for `from_arrays`."""
        return {"offset": self.offset, "call": self.call, **prefixed("names", self.names.arrays())}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RequiredCalls:
        """What `arrays` gave. Raises `KeyError` where something is missing."""
        return cls(Names.from_arrays(under("names", arrays)), arrays["offset"], arrays["call"])

    @classmethod
    def merged(cls, parts: Sequence[tuple[RequiredCalls, NDArray[np.int64]]]) -> RequiredCalls:
        """Those of some subscriptions of each part, numbered on from part to part. Calls that nobody needs any more
        are left behind."""
        names: Names | None = None
        offsets, calls, start = [np.zeros(1, np.int32)], [np.zeros(0, np.int32)], 0
        for part, numbers in parts:
            offset, places = slices(part.offset, numbers)
            call = part.call[places]
            used = np.unique(call)
            new = np.zeros(len(part.names), np.int32)
            if names is None:
                names, new[used] = part.names.take(used), np.arange(len(used), dtype=np.int32)
            else:
                names, new[used] = names.extended(part.names, used)
            offsets.append((offset[1:] + start).astype(np.int32))
            calls.append(new[call])
            start += len(call)
        assert names is not None
        return cls(names, compact_zeros(np.concatenate(offsets)), np.concatenate(calls))


class RequiredCallsBuilder:
    """Collects the calls of subscriptions, one after the other."""

    def __init__(self) -> None:
        self._numbers: dict[CallKey, int] = {}
        self._offset, self._call = array("i", [0]), array("i")

    def add(self, keys: Iterable[CallKey]) -> None:
        """The next subscription needs these."""
        numbers = self._numbers
        self._call.extend([numbers.setdefault(key, len(numbers)) for key in keys])
        self._offset.append(len(self._call))

    def build(self) -> RequiredCalls:
        """Those of all subscriptions. The builder is spent then."""
        names = Names.build([text_of(key).encode("ascii") for key in self._numbers], _SEED)
        self._numbers.clear()
        return RequiredCalls(names, compact_zeros(np.array(self._offset, np.int32)), np.array(self._call, np.int32))
