"""What an order is, and what it sees: subscriptions and their calls as flat arrays, one publication at a time."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.kernels.calls import event as kernels
from triplewire.kernels.calls.event import Event
from triplewire.operators.order.tables import Expected as Expected

Numbers: TypeAlias = NDArray[np.int32]
Outcomes: TypeAlias = NDArray[np.int8]

Plan: TypeAlias = Generator[Numbers, Outcomes, None]
"""Yields the calls to make next, and is sent their outcomes: FALSE, TRUE or FAILED. It ends when all is decided."""


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Subscriptions 0 .. n-1 and the calls that each needs. `row`: call -> its row in the learned statistics."""

    offset: Numbers  # subscription -> its slice of `call`
    call: Numbers
    back_offset: Numbers  # call -> its slice of `back`
    back: Numbers  # the subscriptions that need it, ascending
    row: NDArray[np.int64]

    @classmethod
    def of(cls, offset: Numbers, rows: NDArray[np.int64]) -> Conjunctions:
        """Those of subscriptions whose calls are given by their rows."""
        row, inverse = np.unique(rows, return_inverse=True)
        call: Numbers = inverse.astype(np.int32)
        back_offset, back = np.zeros(len(row) + 1, np.int32), np.empty(len(call), np.int32)
        kernels.transposed(offset, call, back_offset, back)
        return cls(offset, call, back_offset, back, row)

    def event(self, candidates: Numbers) -> Event:
        """The state at the beginning of a publication to which these subscriptions are open; nothing is called yet."""
        subscriptions, calls = len(self.offset) - 1, len(self.row)
        return Event(
            self.offset, self.call, self.back_offset, self.back, candidates,
            np.zeros(calls, np.int8), np.empty(subscriptions, np.int8),
            np.empty(calls, np.int32), np.empty(subscriptions, np.int32),
        )  # fmt: skip


class CallOrder(Protocol):
    """A way through the calls. The order changes the cost, never an answer. Safe with threads."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected) -> Plan:
        """The calls of a publication. `kernels.begin` has been done."""
