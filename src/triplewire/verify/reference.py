"""The verifier that every other is tested against: the reference meaning, one candidate after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from triplewire.errors import TriplewireError
from triplewire.ir.evaluate import World, evaluate
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.verify import Outcome


class Reference:
    """Evaluates each pair by itself."""

    def __init__(self, world: World) -> None:
        self._world = world

    def verify(self, publication: Publication, candidates: Iterable[Subscription]) -> Iterator[Outcome]:
        """The candidates that match or fail; a failing one never keeps the others from their answers."""
        world = self._world
        for subscription in candidates:
            try:
                answer = evaluate(subscription, publication, world)
            except TriplewireError as error:
                yield subscription, error
                continue
            if answer.bindings or answer.failures:
                yield subscription, answer
