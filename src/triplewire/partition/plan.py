"""The protocol of a partitioner, those that look at no subscription, and all of them by name.

*replicated*: everything is in the index, and the index is on every machine. *random*: the paper's straw man, for which
every publication goes to every node.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Protocol

from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.partition.containment_partitioner import ContainmentPartitioner
from triplewire.partition.merging import MergingPartitioner
from triplewire.partition.placement import SERVER, Placement

NAMES = ("replicated", "containment", "merging", "random")


class Partitioner(Protocol):
    """Decides where subscriptions are; keeps `placement` right as they come and go."""

    placement: Placement

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Place new subscriptions, each with an id of its own."""

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription, and repair what hung on it (001, section 4.4)."""


class Replicated:
    """Everything is at the server, which every machine has a copy of."""

    def __init__(self, nodes: int) -> None:
        self.placement = Placement(nodes)

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Place new subscriptions."""
        for subscription in subscriptions:
            self.placement.put(subscription.id, self.place_of())

    def place_of(self) -> int:
        """The place of the next subscription."""
        return SERVER

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription."""
        self.placement.drop(id)


class Random(Replicated):
    """Any subscription is on any node; `seed` decides."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        self.placement = Placement(nodes, everywhere=True)
        self._chance = random.Random(seed)

    def place_of(self) -> int:
        """The place of the next subscription."""
        return self._chance.randrange(self.placement.nodes)


def partitioner(
    name: str,
    nodes: int,
    world: World,
    *,
    entailment: str = "none",
    sample: Iterable[Publication] = (),
    percent: float = 70,
) -> Partitioner:
    """The partitioner of this name, empty. `sample` and `percent`, of the subscriptions that are merged, are for
    *merging*. Raises `TriplewireError` for another name, and for less than one node."""
    if nodes < 1:
        raise TriplewireError(f"{nodes} nodes cannot hold subscriptions", remedy="give 1 or more")
    if name == "replicated":
        return Replicated(nodes)
    if name == "random":
        return Random(nodes)
    if name == "containment":
        return ContainmentPartitioner(nodes, world, entailment)
    if name == "merging":
        return MergingPartitioner(nodes, world, entailment, sample=tuple(sample), percent=percent)
    raise TriplewireError(f"there is no partitioner {name!r}", remedy=f"known: {', '.join(NAMES)}")
