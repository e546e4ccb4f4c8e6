"""The pairs of a chunk that operators decide, as rows. How: `triplewire.verify.operators`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.matchers import Chunk
from triplewire.verify.operators import OperatorStage


class Decided(NamedTuple):
    """The matches, as columns (publication, subscription, truncated), and what kept other pairs from an answer."""

    columns: tuple[Ids, Ids, NDArray[np.bool_]]
    failures: list[tuple[int, int, TriplewireError]]


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
        for publication, together in groupby(sorted(pairs), lambda pair: pair[0]):
            numbers = [number for _, number in together]
            asked = list(map(subscription, numbers))
            outcomes = self.stage.decide(chunk.publication(publication), asked, chunk.calls.of(publication))
            for number, outcome in zip(numbers, outcomes, strict=True):
                if isinstance(outcome, TriplewireError):
                    failures.append((publication, number, outcome))
                elif outcome.bindings:
                    matches.append((publication, number, outcome.truncated))
                else:
                    failures += [(publication, number, failure) for failure in outcome.failures]
        columns = np.array(matches, np.int32).reshape(-1, 3)
        return Decided((columns[:, 0], columns[:, 1], columns[:, 2] != 0), failures)
