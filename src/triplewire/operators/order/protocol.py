"""What an order is, and what it sees: subscriptions and their calls as flat arrays, one publication at a time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.kernels.calls import event as kernels
from triplewire.kernels.calls.event import Event
from triplewire.operators.order.learned import Expected

Numbers: TypeAlias = NDArray[np.int32]
Outcomes: TypeAlias = NDArray[np.int8]


class Portion(NamedTuple):
    """The calls to make next. With `guesses` they are made one after the other, up to the first whose answer is another
    than guessed: what comes behind it was chosen in vain, and may not be needed."""

    calls: Numbers
    guesses: Sequence[bool] = ()


Plan: TypeAlias = Generator[Portion, Outcomes, None]
"""Yields the calls to make next, and is sent the outcomes of those that were made: FALSE, TRUE or FAILED. It ends when
all is decided."""


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Subscriptions 0 .. n-1 and the calls that each needs. `row`: call -> its row in the learned statistics."""

    offset: Numbers  # subscription -> its slice of `call`
    call: Numbers
    back_offset: Numbers  # call -> its slice of `back`
    back: Numbers  # the subscriptions that need it, ascending
    row: NDArray[np.int64]
    _first: dict[int, Event] = field(default_factory=dict, repr=False)  # at 0: how a publication began before

    @classmethod
    def of(cls, offset: Numbers, rows: NDArray[np.int64]) -> Conjunctions:
        """Those of subscriptions whose calls are given by their rows."""
        row, inverse = np.unique(rows, return_inverse=True)
        call: Numbers = inverse.astype(np.int32)
        back_offset, back = np.zeros(len(row) + 1, np.int32), np.empty(len(call), np.int32)
        kernels.transposed(offset, call, back_offset, back)
        return cls(offset, call, back_offset, back, row)

    def begun(self, candidates: Numbers, known: Numbers, outcomes: Outcomes) -> Event:
        """The state at the beginning of a publication to which these subscriptions are open. `known`: calls whose
        outcomes there are already."""
        subscriptions, calls = len(self.offset) - 1, len(self.row)
        first = self._first.get(0)
        if first is not None and first.candidate is candidates and not len(known):  # often: all subscriptions
            state, count = first.state.copy(), first.count.copy()
        else:
            state, count = np.empty(subscriptions, np.int8), np.empty(calls, np.int32)
        event = Event(
            self.offset, self.call, self.back_offset, self.back, candidates,
            np.zeros(calls, np.int8), state, count,
        )  # fmt: skip
        if first is None or first.candidate is not candidates or len(known):
            event.outcome[known] = outcomes
            kernels.begin(event)
            if not len(known):
                self._first[0] = event._replace(state=state.copy(), count=count.copy())
        return event


class CallOrder(Protocol):
    """A way through the calls. The order changes the cost, never an answer. Safe with threads."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """The calls of a publication. `event` has been begun. `together`: it is worth while to ask for several calls at
        once."""
