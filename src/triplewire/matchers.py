"""Matchers by name: which selector and which verifier work together.

A matcher is a plug-in of the family "matcher" (`triplewire.plugins`): a function `(subscriptions, world) -> Matcher`,
called anew whenever the set of subscriptions has changed. All give the same answers; they differ in what they cost.
To add one: a selector in `triplewire.select`, a function here, its name in `triplewire.plugins`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from triplewire.ir.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.select import Selector
from triplewire.select.everything import Everything
from triplewire.verify import Verifier
from triplewire.verify.reference import Reference


@dataclass(frozen=True, slots=True)
class Matcher:
    """A selector and a verifier over one fixed set of subscriptions."""

    selector: Selector
    verifier: Verifier


class MakeMatcher(Protocol):
    """What the name of a matcher stands for."""

    def __call__(self, subscriptions: Sequence[Subscription], world: World) -> Matcher:
        """A matcher over these subscriptions, with the taxonomy, operators and limits of `world`."""


def reference(subscriptions: Sequence[Subscription], world: World) -> Matcher:
    """Every pair, by the reference meaning: slow, obvious, and right by definition."""
    return Matcher(Everything(subscriptions), Reference(world))
