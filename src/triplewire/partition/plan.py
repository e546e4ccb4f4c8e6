"""The partitioners by name, and those of them that look at no subscription."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.partition.containment import ContainmentPartitioner
from triplewire.partition.merging import MergingPartitioner
from triplewire.partition.placement import SERVER, Placement
from triplewire.partition.sample import Summary

MERGE_PERCENT = 70.0
"""How many percent of the subscriptions *merging* is to take out of the server's index, unless said."""

NAMES = ("replicated", "containment", "merging", "random")


class Unseen:
    """The partitioners *replicated*, which leaves all at the server, of which every machine has a copy, and *random*,
    where any subscription is on any node, as `seed` decides."""

    def __init__(self, nodes: int, seed: int | None = None) -> None:
        self.placement = Placement(nodes)
        self._chance = None if seed is None else random.Random(seed)

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Place new subscriptions."""
        for subscription in subscriptions:
            if self._chance is None:
                self.placement.put(subscription.id, SERVER)
            else:
                self.placement.scatter(subscription.id, self._chance.randrange(self.placement.nodes))

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription."""
        if self._chance is None:
            self.placement.drop(id)
        else:
            self.placement.gather(id)


Partitioner: TypeAlias = ContainmentPartitioner | MergingPartitioner | Unseen
"""Decides where subscriptions are, and keeps its `placement` right as they come and go."""


def partitioner(
    name: str,
    nodes: int,
    world: World,
    *,
    entailment: str = "none",
    sample: Iterable[Publication] = (),
    summaries: Sequence[Summary] = (),
    percent: float = MERGE_PERCENT,
) -> Partitioner:
    """The partitioner of this name, empty. `sample`, `summaries` and `percent`, of the subscriptions that are merged,
    are for *merging*. Raises `TriplewireError` for another name, for less than one node, and for another
    percentage."""
    if not 0 <= percent < 100:
        raise TriplewireError(f"{percent:g} % cannot leave the server", remedy="give 0 or more, and less than 100")
    if nodes < 1:
        raise TriplewireError(f"{nodes} nodes cannot hold subscriptions", remedy="give 1 or more")
    if name == "replicated":
        return Unseen(nodes)
    if name == "random":
        return Unseen(nodes, seed=1)
    if name == "containment":
        return ContainmentPartitioner(nodes, world, entailment)
    if name == "merging":
        return MergingPartitioner(nodes, world, entailment, sample=tuple(sample), summaries=summaries, percent=percent)
    raise TriplewireError(f"there is no partitioner {name!r}", remedy=f"known: {', '.join(NAMES)}")
