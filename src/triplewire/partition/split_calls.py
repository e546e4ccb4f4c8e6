"""Subscriptions of operator calls alone, on the nodes.

Nothing at the server says which publications may match them, so each publication goes to each node that has some. 002
(section 7) leaves open how subscriptions are split among brokers; here those that share calls go together, so that few
calls are made twice, as long as no node has many more than others.

    for each subscription, those with many calls first:
        of the nodes that with its calls have at most `SLACK` times the average of all nodes, and of the least node:
            put it where most of its calls are made already, of several where fewest are made

This is the streaming partitioning of Stanton and Kliot ("linear deterministic greedy", KDD 2012) with calls in place of
neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from triplewire.ir.normal_form import Clause
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.model.origins import FROM_SOURCE
from triplewire.partition.placement import Placement

SLACK = 1.2
"""How many times the calls of a node on average one may have to make."""


def calls_of(subscription: Subscription) -> frozenset[str]:
    """The operator calls of a subscription, as texts; that of FROM is none."""
    return frozenset(show(call) for call in calls_in(subscription.where) if call.operator != FROM_SOURCE)


def has_calls_alone(subscription: Subscription, clauses: Sequence[Clause]) -> bool:
    """Can it match a publication because of calls, whatever that says? `clauses`: those of its normal form."""
    is_open = not clauses or any(not clause.patterns for clause in clauses)
    return is_open and bool(calls_of(subscription))


class CallSplit:
    """Puts subscriptions of calls alone on the nodes of a placement, and takes them away."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._calls: dict[str, frozenset[str]] = {}  # by subscription
        self._made = [Counter[str]() for _ in range(placement.nodes)]  # node -> call -> subscriptions that ask it

    def __contains__(self, id: object) -> bool:
        return id in self._calls

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        """Put these on nodes."""
        new = {subscription.id: calls_of(subscription) for subscription in subscriptions}
        self._calls |= new
        for id, calls in sorted(new.items(), key=lambda entry: (-len(entry[1]), sorted(entry[1]))):
            node = self._node_for(calls)
            self._made[node].update(calls)
            self._placement.scatter(id, node)

    def _node_for(self, calls: frozenset[str]) -> int:
        sizes = [len(made) for made in self._made]
        most = SLACK * (sum(sizes) + len(calls)) / len(sizes)
        after = [size + sum(call not in made for call in calls) for size, made in zip(sizes, self._made, strict=True)]
        allowed = [node for node, size in enumerate(after) if size <= most or sizes[node] == min(sizes)]
        return min(allowed, key=lambda node: (after[node] - sizes[node], sizes[node], node))

    def remove(self, id: str) -> None:
        """Take one away."""
        calls, made = self._calls.pop(id), self._made[self._placement.place[id]]
        made.subtract(calls)
        for call in calls:
            if not made[call]:
                del made[call]
        self._placement.gather(id)
