"""In which order expensive calls are made: each at most once a publication, and as few as possible (operators paper).

Subscriptions here are conjunctions of calls with constants, and the publication satisfies all else that they ask for.
An order is a way through them (`protocol`): `naive`, `sequential` and `sub-order` are the paper's, `greedy` is the
default. What calls cost and how often they are true is learned (`statistics`). Answers do not depend on any of it.
"""

from __future__ import annotations

from triplewire.errors import TriplewireError

GREEDY, SUB_ORDER = "greedy", "sub-order"
ORDERS = (GREEDY, SUB_ORDER, "sequential", "naive")


def check_order(name: str) -> None:
    """Raises `TriplewireError` where there is no order of this name."""
    if name not in ORDERS:
        raise TriplewireError(f"there is no order of operators {name!r}", remedy=f"known: {', '.join(ORDERS)}")
