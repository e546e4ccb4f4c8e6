"""The orders by their names."""

from __future__ import annotations

from triplewire.operators.order import check_order
from triplewire.operators.order.greedy import Greedy
from triplewire.operators.order.in_order import Naive, Sequential
from triplewire.operators.order.protocol import CallOrder
from triplewire.operators.order.sub_order import SubOrder

_KNOWN: dict[str, type[Greedy] | type[SubOrder] | type[Sequential] | type[Naive]] = {
    "greedy": Greedy,
    "sub-order": SubOrder,
    "sequential": Sequential,
    "naive": Naive,
}


def order_named(name: str) -> CallOrder:
    """A new order of a name in `ORDERS`. Raises `TriplewireError` where there is none."""
    check_order(name)
    return _KNOWN[name]()
