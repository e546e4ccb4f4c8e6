"""Does a candidate match? The exact answer; `reference` asks `triplewire.ir.evaluate`, pair by pair.

Which candidates there are says `triplewire.select`; a selector and a verifier together are a matcher
(`triplewire.matchers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from triplewire.errors import TriplewireError
from triplewire.ir.evaluate import Answer
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication

Outcome: TypeAlias = tuple[Subscription, Answer | TriplewireError]
"""A candidate with its answer, or with the error that kept it from one."""


class Verifier(Protocol):
    """Decides candidates exactly as `triplewire.ir.evaluate` does. Any thread may ask it."""

    def verify(self, publication: Publication, candidates: Iterable[Subscription]) -> Iterator[Outcome]:
        """The candidates that match or could not be decided, in the order given. Those that do not match are left
        out: they are nearly all, and cost nothing more than the evaluation."""
