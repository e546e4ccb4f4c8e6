"""The pairs of a chunk that operators decide, as rows. How: `triplewire.verify.operators`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, CallResults, World
from triplewire.ir.subscription import Subscription
from triplewire.matchers import Chunk
from triplewire.model.publication import Publication
from triplewire.verify.in_flight import in_flight
from triplewire.verify.operators import OperatorStage


class Decided(NamedTuple):
    """The matches, as columns (publication, subscription, truncated), and what kept other pairs from an answer."""

    columns: tuple[Ids, Ids, NDArray[np.bool_]]
    failures: list[tuple[int, int, TriplewireError]]


class _Asked(NamedTuple):
    """The pairs of one publication, by their numbers, and the calls about it that have been made."""

    publication: int
    numbers: Sequence[int]
    content: Publication
    subscriptions: Sequence[Subscription]
    made: CallResults


class CalledPairs:
    """Decides pairs for snapshots of columns. Any thread may ask it."""

    def __init__(self, world: World) -> None:
        self.stage = OperatorStage(world)

    def decided(
        self, chunk: Chunk, pairs: Sequence[tuple[int, int]], subscription: Callable[[int], Subscription]
    ) -> Decided:
        """Of pairs (publication, subscription) of the chunk, those that match and those that are undecided.

        `subscription` gives one by its number. The calls that are made stay with the chunk, for the bindings.
        """
        matches: list[tuple[int, int, bool]] = []
        failures: list[tuple[int, int, TriplewireError]] = []

        def asked() -> Iterator[_Asked]:  # in the thread of the caller, as it takes up the chunk
            for publication, together in groupby(sorted(pairs), lambda pair: pair[0]):
                numbers = [number for _, number in together]
                subscriptions = list(map(subscription, numbers))
                content, made = chunk.publication(publication), chunk.calls.of(publication)
                yield _Asked(publication, numbers, content, subscriptions, made)

        for publication, numbers, outcomes in in_flight(self._one, asked(), self.stage.caller.at_once):
            for number, outcome in zip(numbers, outcomes, strict=True):
                if isinstance(outcome, TriplewireError):
                    failures.append((publication, number, outcome))
                elif outcome.bindings:
                    matches.append((publication, number, outcome.truncated))
                else:
                    failures += [(publication, number, failure) for failure in outcome.failures]
        columns = np.array(matches, np.int32).reshape(-1, 3)
        return Decided((columns[:, 0], columns[:, 1], columns[:, 2] != 0), failures)

    def _one(self, asked: _Asked) -> tuple[int, Sequence[int], list[Answer | TriplewireError]]:
        """The outcomes of the pairs of one publication."""
        outcomes = self.stage.decide(asked.content, asked.subscriptions, asked.made)
        return asked.publication, asked.numbers, outcomes
