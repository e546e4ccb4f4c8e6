"""The operator calls that subscriptions need, all of them to hold, as flat arrays.

Which these are: `triplewire.ir.normal_form.calls`. A call is a string in a table of names, so that segments are merged,
saved and loaded without an object a call.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.mapped_zeros import compact_zeros
from triplewire.clauses.node_tests.columns import concatenated, slices
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

    @classmethod
    def merged(cls, parts: Sequence[tuple[RequiredCalls, NDArray[np.int64]]]) -> RequiredCalls:
        """Those of some subscriptions of each part, numbered on from part to part. Calls that nobody needs any more
        are left behind."""
        offsets, places = zip(*[slices(part.offset, numbers) for part, numbers in parts], strict=True)
        calls = [part.call[taken] for (part, _), taken in zip(parts, places, strict=True)]
        names, new = Names.union([part.names for part, _ in parts], [np.unique(call) for call in calls])
        call = np.concatenate([number[call] for number, call in zip(new, calls, strict=True)])
        return cls(names, compact_zeros(concatenated(offsets).astype(np.int32)), call)


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
