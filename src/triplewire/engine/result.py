"""What `Engine.match` returns: the matches, the pairs that failed, and what it cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from triplewire.engine.construct import construct
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.evaluate import Answer
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Match
from triplewire.model.publication import Publication


@dataclass
class MatchResult(Sequence[Match]):
    """The matches in the order of the publications given, then of the subscriptions' ids; it is their sequence.

    `refusals` are the pairs that could not be decided (a limit, a failed operator), of kind "pair"; `publications` and
    `pairs` count what was looked at, `truncated` the matches whose bindings were cut; `seconds` is wall time.
    """

    matches: list[Match] = field(default_factory=list, repr=False)
    refusals: list[Refusal] = field(default_factory=list)
    publications: int = 0
    pairs: int = 0
    truncated: int = 0
    seconds: float = 0.0

    def add(self, publication: Publication, subscription: Subscription, outcome: Answer | TriplewireError) -> None:
        """Record what a verifier said of a pair."""
        pair = f"{publication.id} {subscription.id}"
        if isinstance(outcome, TriplewireError):
            self.refusals.append(Refusal.of("pair", pair, outcome))
            return
        self.refusals += [Refusal.of("pair", pair, failure) for failure in outcome.failures]
        if not outcome.bindings:
            return
        payload = None
        if subscription.construct is not None:
            payload = construct(subscription.construct, outcome.bindings)
        now = dt.datetime.now(dt.UTC)
        self.matches.append(Match(publication.id, subscription.id, outcome.bindings, outcome.truncated, now, payload))
        self.truncated += outcome.truncated

    def __len__(self) -> int:
        return len(self.matches)

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...

    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        return self.matches[index]
