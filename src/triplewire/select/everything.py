"""The selector that narrows nothing: every subscription is worth checking. All others are tested against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication


class Everything:
    """Names all subscriptions for every publication."""

    def __init__(self, subscriptions: Iterable[Subscription]) -> None:
        self._subscriptions = tuple(sorted(subscriptions, key=lambda subscription: subscription.id))

    def candidates(self, publication: Publication) -> Sequence[Subscription]:
        """All of them."""
        return self._subscriptions
