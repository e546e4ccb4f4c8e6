"""The checks of registration: limits, and that a subscription has something to match (semantics, section 2)."""

from __future__ import annotations

from triplewire.config import Settings
from triplewire.ir.nodes import Where
from triplewire.ir.subscription import Subscription


def check(subscription: Subscription, settings: Settings) -> Where:
    """The tree to register."""
    return subscription.where
