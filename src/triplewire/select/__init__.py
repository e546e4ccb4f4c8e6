"""Which subscriptions could match a publication?

A batch goes through `features` (which tests hold of its terms), `walk` (the tries of an `index`) and `settle` (what a
count decides). `everything` is the selector that narrows nothing.

The law of every selector: it may name too many, never too few. What it names is decided by `triplewire.verify`; a
selector and a verifier together are a matcher (`triplewire.matchers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication


class Selector(Protocol):
    """Narrows the subscriptions that it was built over. Never changed afterwards, so any thread may ask it."""

    def candidates(self, publication: Publication) -> Sequence[Subscription]:
        """The subscriptions worth checking, in the order of their ids: all that match, and maybe others."""
