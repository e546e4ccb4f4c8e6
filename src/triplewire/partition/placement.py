"""Where each subscription is, and which nodes a match at the server leads to.

The server matches every publication against its index: subscriptions, and mergers that stand for several of them. Under
each, `routes` name the nodes that hold what may match where it does.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from triplewire.engine import Engine
from triplewire.engine.compiler import row_of
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.tables import line_of
from triplewire.plugins import DEFAULT_MATCHER

SERVER = -1
"""The place of a subscription that is in the index of the server."""


@dataclass(slots=True)
class Placement:
    """`place`: subscription -> `SERVER` or the number of its node. `routes`: id at the server -> node -> how many
    subscriptions are there on its account. `above`: subscription -> what it hangs below, an id at the server, and
    `below` the other way. `mergers`: those of the ids at the server that are no subscriptions. `scattered`: those on
    nodes that hang below nothing, so that every publication goes there. `sizes`: how many subscriptions are in each
    place."""

    nodes: int
    place: dict[str, int] = field(default_factory=dict)
    routes: dict[str, dict[int, int]] = field(default_factory=dict)
    above: dict[str, str] = field(default_factory=dict)
    below: dict[str, dict[str, None]] = field(default_factory=dict)
    mergers: dict[str, Subscription] = field(default_factory=dict)
    scattered: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)

    @property
    def everywhere(self) -> frozenset[int]:
        """The nodes that every publication goes to."""
        return frozenset(node for node, count in self.scattered.items() if count)

    @property
    def server_size(self) -> int:
        """How many subscriptions and mergers the index of the server has."""
        return self.sizes[SERVER] + len(self.mergers)

    def put(self, id: str, where: int) -> None:
        """Put a subscription at the server or on a node, from wherever it is."""
        if id in self.place:
            self.sizes[self.place[id]] -= 1
        self.sizes[where] += 1
        self.place[id] = where

    def scatter(self, id: str, node: int) -> None:
        """Put a subscription on a node, below nothing."""
        self.put(id, node)
        self.scattered[node] += 1

    def gather(self, id: str) -> None:
        """Forget a subscription that was put on a node below nothing."""
        self.scattered[self.place[id]] -= 1
        self.drop(id)

    def drop(self, id: str) -> None:
        """Forget a subscription."""
        self.sizes[self.place.pop(id)] -= 1

    def hang(self, id: str, above: str) -> None:
        """Put a subscription below what is at the server: on its node, or else on the one with the fewest there, and
        of these the one with the fewest at all. It hangs nowhere else then."""
        if id in self.above:
            self.unhang(id)
        self.above[id] = above
        self.below.setdefault(above, {})[id] = None
        routes = self.routes.setdefault(above, {})
        where = self.place.get(id, SERVER)
        if where == SERVER:
            where = min(range(self.nodes), key=lambda node: (routes.get(node, 0), self.sizes[node]))
        self.put(id, where)
        routes[where] = routes.get(where, 0) + 1

    def unhang(self, id: str) -> None:
        """Take its share out of the routes, and leave it where it is."""
        above = self.above.pop(id)
        del self.below[above][id]
        if not self.below[above]:
            del self.below[above]
        routes, where = self.routes[above], self.place[id]
        routes[where] -= 1
        if not routes[where]:
            del routes[where]
        if not routes:
            del self.routes[above]

    def hanging(self, above: str) -> list[str]:
        """The subscriptions that hang below this."""
        return list(self.below.get(above, ()))

    def nodes_of(self, id: str) -> frozenset[int]:
        """The nodes that a publication goes to which matches this at the server."""
        return frozenset(self.routes.get(id, ()))


def engine_of(
    subscriptions: Iterable[Subscription], world: World, entailment: str = "none", matcher: str = DEFAULT_MATCHER
) -> Engine:
    """An engine of this world and entailment with these subscriptions. Raises what `Engine.subscribe` raises."""
    engine = Engine(
        taxonomy=world.taxonomy,
        matcher=matcher,
        operators=world.operators,
        settings=world.settings,
        entailment=entailment,
    )
    add(engine, subscriptions)
    return engine


def add(engine: Engine, subscriptions: Iterable[Subscription]) -> None:
    """Register subscriptions as they are. What an MDV rule means depends on others, and what a program made has no
    text: these are taken one at a time."""
    with tempfile.TemporaryDirectory(prefix="triplewire-shard-") as folder:
        path, count = Path(folder, "subscriptions.jsonl"), 0
        with path.open("wb") as rows:
            for subscription in subscriptions:
                if subscription.language == "mdv" or not subscription.text:
                    engine.subscribe(subscription)
                else:
                    rows.write(line_of(row_of(subscription)))
                    count += 1
        if count:
            engine.load_subscriptions(path)
